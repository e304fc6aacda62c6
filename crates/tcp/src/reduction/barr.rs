//! Bandwidth adaptive rate reduction (OR, Section II.E).

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant};

use super::{Entry, RateReduction, ReductionName};
use crate::congestion::{AckSample, Window};
use crate::filter::WindowedMax;

/// W = B x RTT (Eq. (4)). B is measured over the last M ACKs (Eq. (3)), some of them from before the loss. Each of our
/// changes to the printed rule (`barr-text`) has a switch in `Form`. docs/evidence/reproduction.md reports what each is
/// worth.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Barr {
    /// The form of the algorithm.
    #[serde(default = "improved")]
    name: ReductionName,
    /// Arrival of each of the last M ACKs, and the packets delivered by then.
    acks: VecDeque<Point>,
    delivered: u64,
    /// Packets per second times 1,024: the highest of the last RTT, and the last one.
    bandwidth: WindowedMax,
    #[serde(default)]
    last_bandwidth: Option<u64>,
    w: u32,
    /// cwnd when recovery began.
    prior_cwnd: u32,
    rtt: Duration,
}

/// Changes to the printed rule.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// B counts delivered data, acknowledged cumulatively or by SACK. Eq. (3) uses acknowledged numbers, which stand
    /// still in recovery. So B falls to 0 if M ACKs come within a round trip. The prose of the paper uses the data
    /// received.
    delivered: bool,
    /// Our choice: the highest B of the last RTT. At 100 Mbit/s M ACKs come within a fraction of an RTT. At every rate
    /// a burst of losses leaves a gap in the ACKs. A pause of the sender does not show what the path can carry. If W
    /// follows it, the sender pauses again one RTT later.
    highest: bool,
    /// Our choice: slow start continues during recovery, because the loss does not affect ssthresh. At high loss rates
    /// a flow is in recovery before slow start ends. Without this it would never fill its path. The text says that
    /// neither cwnd nor ssthresh is affected, but not how the window grows.
    slow_start: bool,
    /// Our choice: recovery leaves at least the earlier cwnd, because the loss does not affect it (Section VII.C).
    keeps: bool,
    /// Our choice: RTTs from the record of departures. The text takes the echoed timestamp, which is old behind a hole.
    by_record: bool,
}

impl Form {
    const TEXT: Form =
        Form { delivered: false, highest: false, slow_start: false, keeps: false, by_record: false };

    fn of(name: ReductionName) -> Form {
        match name {
            ReductionName::BarrText => Form::TEXT,
            ReductionName::BarrTextDelivered => Form { delivered: true, ..Form::TEXT },
            ReductionName::BarrTextHighest => Form { highest: true, ..Form::TEXT },
            ReductionName::BarrTextSlowStart => Form { slow_start: true, ..Form::TEXT },
            ReductionName::BarrTextKeeps => Form { keeps: true, ..Form::TEXT },
            ReductionName::BarrTextRecord => Form { by_record: true, ..Form::TEXT },
            _ => Form { delivered: true, highest: true, slow_start: true, keeps: true, by_record: true },
        }
    }
}

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Point {
    at: Instant,
    delivered: u64,
}

/// slide_wnd_size of Section VI.
const M: usize = 200;
/// Scale of the rate.
const SCALE: u64 = 1_024;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Our choice: a window of 0 brings no ACK that could raise it again, and a window of 1 no duplicate ACK.
const W_MIN: u32 = 2;

fn improved() -> ReductionName {
    ReductionName::Barr
}

impl Default for Barr {
    fn default() -> Self {
        Barr::named(ReductionName::Barr)
    }
}

impl Barr {
    /// The form with this name.
    pub(super) fn named(name: ReductionName) -> Self {
        Barr {
            name,
            acks: VecDeque::with_capacity(M + 1),
            delivered: 0,
            bandwidth: WindowedMax::new(0, 0),
            last_bandwidth: None,
            w: 0,
            prior_cwnd: 0,
            rtt: Duration::ZERO,
        }
    }

    /// Eq. (3), once M ACKs have come.
    fn measure(&mut self, now: Instant) {
        self.acks.push_back(Point { at: now, delivered: self.delivered });
        if self.acks.len() <= M {
            return;
        }
        let Some(first) = self.acks.pop_front() else { return };
        let time = now.saturating_since(first.at).as_nanos().max(1);
        let packets = u128::from(self.delivered.saturating_sub(first.delivered));
        let rate = packets * u128::from(SCALE * NANOS_PER_SECOND) / u128::from(time);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        self.last_bandwidth = Some(rate);
        self.bandwidth.update(self.rtt.as_nanos(), now.as_nanos(), rate);
    }
}

impl RateReduction for Barr {
    fn name(&self) -> ReductionName {
        self.name
    }

    fn on_measurement(&mut self, sample: &AckSample) {
        if sample.delivered == 0 {
            return;
        }
        let form = Form::of(self.name);
        let rtt = if form.by_record { sample.rtt } else { sample.kind.echo_rtt.or(sample.rtt) };
        self.rtt = rtt.unwrap_or(self.rtt);
        self.delivered = match form.delivered {
            true => self.delivered + u64::from(sample.delivered),
            false => sample.una / u64::from(sample.mss.max(1)),
        };
        self.measure(sample.now);
    }

    fn enter(&mut self, _entry: &Entry, window: Window) -> u32 {
        self.w = window.cwnd;
        self.prior_cwnd = window.cwnd;
        self.w
    }

    fn on_ack(&mut self, sample: &AckSample, window: &mut Window) -> u32 {
        let form = Form::of(self.name);
        let grown = if form.slow_start { slow_start(self.w, sample, window) } else { 0 };
        // Before M ACKs B is not known, and W stays.
        let Some(last) = self.last_bandwidth else { return self.w };
        let bandwidth = if form.highest { self.bandwidth.get() } else { last };
        let per_rtt = u128::from(bandwidth) * u128::from(self.rtt.as_nanos());
        let estimate = per_rtt.div_ceil(u128::from(SCALE * NANOS_PER_SECOND));
        let estimate = u32::try_from(estimate).unwrap_or(u32::MAX);
        self.w = estimate.max(if grown > self.w { grown } else { W_MIN });
        self.w
    }

    fn exit(&mut self, _window: Window) -> u32 {
        if Form::of(self.name).keeps { self.w.max(self.prior_cwnd) } else { self.w }
    }

    fn lowers_ssthresh(&self) -> bool {
        false
    }
}

/// W in slow start.
fn slow_start(w: u32, sample: &AckSample, window: &Window) -> u32 {
    match w < window.ssthresh && sample.cwnd_limited {
        true => w.saturating_add(sample.delivered).min(window.ssthresh),
        false => w,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_the_path_delivers_in_a_round_trip() {
        let mut barr = Barr::default();
        let mut window = Window::new(180, u32::MAX);
        let mut sample =
            AckSample { delivered: 2, rtt: Some(Duration::from_millis(100)), ..Default::default() };
        // Two packets every 2 ms: 100 per RTT.
        for n in 0..400u64 {
            sample.now = Instant::ZERO + Duration::from_millis(2 * n);
            barr.on_measurement(&sample);
        }
        let entry = Entry { now: sample.now, recover_fs: 180, in_flight: 170, srtt: Duration::ZERO };
        assert_eq!(barr.enter(&entry, window), 180);
        assert_eq!(barr.on_ack(&sample, &mut window), 100);
        assert_eq!(barr.acks.len(), M);
    }

    /// As printed, Eq. (3) of M duplicate ACKs is 0, because nothing is acknowledged, and W is the least. With data by
    /// SACK it is not.
    #[test]
    fn as_printed_nothing_acknowledged_is_no_bandwidth() {
        let of = |name: ReductionName, acks: u64| {
            let mut barr = Barr::named(name);
            let mut window = Window::new(180, u32::MAX);
            let mut sample = AckSample { delivered: 1, mss: 1, una: 7, ..Default::default() };
            sample.rtt = Some(Duration::from_millis(100));
            for n in 0..acks {
                sample.now = Instant::ZERO + Duration::from_millis(n);
                barr.on_measurement(&sample);
            }
            let entry = Entry { now: sample.now, recover_fs: 180, in_flight: 170, srtt: Duration::ZERO };
            barr.enter(&entry, window);
            barr.on_ack(&sample, &mut window)
        };
        assert_eq!(of(ReductionName::BarrText, 2 * M as u64), W_MIN);
        assert_eq!(of(ReductionName::BarrTextDelivered, 2 * M as u64), 100);
        assert_eq!(of(ReductionName::BarrText, M as u64), 180, "nothing is known yet");
    }

    /// From some time on ACKs deliver half as much. As printed W follows at once and stays there. Ours holds the
    /// highest of a round trip, and returns to the earlier cwnd.
    #[test]
    fn as_printed_the_window_follows_the_last_estimate() {
        let of = |name: ReductionName| {
            let mut barr = Barr::named(name);
            let mut window = Window::new(180, u32::MAX);
            window.ssthresh = 180;
            let mut sample =
                AckSample { delivered: 2, rtt: Some(Duration::from_millis(100)), ..Default::default() };
            sample.kind.echo_rtt = Some(Duration::from_millis(150));
            for n in 0..400u64 {
                sample.now = Instant::ZERO + Duration::from_millis(2 * n);
                sample.delivered = if n < 380 { 2 } else { 1 };
                // From then on no more data is acknowledged cumulatively.
                (sample.una, sample.mss) = (2 * n.min(379), 1);
                barr.on_measurement(&sample);
            }
            let entry = Entry { now: sample.now, recover_fs: 180, in_flight: 170, srtt: Duration::ZERO };
            barr.enter(&entry, window);
            (barr.on_ack(&sample, &mut window), barr.exit(window))
        };
        // 360 packets in 400 ms: 90 in 100 ms, 135 in 150; with those by SACK 380.
        assert_eq!(of(ReductionName::BarrText), (135, 135));
        assert_eq!(of(ReductionName::BarrTextDelivered), (143, 143));
        assert_eq!(of(ReductionName::BarrTextRecord), (90, 90));
        assert_eq!(of(ReductionName::BarrTextHighest), (150, 150));
        assert_eq!(of(ReductionName::BarrTextKeeps), (135, 180));
        assert_eq!(of(ReductionName::Barr), (100, 180));
    }
}
