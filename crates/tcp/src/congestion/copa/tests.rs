use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::*;

/// A link with an unlimited queue. It sends a packet in `service`. The propagation delay is `rtt`.
struct Path {
    copa: Copa,
    window: Window,
    sample: AckSample,
    rtt: Duration,
    service: Duration,
    free_at: Instant,
    /// Packets in the order of arrival: when each was sent, when it is acknowledged, whether it is ours.
    outstanding: VecDeque<(Instant, Instant, bool)>,
    ours: u32,
    /// Packets that another flow keeps in the queue.
    others: u64,
}

const MSS: u64 = 1_000;

impl Path {
    fn new(rtt_ms: u64, packets_per_s: u64) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1);
        Path {
            copa: Copa::default(),
            window: Window::new(10, u32::MAX),
            sample: AckSample {
                now,
                mss: MSS as u32,
                una_advanced: true,
                cwnd_limited: true,
                ..AckSample::default()
            },
            rtt: Duration::from_millis(rtt_ms),
            service: Duration::from_nanos(1_000_000_000 / packets_per_s),
            free_at: now,
            outstanding: VecDeque::new(),
            ours: 0,
            others: 0,
        }
    }

    fn send(&mut self, ours: bool) {
        let now = self.sample.now;
        self.free_at = self.free_at.max(now) + self.service;
        self.outstanding.push_back((now, self.free_at + self.rtt, ours));
        if ours {
            self.ours += 1;
            self.sample.nxt += MSS;
        }
    }

    /// Packets that wait for the link or are on it.
    fn queue(&self) -> u64 {
        self.free_at.saturating_since(self.sample.now).as_nanos() / self.service.as_nanos()
    }

    /// Calls `each` for each ACK of ours.
    fn run(&mut self, length: Duration, mut each: impl FnMut(&mut Path)) {
        let end = self.sample.now + length;
        while self.sample.now < end {
            while self.queue() < self.others {
                self.send(false);
            }
            while self.ours < self.window.cwnd {
                self.send(true);
            }
            let Some((sent, at, ours)) = self.outstanding.pop_front() else { return };
            self.sample.now = at;
            if ours {
                self.ours -= 1;
                self.ack(at.saturating_since(sent));
                each(self);
            }
        }
    }

    fn ack(&mut self, rtt: Duration) {
        let srtt = self.sample.srtt;
        self.sample.srtt = if srtt.is_zero() { rtt } else { (srtt * 7 + rtt) / 8 };
        self.sample.una += MSS;
        self.sample.rtt = Some(rtt);
        self.sample.delivered = 1;
        self.window = self.copa.on_ack(&self.sample, self.window);
        self.sample.lost = 0;
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// Section 3: the queue swings between 0 and 2.5 / delta packets. It moves by whole packets. If a swing leaves one
/// packet, the sender sometimes assumes another flow's queue.
#[test]
fn alone_it_keeps_some_packets_in_the_queue_and_empties_it() {
    for (rtt_ms, packets_per_s) in [(50, 1_000), (100, 2_000), (20, 5_000)] {
        let mut path = Path::new(rtt_ms, packets_per_s);
        path.run(Duration::from_secs(10), |_| {});
        let (mut queues, mut competitive) = (Vec::new(), 0);
        path.run(Duration::from_secs(20), |path| {
            queues.push(path.queue());
            competitive += usize::from(path.copa.competitive);
        });
        let mean = queues.iter().sum::<u64>() as f64 / queues.len() as f64;
        queues.sort_unstable();
        let p95 = queues[queues.len() * 95 / 100];
        let what = alloc::format!("{mean} packets, p95 {p95}, {competitive} of {}", queues.len());
        assert!((1.0..=4.0).contains(&mean) && p95 <= 8, "{rtt_ms} ms, {packets_per_s}/s: {what}");
        assert!(competitive * 4 <= queues.len(), "{rtt_ms} ms, {packets_per_s}/s: {what}");
        // The link is never idle for long.
        assert!(queues.len() as f64 >= 0.98 * 20.0 * packets_per_s as f64, "{what}");
    }
}

/// Section 2.1: the window doubles in each RTT, until cwnd / RTTstanding exceeds 1 / (delta dq).
#[test]
fn slow_start_doubles_and_ends_with_a_queue() {
    let mut path = Path::new(100, 2_000);
    let mut windows = Vec::new();
    for _ in 0..4 {
        path.run(Duration::from_millis(100), |_| {});
        windows.push(path.window.cwnd);
        assert!(path.copa.slow_start && path.window.in_slow_start(), "{windows:?}");
    }
    assert!(windows.windows(2).all(|pair| (18..=22).contains(&(pair[1] * 10 / pair[0]))), "{windows:?}");
    path.run(Duration::from_millis(400), |_| {});
    assert!(!path.copa.slow_start && !path.window.in_slow_start());
    // The path holds 200 packets. The sender sees the queue one round trip later.
    assert!((200..=500).contains(&path.window.cwnd), "{}", path.window.cwnd);
}

/// Section 2.1: v doubles with each window after the direction was the same for three RTTs. Ours returns to 1 beyond
/// the target.
#[test]
fn the_velocity_doubles_while_the_direction_stays() {
    let mut path = Path::new(50, 1_000);
    path.run(MINUTE, |_| {});
    // The link becomes eight times as fast.
    path.service = path.service / 8;
    let mut velocities = Vec::new();
    path.run(Duration::from_secs(2), |path| {
        if velocities.last() != Some(&path.copa.velocity) {
            velocities.push(path.copa.velocity);
        }
    });
    let from = velocities.windows(4).position(|four| four == [1, 2, 4, 8]);
    assert!(from.is_some(), "{velocities:?}");
    let back = velocities.windows(2).any(|pair| pair[0] >= 8 && pair[1] == 1);
    assert!(back, "{velocities:?}");
    // The path holds 400 packets.
    path.run(Duration::from_secs(5), |_| {});
    assert!((395..=430).contains(&path.window.cwnd), "{} {velocities:?}", path.window.cwnd);
}

/// Section 2.2: while another flow fills the queue, the sender competes by AIMD on 1 / delta. Then the default mode
/// returns.
#[test]
fn beside_a_full_queue_it_competes_until_the_queue_empties() {
    let mut path = Path::new(50, 1_000);
    path.run(Duration::from_secs(10), |_| {});
    assert!(!path.copa.competitive);
    path.others = 40;
    path.run(Duration::from_millis(200), |_| {});
    assert!(!path.copa.competitive, "five RTTs are not over");
    path.run(Duration::from_secs(2), |_| {});
    assert!(path.copa.competitive);
    let raised = path.copa.inverse_delta;
    assert!((10..=30).contains(&raised), "{raised}");
    // Two losses within an RTT count as one.
    for _ in 0..2 {
        path.sample.lost = 1;
        path.ack(path.sample.srtt);
    }
    let halved = path.copa.inverse_delta;
    assert!(halved == raised / 2 || halved == raised.div_ceil(2), "{raised} {halved}");
    path.others = 0;
    path.run(Duration::from_secs(5), |_| {});
    assert_eq!((path.copa.competitive, path.copa.inverse_delta), (false, INVERSE_DELTA));
}

/// In the default mode no loss changes delta.
#[test]
fn alone_a_loss_moves_nothing() {
    let mut path = Path::new(50, 1_000);
    path.run(Duration::from_secs(10), |_| {});
    path.copa.nearly_empty_at = Some(path.sample.now);
    let before = path.window.cwnd;
    path.sample.lost = 5;
    path.ack(path.rtt);
    assert!(path.window.cwnd.abs_diff(before) <= 1);
    assert_eq!(
        (path.copa.ssthresh(path.window), path.copa.inverse_delta),
        (path.window.ssthresh, INVERSE_DELTA)
    );
}

/// Section 2.1: 2 cwnd / RTTstanding.
#[test]
fn it_paces_at_two_windows_in_a_round_trip() {
    let mut path = Path::new(50, 1_000);
    path.run(Duration::from_secs(10), |_| {});
    let rate = path.copa.pacing_rate().map_or(0, Rate::as_bytes_per_sec) as f64;
    let rtt_s = path.copa.rtt_standing.get() as f64 / 1e9;
    let expected = 2.0 * f64::from(path.window.cwnd) * MSS as f64 / rtt_s;
    assert!((0.99..=1.05).contains(&(rate / expected)), "{rate} {expected}");
}

#[test]
fn a_window_that_is_not_used_does_not_grow_and_a_queue_shrinks_it() {
    let mut path = Path::new(50, 1_000);
    path.run(Duration::from_secs(10), |_| {});
    path.sample.cwnd_limited = false;
    let before = path.window.cwnd;
    for _ in 0..500 {
        path.sample.now += Duration::from_millis(1);
        path.ack(path.rtt);
    }
    assert!(path.window.cwnd <= before, "{} {before}", path.window.cwnd);
    for _ in 0..500 {
        path.sample.now += Duration::from_millis(1);
        path.ack(path.rtt * 2);
    }
    assert!(path.window.cwnd < before / 2, "{} {before}", path.window.cwnd);
}

/// Slow start follows a timeout. A spurious timeout is undone.
#[test]
fn a_timeout_begins_anew() {
    let mut path = Path::new(50, 1_000);
    path.run(Duration::from_secs(10), |_| {});
    let before = path.window.cwnd;
    path.window = path.copa.on_event(CongestionEvent::Timeout, &path.sample, path.window);
    path.window.cwnd = 1;
    path.sample.now += MINUTE / 4;
    path.ack(path.rtt);
    assert!(path.copa.slow_start && path.window.cwnd <= 3, "{}", path.window.cwnd);
    assert_eq!(path.copa.undo(path.window, 0), before);
    assert_eq!(path.copa.undo(path.window, 0), path.window.cwnd);
}
