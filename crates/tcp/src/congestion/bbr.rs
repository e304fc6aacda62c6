//! BBR version 1 (as in Linux 6.x; draft-cardwell-iccrg-bbr-congestion-control-00).

mod aggregation;
mod long_term;
#[cfg(test)]
mod tests;

use paceline_wire::{Duration, Instant, Rate};

use super::{
    AckSample, CaState, CongestionControl, CongestionEvent, CongestionName, SSTHRESH_INFINITE, Window,
};
use crate::filter::WindowedMax;
use aggregation::Aggregation;
use long_term::LongTerm;

/// Paces at the measured bandwidth, and probes for more bandwidth and for the shortest RTT. Fields are named as in
/// Linux's struct bbr. Gains are in 1/256, bandwidths in packets per microsecond times 2^24.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Bbr {
    mode: Mode,
    min_rtt: Option<Duration>,
    min_rtt_stamp: Instant,
    probe_rtt_done_stamp: Option<Instant>,
    probe_rtt_round_done: bool,
    bw: WindowedMax,
    rtt_cnt: u64,
    next_rtt_delivered: u64,
    round_start: bool,
    cycle_stamp: Instant,
    cycle_idx: usize,
    prev_ca_state: CaState,
    packet_conservation: bool,
    idle_restart: bool,
    pacing_gain: u64,
    cwnd_gain: u64,
    #[serde(flatten)]
    full: FullBw,
    has_seen_rtt: bool,
    prior_cwnd: u32,
    pacing_rate: Rate,
    lt: LongTerm,
    aggregation: Aggregation,
    random: u64,
    started: bool,
}

/// The pipe is full when the bandwidth grows no more.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct FullBw {
    full_bw: u64,
    full_bw_cnt: u32,
    full_bw_reached: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

const BW_SCALE: u32 = 24;
const BW_UNIT: u64 = 1 << BW_SCALE;
const BBR_SCALE: u32 = 8;
const BBR_UNIT: u64 = 1 << BBR_SCALE;
/// Window of the bandwidth filter, in round trips.
const BW_RTTS: u64 = 10;
const MIN_RTT_WIN: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Below this rate, 1.2 Mbit/s, super-packets have one segment.
const MIN_TSO_RATE: Rate = Rate::from_bytes_per_sec(150_000);
const PACING_MARGIN_PERCENT: u64 = 1;
/// 2 / ln 2.
const HIGH_GAIN: u64 = BBR_UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = BBR_UNIT * 1000 / 2885;
const CWND_GAIN: u64 = BBR_UNIT * 2;
const PACING_GAIN: [u64; 8] =
    [BBR_UNIT * 5 / 4, BBR_UNIT * 3 / 4, BBR_UNIT, BBR_UNIT, BBR_UNIT, BBR_UNIT, BBR_UNIT, BBR_UNIT];
/// The cycle starts anywhere but in the phase that drains.
const CYCLE_RAND: u64 = 7;
const CWND_MIN_TARGET: u32 = 4;
const FULL_BW_THRESH: u64 = BBR_UNIT * 5 / 4;
const FULL_BW_CNT: u32 = 3;
/// Linux TCP_INIT_CWND.
const INIT_CWND: u64 = 10;

impl Bbr {
    /// A new instance; `seed` draws the phase of the gain cycle.
    pub fn new(seed: u64) -> Self {
        Bbr {
            mode: Mode::Startup,
            min_rtt: None,
            min_rtt_stamp: Instant::ZERO,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            bw: WindowedMax::new(0, 0),
            rtt_cnt: 0,
            next_rtt_delivered: 0,
            round_start: false,
            cycle_stamp: Instant::ZERO,
            cycle_idx: 0,
            prev_ca_state: CaState::Open,
            packet_conservation: false,
            idle_restart: false,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            full: FullBw::default(),
            has_seen_rtt: false,
            prior_cwnd: 0,
            pacing_rate: Rate::ZERO,
            lt: LongTerm::default(),
            aggregation: Aggregation::default(),
            random: seed,
            started: false,
        }
    }

    /// The bandwidth estimate in use.
    fn bandwidth(&self) -> u64 {
        self.lt.bandwidth_in_use().unwrap_or(self.bw.get())
    }

    /// Bandwidth times gain as a rate (bbr_rate_bytes_per_sec), reduced by `margin` percent.
    fn bytes_per_sec(bw: u64, gain: u64, mss: u32, margin: u64) -> Rate {
        let rate = (u128::from(bw) * u128::from(mss) * u128::from(gain)) >> BBR_SCALE;
        let rate = (rate * u128::from(10_000 * (100 - margin))) >> BW_SCALE;
        Rate::from_bytes_per_sec(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    fn pacing_rate_for(bw: u64, gain: u64, mss: u32) -> Rate {
        Self::bytes_per_sec(bw, gain, mss, PACING_MARGIN_PERCENT)
    }

    fn init_pacing_rate_from_rtt(&mut self, sample: &AckSample, cwnd: u32) {
        let rtt = match sample.srtt.is_zero() {
            true => Duration::from_millis(1),
            false => {
                self.has_seen_rtt = true;
                sample.srtt
            }
        };
        let bw = u64::from(cwnd) * BW_UNIT / rtt.as_micros().max(1);
        self.pacing_rate = Self::pacing_rate_for(bw, HIGH_GAIN, sample.mss);
    }

    fn set_pacing_rate(&mut self, sample: &AckSample, window: Window, gain: u64) {
        let rate = Self::pacing_rate_for(self.bandwidth(), gain, sample.mss);
        if !self.has_seen_rtt && !sample.srtt.is_zero() {
            self.init_pacing_rate_from_rtt(sample, window.cwnd);
        }
        if self.full.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Segments in a super-packet at this pace (bbr_tso_segs_goal). Linux sends in such units.
    fn tso_segs_goal(&self, mss: u32) -> u32 {
        let bytes = (self.pacing_rate.as_bytes_per_sec() >> 10).min(65_535 - 320);
        let min = if self.pacing_rate < MIN_TSO_RATE { 1 } else { 2 };
        ((bytes / u64::from(mss.max(1))) as u32).clamp(min, 0x7f)
    }

    /// The bandwidth-delay product in packets, times a gain (bbr_bdp).
    fn bdp(&self, bw: u64, gain: u64) -> u32 {
        let Some(min_rtt) = self.min_rtt else { return INIT_CWND as u32 };
        let w = u128::from(bw) * u128::from(min_rtt.as_micros());
        let packets = (((w * u128::from(gain)) >> BBR_SCALE) + u128::from(BW_UNIT - 1)) >> BW_SCALE;
        u32::try_from(packets).unwrap_or(u32::MAX / 4)
    }

    /// Adds room for super-packets, and makes the number even (bbr_quantization_budget).
    fn quantize(&self, cwnd: u32, mss: u32) -> u32 {
        let cwnd = (cwnd + 3 * self.tso_segs_goal(mss) + 1) & !1;
        if self.mode == Mode::ProbeBw && self.cycle_idx == 0 { cwnd + 2 } else { cwnd }
    }

    /// Target of the packets in flight (bbr_inflight).
    fn inflight(&self, bw: u64, gain: u64, mss: u32) -> u32 {
        self.quantize(self.bdp(bw, gain), mss)
    }

    /// Packets that will be in flight when the next packet leaves (bbr_packets_in_net_at_edt).
    fn packets_in_net(&self, sample: &AckSample, inflight_now: u32) -> u32 {
        let delivered =
            (u128::from(self.bandwidth()) * u128::from(sample.sending.pacer_ahead.as_micros())) >> BW_SCALE;
        let extra = if self.pacing_gain > BBR_UNIT { self.tso_segs_goal(sample.mss) } else { 0 };
        (inflight_now + extra).saturating_sub(u32::try_from(delivered).unwrap_or(u32::MAX))
    }

    fn save_cwnd(&mut self, cwnd: u32) {
        let fresh = self.prev_ca_state < CaState::Recovery && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if fresh { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    fn update_bw(&mut self, sample: &AckSample) {
        self.round_start = false;
        let Some(delivered) = sample.rate.delivered else { return };
        if sample.rate.prior_delivered >= self.next_rtt_delivered {
            self.next_rtt_delivered = sample.delivered_total;
            self.rtt_cnt += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(sample);
        let bw = delivered * BW_UNIT / sample.rate.interval.as_micros().max(1);
        if !sample.rate.is_app_limited || bw >= self.bw.get() {
            self.bw.update(BW_RTTS, self.rtt_cnt, bw);
        }
    }

    fn sample_long_term(&mut self, sample: &AckSample) {
        let probing = self.mode == Mode::ProbeBw;
        if self.lt.sample(sample, self.round_start, probing) {
            self.reset_probe_bw_mode(sample.now);
        }
        if self.lt.bandwidth_in_use().is_some() && probing {
            self.pacing_gain = BBR_UNIT;
        }
    }

    fn update_cycle_phase(&mut self, sample: &AckSample) {
        if self.mode == Mode::ProbeBw && self.is_next_cycle_phase(sample) {
            self.advance_cycle_phase(sample.now);
        }
    }

    fn is_next_cycle_phase(&self, sample: &AckSample) -> bool {
        let elapsed = sample.now.saturating_since(self.cycle_stamp);
        let is_full_length = self.min_rtt.is_some_and(|min| elapsed > min);
        if self.pacing_gain == BBR_UNIT {
            return is_full_length;
        }
        let inflight = self.packets_in_net(sample, sample.prior_in_flight);
        let bw = self.bw.get();
        if self.pacing_gain > BBR_UNIT {
            let reached = inflight >= self.inflight(bw, self.pacing_gain, sample.mss);
            return is_full_length && (sample.lost > 0 || reached);
        }
        is_full_length || inflight <= self.inflight(bw, BBR_UNIT, sample.mss)
    }

    fn advance_cycle_phase(&mut self, now: Instant) {
        self.cycle_idx = (self.cycle_idx + 1) % PACING_GAIN.len();
        self.cycle_stamp = now;
    }

    fn reset_probe_bw_mode(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw;
        // Our choice: Knuth's 64-bit linear congruential generator, because any draw from the seed will do.
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.cycle_idx = PACING_GAIN.len() - 1 - ((self.random >> 33) % CYCLE_RAND) as usize;
        self.advance_cycle_phase(now);
    }

    fn check_full_bw_reached(&mut self, sample: &AckSample) {
        if self.full.full_bw_reached || !self.round_start || sample.rate.is_app_limited {
            return;
        }
        if self.bw.get() >= (self.full.full_bw * FULL_BW_THRESH) >> BBR_SCALE {
            self.full.full_bw = self.bw.get();
            self.full.full_bw_cnt = 0;
            return;
        }
        self.full.full_bw_cnt += 1;
        self.full.full_bw_reached = self.full.full_bw_cnt >= FULL_BW_CNT;
    }

    fn check_drain(&mut self, sample: &AckSample, window: &mut Window) {
        if self.mode == Mode::Startup && self.full.full_bw_reached {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(self.bw.get(), BBR_UNIT, sample.mss);
        }
        if self.mode == Mode::Drain
            && self.packets_in_net(sample, sample.in_flight)
                <= self.inflight(self.bw.get(), BBR_UNIT, sample.mss)
        {
            self.reset_probe_bw_mode(sample.now);
        }
    }

    fn update_min_rtt(&mut self, sample: &AckSample, window: &mut Window) {
        let now = sample.now;
        let filter_expired = now > self.min_rtt_stamp + MIN_RTT_WIN;
        if let Some(rtt) = sample.rtt {
            let shorter = self.min_rtt.is_none_or(|min| rtt < min);
            if shorter || (filter_expired && !sample.kind.delayed) {
                self.min_rtt = Some(rtt);
                self.min_rtt_stamp = now;
            }
        }
        if filter_expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window.cwnd);
            self.probe_rtt_done_stamp = None;
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_rtt_done_stamp {
                None if sample.in_flight <= CWND_MIN_TARGET => {
                    self.probe_rtt_done_stamp = Some(now + PROBE_RTT_TIME);
                    self.probe_rtt_round_done = false;
                    self.next_rtt_delivered = sample.delivered_total;
                }
                None => {}
                Some(_) => {
                    self.probe_rtt_round_done |= self.round_start;
                    if self.probe_rtt_round_done {
                        self.check_probe_rtt_done(now, window);
                    }
                }
            }
        }
        if sample.rate.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, now: Instant, window: &mut Window) {
        if self.probe_rtt_done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt_stamp = now;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.full.full_bw_reached {
            self.reset_probe_bw_mode(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.lt.bandwidth_in_use().is_some() => (BBR_UNIT, CWND_GAIN),
            Mode::ProbeBw => (PACING_GAIN[self.cycle_idx], CWND_GAIN),
            Mode::ProbeRtt => (BBR_UNIT, BBR_UNIT),
        };
    }

    /// Returns the window, and true while packets are conserved. Otherwise the window grows from there
    /// (bbr_set_cwnd_to_recover_or_restore).
    fn recover_or_restore(&mut self, sample: &AckSample, mut cwnd: u32) -> (u32, bool) {
        let (prev, state, acked) = (self.prev_ca_state, sample.state, sample.delivered);
        if sample.lost > 0 {
            cwnd = cwnd.saturating_sub(sample.lost).max(1);
        }
        if state == CaState::Recovery && prev != CaState::Recovery {
            self.packet_conservation = true;
            self.next_rtt_delivered = sample.delivered_total;
            cwnd = sample.in_flight + acked;
        } else if prev >= CaState::Recovery && state < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_ca_state = state;
        match self.packet_conservation {
            true => (cwnd.max(sample.in_flight + acked), true),
            false => (cwnd, false),
        }
    }

    fn set_cwnd(&mut self, sample: &AckSample, window: &mut Window) {
        let mut cwnd = window.cwnd;
        if sample.delivered > 0 {
            let (from, conserved) = self.recover_or_restore(sample, cwnd);
            cwnd = if conserved { from } else { self.grow(sample, from) };
        }
        window.cwnd = cwnd.min(window.clamp);
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(CWND_MIN_TARGET);
        }
    }

    fn grow(&self, sample: &AckSample, cwnd: u32) -> u32 {
        let bw = self.bandwidth();
        let mut target = self.bdp(bw, self.cwnd_gain);
        if self.full.full_bw_reached {
            target += self.aggregation.cwnd(bw);
        }
        let target = self.quantize(target, sample.mss);
        let cwnd = if self.full.full_bw_reached {
            (cwnd + sample.delivered).min(target)
        } else if cwnd < target || sample.delivered_total < INIT_CWND {
            cwnd + sample.delivered
        } else {
            cwnd
        };
        cwnd.max(CWND_MIN_TARGET)
    }

    fn start(&mut self, sample: &AckSample, window: &mut Window) {
        self.started = true;
        self.min_rtt = (!sample.min_rtt.is_zero()).then_some(sample.min_rtt);
        self.min_rtt_stamp = sample.now;
        self.next_rtt_delivered = sample.delivered_total;
        self.lt.reset(sample);
        self.aggregation.restart(sample.now);
        window.ssthresh = SSTHRESH_INFINITE;
        self.init_pacing_rate_from_rtt(sample, window.cwnd);
    }
}

impl CongestionControl for Bbr {
    fn name(&self) -> CongestionName {
        CongestionName::Bbr
    }

    fn on_ack(&mut self, sample: &AckSample, mut window: Window) -> Window {
        self.update_bw(sample);
        if sample.rate.delivered.is_some() && sample.delivered > 0 {
            let bw = self.bandwidth();
            self.aggregation.update(sample, self.round_start, bw, window.cwnd);
        }
        self.update_cycle_phase(sample);
        self.check_full_bw_reached(sample);
        self.check_drain(sample, &mut window);
        self.update_min_rtt(sample, &mut window);
        self.update_gains();
        self.set_pacing_rate(sample, window, self.pacing_gain);
        self.set_cwnd(sample, &mut window);
        window
    }

    fn ssthresh(&mut self, window: Window) -> u32 {
        self.save_cwnd(window.cwnd);
        window.ssthresh
    }

    fn undo(&mut self, window: Window, _prior_cwnd: u32) -> u32 {
        self.full.full_bw = 0;
        self.full.full_bw_cnt = 0;
        self.lt.forget();
        window.cwnd
    }

    fn on_state(&mut self, state: CaState, sample: &AckSample, window: Window) -> Window {
        if state == CaState::Loss {
            self.prev_ca_state = CaState::Loss;
            self.full.full_bw = 0;
            self.round_start = true;
            let lost = AckSample { lost: 1, rate: Default::default(), ..*sample };
            self.sample_long_term(&lost);
        }
        window
    }

    fn on_event(&mut self, event: CongestionEvent, sample: &AckSample, mut window: Window) -> Window {
        if event != CongestionEvent::TransmissionStart {
            return window;
        }
        if !self.started {
            self.start(sample, &mut window);
        } else if sample.sending.app_limited {
            self.idle_restart = true;
            self.aggregation.restart(sample.now);
            match self.mode {
                Mode::ProbeBw => self.set_pacing_rate(sample, window, BBR_UNIT),
                Mode::ProbeRtt => self.check_probe_rtt_done(sample.now, &mut window),
                _ => {}
            }
        }
        window
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.started.then_some(self.pacing_rate)
    }

    fn limits_application(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    /// As Linux: three windows of send buffer.
    fn send_buffer_windows(&self) -> Option<u32> {
        Some(3)
    }
}
