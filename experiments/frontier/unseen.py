#!/usr/bin/env python3
"""Links that nobody chose: rate, round trips, variation and standstills drawn by seed, with the gateway and without.

    unseen.py --paceline target/release/paceline --links 100 --seed 7 --out results/unseen

Each link has a rate of .3 to 200 Mbit/s that varies as HSPA, LTE or 5G does, a round trip of 20 to 300 ms of which the radio has a fifth to
four fifths, a deep buffer, and one in three stands still now and then for up to three seconds. A server downloads by CUBIC, then by BBR. Writes
unseen.csv, unseen.md and unseen.png.
"""

import argparse
import concurrent.futures
import math
import pathlib
import random

import matplotlib.pyplot as plot
import pandas

import frontier


def between(draw, low, high):
    """By the logarithm, so that each factor has the same part."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def link(seed, number):
    draw = random.Random(f"{seed} {number}")
    rtt = between(draw, 20, 300)
    drawn = {
        "model": draw.choice(["hspa", "lte-driving", "5g"]), "mbps": between(draw, .3, 200), "rtt_ms": rtt, "radio_ms": rtt * draw.uniform(.2, .8),
        "every_s": between(draw, 5, 30), "still_s": between(draw, .3, 3) if draw.random() < 1 / 3 else 0,
    }
    return drawn


def scenario(drawn, seed, number, profile, server, seconds):
    still = f'outage = {{ periodic = {{ first = "4s", every = "{drawn["every_s"]:.3f}s", length = "{drawn["still_s"]:.3f}s" }}, effect = "hold" }}'
    return f"""name = "unseen"
title = "A drawn link"
duration = "{seconds}s"
[wired]
rtt = "{drawn["rtt_ms"] - drawn["radio_ms"]:.3f}ms"
[radio]
rtt = "{drawn["radio_ms"]:.3f}ms"
[radio.down]
queue = "{max(1.5e5, drawn["mbps"] * 1e6 / 8 * 4):.0f}b"
rate = {{ generate = {{ model = "{drawn["model"]}", mean = "{drawn["mbps"]:.3f}mbit", seed = {1000 * seed + number}, duration = "{seconds}s" }} }}
{still if drawn["still_s"] else ""}
[server]
congestion-control = "{server}"
[gateway]
profile = "{profile}"
[[flows]]
name = "download"
"""


def run(paceline, out, seed, number, profile, server, seconds):
    folder = out / "runs" / f"{seed}-{number}-{profile}-{server}-{seconds}"
    result = frontier.simulate(paceline, folder, scenario(link(seed, number), seed, number, profile, server, seconds))
    for series in (folder / "results").glob("*.csv"):
        series.unlink()
    return result["flows"][0]["goodput_mbps"], result["path_delay_ms"]["p95"]


def measure(args):
    profiles = ("off", *args.profiles)
    keys = [(n, profile, server) for n in range(args.links) for server in frontier.SERVERS for profile in profiles]
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        jobs = {key: pool.submit(run, args.paceline, args.out, args.seed, key[0], key[1], key[2], args.seconds) for key in keys}
        results = {}
        for key, job in jobs.items():
            results[key] = job.result()
            print(f"\r{len(results)} of {len(keys)}", end="", flush=True)
    print()
    rows = []
    for number in range(args.links):
        for server in frontier.SERVERS:
            without, wait = results[number, "off", server]
            for profile in args.profiles:
                mbps, p95 = results[number, profile, server]
                rows.append({
                    "link": number, **link(args.seed, number), "scheme": f"{profile}, {server}", "off_mbps": without, "off_p95_ms": wait,
                    "goodput_mbps": mbps, "p95_ms": p95, "ratio": mbps / without, "wait": p95 / wait if wait else 1,
                })
    return pandas.DataFrame(rows)


def summary(table):
    """A link holds if it has at least .98 of passing's throughput, or less than half of its p95."""
    def of(group):
        holds = (group.ratio >= .98) | (group.wait < .5)
        return pandas.Series({
            "links": len(group), "ratio median": group.ratio.median(), "ratio p10": group.ratio.quantile(.1), "ratio least": group.ratio.min(),
            "below .98": (group.ratio < .98).sum(), "below .90": (group.ratio < .9).sum(), "wait median": group.wait.median(), "holds": holds.sum(),
        })
    return table.groupby("scheme", sort=False).apply(of, include_groups=False).round(3)


def draw(out, table):
    figure, axis = plot.subplots(figsize=(7, 5))
    for scheme, rows in table.groupby("scheme", sort=False):
        axis.plot(rows.wait, rows.ratio, ".", label=scheme, alpha=.7)
    axis.axhline(.98, color="grey", linewidth=.7)
    axis.axvline(.5, color="grey", linewidth=.7)
    axis.set(xscale="log", xlabel="p95 of the wait, in parts of that without gateway", ylabel="throughput, in parts of that without gateway")
    axis.legend()
    axis.grid(alpha=.3)
    figure.tight_layout()
    figure.savefig(out / "unseen.png", dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", type=pathlib.Path, default="target/release/paceline", help="the program")
    parser.add_argument("--out", type=pathlib.Path, default="results/unseen", help="folder for results")
    parser.add_argument("--links", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the links")
    parser.add_argument("--seconds", type=int, default=60, help="of each link")
    parser.add_argument("--profiles", nargs="+", default=["auto"])
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    table = measure(args)
    table.to_csv(args.out / "unseen.csv", index=False)
    text = summary(table).to_string()
    misses = table[(table.ratio < .98) & (table.wait >= .5)].sort_values("ratio").round(3)
    (args.out / "unseen.md").write_text(text + "\n\nThose that do not hold:\n\n" + misses.to_string(index=False) + "\n")
    draw(args.out, table)
    print(text)


if __name__ == "__main__":
    main()
