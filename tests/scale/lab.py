"""Namespaces and gateways for the tests of this folder; everything made here goes when the program ends."""

import atexit
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(os.environ.get("PACELINE", "target/debug/paceline"))
HERE = os.path.dirname(os.path.abspath(__file__))
PREFIX = f"pl{os.getpid() % 100000}"
# What was made is removed then, too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))


def skip(why):
    print(f"skipped: {why}")
    sys.exit(0)


def ip(*words, netns=None, check=True):
    command = ["ip"] + (["-n", netns] if netns else []) + list(map(str, words))
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout if done.returncode == 0 else None


def namespace(name):
    name = f"{PREFIX}-{name}"
    ip("netns", "add", name)
    atexit.register(ip, "netns", "del", name, check=False)
    ip("link", "set", "lo", "up", netns=name)
    return name


@contextlib.contextmanager
def within(netns):
    """This thread in a namespace; sockets made there stay there."""
    with open("/proc/thread-self/ns/net") as home:
        enter(netns)
        try:
            yield
        finally:
            set_namespace(home)


def enter(netns):
    """This thread goes to a namespace."""
    with open(f"/run/netns/{netns}") as file:
        set_namespace(file)


def set_namespace(file):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(file.fileno(), 0x40000000):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mac(netns, device):
    return json.loads(ip("-j", "link", "show", "dev", device, netns=netns))[0]["address"]


def veth(one, one_name, other, other_name):
    """A cable between two namespaces, up at both ends."""
    ip("link", "add", one_name, "netns", one, "type", "veth", "peer", "name", other_name, "netns", other)
    ip("link", "set", one_name, "up", netns=one)
    ip("link", "set", other_name, "up", netns=other)


def sysctl(netns, **values):
    for key, value in values.items():
        path = key.replace("__", ".")
        subprocess.run(["ip", "netns", "exec", netns, "sysctl", "-qw", f"{path}={value}"], check=True)


def bridge(netns, *ports):
    ip("link", "add", "br0", "type", "bridge", netns=netns)
    for port in ports:
        ip("link", "set", port, "master", "br0", netns=netns)
    ip("link", "set", "br0", "up", netns=netns)


def stage(network, clients):
    """Namespaces by name, with whoever attacks at both sides of the gateway; `network` is the first half of all addresses.

        server s --+-- gateway g --+-- link e -- clients c
        attacker f +               + attacker f

    The server is NETWORK.0.1, the clients NETWORK.1.1 and so on. Ports are called w (towards the server) and r (towards the clients).
    """
    names = {name: namespace(name) for name in "sgnecf"}
    for switch, legs in (("s", (("g", "w"), ("f", "w"))), ("n", (("g", "r"), ("e", "w"), ("f", "r")))):
        for other, port in legs:
            veth(names[switch], other, names[other], port)
        bridge(names[switch], *(other for other, _ in legs))
    know_attacker(names)
    veth(names["c"], "r", names["e"], "r")
    bridge(names["g"], "w", "r")
    ip("addr", "add", f"{network}.0.1/16", "dev", "br0", netns=names["s"])
    for number in range(clients):
        ip("addr", "add", f"{network}.1.{number + 1}/16", "dev", "r", netns=names["c"])
    return names


def know_attacker(names):
    """Bridges learn where a host is from what it sends: the attacker's hosts send, and are sent to, from the beginning."""
    for switch, near, far in (("s", "w", "r"), ("n", "r", "w")):
        for port, leg in ((near, "f"), (far, "g")):
            words = ["fdb", "replace", mac(names["f"], port), "dev", leg, "master", "static"]
            subprocess.run(["bridge", "-n", names[switch], *words], check=True)


def make_radio_port(names):
    """The gateway's port towards the clients, once it was deleted."""
    veth(names["n"], "g", names["g"], "r")
    for netns, port in (("n", "g"), ("g", "r")):
        ip("link", "set", port, "master", "br0", netns=names[netns])
    know_attacker(names)


def announced_memory(gateway):
    """The sum that a gateway names as it starts, in bytes."""
    with open(gateway.path("log")) as file:
        found = re.search(r"memory: at most (\d+) bytes", file.read())
    return int(found[1]) if found else sys.exit("the gateway names no limit of its memory")


def status(pid, field):
    """Of /proc/PID/status, in bytes."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{field}:")) * 1_024


def running(netns, *command, **options):
    """A process in a namespace, ended with this program."""
    child = subprocess.Popen(["ip", "netns", "exec", netns, *map(str, command)], **options)
    atexit.register(stop, child)
    return child


def stop(child):
    if child.poll() is None:
        child.kill()
    child.wait()


def server(netns, address, port):
    child = running(netns, sys.executable, f"{HERE}/traffic.py", "serve", address, port, stdout=subprocess.PIPE)
    if child.stdout.readline() != b"ready\n":
        sys.exit("the server did not begin")
    return child


class Gateway:
    """A gateway between two bridge ports of a namespace."""

    def __init__(self, netns, wan, radio, config="", files=()):
        """`files` are options that name a file, which is called as they are."""
        self.netns, self.wan, self.radio, self.files = netns, wan, radio, files
        self.folder = tempfile.TemporaryDirectory(prefix="paceline-")
        self.child = None
        self.configure(config)
        self.start()
        atexit.register(self.kill)

    def configure(self, text):
        with open(self.path("gateway.toml"), "w") as file:
            file.write(text)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start(self, *more):
        options = [*more, "--control", self.path("socket"), "--shift-file", self.path("shifts")]
        options += [word for option in self.files for word in (option, self.path(option.strip("-")))]
        options += ["--stats-json", self.path("stats"), "--config", self.path("gateway.toml")]
        with open(self.path("log"), "a") as log:
            self.child = subprocess.Popen(
                ["ip", "netns", "exec", self.netns, PROGRAM, "gateway", "--wan", self.wan, "--radio", self.radio, *options],
                stderr=log,
            )
        for _ in range(1000):
            if self.child.poll() is not None:
                break
            if self.report() is not None:
                return
            time.sleep(0.02)
        with open(self.path("log")) as log:
            sys.exit(f"the gateway did not begin: {log.read()[-1000:]}")

    def report(self):
        done = subprocess.run([PROGRAM, "flows", "--json", "--control", self.path("socket")], capture_output=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def counters(self):
        """As of the last second, or of its end."""
        with open(self.path("stats")) as file:
            return json.load(file)["counters"]

    def pid(self):
        return self.child.pid

    def signal(self, number):
        os.kill(self.pid(), number)

    def take_over(self):
        """Another process goes on with the flows and this one ends; or, as is its right on a busy machine, it goes on itself. True if not."""
        old = self.child
        self.start("--take-over")
        for _ in range(1000):
            if old.poll() is not None:
                return True
            if self.child.poll() is not None:
                self.child = old
                return False
            time.sleep(0.02)
        with open(self.path("log")) as log:
            sys.exit(f"two gateways run: {log.read()[-2000:]}")

    def last_words(self, lines=6):
        """The end of its log, which is that of the process that could not take over, too."""
        with open(self.path("log")) as log:
            return "".join(log.readlines()[-lines:])

    def end(self):
        self.signal(signal.SIGTERM)
        self.child.wait(20)

    def kill(self):
        if self.child and self.child.poll() is None:
            self.child.kill()
            self.child.wait()
