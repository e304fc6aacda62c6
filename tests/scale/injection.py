#!/usr/bin/env python3
"""Somebody off the path forges segments of the server's while a client downloads: none of his bytes may come to it. Needs root.

    PACELINE=target/release/paceline tests/scale/injection.py [RUNS] [--without]

The forger knows addresses and ports, and numbers that miss by a little; a look at the server's wire tells him from where. Each segment of
his is one that the client refuses as it comes: the acknowledgement lies up to 64 MB behind, or within one, two or four windows of what is right
(RFC 5961, Section 5.2); it has none; the sequence number is beyond all windows; or the timestamp is old (RFC 7323, Section 5). So without
a gateway (--without) no byte comes through, and with one, transparent or split, none may either.

What is checked, for each of RUNS downloads in each mode: every byte by its seed; and that the gateway accelerated the flow and
judged what was forged.
"""

import argparse
import contextlib
import json
import platform
import random
import socket
import subprocess
import sys
import threading
import time

import forge
import lab
import traffic

SERVER = "10.72.0.1"
TRANSPARENT, SPLIT = 8000, 8001
SIZE = 2_000_000
CONFIG = """
mode = "transparent"
[[rule]]
port = 8001
mode = "split"
"""
# The largest window of the server's (net.ipv4.tcp_rmem of its namespace), as client and gateway read it.
WINDOW = 65_536
# What each kind of forged segment carries tells where wrong bytes come from.
KINDS = {"far behind": b"a", "behind": b"b", "ahead": b"c", "none": b"d", "beyond": b"e", "old": b"f"}
LENGTH = 1_000
# What a client asks for its download is shorter.
REQUEST_MAX = 100
# Of every 5 ms.
BLOWS = 5


class Flow:
    """A download, as a look at the wire shows it."""

    def __init__(self, syn):
        self.first, self.shift = forge.add(syn.seq, 1), syn.shift
        self.client = self.server = None


class Forger:
    """Strikes at downloads from a server, whose numbers he hears."""

    def __init__(self, names, server):
        self.server = socket.inet_aton(server)
        with lab.within(names["s"]):
            self.ear = forge.Ear("br0")
        with lab.within(names["f"]):
            self.wire = forge.Wire("w", lab.mac(names["c"], "r"))
        self.random = random.Random(1)
        self.flows, self.sent, self.at_transparent = {}, dict.fromkeys(KINDS, 0), 0
        self.ends = threading.Event()
        # Linux 6.7 takes no acknowledgement of what was never sent; before, all within a window behind.
        self.is_strict = tuple(map(int, platform.release().split(".")[:2])) >= (6, 7)

    def listen(self):
        for segment in self.ear.hear():
            downwards = segment.source == self.server
            name = (segment.destination, segment.ports[1]) if downwards else (segment.source, segment.ports[0])
            if segment.flags & (forge.RST | forge.FIN):
                self.flows.pop(name, None)
            elif segment.flags & forge.SYN:
                if not downwards:
                    self.flows[name] = Flow(segment)
            elif name in self.flows and downwards:
                self.flows[name].server = segment
            elif name in self.flows:
                self.flows[name].client = segment

    def strike(self):
        """Nothing where nobody downloads: numbers of what a client uploads are soon right that were not."""
        flow = self.random.choice(list(self.flows.values())) if self.flows else None
        if flow is None or flow.client is None or flow.server is None or flow.server.stamps is None:
            return
        client, server = flow.client, flow.server
        if not 0 < forge.distance(client.end, flow.first) < REQUEST_MAX:
            return
        kind = self.random.choice(list(KINDS))
        # What is right: an acknowledgement of the client's newest byte, a byte that its window takes, and the newest timestamps.
        ack, window = client.end, client.window << flow.shift
        seq = forge.add(client.ack, self.random.randrange(max(window, 1)))
        stamps, flags = server.stamps, forge.ACK | forge.PSH
        near = self.random.randrange(WINDOW << self.random.randrange(3))
        if kind == "far behind":
            ack -= WINDOW + self.random.randrange(1 << 26)
        elif kind == "behind":
            # Below the client's first byte.
            ack -= REQUEST_MAX + near if self.is_strict else REQUEST_MAX + WINDOW + near
        elif kind == "ahead":
            ack += REQUEST_MAX + near
        elif kind == "none":
            ack, flags = 0, forge.PSH
        elif kind == "beyond":
            # Windows grow while it is on its way, and a machine may stand still meanwhile: no download gets as far as this.
            seq = forge.add(client.ack, window + (1 << 24) + near)
        else:
            stamps = (stamps[0] - 2_000 - self.random.randrange(1 << 20), stamps[1])
        # Who has seen nothing has no timestamps; then those of before do not matter.
        options = forge.timestamps(*stamps) if kind == "old" or self.random.random() < 0.5 else b""
        ends = socket.inet_ntoa(server.source), socket.inet_ntoa(server.destination)
        self.wire.send(forge.tcp(*ends, server.ports, seq, ack, flags, KINDS[kind] * LENGTH, options))
        self.sent[kind] += 1
        self.at_transparent += server.ports[0] == TRANSPARENT

    def run(self, blows=BLOWS):
        while not self.ends.is_set():
            self.listen()
            for _ in range(blows):
                self.strike()
            time.sleep(0.005)


def download(port, seed):
    """Returns how many bytes differ from the server's, and of each kind of forged ones those that lie in a row of eight."""
    with socket.create_connection((SERVER, port), timeout=60) as stream:
        stream.sendall(f"down {SIZE} {seed} 65536 0\n".encode())
        got = bytearray()
        while len(got) < SIZE:
            part = stream.recv(1 << 20)
            if not part:
                break
            got += part
    expected, blocks = bytearray(), traffic.stream(seed)
    while len(expected) < SIZE:
        expected += next(blocks)
    if got == expected[:SIZE]:
        return 0, {}
    wrong = abs(SIZE - len(got)) + sum(one != other for one, other in zip(got, expected))
    forged = {kind: bytes(got).count(byte * 8) * 8 for kind, byte in KINDS.items()}
    print(f"of port {port}, seed {seed}: {wrong} wrong bytes, forged {forged}", flush=True)
    return wrong, forged


def bombard(names, runs):
    forger = Forger(names, SERVER)
    thread = threading.Thread(target=forger.run)
    thread.start()
    rows = {}
    try:
        with lab.within(names["c"]):
            for port, mode in ((TRANSPARENT, "transparent"), (SPLIT, "split")):
                found = [download(port, 1_000 * port + run) for run in range(runs)]
                wrong, bad = sum(wrong for wrong, _ in found), sum(wrong > 0 for wrong, _ in found)
                rows[mode] = {"runs": runs, "runs_with_wrong_bytes": bad, "wrong_bytes": wrong}
                rows[mode]["forged_bytes"] = sum(sum(forged.values()) for _, forged in found)
                print(f"{mode}: {rows[mode]}", flush=True)
    finally:
        forger.ends.set()
        thread.join()
    return rows, forger.sent, forger.at_transparent


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int, nargs="?", default=100)
    parser.add_argument("--without", action="store_true", help="no gateway: what the client's kernel refuses by itself")
    return parser.parse_args()


def main(options):
    names = lab.stage("10.72", 1)
    lab.sysctl(names["s"], net__ipv4__tcp_rmem=f"4096 {WINDOW} {WINDOW}")
    radio = ["--rate", "60mbit", "--rtt", "20ms", "--queue", "400 packets", "--loss", "0.2%"]
    lab.running(names["e"], lab.PROGRAM, "emulate", "w", "r", *radio, stdout=subprocess.DEVNULL)
    gateway = None if options.without else lab.Gateway(names["g"], "w", "r", CONFIG)
    for port in (TRANSPARENT, SPLIT):
        lab.server(names["s"], SERVER, port)
    rows, sent, at_transparent = bombard(names, options.runs)
    counters = {}
    if gateway:
        gateway.end()
        counters = {name: gateway.counters()[name] for name in ("flows_accelerated", "flows_split", "passed_unacceptable")}
    print(json.dumps({"gateway": gateway is not None, "modes": rows, "forged_segments": sent, "at_transparent": at_transparent, "counters": counters}))
    assert all(row["wrong_bytes"] == 0 for row in rows.values()), "somebody else's bytes are in a download"
    assert all(sent.values()), "not everything was tried"
    if gateway:
        assert counters["flows_accelerated"] >= options.runs, "transparent flows were not accelerated"
        assert counters["flows_split"] == options.runs, "flows were not split"
        # Those at split flows are judged by the flow's own connections, and not counted here. Some come when their flow is over.
        assert counters["passed_unacceptable"] > at_transparent / 2, "the gateway has judged little of it"
    print("held")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(parsed()))
