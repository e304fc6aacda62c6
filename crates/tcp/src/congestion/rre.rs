//! TCP-RRE (Leong, Xu, Leong, Wang, "Mitigating Egregious ACK Delays in Cellular Data Networks by Eliminating TCP ACK
//! Clocking", ICNP 2013). The sending rate follows the receive rate, which the receiver's timestamps show.
//!
//! There is no ACK clock: the window is open, and the sender paces. The pace is a little above the receive rate rho
//! until the bottleneck queue holds T packets (fill). Then it is a little below rho (drain). The one-way delay by both
//! ends' clocks shows the queue. So delayed ACKs neither slow the sender down nor look like a queue.

mod peer_clock;
mod queue;
mod receive_rate;
mod skew;
#[cfg(test)]
mod tests;

use paceline_wire::{Duration, Instant, Rate};

use super::{AckSample, CaState, CongestionControl, CongestionEvent, CongestionName, Window};
use peer_clock::{PeerClock, PeerTime};
use queue::{Feedback, OneWayDelay, QueueTarget};
use receive_rate::{ReceiveRate, Train};

/// The sender of the paper. Names are the paper's: rho, sigma, T, RD.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Rre {
    stage: Stage,
    clock: PeerClock,
    /// Bytes that the receiver has got, duplicates included.
    received: u64,
    rate: ReceiveRate,
    delay: OneWayDelay,
    rtt_min: Option<Duration>,
    /// The sending rate.
    sigma: Rate,
    timed_out: bool,
}

/// The stage of the algorithm (Section II-B, II-C).
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
enum Stage {
    /// The initial burst, then two packets for each ACK, until rho is known.
    Initial(Train),
    /// B < T.
    Fill,
    /// B >= T, from `since` on. `rho` is the largest receive rate since then or just before, `rtt` the longest RTT.
    Drain { since: Instant, rho: Rate, rtt: Duration },
    /// A burst was sent to see whether the queue is empty or the network has changed.
    Monitor(Monitor),
}

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Monitor {
    since: Instant,
    /// The receive rate before the burst.
    rho: Rate,
    /// The sending rate before the burst.
    sigma: Rate,
    /// Packets of the burst.
    burst: u32,
    train: Train,
    /// The receive rate when the first packet of the burst came.
    before: Option<Rate>,
    /// RTT and RD of the burst's first packet. It met the queue as it was before the burst.
    first: Option<(Option<Duration>, i64)>,
}

/// The content of an ACK by the peer's clock.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Reading {
    time: PeerTime,
    /// RD of the newest segment that it acknowledges.
    delay: Option<i64>,
}

/// n (Section II-B).
const BURST: u32 = 10;
/// The ideal n of Section II-B, the largest bandwidth-delay product that the paper met.
const BURST_MAX: u32 = 30;
/// Our choice: a burst lasts this many ticks of the peer's clock, but has at most `BURST_MAX` packets. So an error of
/// one tick is smaller than a change that counts (see `CLOSE_PERCENT`). With the paper's 10 ms at 3 Mbit/s the burst is
/// 20 packets.
const BURST_TICKS: u64 = 8;
/// After a longer drain the sender monitors (Section II-C). Our choice: the unit is the RTT that the sender sees, queue
/// included. Measured in RTTs without the queue, up to four pass until the queue has drained and the sender knows.
/// Where T is thirty packets, more pass.
const DRAIN_RTTS: u64 = 4;
/// Our choice: rho' is close to rho if it is at least this many percent of it. The change in Fig. 13 is a third.
const CLOSE_PERCENT: u64 = 85;
/// Our choice of "open": 1.5 GB, more than any receive window (RFC 7323, Section 2.3).
const OPEN_WINDOW: u32 = 1 << 20;
/// Our choice: rho is averaged over a quarter of the RTT, the time in which control acts, but at least over this time.
/// That is 70 packets at 8 Mbit/s or 4 at 500 kbit/s.
const MEMORY_MIN: Duration = Duration::from_millis(100);

impl Default for Stage {
    fn default() -> Self {
        Stage::Initial(Train::default())
    }
}

impl Rre {
    /// Reads an ACK by the peer's clock; `None` while the clock's tick is not known.
    fn read(&mut self, sample: &AckSample) -> Option<Reading> {
        self.received += sample.delivered_bytes;
        if sample.kind.repeated {
            // No change to the SACK blocks: one MSS was retransmitted (Section II-A).
            self.received += u64::from(sample.mss);
        }
        if let Some(rtt) = sample.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
        let time = self.clock.time(sample.kind.tsval, sample.sent_at, sample.now)?;
        // A delayed ACK does not show when its segment came.
        let delay = sample.sent_at.filter(|_| !sample.kind.delayed);
        let delay = delay.map(|sent| self.delay.on_segment(time, sent));
        Some(Reading { time, delay })
    }

    fn memory(sample: &AckSample) -> Duration {
        (sample.srtt / 4).max(MEMORY_MIN)
    }

    /// RTT, and t_buff + RTT.
    fn feedback(&self, sample: &AckSample) -> Feedback {
        let least = self.rtt_min.map_or(sample.srtt, |min| min.min(sample.srtt));
        let rtt = sample.srtt.saturating_sub(self.delay.buffering()).max(least);
        Feedback { rtt, whole: sample.srtt }
    }

    /// T, Bmax and Bmin for the present rho.
    fn aim(&self, sample: &AckSample) -> QueueTarget {
        QueueTarget::new(self.rate.rate(), self.rtt_min.unwrap_or(sample.srtt), sample.mss)
    }

    fn fill(&mut self, sample: &AckSample) {
        self.stage = Stage::Fill;
        self.sigma = self.aim(sample).fill_rate(self.rate.rate(), self.feedback(sample));
    }

    fn drain(&mut self, sample: &AckSample) {
        let rho = self.rate.rate();
        self.stage = Stage::Drain { since: sample.now, rho, rtt: sample.srtt };
        self.sigma = self.aim(sample).drain_rate(rho, self.feedback(sample));
    }

    /// The initial stage (Section II-B). Returns cwnd.
    fn on_initial_ack(&mut self, sample: &AckSample, reading: Option<Reading>, cwnd: u32) -> u32 {
        // An ACK lets two packets go, as in slow start: one replaces the packet that has arrived. Our choice: an ACK
        // for several packets replaces all of them. Otherwise delayed and lost ACKs would close the window.
        let cwnd = cwnd.saturating_add(u32::from(sample.delivered > 0));
        let (Some(reading), Stage::Initial(train)) = (reading, &mut self.stage) else { return cwnd };
        if train.is_cut(reading.time, sample.sent_at) {
            *train = Train::default();
        }
        train.on_ack(reading.time, self.received, sample.sent_at);
        let Some(rho) = train.good_rate(reading.time.tick, sample.mss) else { return cwnd };
        self.rate.restart(rho, Self::memory(sample), sample.now);
        self.fill(sample);
        OPEN_WINDOW
    }

    fn on_fill_ack(&mut self, sample: &AckSample) {
        if self.is_filled(sample) {
            self.drain(sample);
        } else {
            self.fill(sample);
        }
    }

    /// Eq. (3): t_buff >= T x MSS / rho.
    fn is_filled(&self, sample: &AckSample) -> bool {
        let aim = self.aim(sample);
        self.rate.rate().bytes_in(self.delay.buffering()) >= aim.t
    }

    fn on_drain_ack(
        &mut self,
        sample: &AckSample,
        drain: (Instant, Rate, Duration),
        window: Window,
    ) -> Window {
        let (since, before, rtt) = drain;
        let rho = self.rate.rate();
        if !self.is_filled(sample) {
            self.fill(sample);
            return window;
        }
        // The RTT shrinks as the queue drains, so the longest counts.
        let rtt = rtt.max(sample.srtt);
        self.stage = Stage::Drain { since, rho: before.max(rho), rtt };
        // sigma may rise, but never falls.
        self.sigma = self.sigma.max(self.aim(sample).drain_rate(rho, self.feedback(sample)));
        let long = sample.now.saturating_since(since) > rtt * DRAIN_RTTS;
        // Our choice: if the ACK is for a packet sent before drain, rho <= sigma counts only if rho is far from its
        // earlier value. If ACKs take seconds, sigma is so little below rho that noise would suffice.
        let answered = sample.sent_at.is_some_and(|sent| sent > since) || !is_close(rho, before);
        if long || (answered && rho <= self.sigma) {
            self.monitor(sample, before.max(rho), window)
        } else {
            window
        }
    }

    /// Sends a burst, and halves sigma (Section II-C).
    fn monitor(&mut self, sample: &AckSample, rho: Rate, mut window: Window) -> Window {
        let tick = self.delay.tick();
        let burst = rho.bytes_in(tick * BURST_TICKS) / u64::from(sample.mss.max(1));
        let burst = (burst.min(u64::from(BURST_MAX)) as u32).max(BURST);
        let (since, sigma, train) = (sample.now, self.sigma, Train::default());
        self.stage = Stage::Monitor(Monitor { since, rho, sigma, burst, train, before: None, first: None });
        self.sigma = self.sigma.mul_ratio(1, 2).max(QueueTarget::least_rate(sample));
        window.burst = burst;
        window
    }

    fn on_monitor_ack(&mut self, sample: &AckSample, reading: Reading, before: Rate, mut monitor: Monitor) {
        let sent = sample.sent_at.filter(|sent| *sent >= monitor.since);
        // ACKs before the first one for the burst do not count. Later an ACK for a retransmission counts with its
        // bytes, not its delay.
        if sent.is_none() && monitor.before.is_none() {
            return;
        }
        monitor.before.get_or_insert(before);
        monitor.train.on_ack(reading.time, self.received, sent);
        if let (None, Some(_), Some(delay)) = (monitor.first, sent, reading.delay) {
            monitor.first = Some((sample.rtt, delay));
        }
        let burst = u64::from(monitor.burst.saturating_sub(2)) * u64::from(sample.mss);
        let whole = monitor.train.bytes(self.received) >= burst;
        let over = sent.is_some_and(|sent| sent.saturating_since(monitor.since) > sample.srtt / 4);
        if whole || over {
            self.end_monitor(sample, &monitor);
        } else {
            self.stage = Stage::Monitor(monitor);
        }
    }

    /// The burst is acknowledged. Decides whether the network has changed or the queue was empty.
    ///
    /// rho' is, like rho at any time, the average of Section IV: the flow's share of a queue that other flows fill,
    /// too. A burst passes such a queue in one go and shows the link's rate, as if the flow were alone. Section III-F
    /// says that the flow backs off. Our choice: the burst's rate counts only if all earlier packets arrived at the
    /// rate at which they were sent. Then no queue delayed the burst.
    fn end_monitor(&mut self, sample: &AckSample, monitor: &Monitor) {
        let passed = monitor
            .before
            .is_some_and(|before| is_close(before, monitor.sigma) && is_close(monitor.sigma, before));
        // Without two steps of the peer's clock the burst shows no rate.
        let rho = if passed { monitor.train.rate().unwrap_or(monitor.rho) } else { self.rate.rate() };
        self.rate.restart(rho, Self::memory(sample), sample.now);
        if !is_close(rho, monitor.rho) {
            self.drain(sample);
            return;
        }
        if let Some((rtt, delay)) = monitor.first {
            self.delay.restart(delay);
            // The RTT has changed, too.
            self.rtt_min = rtt.or(self.rtt_min);
        }
        self.fill(sample);
    }
}

/// True if a receive rate is about equal to the earlier one, or higher.
fn is_close(rho: Rate, before: Rate) -> bool {
    rho >= before.mul_ratio(CLOSE_PERCENT, 100)
}

impl CongestionControl for Rre {
    fn name(&self) -> CongestionName {
        CongestionName::Rre
    }

    fn on_ack(&mut self, sample: &AckSample, mut window: Window) -> Window {
        let reading = self.read(sample);
        if matches!(self.stage, Stage::Initial(_)) {
            window.cwnd = self.on_initial_ack(sample, reading, window.cwnd).min(window.clamp);
            return window;
        }
        window.cwnd = OPEN_WINDOW.min(window.clamp);
        let Some(reading) = reading else { return window };
        if core::mem::take(&mut self.timed_out) {
            return self.monitor(sample, self.rate.rate(), window);
        }
        let before = self.rate.rate();
        if !sample.rate.is_app_limited {
            self.rate.on_ack(reading.time, self.received, sample.sent_at, Self::memory(sample));
        }
        match self.stage {
            Stage::Fill => self.on_fill_ack(sample),
            Stage::Drain { since, rho, rtt } => return self.on_drain_ack(sample, (since, rho, rtt), window),
            Stage::Monitor(monitor) => {
                self.on_monitor_ack(sample, reading, before, monitor);
                if !matches!(self.stage, Stage::Monitor(_)) {
                    window.burst = 0;
                }
            }
            Stage::Initial(_) => {}
        }
        window
    }

    fn on_peer_timestamp(&mut self, tsval: u32, not_before: Option<Instant>, arrival: Instant) {
        self.clock.observe(tsval, not_before, arrival);
    }

    /// A loss does not change the window (Section II-D).
    fn ssthresh(&mut self, window: Window) -> u32 {
        window.ssthresh
    }

    fn undo(&mut self, window: Window, prior_cwnd: u32) -> u32 {
        self.timed_out = false;
        window.cwnd.max(prior_cwnd)
    }

    /// A loss leads to drain, a slightly lower rate. A sender that drains already keeps sigma (Section II-D). Our
    /// choice: a timeout leads to monitor, because nothing is known of the network any more.
    fn on_state(&mut self, state: CaState, sample: &AckSample, window: Window) -> Window {
        match (state, self.stage) {
            (CaState::Recovery | CaState::Cwr, Stage::Fill) => self.drain(sample),
            (CaState::Loss, Stage::Fill | Stage::Drain { .. } | Stage::Monitor(_)) => self.timed_out = true,
            (CaState::Loss, Stage::Initial(_)) => self.stage = Stage::default(),
            _ => {}
        }
        window
    }

    fn on_event(&mut self, event: CongestionEvent, sample: &AckSample, window: Window) -> Window {
        if event == CongestionEvent::TransmissionStart {
            // Time in which nothing was sent does not count for the receive rate.
            self.rate.skip(sample.now);
        }
        window
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<Rate> {
        (!matches!(self.stage, Stage::Initial(_))).then_some(self.sigma)
    }
}
