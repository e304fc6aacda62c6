"""Packets that somebody forges, put on a wire as they are, and what he can see of others': for the attacks of this folder."""

import random
import socket
import struct

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
ETH_P_IP = 0x0800
HEADER = struct.Struct("!BBHHHBBH4s4s")
TCP = struct.Struct("!HHIIBBHHH")


def add(number, more):
    """Of numbers that wrap."""
    return (number + more) & 0xFFFF_FFFF


def distance(number, before):
    """Bytes from one number to another, at most half of the space either way."""
    return ((number - before + (1 << 31)) & 0xFFFF_FFFF) - (1 << 31)


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    # RFC 1071: in any order of bytes, and the sum of words as one number modulo 0xffff.
    total = int.from_bytes(data, "big") % 0xFFFF
    return (~total & 0xFFFF) or 0xFFFF


def ip(source, destination, protocol, payload, fragment=0):
    """An IPv4 packet. `fragment` is the field of RFC 791: three flags, and the offset in eights of bytes."""
    ends = socket.inet_aton(source), socket.inet_aton(destination)
    fields = [0x45, 0, 20 + len(payload), random.getrandbits(16), fragment, 64, protocol, 0, *ends]
    fields[7] = checksum(HEADER.pack(*fields))
    return HEADER.pack(*fields) + payload


def tcp(source, destination, ports, seq, ack, flags, payload=b"", options=b"", window=60_000):
    """A TCP segment in its IPv4 packet; `ports` are those of source and destination."""
    options += b"\1" * (-len(options) % 4)
    offset = (20 + len(options)) // 4 << 4
    fields = [*ports, seq & 0xFFFF_FFFF, ack & 0xFFFF_FFFF, offset, flags, window, 0, 0]
    pseudo = socket.inet_aton(source) + socket.inet_aton(destination) + struct.pack("!HH", 6, 20 + len(options) + len(payload))
    fields[7] = checksum(pseudo + TCP.pack(*fields) + options + payload)
    return ip(source, destination, 6, TCP.pack(*fields) + options + payload)


def timestamps(value, echo):
    return struct.pack("!BBBBII", 1, 1, 8, 10, value & 0xFFFF_FFFF, echo & 0xFFFF_FFFF)


def sack(*blocks):
    edges = b"".join(struct.pack("!II", start & 0xFFFF_FFFF, end & 0xFFFF_FFFF) for start, end in blocks)
    return struct.pack("!BBBB", 1, 1, 5, 2 + len(edges)) + edges


def too_big(router, packet, mtu):
    """A router's message (RFC 1191) to whom it says has sent `packet`."""
    message = struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + packet[:28]
    message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
    return ip(router, socket.inet_ntoa(packet[12:16]), 1, message)


class Wire:
    """One interface, as its driver has it. Made within the interface's namespace."""

    def __init__(self, device, to_mac):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.bind((device, 0))
        own = self.socket.getsockname()[4]
        self.header = bytes.fromhex(to_mac.replace(":", "")) + own + struct.pack("!H", ETH_P_IP)

    def send(self, packet):
        self.socket.send(self.header + packet)


class Seen:
    """A TCP segment of somebody else."""

    __slots__ = ("source", "destination", "ports", "seq", "ack", "flags", "window", "end", "stamps", "shift")

    def __init__(self, packet):
        at = (packet[0] & 15) * 4
        self.source, self.destination = packet[12:16], packet[16:20]
        source, destination, self.seq, self.ack, offset, self.flags, self.window, _, _ = TCP.unpack_from(packet, at)
        self.ports = source, destination
        data = at + (offset >> 4) * 4
        extra = (self.flags & (SYN | FIN) != 0) + 0
        self.end = add(self.seq, int.from_bytes(packet[2:4], "big") - data + extra)
        self.stamps, self.shift = None, 0
        place = at + 20
        while place < data and packet[place]:
            kind = packet[place]
            if kind == 8:
                self.stamps = struct.unpack_from("!II", packet, place + 2)
            elif kind == 3:
                self.shift = packet[place + 2]
            place += 1 if kind == 1 else max(2, packet[place + 1])


class Ear:
    """Hears TCP that passes an interface, in both directions. Made within the interface's namespace."""

    def __init__(self, device):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind((device, 3))
        self.socket.setblocking(False)

    def hear(self, most=1_000):
        for _ in range(most):
            try:
                packet, about = self.socket.recvfrom(120)
            except BlockingIOError:
                return
            if about[1] == ETH_P_IP and packet[9] == 6:
                yield Seen(packet)
