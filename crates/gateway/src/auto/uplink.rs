//! Measures the client's queue on the uplink by the client's timestamps (RFC 7323).
//!
//! The arrival here minus the time of the timestamp is the one-way delay of the uplink, up to a constant. The part
//! above its minimum is queue. That is the relative one-way delay of RRE (Section II-A) in the other direction.
//!
//! A hand-over lengthens the path itself. While the subscriber sends only acknowledgements, a standing delay counts as
//! a longer path for a second. It is one if it stays the same for half of that time. An upload's queue varies.

use paceline_wire::{Duration, Instant};

use crate::rtt_min::{RttMin, STANDING};

/// One flow's one-way delay on the uplink.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct UplinkDelay {
    /// The first timestamp and when it came.
    first: Option<(u32, Instant)>,
    /// Length of a tick in nanoseconds, once known.
    tick: Option<u64>,
    /// The shortest delay, in nanoseconds from an arbitrary zero.
    shortest: Option<i64>,
    /// When that was last updated.
    at: Instant,
    /// When a packet last had that delay.
    #[serde(default)]
    met: Instant,
    /// The shortest queue since it was last asked for.
    least: Option<Duration>,
    /// The queue that the newest packet met.
    now: Duration,
    /// The shortest recent queue.
    #[serde(default = "recent")]
    recent: RttMin,
    #[serde(default)]
    stands: Option<StandingDelay>,
    #[serde(default)]
    uploads: Uploads,
}

/// A delay that stands on the uplink.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct StandingDelay {
    since: Instant,
    /// The constant delay since `flat_since`.
    level: Duration,
    flat_since: Instant,
}

/// When the subscriber last sent more than ACKs, requests and keep-alives.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Uploads {
    bytes: u64,
    counted_at: Instant,
    newest: Option<Instant>,
}

/// 1 ms: Linux since 4.13, and Windows. 4 and 10 ms: earlier Linux, by CONFIG_HZ.
const TICKS_NS: [u64; 3] = [1_000_000, 4_000_000, 10_000_000];
/// Our choice: the quartz clocks of both ends are each off by a ten-thousandth at most. A slow clock would look like a
/// growing queue. A true queue of a second is still seen after half an hour.
const DRIFT_PPM: u64 = 200;
/// Our choice: requests and keep-alives are less than a packet in [`STANDING`]. An upload that fills any uplink is
/// more.
const UPLOAD_BYTES: u64 = 1_000;
/// Our choice: a varying delay that stands for longer is a queue.
const MAY_BE_PATH: Duration = Duration::from_secs(1);
/// Our choice: a delay that stays the same for this long is the path's. A queue of acknowledgements alone grows until
/// some are lost.
const FLAT: Duration = Duration::from_millis(500);
/// Our choice: by this much a radio scheduler varies a path's delay.
const FLAT_WITHIN: Duration = Duration::from_millis(2);
/// Our choice: no hand-over lengthens one direction by more.
const LONGER_MAX: Duration = Duration::from_millis(250);
/// Our choice: the most that a flow takes from others, longer than an uplink's buffer holds. Otherwise a client's false
/// timestamps add up from flow to flow.
const KNOWN_MAX: Duration = Duration::from_secs(10);
/// Our choice: ten ticks of the longest kind.
const LEARN: Duration = Duration::from_millis(100);
/// Our choice: a tick may be corrected for this long, in which even a queue of [`KNOWN_MAX`] does not hide it.
const CORRECTED_FOR: Duration = Duration::from_secs(30);

impl Default for UplinkDelay {
    fn default() -> Self {
        UplinkDelay {
            first: None,
            tick: None,
            shortest: None,
            at: Instant::ZERO,
            met: Instant::ZERO,
            least: None,
            now: Duration::ZERO,
            recent: RttMin::new(STANDING),
            stands: None,
            uploads: Uploads::default(),
        }
    }
}

impl UplinkDelay {
    /// Handles a packet with the timestamp `tsval`. Its client has uploaded `uploaded` bytes in all. `known` is the
    /// recent queue of its other flows: a flow that begins beside an upload never met an empty uplink.
    pub(crate) fn on_timestamp(&mut self, now: Instant, tsval: u32, uploaded: u64, known: Option<Duration>) {
        let Some((way, tick)) = self.way(now, tsval) else { return };
        let drift = now.saturating_since(self.at).as_nanos().saturating_mul(DRIFT_PPM) / 1_000_000;
        self.at = now;
        let known = known.unwrap_or_default().min(KNOWN_MAX).as_nanos() as i64;
        let shortest = match self.shortest {
            Some(shortest) => (shortest + drift as i64).min(way),
            None => way.min(0).min(way - known),
        };
        if way <= shortest {
            self.met = now;
        } else if self.shortest.is_none() {
            self.met = self.first.map_or(now, |(_, at)| at);
        }
        self.shortest = Some(shortest);
        let queue = Duration::from_nanos((way - shortest).max(0) as u64);
        let path = self.longer_path(now, queue, FLAT_WITHIN + Duration::from_nanos(tick), uploaded);
        self.now = queue.saturating_sub(path);
        self.least = Some(self.least.map_or(self.now, |least| least.min(self.now)));
    }

    /// Returns the part of `queue` that belongs to a path that has become longer.
    fn longer_path(&mut self, now: Instant, queue: Duration, within: Duration, uploaded: u64) -> Duration {
        let stood = self.recent.update(now, queue);
        let uploads = self.uploads.on_count(now, uploaded);
        if stood <= within || stood > LONGER_MAX {
            self.stands = None;
            return Duration::ZERO;
        }
        let stands = self.stands.get_or_insert(StandingDelay { since: now, level: stood, flat_since: now });
        if uploads || stood.abs_diff(stands.level) > within {
            (stands.level, stands.flat_since) = (stood, now);
        }
        if now.saturating_since(stands.flat_since) >= FLAT {
            self.shortest = self.shortest.map(|shortest| shortest.saturating_add(stood.as_nanos() as i64));
            self.met = now;
            self.recent.reset(now, queue.saturating_sub(stood));
            self.stands = None;
            return stood;
        }
        if uploads || now.saturating_since(stands.since) >= MAY_BE_PATH { Duration::ZERO } else { stood }
    }

    /// Returns the delay of a packet with this timestamp, in nanoseconds from an arbitrary zero, and the clock's tick.
    fn way(&mut self, now: Instant, tsval: u32) -> Option<(i64, u64)> {
        let Some((first, first_at)) = self.first else {
            self.first = Some((tsval, now));
            return None;
        };
        let ticks = tsval.wrapping_sub(first);
        let elapsed = now.saturating_since(first_at);
        if ticks as i32 > 0 && elapsed >= LEARN && (self.tick.is_none() || elapsed < CORRECTED_FOR) {
            self.learn(elapsed.as_nanos() / u64::from(ticks));
        }
        let tick = self.tick?;
        // A timestamp wraps its sign bit in 24.8 days at 1 ms (RFC 7323, Section 5.4). Of the possible values the
        // nearest to the expected time holds.
        let expected = elapsed.as_nanos() / tick;
        let ahead = ticks.wrapping_sub(expected as u32) as i32;
        let ticks = expected as i64 + i64::from(ahead);
        Some((elapsed.as_nanos() as i64 - ticks.saturating_mul(tick as i64), tick))
    }

    /// Learns the tick from its mean length so far. A growing queue makes ticks seem longer, up to twice as long if it
    /// takes as long as the flow is old. The first flight alone can make them seem a hundred times as long. A client
    /// sends it within a tick, and a slow uplink brings it in 100 ms. So a wrong tick is corrected.
    fn learn(&mut self, seen_ns: u64) {
        let tick = TICKS_NS.into_iter().rfind(|tick| *tick <= seen_ns + seen_ns / 8).or(self.tick);
        if tick != self.tick {
            *self = UplinkDelay { first: self.first, tick, uploads: self.uploads, ..UplinkDelay::default() };
        }
    }

    /// Returns the queue that the newest packet met, less a tick of the client's clock, which hides the rest. `None`
    /// before the tick is known.
    pub(crate) fn queue(&self) -> Option<Duration> {
        self.tick.map(|tick| self.now.saturating_sub(Duration::from_nanos(tick)))
    }

    /// Returns the longest queue that the newest packet can have met. Its timestamp and that of the shortest delay are
    /// each a tick off. The allowance for clock drift since then may have been queue too.
    pub(crate) fn at_most(&self) -> Option<Duration> {
        let added = self.at.saturating_since(self.met).as_nanos().saturating_mul(DRIFT_PPM) / 1_000_000;
        self.tick.map(|tick| self.now + Duration::from_nanos(2 * tick + added))
    }

    /// Returns the standing queue since the last call: the shortest that any packet met (as in RFC 8289).
    pub(crate) fn standing(&mut self) -> Option<Duration> {
        self.least.take()
    }
}

impl Uploads {
    /// Takes the total of uploaded bytes. True while an upload goes on.
    fn on_count(&mut self, now: Instant, uploaded: u64) -> bool {
        if now.saturating_since(self.counted_at) >= STANDING {
            if uploaded.saturating_sub(self.bytes) >= UPLOAD_BYTES {
                self.newest = Some(now);
            }
            (self.bytes, self.counted_at) = (uploaded, now);
        }
        self.newest.is_some_and(|newest| now.saturating_since(newest) < MAY_BE_PATH)
    }
}

fn recent() -> RttMin {
    RttMin::new(STANDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends packets each 20 ms with a delay of 50 ms and a queue that grows by `growth_us` with each. Returns the
    /// queue that the last 20 met.
    fn standing(tick_ms: u64, growth_us: u64, packets: u64) -> Option<Duration> {
        let mut uplink = UplinkDelay::default();
        for n in 0..packets {
            let written = Duration::from_millis(1_000 + 20 * n);
            let came = written + Duration::from_micros(50_000 + growth_us * n);
            uplink.on_timestamp(Instant::ZERO + came, (written.as_millis() / tick_ms) as u32, 0, None);
            if n + 20 == packets {
                uplink.standing();
            }
        }
        uplink.standing()
    }

    #[test]
    fn a_free_uplink_has_no_queue_whatever_the_tick() {
        for tick in [1, 4, 10] {
            let queue = standing(tick, 0, 500).unwrap();
            assert!(queue <= Duration::from_millis(tick), "{tick} ms: {queue:?}");
        }
    }

    #[test]
    fn a_queue_is_found_while_it_grows() {
        for tick in [1, 4, 10] {
            // The queue grows by 10 ms a packet, half of the time between packets.
            let queue = standing(tick, 10_000, 100).unwrap();
            assert!(queue >= Duration::from_millis(700), "{tick} ms: {queue:?}");
        }
    }

    #[test]
    fn a_first_flight_in_one_tick_is_no_long_tick() {
        // Ten segments within a millisecond, 12 ms each on the uplink. Then each ACK brings two.
        let mut uplink = UplinkDelay::default();
        // The machine has been up for hours.
        let since = Instant::ZERO + Duration::from_secs(13_000);
        for n in 0..200u64 {
            let written = if n < 11 { n.min(1) } else { 112 + 12 * ((n - 11) / 2) };
            let came = 100 + 12 * n;
            uplink.on_timestamp(since + Duration::from_millis(came), written as u32, 1_448 * n, None);
            if n > 12 {
                let true_queue = came - 100 - written;
                let (least, most) = (uplink.queue().unwrap(), uplink.at_most().unwrap());
                assert!(least <= Duration::from_millis(true_queue), "{n}: {least:?} of {true_queue} ms");
                assert!(least >= Duration::from_millis(true_queue - 3), "{n}: {least:?} of {true_queue} ms");
                assert!(most >= Duration::from_millis(true_queue), "{n}: {most:?} of {true_queue} ms");
                assert!(most <= Duration::from_millis(true_queue + 3), "{n}: {most:?} of {true_queue} ms");
            }
        }
    }

    #[test]
    fn a_clock_that_runs_slow_is_no_queue() {
        let mut uplink = UplinkDelay::default();
        for n in 0..60_000u64 {
            let written = 20_000 * n * 9_999 / 10_000 / 1_000;
            uplink.on_timestamp(Instant::ZERO + Duration::from_millis(20 * n), written as u32, 0, None);
        }
        // In twenty minutes the clock has lost 120 ms.
        assert!(uplink.queue().unwrap() <= Duration::from_millis(2), "{:?}", uplink.queue());
    }

    /// Returns the last standing queue of 30 s. Packets each 10 ms have a delay of 50 ms and `more_ms` of their time.
    /// Uploads send 1,400 bytes with each.
    fn queue(uploads: bool, more_ms: fn(u64) -> u64) -> Duration {
        let mut uplink = UplinkDelay::default();
        for n in 0..3_000 {
            if n == 2_800 {
                uplink.standing();
            }
            let ms = 10 * n;
            let came = Instant::ZERO + Duration::from_millis(1_000 + ms + 50 + more_ms(ms));
            uplink.on_timestamp(
                came,
                (1_000 + ms) as u32,
                if uploads { 1_400 * n } else { 300 * (n / 500) },
                None,
            );
        }
        uplink.standing().unwrap()
    }

    #[test]
    fn a_way_that_is_longer_and_stays_so_is_no_queue() {
        assert_eq!(queue(false, |ms| if ms < 10_000 { 0 } else { 40 }), Duration::ZERO);
        // In the first second of it.
        assert_eq!(queue(false, |ms| if ms < 29_400 { 0 } else { 40 }), Duration::ZERO);
    }

    #[test]
    fn what_stands_on_the_uplink_is_a_queue_beside_an_upload_or_if_it_varies_or_is_too_long() {
        assert!(queue(true, |ms| if ms < 10_000 { 0 } else { 40 }) > Duration::from_millis(30));
        assert!(
            queue(false, |ms| if ms < 10_000 { 0 } else { 40 + ms / 10 % 60 }) > Duration::from_millis(30)
        );
        assert!(queue(false, |ms| if ms < 10_000 { 0 } else { 300 }) > Duration::from_millis(290));
    }

    #[test]
    fn timestamps_wrap() {
        let mut uplink = UplinkDelay::default();
        for n in 0..100u64 {
            let tsval = (u32::MAX - 500).wrapping_add(20 * n as u32);
            uplink.on_timestamp(Instant::ZERO + Duration::from_millis(20 * n), tsval, 0, None);
        }
        assert_eq!(uplink.standing(), Some(Duration::ZERO));
    }

    #[test]
    fn a_flow_of_two_months_has_no_queue() {
        for tick in [1, 4, 10] {
            let mut uplink = UplinkDelay::default();
            for minute in 0..60 * 24 * 60u64 {
                let written = Duration::from_secs(60 * minute);
                let came = Instant::ZERO + written + Duration::from_millis(50);
                uplink.on_timestamp(came, (written.as_millis() / tick) as u32, 0, None);
                assert!(
                    uplink.queue().unwrap_or_default() <= Duration::from_millis(tick),
                    "{minute} min: {:?}",
                    uplink.queue()
                );
            }
        }
    }

    /// Packets wait for 150 ms, and from half a second on for 50. A tick and the allowance for clock drift are
    /// subtracted.
    #[test]
    fn a_flow_that_begins_beside_an_upload_takes_its_queue_from_others() {
        let queues = |known: Option<Duration>| {
            let mut uplink = UplinkDelay::default();
            let mut queue = |ms: u64, waits: u64| {
                let came = Instant::ZERO + Duration::from_millis(ms + waits);
                uplink.on_timestamp(came, ms as u32, 100 * ms, known);
                uplink.queue().map(|queue| queue.as_millis())
            };
            let before = queue(0, 150);
            let first = (1..40).map(|n| queue(10 * n, 150)).last().flatten();
            let then = (50..60).map(|n| queue(10 * n, 50)).last().flatten();
            [before, first, then]
        };
        assert_eq!(queues(Some(Duration::from_millis(150))), [None, Some(148), Some(48)]);
        assert_eq!(queues(None), [None, Some(0), Some(0)]);
    }

    /// Each flow's clock goes back as far as a timestamp can. The next flow begins with the resulting queue.
    #[test]
    fn lies_do_not_add_up_from_flow_to_flow() {
        let mut known = None;
        for _ in 0..2_000 {
            let mut uplink = UplinkDelay::default();
            for (ms, tsval) in [(0, 0), (200, 20), (210, 21), (220, (1 << 31) + 30)] {
                uplink.on_timestamp(Instant::ZERO + Duration::from_millis(ms), tsval, 0, known);
            }
            known = uplink.queue();
        }
        // 2^31 ticks of 10 ms are 248 days.
        assert!(known.unwrap() < Duration::from_secs(260 * 24 * 3_600), "{known:?}");
    }
}
