"""Simple window rules over a recorded link: what a gateway's queue control has to beat.

The model: one sender with always data to send and a window in packets, clocked by ACKs; a propagation round trip; one unlimited queue at the
link. The wait is what a packet spends in that queue.
"""

import bisect
import collections
import math

LEAST = 10  # packets: the initial window of RFC 6928


class Deliveries:
    """How many packets were acknowledged in the last `span` seconds."""

    def __init__(self, span):
        self.span, self.times = span, collections.deque()

    def note(self, now):
        self.times.append(now)

    def rate(self, now):
        while self.times and self.times[0] < now - self.span:
            self.times.popleft()
        return len(self.times) / min(self.span, max(now, 0.05))


class Reference:
    """(rate of the last 100 ms) x (shortest round trip + dial in ms)."""

    dial = (25, 40, 60, 80, 100, 130, 170)

    def __init__(self, queue_ms):
        self.queue, self.recent, self.rtt_min, self.window = queue_ms / 1e3, Deliveries(0.1), math.inf, LEAST

    def on_ack(self, now, rtt):
        self.rtt_min = min(self.rtt_min, rtt)
        self.recent.note(now)
        self.window = max(LEAST, self.recent.rate(now) * (self.rtt_min + self.queue))


class Quantile:
    """forecast x (shortest round trip + 10 ms) + the dial's quantile of what round trips of the last 15 s carried beyond their forecast."""

    dial = (0.5, 0.75, 0.85, 0.93, 0.97, 0.99, 0.997)
    target, memory, every = 0.01, 15.0, 0.01

    def __init__(self, quantile):
        self.quantile, self.fast, self.slow = quantile, Deliveries(0.1), Deliveries(0.5)
        self.rtt_min, self.window, self.delivered, self.looked = math.inf, LEAST, 0, 0.0
        self.open, self.kept, self.sorted = collections.deque(), collections.deque(), []

    def on_ack(self, now, rtt):
        self.rtt_min = min(self.rtt_min, rtt)
        self.delivered += 1
        self.fast.note(now)
        self.slow.note(now)
        forecast = 0.6 * self.fast.rate(now) + 0.4 * self.slow.rate(now)
        if now - self.looked >= self.every:
            self.looked = now
            self.open.append((now, self.delivered, forecast))
            self._close(now)
        margin = self._margin()
        if margin is None:
            margin = 0.25 * forecast * self.rtt_min
        self.window = max(LEAST, forecast * (self.rtt_min + self.target) + margin)

    def _margin(self):
        if not self.sorted:
            return None
        return max(0.0, self.sorted[min(len(self.sorted) - 1, int(self.quantile * len(self.sorted)))])

    def _close(self, now):
        while self.open and self.open[0][0] + self.rtt_min <= now:
            _, before, forecast = self.open.popleft()
            beyond = self.delivered - before - forecast * self.rtt_min
            self.kept.append((now, beyond))
            bisect.insort(self.sorted, beyond)
        while self.kept and self.kept[0][0] < now - self.memory:
            self.sorted.pop(bisect.bisect_left(self.sorted, self.kept.popleft()[1]))


class Bound(Quantile):
    """The gateway's rule (docs/design/queue-bound.md): forecast x (shortest round trip + 8 ms) + the dial x the forecast's mean error over 2 s."""

    dial = (0.5, 1.3, 2, 3, 4.5, 6, 9)
    target, memory = 0.008, 2.0

    def __init__(self, gain):
        super().__init__(None)
        self.gain, self.sum = gain, 0.0

    def _close(self, now):
        while self.open and self.open[0][0] + self.rtt_min <= now:
            _, before, forecast = self.open.popleft()
            off = abs(self.delivered - before - forecast * self.rtt_min)
            self.kept.append((now, off))
            self.sum += off
        while self.kept and self.kept[0][0] < now - self.memory:
            self.sum -= self.kept.popleft()[1]

    def _margin(self):
        return self.gain * self.sum / len(self.kept) if self.kept else None


def simulate(opportunities, rule, rtt):
    """Utilization in percent, then p50, p95 and p99 of the wait in ms. `opportunities`: seconds at which one packet may leave."""
    arriving, queue, acks, waits, outstanding = collections.deque(), collections.deque(), collections.deque(), [], 0

    def send(now):
        nonlocal outstanding
        while outstanding < rule.window:
            arriving.append((now + rtt / 2, now))
            outstanding += 1

    send(0.0)
    for now in opportunities:
        while acks and acks[0][0] <= now:
            at, sent = acks.popleft()
            outstanding -= 1
            rule.on_ack(at, at - sent)
            send(at)
        while arriving and arriving[0][0] <= now:
            queue.append(arriving.popleft())
        if queue:
            arrived, sent = queue.popleft()
            waits.append(now - arrived)
            acks.append((now + rtt / 2, sent))
    waits.sort()
    part = lambda share: 1e3 * waits[min(len(waits) - 1, int(share * len(waits)))]
    return 100 * len(waits) / len(opportunities), part(0.5), part(0.95), part(0.99)


def at(points, utilization):
    """The p95 of a rule at that utilization, between the settings of its dial; the nearest one's outside of them."""
    points = sorted((u, p95) for u, _, p95, _ in points)
    for (u0, d0), (u1, d1) in zip(points, points[1:]):
        if u0 <= utilization <= u1:
            return d0 + (d1 - d0) * (utilization - u0) / max(u1 - u0, 1e-9)
    return points[0][1] if utilization < points[0][0] else points[-1][1]
