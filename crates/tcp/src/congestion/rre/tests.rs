//! RRE on a link of its own, without a connection.

extern crate std;

use std::collections::VecDeque;
use std::format;

use proptest::prelude::*;

use super::*;
use crate::congestion::AckKind;

const MSS: u64 = 1_448;

/// One bottleneck with an unlimited queue. ACKs take `back` to return.
#[derive(Clone, Copy, Debug)]
struct Link {
    rate: Rate,
    there: Duration,
    back: Duration,
    tick: Duration,
    /// Skew of the receiver's clock, ppm.
    skew: i64,
    /// Segments acknowledged together.
    every: u64,
    /// Number of ACKs lost out of ten.
    lost: u64,
}

/// A flow over it.
struct Flow {
    link: Link,
    control: Rre,
    window: Window,
    now: Instant,
    departure: Instant,
    /// When the bottleneck is free.
    free: Instant,
    in_flight: u32,
    /// For each ACK: when its segment was sent, when it arrives, its TSval, and the segments that it acknowledges.
    acks: VecDeque<(Instant, Instant, u32, u64)>,
    unacked: u64,
    acks_made: u64,
    srtt: Duration,
    /// Time that the bottleneck worked, and its longest queue since both were last cleared.
    busy: Duration,
    queue_max: Duration,
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

impl Link {
    fn stamp(&self, at: Instant) -> u32 {
        let ns = at.as_nanos() as i64;
        ((ns + ns / 1_000_000 * self.skew) as u64 / self.tick.as_nanos()) as u32
    }
}

impl Flow {
    /// The handshake is over at one second.
    fn new(link: Link) -> Flow {
        let mut control = Rre::default();
        let now = at(1_000);
        let rtt = link.there + link.back;
        let syn = now - rtt;
        control.on_peer_timestamp(link.stamp(syn - link.back), None, syn);
        control.on_peer_timestamp(link.stamp(syn + link.there), Some(syn), now);
        Flow {
            link,
            control,
            window: Window::new(10, u32::MAX),
            now,
            departure: now,
            free: now,
            in_flight: 0,
            acks: VecDeque::new(),
            unacked: 0,
            acks_made: 0,
            srtt: rtt,
            busy: Duration::ZERO,
            queue_max: Duration::ZERO,
        }
    }

    /// Goes on until `end`.
    fn run(&mut self, end: Instant) {
        while self.now < end {
            self.send();
            if self.acks.is_empty() {
                // The receiver's timer, or a retransmission, brings the missing ACK.
                self.acknowledge(self.free.max(self.now) + Duration::from_millis(40));
            }
            let ack = self.acks.front().map(|ack| ack.1);
            let may = self.in_flight < self.window.cwnd && self.control.pacing_rate().is_some();
            let next =
                if may { ack.map_or(self.departure, |ack| ack.min(self.departure)) } else { ack.unwrap() };
            self.now = next.max(self.now);
            if ack.is_some_and(|ack| ack <= self.now) {
                self.take_ack();
            }
        }
    }

    fn send(&mut self) {
        loop {
            let pace = self.control.pacing_rate();
            let wait = self.window.burst == 0 && pace.is_some() && self.departure > self.now;
            if wait || self.in_flight >= self.window.cwnd {
                return;
            }
            if self.window.burst > 0 {
                self.window.burst -= 1;
            } else if let Some(pace) = pace {
                self.departure = self.departure.max(self.now) + pace.time_for(MSS);
            }
            self.send_one();
        }
    }

    fn send_one(&mut self) {
        let service = self.link.rate.time_for(MSS);
        self.queue_max = self.queue_max.max(self.free.saturating_since(self.now));
        self.free = self.free.max(self.now) + service;
        self.busy += service;
        self.in_flight += 1;
        self.unacked += 1;
        if self.unacked < self.link.every && self.acks_made >= 10 {
            return;
        }
        self.acks_made += 1;
        if self.acks_made % 10 < self.link.lost && self.acks_made > 10 {
            return;
        }
        self.acknowledge(self.free);
    }

    /// The last segment leaves the bottleneck at `left`.
    fn acknowledge(&mut self, left: Instant) {
        let came = left + self.link.there;
        self.acks.push_back((self.now, came + self.link.back, self.link.stamp(came), self.unacked));
        self.unacked = 0;
    }

    fn take_ack(&mut self) {
        let Some((sent, _, tsval, segments)) = self.acks.pop_front() else { return };
        let rtt = self.now.saturating_since(sent);
        self.srtt = (self.srtt * 7 + rtt) / 8;
        self.in_flight -= segments as u32;
        let sample = AckSample {
            now: self.now,
            delivered: segments as u32,
            delivered_bytes: segments * MSS,
            in_flight: self.in_flight,
            una_advanced: true,
            rtt: Some(rtt),
            srtt: self.srtt,
            mss: MSS as u32,
            kind: AckKind { tsval: Some(tsval), ..AckKind::default() },
            sent_at: Some(sent),
            ..AckSample::default()
        };
        self.window = self.control.on_ack(&sample, self.window);
    }

    /// Runs for `seconds`. Returns the used share of the bottleneck and the longest queue.
    fn measure(&mut self, seconds: u64) -> (f64, Duration) {
        let (busy, from) = (self.busy, self.now);
        self.queue_max = Duration::ZERO;
        self.run(self.now + Duration::from_secs(seconds));
        let used = (self.busy - busy).as_secs_f64() / self.now.saturating_since(from).as_secs_f64();
        (used, self.queue_max)
    }

    /// T by the link's true values, not by estimates.
    fn t(&self) -> Duration {
        (self.link.there + self.link.back).max(self.link.rate.time_for(30 * MSS))
    }
}

const PLAIN: Link = Link {
    rate: Rate::from_bytes_per_sec(375_000),
    there: Duration::from_millis(50),
    back: Duration::from_millis(50),
    tick: Duration::from_millis(1),
    skew: 0,
    every: 2,
    lost: 0,
};

#[test]
fn one_burst_tells_the_rate() {
    let mut flow = Flow::new(PLAIN);
    flow.run(at(1_200));
    assert!(matches!(flow.control.stage, Stage::Fill), "{:?}", flow.control.stage);
    let rho = flow.control.rate.rate().as_mbps();
    assert!((2.6..3.4).contains(&rho), "{rho}");
}

#[test]
fn the_queue_swings_about_t() {
    let mut flow = Flow::new(PLAIN);
    flow.measure(5);
    let (used, queue) = flow.measure(30);
    assert!(used > 0.99, "{used}");
    assert!(queue > flow.t() / 2 && queue < flow.t() * 2, "{queue:?}");
}

#[test]
fn acks_that_take_seconds_do_not_slow_it_down() {
    let mut flow = Flow::new(Link { back: Duration::from_secs(5), ..PLAIN });
    flow.run(at(6_200));
    let (used, queue) = flow.measure(60);
    assert!(used > 0.95, "{used}");
    // RTTmin counts with 200 ms at most.
    assert!(queue < Duration::from_millis(600), "{queue:?}");
}

#[test]
fn a_longer_path_is_found_out() {
    for (mbps, tick_ms) in [(3.0, 1), (3.0, 10), (8.0, 1), (8.0, 10)] {
        let link = Link { rate: Rate::from_mbps(mbps), tick: Duration::from_millis(tick_ms), ..PLAIN };
        let mut flow = Flow::new(link);
        flow.measure(10);
        flow.link.there = Duration::from_millis(300);
        flow.measure(5);
        let (used, queue) = flow.measure(20);
        let case = format!("{mbps} Mbit/s, {tick_ms} ms");
        assert!(used > 0.95 && queue < flow.t() * 2, "{case}: {used} {queue:?}");
    }
}

#[test]
fn a_slower_link_is_no_longer_path() {
    let mut flow = Flow::new(PLAIN);
    flow.measure(10);
    flow.link.rate = Rate::from_mbps(1.0);
    flow.measure(5);
    let (used, queue) = flow.measure(20);
    assert!(used > 0.95 && queue < flow.t() * 2, "{used} {queue:?}");
    flow.link.rate = Rate::from_mbps(8.0);
    flow.measure(3);
    let (used, queue) = flow.measure(20);
    // The queue grows by half a BDP in each RTT until the sender sees T, after t_buff + RTT. So 2 T, plus the packets
    // of an ACK.
    assert!(used > 0.95 && queue < flow.t().mul_ratio(21, 10), "{used} {queue:?}");
}

#[test]
fn clocks_that_drift_for_ten_minutes_do_no_harm() {
    for skew in [-100, 100] {
        let mut flow = Flow::new(Link { skew, ..PLAIN });
        flow.measure(540);
        let (used, queue) = flow.measure(60);
        assert!(used > 0.98 && queue < flow.t() * 2, "{skew} ppm: {used} {queue:?}");
    }
}

#[test]
fn losses_lead_to_drain_and_timeouts_to_monitor() {
    let mut flow = Flow::new(PLAIN);
    flow.measure(10);
    while !matches!(flow.control.stage, Stage::Fill) {
        flow.run(flow.now + Duration::from_millis(10));
    }
    let sigma = flow.control.sigma;
    let sample = AckSample { now: flow.now, srtt: flow.srtt, mss: MSS as u32, ..AckSample::default() };
    flow.control.on_state(CaState::Recovery, &sample, flow.window);
    assert!(matches!(flow.control.stage, Stage::Drain { .. }) && flow.control.sigma < sigma);
    let sigma = flow.control.sigma;
    flow.control.on_state(CaState::Recovery, &sample, flow.window);
    assert_eq!(flow.control.sigma, sigma);
    flow.control.on_state(CaState::Loss, &sample, flow.window);
    flow.take_ack_when_due();
    assert!(matches!(flow.control.stage, Stage::Monitor(_)) && flow.control.sigma < sigma);
    assert_eq!(flow.window.burst, 10);
}

impl Flow {
    fn take_ack_when_due(&mut self) {
        if let Some(ack) = self.acks.front() {
            self.now = self.now.max(ack.1);
        }
        self.take_ack();
        self.in_flight = self.in_flight.max(50);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Any link of the paper and some beyond, any clock, ACKs delayed and lost: the link is used, the queue is short.
    #[test]
    fn it_fills_the_link_and_not_the_buffer(
        kbps in 500u64..20_000,
        there_ms in 10u64..150,
        back_ms in 10u64..3_000,
        tick in 0usize..4,
        skew in -100i64..100,
        every in 1u64..4,
        lost in 0u64..8,
    ) {
        let tick = [1, 1_000, 4_000, 10_000][tick];
        let link = Link {
            rate: Rate::from_bytes_per_sec(kbps * 125),
            there: Duration::from_millis(there_ms),
            back: Duration::from_millis(back_ms),
            tick: Duration::from_micros(tick),
            skew,
            every,
            lost,
        };
        let mut flow = Flow::new(link);
        let rtt_s = (there_ms + back_ms).div_ceil(1_000);
        // The rate of an initial burst within two ticks may be estimated at half. The swing is a tenth of a second.
        flow.measure(5 + 60 * rtt_s);
        let (used, queue) = flow.measure(10 + 20 * rtt_s);
        prop_assert!(used > 0.9, "{used} of the link, {:?}", flow.control);
        prop_assert!(queue < flow.t().min(Duration::from_millis(200)).max(link.rate.time_for(30 * MSS)) * 3, "{queue:?}");
    }
}
