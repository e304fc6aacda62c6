#!/usr/bin/env python3
"""Draws what `soak.py --series FILE` has kept: memory, descriptors, flows and rules of the gateway, and how long small downloads took.

    tests/scale/plot.py FILE PICTURE        needs matplotlib; `make soak` gives it an environment of its own
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def main(source, picture):
    with open(source) as file:
        kept = json.load(file)
    minutes = [held["at"] / 60 for held in kept["series"]]
    figure, axes = pyplot.subplots(4, 1, sharex=True, figsize=(9, 9), layout="constrained")
    memory, descriptors, flows, latency = axes
    memory.plot(minutes, [held["rss_kb"] / 1e3 for held in kept["series"]], linewidth=1)
    memory.set_ylabel("resident, MB")
    memory.set_title(f"resident size; the gateway names {kept['limit_kb'] / 1e3:.0f} MB at most", fontsize=10)
    descriptors.plot(minutes, [held["descriptors"] for held in kept["series"]], linewidth=1, label="descriptors")
    descriptors.plot(minutes, [held["rules"] for held in kept["series"]], linewidth=1, label="rules")
    descriptors.legend(loc="center right", fontsize=8)
    descriptors.set_ylabel("number")
    flows.plot(minutes, [held["flows"] for held in kept["series"]], linewidth=1)
    flows.set_ylabel("flows in the table")
    latency.plot([at / 60 for at, _ in kept["small"]], [took for _, took in kept["small"]], ".", markersize=2)
    latency.set_yscale("log")
    latency.set_ylabel("small downloads, s")
    latency.set_xlabel("minutes")
    for each in axes:
        each.grid(alpha=0.3)
        each.spines[["top", "right"]].set_visible(False)
    for each in axes[:3]:
        each.set_ylim(bottom=0)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
