#!/usr/bin/env python3
"""Working latency: a ping and objects of 10 KB, one after the other, beside a bulk download, over recorded or generated links.

    working.py --paceline target/release/paceline --generate 6 --seed 3 --out results/working
    working.py --paceline target/release/paceline --out results/working TRACE...

The path is that of frontier.py: wired 30 ms, radio 50 ms, a deep buffer. `wait` is what the round trips of the objects' packets, as their server
measures them, have above these 80 ms: the download's queue, and the object's own packets before it. `ping` is what the round trips of ten
requests in each second have above 80 ms. `alone` is the same on a link with nothing else, so
what standstills of the link cost: requests leave during them, too. Writes working.csv and working.md.
"""

import argparse
import concurrent.futures
import pathlib

import pandas

import frontier

BASE_MS = 80
OBJECTS = """
[[flows]]
name = "object"
start = "2s"
size = "10kb"
count = 200
sequential = true
interval = "200ms"
"""
PING = """
[[flows]]
name = "ping"
protocol = "ping"
start = "2s"
interval = "100ms"
"""


def run(paceline, out, path, profile, server, seconds):
    folder = out / "runs" / f"{path.name}-{profile}-{server}-{seconds}"
    result = frontier.simulate(paceline, folder, frontier.scenario(path, profile, server, seconds) + OBJECTS + PING)
    objects = [flow for flow in result["flows"] if flow["name"] == "object" and flow["completed"]]
    ping = next(flow for flow in result["flows"] if flow["name"] == "ping")["rtt_ms"]
    times = pandas.Series([flow["completion_s"] for flow in objects])
    waits = pandas.Series([flow["rtt_ms"]["p95"] - BASE_MS for flow in objects if flow["rtt_ms"]["p95"]])
    return {
        "objects": len(objects), "object_p50_s": times.median(), "object_p95_s": times.quantile(.95), "wait_p50_ms": waits.median(),
        "wait_p95_ms": waits.quantile(.95), "ping_p50_ms": ping["p50"] - BASE_MS, "ping_p95_ms": ping["p95"] - BASE_MS,
        "path_p95_ms": result["path_delay_ms"]["p95"], "used": 100 * result["links"]["radio_down"]["utilization"],
    }


def alone(paceline, out, path, seconds):
    """p95 of the wait of a ping on a link with nothing else."""
    text = frontier.scenario(path, "off", "cubic", seconds).split("[[flows]]")[0] + PING
    result = frontier.simulate(paceline, out / "runs" / f"{path.name}-alone-{seconds}", text)
    return result["flows"][0]["rtt_ms"]["p95"] - BASE_MS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", type=pathlib.Path, default="target/release/paceline", help="the program")
    parser.add_argument("--out", type=pathlib.Path, default="results/working", help="folder for results")
    parser.add_argument("--seconds", type=int, default=60, help="of each link")
    parser.add_argument("--generate", type=int, default=0, metavar="N", help="N links made for this")
    parser.add_argument("--seed", type=int, default=1, help="of these")
    parser.add_argument("--profiles", nargs="+", default=["off", "auto", "split"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("traces", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    traces = args.traces + frontier.generate(args.paceline, args.out, args.generate, args.seed)
    if not traces:
        parser.error("no link: name traces, or make some with --generate N")
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        keys = [(path, profile, server) for path in traces for profile in args.profiles for server in frontier.SERVERS]
        jobs = {key: pool.submit(run, args.paceline, args.out, *key, args.seconds) for key in keys}
        floors = {path: pool.submit(alone, args.paceline, args.out, path, args.seconds) for path in traces}
        rows = [
            {"link": key[0].name, "scheme": f"{key[1]}, {key[2]}", **job.result(), "alone_p95_ms": floors[key[0]].result()}
            for key, job in jobs.items()
        ]
    table = pandas.DataFrame(rows)
    table.to_csv(args.out / "working.csv", index=False)
    medians = table.groupby("scheme", sort=False).median(numeric_only=True).round(2).to_string()
    (args.out / "working.md").write_text("Medians over the links.\n\n" + medians + "\n\n" + table.round(2).to_string(index=False) + "\n")
    print(medians)


if __name__ == "__main__":
    main()
