//! Copa (Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018).

#[cfg(test)]
mod tests;

use paceline_wire::{Duration, Instant, Rate};

use super::{AckSample, CongestionControl, CongestionEvent, CongestionName, SSTHRESH_INFINITE, Window};
use crate::filter::{WindowedMax, WindowedMin};

/// Moves the window towards the rate 1 / (delta dq), where dq is the queueing delay. Losses count in competitive mode only.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Copa {
    /// In 1 / 65,536 packets.
    cwnd: u64,
    slow_start: bool,
    /// v.
    velocity: u64,
    direction: Direction,
    /// Windows in a row with this direction.
    same_direction: u32,
    /// End of the current window of data.
    window_end: u64,
    /// cwnd when this window of data began.
    window_cwnd: u64,
    rtt_min: WindowedMin,
    rtt_standing: WindowedMin,
    rtt_max: WindowedMax,
    /// 1 / delta, in packets.
    inverse_delta: u64,
    /// When the queue was last nearly empty. `None` before the first RTT.
    nearly_empty_at: Option<Instant>,
    competitive: bool,
    /// When 1 / delta last changed.
    moved_at: Instant,
    /// When 1 / delta was last halved.
    halved_at: Instant,
    pacing_rate: Option<Rate>,
    /// cwnd before a timeout.
    before_timeout: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
enum Direction {
    Up,
    Down,
    /// Neither yet, or the window was not used.
    Level,
}

/// delta = 0.5 (Section 2.2, default mode).
const INVERSE_DELTA: u64 = 2;
/// Our choice: the largest 1 / delta of competitive mode, because no path of ours holds as many packets.
const INVERSE_DELTA_MAX: u64 = 1 << 16;
/// Section 2.1: RTTmin is the shortest RTT of 10 s.
const RTT_MIN_WINDOW: Duration = Duration::from_secs(10);
/// Section 2.2: the queue must be nearly empty once in this many RTTs.
const EMPTY_RTTS: u64 = 5;
/// Section 2.2: RTTmax is the longest RTT of this many RTTs.
const RTT_MAX_RTTS: u64 = 4;
/// Section 2.2: nearly empty is a tenth of RTTmax - RTTmin.
const NEARLY_EMPTY_SHARE: u64 = 10;
/// Section 2.1: the velocity doubles once the direction has been the same for three RTTs.
const DOUBLING_AFTER: u32 = 3;
/// Our choice: two packets, because a receiver may wait for a second packet before it sends an ACK.
const CWND_MIN: u32 = 2;
const PACKET: u64 = 1 << 16;

impl Default for Copa {
    fn default() -> Self {
        Copa {
            cwnd: 0,
            slow_start: true,
            velocity: 1,
            direction: Direction::Level,
            same_direction: 0,
            window_end: 0,
            window_cwnd: 0,
            rtt_min: WindowedMin::new(0, u64::MAX),
            rtt_standing: WindowedMin::new(0, u64::MAX),
            rtt_max: WindowedMax::new(0, 0),
            inverse_delta: INVERSE_DELTA,
            nearly_empty_at: None,
            competitive: false,
            moved_at: Instant::ZERO,
            halved_at: Instant::ZERO,
            pacing_rate: None,
            before_timeout: 0,
        }
    }
}

impl Copa {
    /// dq = RTTstanding - RTTmin (Section 2.1), in nanoseconds.
    fn queueing_delay(&self) -> u64 {
        self.rtt_standing.get().saturating_sub(self.rtt_min.get())
    }

    /// RTTstanding is the shortest RTT of half an SRTT (Section 2.1).
    fn measure(&mut self, now: Instant, rtt: Duration, srtt: Duration) {
        let (at, rtt, srtt) = (now.as_nanos(), rtt.as_nanos().max(1), srtt.as_nanos().max(1));
        self.rtt_min.update(RTT_MIN_WINDOW.as_nanos(), at, rtt);
        self.rtt_standing.update(srtt / 2, at, rtt);
        self.rtt_max.update(srtt * RTT_MAX_RTTS, at, rtt);
        // Our choice: "or equal", because a path without any queue has RTTmax = RTTmin.
        let spread = self.rtt_max.get().saturating_sub(self.rtt_min.get());
        if self.queueing_delay() <= spread / NEARLY_EMPTY_SHARE || self.nearly_empty_at.is_none() {
            self.nearly_empty_at = Some(now);
        }
    }

    /// Section 2.2: if the queue was not nearly empty for five RTTs, another flow fills it.
    fn switch_mode(&mut self, sample: &AckSample) {
        let Some(emptied_at) = self.nearly_empty_at else { return };
        let competitive = sample.now.saturating_since(emptied_at) > sample.srtt * EMPTY_RTTS;
        if competitive && !self.competitive {
            (self.moved_at, self.halved_at) = (sample.now, sample.now);
        }
        self.competitive = competitive;
        if competitive {
            self.compete(sample);
        } else {
            self.inverse_delta = INVERSE_DELTA;
        }
    }

    /// Section 2.2: AIMD on 1 / delta by success and loss; delta is never above that of the default mode.
    fn compete(&mut self, sample: &AckSample) {
        let now = sample.now;
        if sample.lost > 0 {
            // Our choice: once in an RTT, as one window of data is one congestion event (RFC 5681, Section 3.1).
            if now.saturating_since(self.halved_at) >= sample.srtt {
                self.inverse_delta = (self.inverse_delta / 2).max(INVERSE_DELTA);
                (self.moved_at, self.halved_at) = (now, now);
            }
        } else if now.saturating_since(self.moved_at) >= sample.srtt {
            self.inverse_delta = (self.inverse_delta + 1).min(INVERSE_DELTA_MAX);
            self.moved_at = now;
        }
    }

    /// True if cwnd / RTTstanding is at most 1 / (delta dq) (Section 2.1, steps 2 and 3). Both sides are multiplied
    /// out.
    fn is_below_target(&self) -> bool {
        let current = u128::from(self.cwnd) * u128::from(self.queueing_delay());
        let target = u128::from(self.inverse_delta * PACKET) * u128::from(self.rtt_standing.get());
        current <= target
    }

    /// Section 2.1, step 4: once per window of data, the direction is that of cwnd since this window began.
    fn update_velocity(&mut self, sample: &AckSample) {
        let arrived = sample.una.max(sample.highest_delivered);
        if arrived < self.window_end {
            return;
        }
        let direction = match self.cwnd.cmp(&self.window_cwnd) {
            _ if self.window_end == 0 => Direction::Level,
            core::cmp::Ordering::Greater => Direction::Up,
            core::cmp::Ordering::Less => Direction::Down,
            // Our choice: an unused window has no direction. Else its velocity would double without need.
            core::cmp::Ordering::Equal => Direction::Level,
        };
        self.same_direction = match direction == self.direction && direction != Direction::Level {
            true => self.same_direction.saturating_add(1),
            false => 0,
        };
        self.velocity = match self.same_direction {
            0 => 1,
            same if same >= DOUBLING_AFTER => self.velocity.saturating_mul(2),
            _ => self.velocity,
        };
        // Our choice: v / delta is at most cwnd, because a larger step would be faster than slow start.
        self.velocity = self.velocity.min(self.cwnd / PACKET / self.inverse_delta).max(1);
        self.direction = direction;
        self.begin_window(sample);
    }

    fn begin_window(&mut self, sample: &AckSample) {
        self.window_end = sample.nxt.max(1);
        self.window_cwnd = self.cwnd;
    }

    /// Our choice: v returns to 1 as soon as cwnd crosses the target. If v turned only with the next window of data,
    /// cwnd would move on for most of an RTT and empty the pipe.
    fn turn(&mut self, sample: &AckSample, below: bool) {
        let against = if below { Direction::Down } else { Direction::Up };
        if self.velocity > 1 && self.direction == against {
            self.reset_velocity(sample);
        }
    }

    fn reset_velocity(&mut self, sample: &AckSample) {
        self.velocity = 1;
        (self.direction, self.same_direction) = (Direction::Level, 0);
        self.begin_window(sample);
    }

    /// Moves cwnd by v / (delta cwnd) for each packet, up or down (Section 2.1, step 3). Slow start lasts until the
    /// rate exceeds its target.
    fn move_window(&mut self, sample: &AckSample) {
        let below = self.is_below_target();
        if self.slow_start && !below {
            self.slow_start = false;
            self.reset_velocity(sample);
        }
        self.turn(sample, below);
        // Our choice: an unused window does not grow (RFC 7661), but a queue still shrinks it.
        if below && !sample.cwnd_limited {
            return;
        }
        let packets = u64::from(sample.delivered);
        if self.slow_start {
            self.cwnd = self.cwnd.saturating_add(packets * PACKET);
            return;
        }
        let step = u128::from(self.velocity * self.inverse_delta) * u128::from(PACKET).pow(2);
        let step = step * u128::from(packets) / u128::from(self.cwnd.max(PACKET));
        let step = u64::try_from(step).unwrap_or(u64::MAX);
        self.cwnd = match below {
            true => self.cwnd.saturating_add(step),
            false => self.cwnd.saturating_sub(step),
        };
    }

    /// Paces at 2 cwnd / RTTstanding (Section 2.1). This spreads bursts, and the window remains the limit.
    fn pace(&mut self, mss: u32, rtt: u64) {
        let bytes = u128::from(self.cwnd) * u128::from(mss) / u128::from(PACKET);
        let rate = 2 * bytes * 1_000_000_000 / u128::from(rtt.max(1));
        self.pacing_rate = Some(Rate::from_bytes_per_sec(u64::try_from(rate).unwrap_or(u64::MAX).max(1)));
    }

    /// Takes over a window that the sender has set: the initial one, or one after a timeout.
    fn adopt(&mut self, window: Window) {
        if self.cwnd / PACKET != u64::from(window.cwnd) {
            self.cwnd = u64::from(window.cwnd) * PACKET;
        }
    }
}

impl CongestionControl for Copa {
    fn name(&self) -> CongestionName {
        CongestionName::Copa
    }

    fn on_ack(&mut self, sample: &AckSample, mut window: Window) -> Window {
        self.adopt(window);
        if let Some(rtt) = sample.rtt {
            self.measure(sample.now, rtt, sample.srtt);
        }
        if self.nearly_empty_at.is_none() {
            return window;
        }
        self.switch_mode(sample);
        if sample.delivered > 0 {
            if !self.slow_start {
                self.update_velocity(sample);
            }
            self.move_window(sample);
        }
        let least = u64::from(CWND_MIN.min(window.clamp)) * PACKET;
        self.cwnd = self.cwnd.max(least).min(u64::from(window.clamp) * PACKET);
        window.cwnd = (self.cwnd / PACKET) as u32;
        window.ssthresh = if self.slow_start { SSTHRESH_INFINITE } else { window.ssthresh.min(window.cwnd) };
        self.pace(sample.mss, self.rtt_standing.get());
        window
    }

    /// Section 2.2: a loss moves delta, not the window.
    fn ssthresh(&mut self, window: Window) -> u32 {
        window.ssthresh
    }

    fn undo(&mut self, window: Window, _prior_cwnd: u32) -> u32 {
        window.cwnd.max(core::mem::take(&mut self.before_timeout))
    }

    fn on_event(&mut self, event: CongestionEvent, sample: &AckSample, window: Window) -> Window {
        match event {
            CongestionEvent::TransmissionStart if self.pacing_rate.is_none() && !sample.srtt.is_zero() => {
                self.adopt(window);
                self.pace(sample.mss, sample.srtt.as_nanos());
            }
            // Our choice: slow start after a timeout (RFC 5681, Section 3.1), because the paper has no rule for a window of one.
            CongestionEvent::Timeout => {
                self.before_timeout = window.cwnd;
                self.slow_start = true;
                self.velocity = 1;
            }
            _ => {}
        }
        window
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }
}
