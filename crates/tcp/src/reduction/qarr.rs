//! Queue-length adaptive rate reduction (OR, Section II.D).

use super::{Entry, RateReduction, ReductionName};
use crate::congestion::{AckSample, Window};

/// Keeps Q_T packets in the queue during recovery.
///
/// As printed (`qarr-text`) every ACK lowers W by Q - Q_T, Eq. (2), with Q by Eq. (1). Each of our changes has a switch
/// in `Form`. docs/evidence/reproduction.md reports what each is worth.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Qarr {
    /// The form of the algorithm.
    #[serde(default = "improved")]
    name: ReductionName,
    w: u32,
    /// SND.NXT when W was last moved. ACKs for data sent before do not show the effect.
    round_end: u64,
    /// The queue by the RTTs of this round: the shortest, or the last one without `shortest`.
    queue: Option<u32>,
    /// True if W was used in this round.
    limited: bool,
    /// True if the last round had no queue.
    filling: bool,
}

/// Changes to the printed rule.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// Our choice: W moves once per round trip, in full, because the queue is known one RTT late. On every ACK it would
    /// overshoot by a window.
    per_round: bool,
    /// Our choice: the shortest queue of the round trip counts, because a burst of the sender does not lengthen it.
    shortest: bool,
    /// W moves by Q_T - Q in both directions (Section VII.C). Eq. (2) only lowers it.
    raises: bool,
    /// Our choice: while whole round trips show no queue at all, W grows at the pace of slow start. At high loss rates
    /// a flow is in recovery before it has filled its path. Without this it would need hundreds of round trips.
    fills: bool,
    /// Our choice: RTTs from the record of departures, and pipe before the ACK, to which the RTT belongs. The text
    /// takes the echoed timestamp. Behind a hole a receiver echoes the last segment before the hole (RFC 7323, Section
    /// 4.3). So the RTT seems to grow while the hole is open.
    by_record: bool,
    /// An experiment, not part of the recommended form: only ACKs that advance SND.UNA count. Only for these Linux
    /// calls the hook pkts_acked of Section VI with an RTT. The text uses every ACK.
    cumulative: bool,
}

impl Form {
    const TEXT: Form = Form {
        per_round: false,
        shortest: false,
        raises: false,
        fills: false,
        by_record: false,
        cumulative: false,
    };

    fn of(name: ReductionName) -> Form {
        match name {
            ReductionName::QarrText => Form::TEXT,
            ReductionName::QarrTextRaises => Form { raises: true, ..Form::TEXT },
            ReductionName::QarrTextRecord => Form { by_record: true, ..Form::TEXT },
            ReductionName::QarrTextRound => Form { per_round: true, ..Form::TEXT },
            ReductionName::QarrTextShortest => Form { per_round: true, shortest: true, ..Form::TEXT },
            ReductionName::QarrTextCumulative => Form { cumulative: true, ..Form::TEXT },
            _ => Form {
                per_round: true,
                shortest: true,
                raises: true,
                fills: true,
                by_record: true,
                ..Form::TEXT
            },
        }
    }
}

/// The target queue (queue_len_threshold of Section VI).
const Q_T: u32 = 5;
/// Our choice: a window of 0 brings no ACK that could raise it again, and a window of 1 no duplicate ACK.
const W_MIN: u32 = 2;

fn improved() -> ReductionName {
    ReductionName::Qarr
}

impl Default for Qarr {
    fn default() -> Self {
        Qarr::named(ReductionName::Qarr)
    }
}

impl Qarr {
    /// The form with this name.
    pub(super) fn named(name: ReductionName) -> Self {
        Qarr { name, w: 0, round_end: 0, queue: None, limited: false, filling: false }
    }

    /// Q_i = pipe (RTT - baseRTT) / RTT, Eq. (1).
    fn queue(form: Form, sample: &AckSample) -> Option<u32> {
        if form.cumulative && !sample.una_advanced {
            return None;
        }
        let (rtt, pipe) = match form.by_record {
            true => (sample.rtt?, sample.prior_in_flight),
            false => (sample.kind.echo_rtt.or(sample.rtt)?, sample.in_flight),
        };
        let (rtt, base) = (rtt.as_micros().max(1), sample.min_rtt.as_micros());
        Some((u64::from(pipe) * rtt.saturating_sub(base) / rtt) as u32)
    }

    /// Moves W by the difference between the queue and its target.
    fn correct(&mut self, queue: u32, may_rise: bool) {
        if queue > Q_T || may_rise {
            self.w = self.w.saturating_add(Q_T).saturating_sub(queue).max(W_MIN);
        }
    }

    fn on_round(&mut self, form: Form, queue: u32, nxt: u64) {
        self.filling = form.fills && queue == 0;
        self.correct(queue, form.raises && self.limited);
        self.limited = false;
        self.round_end = nxt;
    }
}

impl RateReduction for Qarr {
    fn name(&self) -> ReductionName {
        self.name
    }

    fn enter(&mut self, _entry: &Entry, window: Window) -> u32 {
        self.w = window.cwnd;
        self.w
    }

    fn on_ack(&mut self, sample: &AckSample, _window: &mut Window) -> u32 {
        let form = Form::of(self.name);
        let queue = Self::queue(form, sample);
        if !form.per_round {
            if let Some(queue) = queue {
                self.correct(queue, form.raises && sample.cwnd_limited);
            }
            return self.w;
        }
        self.limited |= sample.cwnd_limited;
        if let Some(queue) = queue {
            let earlier = self.queue.filter(|_| form.shortest);
            self.queue = Some(earlier.map_or(queue, |shortest| shortest.min(queue)));
            self.filling &= queue < Q_T;
        }
        if self.filling && sample.cwnd_limited {
            self.w = self.w.saturating_add(sample.delivered);
        }
        let reached = sample.una.max(sample.highest_delivered);
        if reached > self.round_end
            && let Some(queue) = self.queue.take()
        {
            self.on_round(form, queue, sample.nxt);
        }
        self.w
    }

    /// Returns W. The loss affects neither cwnd nor ssthresh (Section VII.C).
    fn exit(&mut self, _window: Window) -> u32 {
        self.w
    }

    fn lowers_ssthresh(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::congestion::AckKind;
    use paceline_wire::{Duration, Instant};

    fn sample(rtt_ms: u64, una: u64) -> AckSample {
        AckSample {
            rtt: Some(Duration::from_millis(rtt_ms)),
            min_rtt: Duration::from_millis(100),
            prior_in_flight: 200,
            una,
            nxt: una + 100,
            delivered: 1,
            cwnd_limited: true,
            ..AckSample::default()
        }
    }

    #[test]
    fn the_window_moves_to_the_target_queue_once_per_round() {
        let mut qarr = Qarr::default();
        let mut window = Window::new(200, u32::MAX);
        let entry = Entry { now: Instant::ZERO, recover_fs: 200, in_flight: 190, srtt: Duration::ZERO };
        assert_eq!(qarr.enter(&entry, window), 200);
        // 200 * 25 / 125 = 40 packets wait.
        assert_eq!(qarr.on_ack(&sample(125, 1_000), &mut window), 165);
        assert_eq!(qarr.on_ack(&sample(125, 1_050), &mut window), 165);
        assert_eq!(qarr.on_ack(&sample(100, 1_101), &mut window), 165 + 5);
        assert!(!qarr.lowers_ssthresh());
    }

    #[test]
    fn an_empty_path_is_filled_at_the_pace_of_slow_start_and_only_by_who_uses_the_window() {
        let mut window = Window::new(50, u32::MAX);
        let mut qarr = Qarr { w: 50, ..Qarr::default() };
        assert_eq!(qarr.on_ack(&sample(100, 1_000), &mut window), 55);
        assert_eq!(qarr.on_ack(&sample(100, 1_001), &mut window), 56);
        let unused = AckSample { cwnd_limited: false, ..sample(100, 1_002) };
        assert_eq!(qarr.on_ack(&unused, &mut window), 56);
        // 200 * 3 / 103 = 5 packets wait.
        assert_eq!(qarr.on_ack(&sample(103, 1_003), &mut window), 56);
        assert_eq!(qarr.on_ack(&sample(100, 1_004), &mut window), 56);
    }

    /// 190 packets are in flight after an ACK. Its RTT is 125 ms by the record and 200 ms by the echo. By the echo 95
    /// packets wait.
    #[test]
    fn as_printed_every_ack_lowers_the_window_by_what_the_echo_shows() {
        let echo = |ms| AckKind { echo_rtt: Some(Duration::from_millis(ms)), ..AckKind::default() };
        let late = AckSample { in_flight: 190, kind: echo(200), ..sample(125, 1) };
        let short = AckSample { kind: echo(100), ..late };
        let of = |name: ReductionName, samples: &[AckSample]| {
            let mut qarr = Qarr { w: 200, ..Qarr::named(name) };
            let mut window = Window::new(200, u32::MAX);
            samples.iter().map(|sample| qarr.on_ack(sample, &mut window)).collect::<Vec<u32>>()
        };
        assert_eq!(of(ReductionName::QarrText, &[late, late, late]), [110, 20, 2]);
        assert_eq!(of(ReductionName::QarrText, &[short]), [200]);
        assert_eq!(of(ReductionName::QarrTextRaises, &[late, short, short]), [110, 115, 120]);
        // By the record 200 x 25 / 125 = 40 wait.
        assert_eq!(of(ReductionName::QarrTextRecord, &[late, late]), [165, 130]);
        assert_eq!(of(ReductionName::QarrTextRound, &[late, late, short]), [110, 110, 110]);
        let partial = AckSample { una_advanced: true, ..late };
        assert_eq!(of(ReductionName::QarrTextCumulative, &[late, partial, late]), [200, 110, 110]);
        // The second round trip ends with the fourth ACK, which shows the longer queue.
        let end = AckSample { una: 102, nxt: 200, ..late };
        assert_eq!(of(ReductionName::QarrTextRound, &[late, late, short, end]), [110, 110, 110, 20]);
        assert_eq!(of(ReductionName::QarrTextShortest, &[late, late, short, end]), [110, 110, 110, 110]);
    }
}
