#!/usr/bin/env python3
"""The gateway on the frontier of throughput and delay, beside simple rules, over recorded or generated links.

    frontier.py --paceline target/release/paceline --generate 12 --seed 3 --out results/frontier
    frontier.py --paceline target/release/paceline --out results/frontier TRACE...
    frontier.py --on lab --jobs 1 --profiles full split --out results/frontier/live TRACE...

A TRACE has one integer millisecond a line, at which 1,500 bytes may leave (mahimahi). The gateway runs in the simulator, between
kernels (--on lab, root), or between kernels in virtual time (--on virtual, tests/kernel-lab). Servers have CUBIC and BBR, wired is
30 ms and radio 50 ms. The rules run in the model of rules.py, with a loop of 80 ms (all of the path) and of 50 ms (the radio's part).
`ratio` is the p95 of the wait in parts of that of the quantile rule with 80 ms at the same utilization. Writes frontier.csv,
frontier.md, frontier.png and rules.csv (the rules alone). What was run before is not run again.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import random
import subprocess

import matplotlib
import pandas

import rules

matplotlib.use("Agg")
import matplotlib.pyplot as plot  # noqa: E402

PROFILES = ("off", "full", "auto", "split", "latency", "throughput")  # the last two are `full` with this preference
SERVERS = ("cubic", "bbr")
MARKERS = {"off": "x", "full": "o", "auto": "s", "split": "d", "latency": "<", "throughput": ">"}
COLOURS = {"cubic": "tab:blue", "bbr": "tab:red"}
LOOPS = {
    "quantile, 80 ms": (rules.Quantile, 0.08), "quantile, 50 ms": (rules.Quantile, 0.05), "reference, 80 ms": (rules.Reference, 0.08),
    "bound, 80 ms": (rules.Bound, 0.08),
}
VIRTUAL = pathlib.Path(__file__).resolve().parents[2] / "tests/kernel-lab/vm"


def generate(paceline, out, count, seed):
    """Links that nobody chose: model, mean rate (0.3 to 200 Mbit/s) and variation drawn by seed."""
    traces = []
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        model = draw.choice(["hspa", "lte-driving", "5g"])
        mean = math.exp(draw.uniform(math.log(0.3), math.log(200)))
        path = out / f"{model}-{seed}-{number}"
        if not path.exists():
            command = [paceline, "trace", "generate", model, "--mean", f"{mean:.3f}mbit", "--seed", str(1000 * seed + number), "-o", path]
            subprocess.run(command, check=True, capture_output=True)
        traces.append(path)
    return traces


def curve(path, name, seconds):
    opportunities = [t / 1e3 for t in map(int, path.read_text().split()) if t < 1e3 * seconds]
    rule, loop = LOOPS[name]
    return [rules.simulate(opportunities, rule(setting), loop) for setting in rule.dial]


def gateway(profile):
    if profile in ("latency", "throughput"):
        return f'profile = "full"\nconfig = {{ queue-bound = {{ prefer = "{profile}" }} }}'
    return f'profile = "{profile}"'


def scenario(path, profile, server, seconds):
    return f"""name = "frontier"
title = "A recorded link"
duration = "{seconds}s"
[wired]
rtt = "30ms"
[radio]
rtt = "50ms"
[radio.down]
queue = "6mb"
rate = {{ trace = {{ file = "{path.resolve()}" }} }}
[server]
congestion-control = "{server}"
[gateway]
{gateway(profile)}
[[flows]]
name = "download"
"""


def simulate(paceline, folder, text, on="sim"):
    """The result of a scenario of one variant, run once."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scenario.toml"
    file.write_text(text)
    command = [paceline.resolve(), "run", file.resolve(), "--on", "lab" if on == "virtual" else on, "--json", "--out", folder.resolve() / "results"]
    if on == "virtual":
        command = [VIRTUAL, "-o", folder, "-t", "3600", "--", *command]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{file}: {done.stderr.strip()}")
    return json.loads(done.stdout)["runs"][0]


def run(args, path, profile, server):
    folder = args.out / "runs" / f"{path.name}-{profile}-{server}-{args.seconds}-{args.on}"
    result = simulate(args.paceline, folder, scenario(path, profile, server, args.seconds), args.on)
    delay = result["path_delay_ms"]
    return 100 * result["links"]["radio_down"]["utilization"], delay["p50"], delay["p95"], delay["p99"]


def measure(args, traces):
    rows, curves = [], {}
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        jobs = {(path, name): pool.submit(curve, path, name, args.seconds) for path in traces for name in LOOPS}
        runs = {
            (path, profile, server): pool.submit(run, args, path, profile, server)
            for path in traces for profile in args.profiles for server in SERVERS
        }
        for key, job in jobs.items():
            curves[key] = job.result()
        for (path, profile, server), job in runs.items():
            utilization, p50, p95, p99 = job.result()
            ratio = {name: p95 / max(rules.at(curves[path, name], utilization), 5) for name in LOOPS}
            rows.append({
                "link": path.name, "scheme": f"{profile}, {server}", "utilization": utilization, "p50_ms": p50, "p95_ms": p95, "p99_ms": p99,
                "ratio": ratio["quantile, 80 ms"], "ratio_50ms": ratio["quantile, 50 ms"],
            })
            print(f"\r{len(rows)} of {len(runs)}", end="", flush=True)
    print()
    return pandas.DataFrame(rows), curves


def draw(out, table, curves, traces):
    columns = min(3, len(traces))
    lines = math.ceil(len(traces) / columns)
    figure, axes = plot.subplots(lines, columns, figsize=(5 * columns, 3.6 * lines), squeeze=False)
    for axis in axes.flat[len(traces):]:
        axis.axis("off")
    for axis, path in zip(axes.flat, traces):
        for name, style in zip(LOOPS, ("-", "--", ":", "-.")):
            points = curves[path, name]
            axis.plot([p[2] for p in points], [p[0] for p in points], style, color="grey", label=name, linewidth=1)
        for scheme, row in table[table.link == path.name].set_index("scheme").iterrows():
            profile, server = scheme.split(", ")
            size = 9 if profile == "full" else 6  # `auto` often has the same point
            axis.plot(row.p95_ms, row.utilization, MARKERS[profile], color=COLOURS[server], label=scheme, markersize=size, fillstyle="none")
        axis.set(title=path.name, xscale="log", xlabel="p95 of the wait, ms", ylabel="utilization, %", ylim=(75, 100.5))
        axis.grid(alpha=0.3)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    axes.flat[-1].legend(handles, labels, fontsize=8 if len(traces) < axes.size else 5, loc="center" if len(traces) < axes.size else "lower right")
    figure.tight_layout()
    figure.savefig(out / "frontier.png", dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", type=pathlib.Path, default="target/release/paceline", help="the program")
    parser.add_argument("--out", type=pathlib.Path, default="results/frontier", help="folder for results")
    parser.add_argument("--seconds", type=int, default=60, help="of each link")
    parser.add_argument("--generate", type=int, default=0, metavar="N", help="N links made for this")
    parser.add_argument("--seed", type=int, default=1, help="of these")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--on", choices=("sim", "lab", "virtual"), default="sim", help="the simulator, or between kernels in namespaces or virtual time")
    parser.add_argument("--profiles", nargs="+", choices=PROFILES, default=PROFILES, metavar="PROFILE", help=f"of {', '.join(PROFILES)}")
    parser.add_argument("traces", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    traces = args.traces + generate(args.paceline, args.out, args.generate, args.seed)
    if not traces:
        parser.error("no link: name traces, or make some with --generate N")
    table, curves = measure(args, traces)
    table.to_csv(args.out / "frontier.csv", index=False)
    pandas.DataFrame(
        [
            (path.name, name, setting, *point, point[2] / max(rules.at(curves[path, "quantile, 80 ms"], point[0]), 5))
            for (path, name), points in curves.items() for setting, point in zip(LOOPS[name][0].dial, points)
        ],
        columns=["link", "rule", "setting", "utilization", "p50_ms", "p95_ms", "p99_ms", "ratio"],
    ).to_csv(args.out / "rules.csv", index=False)
    summary = table.groupby("scheme", sort=False)[["utilization", "p50_ms", "p95_ms", "ratio", "ratio_50ms"]].median()
    (args.out / "frontier.md").write_text(
        "Medians over the links.\n\n" + summary.round(2).to_string() + "\n\n" + table.round(2).to_string(index=False) + "\n")
    draw(args.out, table, curves, traces)
    print(summary.round(2).to_string())


if __name__ == "__main__":
    main()
