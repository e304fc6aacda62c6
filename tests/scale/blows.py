#!/usr/bin/env python3
"""Floods, as somebody with a host at each side of a gateway sends them: `blows.py FLOOD WAN_MAC RADIO_MAC MBPS NETWORK`.

His hosts have addresses of their own, and he may forge those of others. Each line `SECONDS` on the standard input is answered, after so many
seconds of the flood, with the bits and packets that left. `quiet` sends nothing, which is what a flood is held against.
"""

import random
import sys
import time

import forge
from forge import ACK, FIN, PSH, SYN

# The first half of all addresses. Others' are those of a server, .0.1, and of clients, .1.1 to .1.16; his own are .66. behind the radio link,
# and .99. in front of it.
NETWORK = sys.argv[5] if len(sys.argv) > 5 else "10.73"
SERVER, SERVER_PORT = f"{NETWORK}.0.1", 8000
CLIENTS, SERVERS = f"{NETWORK}.66.", f"{NETWORK}.99."
FLOWS = 1_000
# Of each flood, sent over and over.
PACKETS = 20_000
# RFC 7323: the largest shift, so that his clients show windows of a gigabyte.
OPTIONS = bytes([2, 4, 5, 180, 3, 3, 14, 1])
WAN, RADIO = 0, 1
LEAST_FRAME = 64


class Flow:
    """One between two hosts of his; both count from zero."""

    def __init__(self, number):
        self.client, self.server = f"{CLIENTS}{number % 200 + 1}", f"{SERVERS}{number % 250 + 1}"
        self.ports = 1_024 + number, 443
        self.sent = 1

    def up(self, seq, ack, flags, payload=b"", options=b""):
        return RADIO, forge.tcp(self.client, self.server, self.ports, seq, ack, flags, payload, options)

    def down(self, seq, ack, flags, payload=b"", options=b""):
        return WAN, forge.tcp(self.server, self.client, self.ports[::-1], seq, ack, flags, payload, options)

    def opening(self):
        return [self.up(0, 0, SYN, options=OPTIONS), self.down(0, 1, SYN | ACK, options=OPTIONS), self.up(1, 1, ACK)]

    def next_data(self, length, gap=0):
        """What follows, and leaves out so many bytes."""
        seq = self.sent + gap
        self.sent = seq + length
        return self.down(seq, 1, ACK | PSH, bytes(length))


def anybody():
    return ".".join(str(random.randrange(1, 255)) for _ in range(4))


def somebody():
    """A client, and a port as Linux gives them."""
    return f"{NETWORK}.1.{random.randrange(1, 17)}", random.randrange(32_768, 61_000)


def opened(count=FLOWS):
    flows = [Flow(number) for number in range(count)]
    return flows, [list(stage) for stage in zip(*(flow.opening() for flow in flows))]


def syns(flags=SYN):
    """From the Internet to clients and from his clients to the Internet, with all addresses and ports."""
    def one(number):
        seq = random.getrandbits(32)
        if number % 2:
            client, port = somebody() if number % 4 == 1 else (f"{CLIENTS}{random.randrange(1, 255)}", random.randrange(1 << 16))
            server = (SERVER, SERVER_PORT) if number % 8 == 1 else (anybody(), 443)
            return WAN, forge.tcp(server[0], client, (server[1], port), seq, 0, flags)
        client = f"{CLIENTS}{random.randrange(1, 255)}" if number % 4 else anybody()
        return RADIO, forge.tcp(client, anybody(), (random.randrange(1 << 16), 443), seq, 0, flags, options=OPTIONS)

    return [], map(one, range(PACKETS))


def messages():
    """Packet too big: about flows of his of which much is kept, and about others' flows with numbers that he guesses."""
    flows, before = opened(20)
    before.append([flow.next_data(100) for flow in flows for _ in range(500)])

    def one(number):
        mtu = random.randrange(68, 1_500)
        if number % 2:
            flow = random.choice(flows)
            quoted = flow.down(1 + 100 * random.randrange(500), 1, ACK)[1]
        else:
            client, port = somebody()
            quoted = forge.tcp(SERVER, client, (SERVER_PORT, port), random.getrandbits(32), 0, ACK)
        return RADIO, forge.too_big(f"{CLIENTS}{random.randrange(1, 255)}", quoted, mtu)

    return before, map(one, range(PACKETS))


def bare():
    """Without payload: of both ends of open flows, and of flows that nobody knows."""
    flows, before = opened()

    def one(number):
        flow = random.choice(flows)
        if number % 4 == 0:
            client, port = somebody()
            return WAN, forge.tcp(SERVER, client, (SERVER_PORT, port), random.getrandbits(32), random.getrandbits(32), ACK)
        return flow.down(1, 1, ACK) if number % 4 < 3 else flow.up(1, 1, ACK)

    return before, map(one, range(PACKETS))


def tiny():
    """A byte each, every second one of the stream, to a client that acknowledges none."""
    flows, before = opened()
    return before, (flows[number % FLOWS].next_data(1, gap=1) for number in range(PACKETS))


def lies():
    """SACK blocks of what was sent, was not sent and cannot be, beside data of many segments."""
    flows, before = opened()
    before.append([flow.next_data(100, gap=number % 2) for flow in flows for number in range(20)])

    def one(number):
        flow = random.choice(flows)
        blocks = []
        for _ in range(random.randrange(1, 4)):
            start = random.randrange(flow.sent + 50) if random.random() < 0.9 else random.getrandbits(32)
            blocks.append((start, start + random.randrange(1, 200)))
        return flow.next_data(100) if number % 8 == 0 else flow.up(1, random.choice((0, 1, 1, 1)), ACK, options=forge.sack(*blocks))

    return before, map(one, range(PACKETS))


def fragments():
    """First ones, later ones and overlapping ones of TCP segments, of which no packet is ever whole."""
    more = 0x2000

    def one(number):
        client, port = somebody()
        if number % 3 == 0:
            whole = forge.tcp(SERVER, client, (SERVER_PORT, port), random.getrandbits(32), 0, ACK, bytes(36))
            return WAN, forge.ip(SERVER, client, 6, whole[20:], more)
        side = random.choice((WAN, RADIO))
        ends = (SERVER, client) if side == WAN else (client, SERVER)
        return side, forge.ip(*ends, 6, bytes(56), random.choice((0, more)) | random.randrange(1, 3))

    return [], map(one, range(PACKETS))


def datagrams():
    """Long ones for subscribers of his, each beside a flow of which much waits."""
    flows, before = opened(200)
    before.append([flow.next_data(1_400) for flow in flows for _ in range(50)])

    def one(number):
        flow = flows[number % 200]
        return WAN, forge.ip(flow.server, flow.client, 17, bytes([1, 187, 9, 9, 4, 96, 0, 0]) + bytes(1_112))

    return before, map(one, range(PACKETS))


FLOODS = {
    "quiet": lambda: ([], []),
    "syn": syns,
    "syn-fin": lambda: syns(SYN | FIN),
    "icmp": messages,
    "bare-ack": bare,
    "tiny": tiny,
    "sack": lies,
    "fragments": fragments,
    "datagrams": datagrams,
}


class Blower:
    def __init__(self, flood, wires, mbps):
        self.wires, self.rate = wires, mbps * 1e6
        before, packets = FLOODS[flood]()
        # One stage after the other, as the gateway reads its two sides by turns.
        for stage in before:
            for number, (side, packet) in enumerate(stage):
                self.wires[side].send(packet)
                if number % 50 == 0:
                    time.sleep(0.002)
            time.sleep(0.1)
        self.packets = [(side, packet, max(LEAST_FRAME, len(packet) + 18) * 8) for side, packet in packets]
        self.next = 0

    def blow(self, seconds):
        """Returns bits and packets."""
        began, sent, count = time.monotonic(), 0.0, 0
        while (now := time.monotonic() - began) < seconds:
            # What a pause of this process has kept back does not come in one go.
            due = min(self.rate * now, sent + self.rate * 0.25)
            while sent < due and self.packets:
                side, packet, bits = self.packets[self.next]
                self.next = (self.next + 1) % len(self.packets)
                try:
                    self.wires[side].send(packet)
                except OSError:
                    # A queue is full: that is what floods are for.
                    pass
                sent, count = sent + bits, count + 1
            time.sleep(0.001)
        return int(sent), count


def main(flood, wan_mac, radio_mac, mbps, _):
    random.seed(1)
    # What is sent on one side goes to his host on the other.
    blower = Blower(flood, (forge.Wire("w", radio_mac), forge.Wire("r", wan_mac)), float(mbps))
    print("ready", flush=True)
    for line in sys.stdin:
        print(*blower.blow(float(line)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
