#!/usr/bin/env python3
"""Floods into a running gateway beside honest flows: they are accelerated, as fast as without, and memory stays within its limit. Needs root.

    PACELINE=target/release/paceline tests/scale/floods.py [--seconds N] [--mbps N] [--only FLOOD,...] [--mode MODE]
                                                           [--pool-mb N] [--json FILE] [--short]

Clients download and pause, in turns of four seconds: one before the attacker has done anything to a new gateway, one under his flood
(tests/scale/blows.py) of 10 Mbit/s, and so on with the next gateway, so that what else the machine does falls on both. What is checked of each flood: at least 99 % of the honest flows that end are accelerated; their mean completion
time is at most 1.2 times that of the quiet turns; every byte is right; and the largest resident size of the process is at most the sum
that the gateway names as it starts, and a tenth.

--short is for `make test`: a second of each flood, nothing about time.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import threading
import time

import lab
import traffic

SERVER, PORT = "10.73.0.1", 8000
CLIENTS = 8
SIZE = 150_000
CONFIG = """
mode = "{mode}"
[limits]
max-buffer-bytes = {pool}
max-flows = 20_000
"""
FLOODS = ("syn", "syn-fin", "icmp", "bare-ack", "tiny", "sack", "fragments", "datagrams")
TURN_S = 4.0


class Blower:
    """The attacker's process."""

    def __init__(self, names, flood, mbps, network="10.73"):
        macs = [lab.mac(names["f"], port) for port in "wr"]
        command = [sys.executable, f"{lab.HERE}/blows.py", flood, *macs, mbps, network]
        self.child = lab.running(names["f"], *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.child.stdout.readline() != b"ready\n":
            sys.exit(f"the flood {flood} did not begin")
        self.bits, self.seconds = 0, 0.0

    def blow(self, seconds):
        self.child.stdin.write(f"{seconds}\n".encode())
        self.child.stdin.flush()
        self.bits += int(self.child.stdout.readline().split()[0])
        self.seconds += seconds

    def end(self):
        lab.stop(self.child)


class Honest:
    """Clients that download one after the other, each with a connection of its own."""

    def __init__(self):
        self.seed, self.wrong = 0, []

    async def client(self, number, until, times):
        while time.monotonic() < until:
            self.seed += 1
            began = time.monotonic()
            what, _ = await traffic.fetch("down", SERVER, PORT, SIZE, self.seed, local=f"10.73.1.{number + 1}")
            times.append(time.monotonic() - began)
            if what:
                self.wrong.append(what)
            await asyncio.sleep(0.05)

    def turn(self, seconds):
        """Returns how long each transfer took."""
        times = []

        async def all_of_them():
            until = time.monotonic() + seconds
            await asyncio.gather(*(self.client(number, until, times) for number in range(CLIENTS)))

        asyncio.run(all_of_them())
        return times


def records(gateway):
    """Honest flows that were accelerated and have ended."""
    with open(gateway.path("records")) as file:
        flows = [json.loads(line) for line in file]
    return [flow for flow in flows if flow["client"].startswith("10.73.1.") and flow["downlink_bytes"] >= SIZE]


class Row:
    """What a flood did, over rounds with a gateway of their own each."""

    def __init__(self, flood):
        self.flood, self.wrong, self.quiet, self.attacked = flood, [], [], []
        self.bits, self.seconds, self.accelerated, self.memory, self.limit = 0, 0.0, 0, 0, 0

    def round(self, names, options):
        """A quiet turn, before the attacker has done anything, and one under his flood."""
        gateway = lab.Gateway(names["g"], "w", "r", CONFIG.format(mode=options.mode, pool=options.pool_mb << 20), ["--records"])
        self.limit, honest = lab.announced_memory(gateway), Honest()
        with lab.within(names["c"]):
            if not options.short:
                self.quiet += honest.turn(TURN_S)
            blower = Blower(names, self.flood, options.mbps)
            self.attacked += attacked_turn(honest, blower, 1.0 if options.short else TURN_S)
        blower.end()
        self.bits, self.seconds = self.bits + blower.bits, self.seconds + blower.seconds
        self.memory = max(self.memory, lab.status(gateway.pid(), "VmHWM"))
        gateway.end()
        self.wrong += honest.wrong
        self.accelerated += len(records(gateway))

    def result(self):
        done = len(self.quiet) + len(self.attacked) - len(self.wrong)
        quiet, attacked = (statistics.mean(times) if times else None for times in (self.quiet, self.attacked))
        return {
            "flood": self.flood,
            "mbps": round(self.bits / self.seconds / 1e6, 2),
            "honest": done,
            "accelerated": round(self.accelerated / max(done, 1), 4),
            "wrong": len(self.wrong),
            "quiet_s": quiet and round(quiet, 4),
            "attacked_s": round(attacked, 4),
            "ratio": quiet and round(attacked / quiet, 3),
            "resident_mb": round(self.memory / 1e6, 1),
            "limit_mb": round(self.limit / 1e6, 1),
        }


def under(names, flood, options):
    """All rounds of one flood."""
    row = Row(flood)
    for _ in range(1 if options.short else max(1, round(options.seconds / TURN_S / 2))):
        row.round(names, options)
    print(" ".join(f"{key}={value}" for key, value in row.result().items()), flush=True)
    for what in row.wrong:
        print(f"wrong: {what}", flush=True)
    return row.result()


def attacked_turn(honest, blower, seconds):
    """A turn with the flood."""
    blow = threading.Thread(target=blower.blow, args=(seconds,))
    blow.start()
    times = honest.turn(seconds)
    blow.join()
    return times


def judge(rows, short):
    missed = []
    for row in rows:
        bounds = [("accelerated", row["accelerated"] >= 0.99), ("wrong", row["wrong"] == 0)]
        bounds.append(("resident_mb", row["resident_mb"] <= 1.1 * row["limit_mb"]))
        if not short:
            bounds.append(("ratio", row["ratio"] <= 1.2))
        missed += [f"{row['flood']}: {name} is {row[name]}" for name, held in bounds if not held]
    return missed


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=40.0, help="of each flood, half of them quiet")
    parser.add_argument("--mbps", type=float, default=10.0)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(FLOODS))
    parser.add_argument("--mode", default="transparent", choices=("transparent", "split", "auto"))
    parser.add_argument("--pool-mb", type=int, default=512, help="limits.max-buffer-bytes; the default is that of the gateway")
    parser.add_argument("--json", help="write the rows there")
    parser.add_argument("--short", action="store_true")
    return parser.parse_args()


def main(options):
    names = lab.stage("10.73", CLIENTS)
    radio = ["--rate", "40mbit", "--rtt", "30ms", "--queue", "400 packets"]
    lab.running(names["e"], lab.PROGRAM, "emulate", "w", "r", *radio, stdout=subprocess.DEVNULL)
    lab.server(names["s"], SERVER, PORT)
    rows = [under(names, flood, options) for flood in options.only]
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"mode": options.mode, "pool_mb": options.pool_mb, "rows": rows}, file, indent=1)
    missed = judge(rows, options.short)
    assert not missed, missed
    print("held")


if __name__ == "__main__":
    main(parsed())
