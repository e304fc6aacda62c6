//! The receive rate rho, from bytes that arrived between steps of the peer's clock (Section II-A).

use paceline_wire::{Duration, Instant, Rate};

use super::peer_clock::PeerTime;

/// Bytes received when the peer's clock moved on. Only such steps count. So a tick of 10 ms costs no accuracy where
/// packets come faster: the first packet after a step came just after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
struct Step {
    ns: i64,
    received: u64,
}

/// A weighted average (Section IV: EWMA, with every ACK). Bytes and time are averaged separately, each sample with the
/// weight of its time. So a rounding error at one step is made good at the next.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ReceiveRate {
    bytes: u64,
    time_ns: u64,
    last: Option<Step>,
    /// Packets sent before this do not count, because they were not sent at the present rate.
    valid_from: Instant,
}

impl ReceiveRate {
    /// Restarts from `rate`, which stays until packets sent from now on have arrived.
    pub(super) fn restart(&mut self, rate: Rate, memory: Duration, now: Instant) {
        self.bytes = rate.bytes_in(memory);
        self.time_ns = memory.as_nanos();
        self.skip(now);
    }

    /// Ignores packets sent before `now`.
    pub(super) fn skip(&mut self, now: Instant) {
        self.last = None;
        self.valid_from = now;
    }

    /// By `time` the peer had `received` bytes in all, and their newest packet was sent at `sent`.
    pub(super) fn on_ack(&mut self, time: PeerTime, received: u64, sent: Option<Instant>, memory: Duration) {
        if self.last.is_none() && sent.is_none_or(|sent| sent < self.valid_from) {
            return;
        }
        let step = Step { ns: time.ns, received };
        let Some(last) = self.last else {
            self.last = Some(step);
            return;
        };
        let Ok(passed @ 1..) = u64::try_from(step.ns - last.ns) else { return };
        self.last = Some(step);
        let (memory_us, passed_us) = (memory.as_micros().max(1), passed.div_ceil(1_000));
        let keep = |value: u64| {
            (u128::from(value) * u128::from(memory_us) / u128::from(memory_us + passed_us)) as u64
        };
        self.bytes = keep(self.bytes) + (received - last.received);
        self.time_ns = keep(self.time_ns) + passed;
    }

    /// rho.
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bytes_in(self.bytes, Duration::from_nanos(self.time_ns))
    }
}

/// Packets that were sent in one go, and so left the bottleneck at its rate.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Train {
    seen: Option<Step>,
    first: Option<Step>,
    last: Option<Step>,
    /// The latest ACK.
    newest: Option<Step>,
    first_sent: Option<Instant>,
}

/// Our choice of a good estimate: half of the initial burst between two steps of the clock. Where packets come faster
/// than ticks, each step is exact to one packet, else to one tick. So the error is a fifth at worst, whatever the tick.
/// It is twice that where an ACK stands for two packets.
const GOOD_PACKETS: u64 = 5;
/// Our choice: once this many of the burst's ten packets have arrived, it is no use to wait for the others.
const WHOLE_PACKETS: u64 = 8;

impl Train {
    /// Takes an ACK for a part of the train.
    pub(super) fn on_ack(&mut self, time: PeerTime, received: u64, sent: Option<Instant>) {
        self.first_sent = self.first_sent.or(sent);
        let step = Step { ns: time.ns, received };
        let Some(seen) = self.seen else {
            self.seen = Some(step);
            return;
        };
        self.newest = Some(step);
        if step.ns > self.last.unwrap_or(seen).ns {
            self.first.get_or_insert(step);
            self.last = Some(step);
        }
    }

    /// True if the packets up to the one sent at `sent` were not sent faster than they arrived. Their rate is then the
    /// sender's, not the link's. Our choice: faster means by a third, because slow start sends twice as much as
    /// arrives.
    pub(super) fn is_cut(&self, time: PeerTime, sent: Option<Instant>) -> bool {
        let (Some(seen), Some(first), Some(sent)) = (self.seen, self.first_sent, sent) else { return false };
        let receiving = Duration::from_nanos(u64::try_from(time.ns - seen.ns).unwrap_or(0));
        sent.saturating_since(first) > receiving.mul_ratio(3, 4) + time.tick
    }

    /// Bytes that have arrived, without the first packet.
    pub(super) fn bytes(&self, received: u64) -> u64 {
        self.seen.map_or(0, |seen| received - seen.received)
    }

    /// Its rate; `None` before two steps.
    pub(super) fn rate(&self) -> Option<Rate> {
        let (first, last) = (self.first?, self.last?);
        let time = Duration::from_nanos(u64::try_from(last.ns - first.ns).ok()?);
        (!time.is_zero()).then(|| Rate::from_bytes_in(last.received - first.received, time))
    }

    /// Its rate, if enough has arrived: `GOOD_PACKETS` between two steps, or `WHOLE_PACKETS` in all. A longer train
    /// would cost too much time. In the second case the rate is the lowest that the clock allows.
    pub(super) fn good_rate(&self, tick: Duration, mss: u32) -> Option<Rate> {
        let packets = |from: Step, to: Step| (to.received - from.received) / u64::from(mss.max(1));
        if let (Some(first), Some(last)) = (self.first, self.last)
            && packets(first, last) >= GOOD_PACKETS
        {
            return self.rate();
        }
        let (seen, newest) = (self.seen?, self.newest?);
        let time = Duration::from_nanos(u64::try_from(newest.ns - seen.ns).ok()?) + tick;
        (packets(seen, newest) >= WHOLE_PACKETS)
            .then(|| Rate::from_bytes_in(newest.received - seen.received, time))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    const MEMORY: Duration = Duration::from_millis(100);

    fn read(us: u64, tick_us: u64) -> PeerTime {
        PeerTime { ns: (us / tick_us * tick_us * 1_000) as i64, tick: Duration::from_micros(tick_us) }
    }

    proptest! {
        /// A steady link is measured for any tick and rate, with lost and delayed ACKs. The error is at most one
        /// percent plus a tick's share of the memory. If an ACK's packets take less than a tick, their time counts
        /// instead.
        #[test]
        fn a_steady_rate_is_found(
            kbps in 500u64..20_000,
            tick in 0usize..4,
            phase in 0u64..10_000,
            every in 1u64..6,
        ) {
            let tick_us = [1, 1_000, 4_000, 10_000][tick];
            let mut rate = ReceiveRate::default();
            rate.restart(Rate::from_bytes_per_sec(kbps * 60), MEMORY, Instant::ZERO);
            let packet_us = 1_448 * 8_000 / kbps;
            for n in (0..2_000_000 / packet_us).step_by(every as usize) {
                rate.on_ack(read(phase + n * packet_us, tick_us), n * 1_448, Some(Instant::ZERO), MEMORY);
            }
            let found = rate.rate().as_bytes_per_sec() as f64 / (1_448e6 / packet_us as f64);
            let step_us = tick_us.min(packet_us * every);
            prop_assert!((found - 1.0).abs() < 0.01 + step_us as f64 / MEMORY.as_micros() as f64, "{found}");
        }

        /// The train of an initial burst.
        #[test]
        fn a_good_train_is_not_far_off(kbps in 300u64..30_000, tick in 0usize..4, phase in 0u64..10_000) {
            let tick_us = [1, 1_000, 4_000, 10_000][tick];
            let packet_us = 1_448 * 8_000 / kbps;
            let mut train = Train::default();
            for n in 0..60 {
                train.on_ack(read(phase + n * packet_us, tick_us), n * 1_448, Some(Instant::ZERO));
                if let Some(found) = train.good_rate(Duration::from_micros(tick_us), 1_448) {
                    let ratio = found.as_bytes_per_sec() as f64 * packet_us as f64 / 1_448e6;
                    // Packets within one tick may count as two ticks.
                    let coarse = (n * packet_us) as f64 / (n * packet_us + 2 * tick_us) as f64;
                    prop_assert!(ratio > coarse.min(0.75) - 0.01 && ratio < 1.34, "{ratio} after {n}");
                    return Ok(());
                }
            }
        }
    }

    #[test]
    fn what_acks_clock_is_no_train() {
        let mut train = Train::default();
        for n in 0..100 {
            let (time, sent) = (read(n * 22_000, 10_000), Instant::ZERO + Duration::from_millis(n * 22));
            if train.is_cut(time, Some(sent)) {
                train = Train::default();
            }
            train.on_ack(time, n * 1_448, Some(sent));
            assert_eq!(train.good_rate(time.tick, 1_448), None);
        }
    }

    #[test]
    fn the_rate_follows_a_step_within_a_few_memories() {
        let mut rate = ReceiveRate::default();
        rate.restart(Rate::from_mbps(8.0), MEMORY, Instant::ZERO);
        for n in 0..200 {
            rate.on_ack(read(n * 2_000, 1_000), n * 500, Some(Instant::ZERO), MEMORY);
        }
        let found = rate.rate().as_mbps();
        assert!((1.9..2.3).contains(&found), "{found}");
    }

    #[test]
    fn what_was_sent_before_says_nothing() {
        let mut rate = ReceiveRate::default();
        let start = Instant::ZERO + Duration::from_millis(500);
        rate.restart(Rate::from_mbps(8.0), MEMORY, start);
        for n in 0..100 {
            rate.on_ack(read(n * 10_000, 1_000), n * 10, Some(Instant::ZERO), MEMORY);
        }
        assert_eq!(rate.rate(), Rate::from_mbps(8.0));
    }
}
