#!/usr/bin/env python3
"""The container image of `make image`, run between two namespaces of its own. Needs root, podman, runc and nft, and no network.

    tests/package/image.py [target/image/paceline.tar]

What is checked: with a root file system that cannot be written and three capabilities the gateway begins, accelerates downloads in both
modes, whose every byte is checked, and leaves no rule behind when the container is stopped; then the kernel forwards.
"""

import asyncio
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scale"))
import lab
import traffic

SERVER, CLIENT = "10.73.0.1", "10.73.1.1"
SIZE = 5_000_000
RULES = '[[rule]]\nport = 8001\nmode = "split"\n'


class Podman:
    """A store of images and containers of its own, gone with this program."""

    def __init__(self):
        self.place = tempfile.mkdtemp(prefix="paceline-image.", dir="/var/tmp")
        atexit.register(shutil.rmtree, self.place, ignore_errors=True)
        # A container of this machine may not raise its limits.
        with open(f"{self.place}/containers.conf", "w") as file:
            file.write("[containers]\ndefault_ulimits = []\n")
        self.environment = {**os.environ, "CONTAINERS_CONF": file.name}
        self.command = ["podman", "--root", f"{self.place}/root", "--runroot", f"{self.place}/run"]
        self.command += ["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--runtime", "runc"]

    def __call__(self, *words, check=True):
        done = subprocess.run([*self.command, *words], capture_output=True, text=True, env=self.environment)
        if check and done.returncode:
            sys.exit(f"podman {words[0]}: {done.stderr.strip()}")
        return done


def start(podman, image, netns):
    """Returns once the gateway answers."""
    with open(f"{podman.place}/gateway.toml", "w") as file:
        file.write(RULES)
    capabilities = [word for name in ("net_admin", "net_raw", "sys_nice") for word in ("--cap-add", name)]
    podman(
        *("run", "--detach", "--name", "gateway", "--network", f"ns:/run/netns/{netns}"),
        *("--read-only", "--tmpfs", "/run", "--cap-drop", "all", *capabilities),
        *("--volume", f"{podman.place}/gateway.toml:/gateway.toml:ro", image),
        *("gateway", "--wan", "w", "--radio", "r", "--config", "/gateway.toml", "--metrics", "127.0.0.1:9100"),
    )
    atexit.register(podman, "rm", "--force", "--time", "5", "gateway", check=False)
    for _ in range(500):
        if podman("exec", "gateway", "/paceline", "flows", check=False).returncode == 0:
            return
        time.sleep(0.02)
    sys.exit(f"the gateway did not begin: {podman('logs', 'gateway', check=False).stderr[-1000:]}")


def judge(names):
    """What the gateway counts; it renews its numbers once a second."""
    wanted = {"paceline_flows_accelerated_total 1", "paceline_flows_split_total 1"}
    for _ in range(100):
        with lab.within(names["g"]), urllib.request.urlopen("http://127.0.0.1:9100/metrics") as answer:
            found = wanted & set(answer.read().decode().splitlines())
        if found == wanted:
            return
        time.sleep(0.05)
    sys.exit(f"the gateway did not accelerate both downloads: {found}")


def download(names, port):
    with lab.within(names["c"]):
        error, _ = asyncio.run(traffic.fetch("down", SERVER, port, SIZE, port))
    if error:
        sys.exit(f"download from port {port}: {error}")


def stage():
    names = {name: lab.namespace(name) for name in "sgc"}
    lab.veth(names["s"], "w", names["g"], "w")
    lab.veth(names["g"], "r", names["c"], "r")
    lab.bridge(names["g"], "w", "r")
    lab.ip("addr", "add", f"{SERVER}/16", "dev", "w", netns=names["s"])
    lab.ip("addr", "add", f"{CLIENT}/16", "dev", "r", netns=names["c"])
    for port in (8000, 8001):
        lab.server(names["s"], SERVER, port)
    return names


def main(archive):
    tools = [(tool, shutil.which(tool)) for tool in ("podman", "runc", "nft")]
    for what, is_here in [("root", os.geteuid() == 0), *tools, (archive, os.path.exists(archive))]:
        if not is_here:
            lab.skip(f"needs {what}")
    podman = Podman()
    image = podman("load", "--quiet", "--input", archive).stdout.split(": ")[-1].strip()
    names = stage()
    start(podman, image, names["g"])
    for port in (8000, 8001):
        download(names, port)
    judge(names)
    podman("stop", "--time", "5", "gateway")
    if lab.ip("rule", "show", netns=names["g"]).count("\n") != 3:
        sys.exit("a routing rule is left behind")
    if subprocess.run(["ip", "netns", "exec", names["g"], "nft", "list", "tables"], capture_output=True).stdout:
        sys.exit("a table of nftables is left behind")
    download(names, 8000)
    print("image: both modes accelerate, nothing is left behind, and the kernel forwards")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else f"{os.environ.get('CARGO_TARGET_DIR', 'target')}/image/paceline.tar")
