//! When slow start should end before it loses packets: HyStart as Linux has it, and HyStart++ (RFC 9406).

use paceline_wire::{Duration, Instant};

use super::{AckSample, Window};
use crate::names::named;

named! {
    /// How slow start ends.
    HystartName {
        /// With a loss.
        Off = "off",
        /// By delay and ACK trains, as Linux hystart_update.
        #[default]
        Linux = "linux",
        /// As Linux 5.16 to 6.13: rounds count from a window of 16 on (commits 4e1fddc98d25, 25c1a9ca53db).
        Linux516 = "linux-5.16",
        /// As Linux 3.10: a lower threshold of the delay, and no samples from recovery.
        Linux310 = "linux-3.10",
        /// RFC 9406: by delay, with a phase of conservative slow start.
        PlusPlus = "hystart++",
    }
}

/// The end of slow start.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub enum Hystart {
    /// None.
    Off,
    /// As Linux.
    Linux(LinuxHystart),
    /// RFC 9406.
    PlusPlus(HystartPlusPlus),
}

impl Hystart {
    /// A new instance.
    pub fn new(name: HystartName) -> Self {
        match name {
            HystartName::Off => Hystart::Off,
            HystartName::Linux => Hystart::Linux(LinuxHystart::default()),
            HystartName::Linux516 => Hystart::Linux(LinuxHystart::new(Version::From516)),
            HystartName::Linux310 => Hystart::Linux(LinuxHystart::new(Version::From310)),
            HystartName::PlusPlus => Hystart::PlusPlus(HystartPlusPlus::default()),
        }
    }

    /// Takes an RTT in slow start, and lowers ssthresh when slow start should end.
    pub fn on_rtt(&mut self, sample: &AckSample, rtt: Duration, base: Duration, window: Window) -> Window {
        match self {
            Hystart::Off => window,
            Hystart::Linux(linux) => linux.on_rtt(sample, rtt, base, window),
            Hystart::PlusPlus(plus) => plus.on_rtt(sample, rtt, window),
        }
    }

    /// Grows the window by slow start, or by conservative slow start. Returns the part of `acked` that is left.
    pub fn slow_start(&self, window: &mut Window, acked: u32) -> u32 {
        let divisor = match self {
            Hystart::PlusPlus(HystartPlusPlus { css: Some(_), .. }) => CSS_GROWTH_DIVISOR,
            _ => 1,
        };
        if divisor == 1 {
            return window.slow_start(acked);
        }
        window.cwnd_cnt += acked;
        let steps = window.cwnd_cnt / divisor;
        window.cwnd_cnt -= steps * divisor;
        window.slow_start(steps)
    }

    /// Starts again, after a timeout.
    pub fn reset(&mut self) {
        match self {
            Hystart::Off => {}
            Hystart::Linux(linux) => *linux = LinuxHystart::new(linux.version),
            Hystart::PlusPlus(plus) => *plus = HystartPlusPlus::default(),
        }
    }
}

/// Linux hystart_low_window.
const LOW_WINDOW: u32 = 16;
/// Linux HYSTART_MIN_SAMPLES; N_RTT_SAMPLE of RFC 9406, Section 4.3.
const MIN_SAMPLES: u32 = 8;
/// Linux hystart_ack_delta_us.
const ACK_DELTA: Duration = Duration::from_millis(2);
/// Linux HYSTART_DELAY_MIN; MIN_RTT_THRESH of RFC 9406.
const DELAY_MIN: Duration = Duration::from_millis(4);
/// Linux HYSTART_DELAY_MAX; MAX_RTT_THRESH of RFC 9406.
const DELAY_MAX: Duration = Duration::from_millis(16);
/// RFC 9406, Section 4.3.
const CSS_GROWTH_DIVISOR: u32 = 4;
/// RFC 9406, Section 4.3.
const CSS_ROUNDS: u32 = 5;

/// State of Linux hystart_update.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct LinuxHystart {
    found: bool,
    round: Option<Round>,
    #[serde(default)]
    version: Version,
}

/// The first Linux version with this behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
enum Version {
    From310,
    From516,
    #[default]
    From614,
}

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Round {
    start: Instant,
    last_ack: Instant,
    end_seq: u64,
    curr_rtt: Duration,
    samples: u32,
}

impl Round {
    fn begin(sample: &AckSample) -> Self {
        let (now, nxt) = (sample.now, sample.nxt);
        Round { start: now, last_ack: now, end_seq: nxt, curr_rtt: Duration::MAX, samples: 0 }
    }
}

impl LinuxHystart {
    fn new(version: Version) -> Self {
        LinuxHystart { version, ..LinuxHystart::default() }
    }

    fn on_rtt(&mut self, sample: &AckSample, rtt: Duration, base: Duration, mut window: Window) -> Window {
        // Linux 3.10 takes no sample in recovery, where a retransmission ends a hole, and none from SACK
        // (tcp_clean_rtx_queue).
        let is_310 = self.version == Version::From310;
        let ambiguous = is_310 && (sample.state.in_reduction() || !sample.una_advanced);
        if self.found || ambiguous {
            return window;
        }
        let is_low = window.cwnd < LOW_WINDOW;
        if is_low && self.version == Version::From516 {
            return window;
        }
        // A round begins with each flight, whatever the window is: Linux resets before it checks hystart_low_window
        // (6.1, hystart_update; in 3.10 bictcp_cong_avoid).
        let round = match &mut self.round {
            Some(round) if sample.una <= round.end_seq => round,
            round => round.insert(Round::begin(sample)),
        };
        if is_low {
            return window;
        }
        // If ACKs come close together for half a round trip, the path is full. Without pacing the threshold is half of
        // the shortest RTT plus the delay in the host, which is at most 1 ms (hystart_ack_delay).
        if sample.now.saturating_since(round.last_ack) <= ACK_DELTA {
            round.last_ack = sample.now;
            let held_back = if is_310 { Duration::ZERO } else { ack_delay(sample, window) };
            let threshold = (base + held_back) / 2;
            self.found |= sample.now.saturating_since(round.start) > threshold;
        }
        round.curr_rtt = round.curr_rtt.min(rtt);
        if round.samples < MIN_SAMPLES {
            round.samples += 1;
        } else {
            let share = if is_310 { 16 } else { 8 };
            let margin = (base / share).max(DELAY_MIN).min(DELAY_MAX);
            self.found |= round.curr_rtt > base + margin;
        }
        if self.found {
            window.ssthresh = window.cwnd;
        }
        window
    }
}

/// Time of four super-packets at the rate of slow start, at most a millisecond (hystart_ack_delay).
fn ack_delay(sample: &AckSample, window: Window) -> Duration {
    let in_flight_bytes = 2 * u64::from(window.cwnd) * u64::from(sample.mss);
    sample.srtt.mul_ratio(4 * 65_536, in_flight_bytes).min(Duration::from_millis(1))
}

/// State of RFC 9406, Section 4.2, under its names.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct HystartPlusPlus {
    window_end: u64,
    last_round_min_rtt: Duration,
    current_round_min_rtt: Duration,
    rtt_sample_count: u32,
    css: Option<Css>,
    done: bool,
}

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Css {
    baseline_min_rtt: Duration,
    rounds: u32,
}

impl Default for HystartPlusPlus {
    fn default() -> Self {
        HystartPlusPlus {
            window_end: 0,
            last_round_min_rtt: Duration::MAX,
            current_round_min_rtt: Duration::MAX,
            rtt_sample_count: 0,
            css: None,
            done: false,
        }
    }
}

impl HystartPlusPlus {
    fn on_rtt(&mut self, sample: &AckSample, rtt: Duration, mut window: Window) -> Window {
        if self.done {
            return window;
        }
        if sample.una >= self.window_end {
            self.next_round(sample, &mut window);
        }
        self.current_round_min_rtt = self.current_round_min_rtt.min(rtt);
        self.rtt_sample_count += 1;
        if self.rtt_sample_count < MIN_SAMPLES || self.current_round_min_rtt == Duration::MAX {
            return window;
        }
        match self.css {
            None if self.last_round_min_rtt != Duration::MAX => {
                let thresh = (self.last_round_min_rtt / 8).max(DELAY_MIN).min(DELAY_MAX);
                if self.current_round_min_rtt >= self.last_round_min_rtt + thresh {
                    self.css = Some(Css { baseline_min_rtt: self.current_round_min_rtt, rounds: 0 });
                }
            }
            // The delay has gone: return to slow start.
            Some(css) if self.current_round_min_rtt < css.baseline_min_rtt => self.css = None,
            _ => {}
        }
        window
    }

    fn next_round(&mut self, sample: &AckSample, window: &mut Window) {
        self.window_end = sample.nxt;
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = Duration::MAX;
        self.rtt_sample_count = 0;
        if let Some(css) = &mut self.css {
            css.rounds += 1;
            if css.rounds >= CSS_ROUNDS {
                window.ssthresh = window.cwnd;
                self.done = true;
            }
        }
    }
}
