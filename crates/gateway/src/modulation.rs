//! RTT modulation (Chapter 6): acknowledgements are delayed a little, so that the server's timeout leaves room for
//! local retransmissions. An acknowledgement of many bytes may leave in steps (`flow/ack_steps.rs`).

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant, Packet};

use crate::config::{RttModulationConfig, RttModulationMode};
use crate::supply::Verdict;

/// Packets that may wait in one flow: an ACK every 100 us for 400 ms. A further packet pushes the oldest out.
const LANE_MAX: usize = 4096;

/// An ACK waits for no longer (RFC 9293, Section 3.8.6.3: less than half a second). Only D as printed has no bound. One
/// deviation after an outage raised it to 77 s for the rest of the connection, and to 118 s, for which no server waits.
const HOLD_MAX: Duration = Duration::from_millis(499);

/// What has to be done to a packet when it leaves for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Edit {
    /// Nothing.
    None,
    /// Write the window of its acknowledgement.
    Window,
    /// The same, but the packet leaves only if the window has moved: otherwise it would be a duplicate ACK.
    WindowUpdate,
    /// Keep it a duplicate acknowledgement: write the window that was shown last.
    Duplicate,
}

/// A packet on its way to the server.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct DelayedPacket {
    /// It leaves at this time.
    pub(crate) release_at: Instant,
    /// What is done to it then.
    pub(crate) edit: Edit,
    /// The packet.
    pub(crate) packet: Packet,
    /// Its acknowledgement leaves in steps.
    #[serde(default)]
    steps: Option<AckSteps>,
}

impl DelayedPacket {
    /// Returns the next step; `None` if only the packet itself is left.
    fn next_step(&mut self) -> Option<DelayedPacket> {
        let steps = self.steps.as_mut().filter(|steps| steps.left > steps.bytes)?;
        steps.left -= steps.bytes.max(1);
        let mut packet = self.packet.clone();
        let mut tcp = packet.tcp_mut()?;
        // Positions are numbered modulo 2^32 (RFC 9293, Section 3.4).
        let ack = tcp.as_tcp().ack().add((steps.left as u32).wrapping_neg());
        tcp.set_ack(ack);
        let step = DelayedPacket { release_at: self.release_at, edit: self.edit, packet, steps: None };
        self.release_at += steps.apart;
        Some(step)
    }
}

/// How an acknowledgement leaves in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct AckSteps {
    /// Bytes that it acknowledges and that no step has acknowledged.
    pub(crate) left: u64,
    /// Bytes of a step, one at least.
    pub(crate) bytes: u64,
    /// Time between two steps.
    pub(crate) apart: Duration,
}

/// The delay of one flow, and the packets that wait for it. They keep their order.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Modulation {
    delay: Duration,
    /// Only Eqs. (16) and (17) apply.
    #[serde(default)]
    as_printed: bool,
    lane: VecDeque<DelayedPacket>,
    last_release: Instant,
    /// The steps of the newest acknowledgement that leaves in steps, how long they take, and when they began.
    #[serde(default)]
    pace: Option<(AckSteps, Duration)>,
    #[serde(default)]
    pace_since: Instant,
    /// How long the newest acknowledgement is held, and its arrival.
    last_hold: Duration,
    last_arrival: Instant,
}

/// What decides whether the delay may grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModulationInput {
    /// rtt of the text.
    pub(crate) rtt: Duration,
    /// rtt_dev of the text.
    pub(crate) deviation: Duration,
    /// The server fills whatever window it is given.
    pub(crate) window_filling: bool,
}

impl Modulation {
    /// D of the text.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// Handles an ACK: Eq. (17) while D < L x rtt, Eq. (16).
    ///
    /// The text only ever raises D. A longer RTT needs a larger congestion window at the server. CUBIC takes seconds to
    /// open it, and BBR limits it to twice its estimate of the BDP. Our choice: D grows only while the server fills any
    /// window that it is given, by at most a 256th of its goal per ACK. It shrinks ([`Self::on_round`]) when the server
    /// no longer keeps up. So a model-based sender has no delay. [`RttModulationMode::Text`] has none of these rules.
    pub(crate) fn on_ack(&mut self, config: &RttModulationConfig, input: &ModulationInput) {
        if config.mode == RttModulationMode::None {
            return;
        }
        let goal = input.rtt * u64::from(config.attempts);
        self.as_printed = config.mode == RttModulationMode::Text;
        if self.as_printed {
            if self.delay < goal {
                self.delay += input.deviation * u64::from(config.beta);
            }
            return;
        }
        if input.window_filling && self.delay < goal {
            // A deviation of zero would never raise it: a 1024th at least.
            let step = (input.deviation * u64::from(config.beta)).max(goal / 1024).min(goal / 256);
            self.delay += step;
        }
        self.delay = self.delay.min(goal);
    }

    /// Ends the delay of acknowledgements.
    pub(crate) fn stop(&mut self) {
        self.delay = Duration::ZERO;
    }

    /// Handles the end of a round trip.
    pub(crate) fn on_round(&mut self, verdict: Verdict) {
        self.delay = match verdict {
            _ if self.as_printed => self.delay,
            Verdict::Ahead => self.delay,
            Verdict::Even => self.delay.mul_ratio(7, 8),
            Verdict::Behind => self.delay / 2,
        };
    }

    /// Appends a packet. `late`: how much longer than usual the client took to acknowledge its data.
    ///
    /// The server should see rtt + D. An ACK that waited for a local retransmission has already used up part of D. To
    /// delay it by D again would cost the margin for which D is there. Later ACKs wait as long as it did, each a little
    /// longer, by a quarter of the time between them (our choice). To hold the next one for the whole D would stop the
    /// server's ACK clock, and its view of the window, for as long.
    ///
    /// As printed every ACK waits for D, here for less than half a second.
    ///
    /// Data, FIN and RST (`urgent`) do not wait, and the packets before them leave at once too.
    pub(crate) fn push(&mut self, now: Instant, late: Duration, urgent: bool, edit: Edit, packet: Packet) {
        if urgent {
            self.lane.iter_mut().for_each(|held| (held.release_at, held.steps) = (now, None));
            (self.last_release, self.pace) = (now, None);
            self.lane.push_back(DelayedPacket { release_at: now, edit, packet, steps: None });
            return;
        }
        if !self.tells_in_steps(now) {
            self.pace = None;
        }
        let mut hold =
            if self.as_printed { self.delay.min(HOLD_MAX) } else { self.delay.saturating_sub(late) };
        if edit != Edit::WindowUpdate && !self.as_printed {
            hold = hold.min(self.last_hold + now.saturating_since(self.last_arrival) / 4);
            (self.last_hold, self.last_arrival) = (hold, now);
        }
        let release_at = (now + hold).max(self.last_release);
        self.last_release = release_at;
        self.lane.push_back(DelayedPacket { release_at, edit, packet, steps: None });
    }

    /// Appends an acknowledgement that leaves in steps. The first step leaves when all packets before it have left.
    pub(crate) fn push_steps(&mut self, now: Instant, edit: Edit, packet: Packet, steps: AckSteps) {
        let release_at = now.max(self.last_release);
        self.last_release = release_at + steps.apart * (steps.left.saturating_sub(1) / steps.bytes);
        (self.pace, self.pace_since) = (Some((steps, self.last_release.saturating_since(now))), now);
        self.lane.push_back(DelayedPacket { release_at, edit, packet, steps: Some(steps) });
    }

    /// Appends an acknowledgement of `advance` bytes that came while an earlier one leaves in steps. It goes on at
    /// their pace, until the ACKs have caught up. If they left together at the end of the steps, they would be as long
    /// a burst as the steps had spread.
    ///
    /// Our choice: the longest wait is as long as the steps take, and falls by a fifth of the time since they began. So
    /// later ACKs leave a quarter faster than they come, whatever the pace. An ACK that would wait for longer leaves
    /// whole. When the pace alone decided, a server that fills its window never caught up, because it sends as fast as
    /// its ACKs come. BBR had just measured its shortest round trip at a low rate, and had .4 of its rate for 8 s.
    pub(crate) fn push_behind_steps(&mut self, now: Instant, edit: Edit, packet: Packet, advance: u64) {
        let Some((steps, longest)) = self.pace else { return };
        let longest = longest.saturating_sub(now.saturating_since(self.pace_since) / 5);
        let bytes = steps.bytes.max(1);
        let mut release_at = now.max(self.last_release);
        let steps =
            (release_at.saturating_since(now) <= longest).then_some(AckSteps { left: advance, ..steps });
        self.last_release = release_at;
        if let Some(AckSteps { apart, .. }) = steps {
            release_at += apart.mul_ratio(advance.min(bytes), bytes);
            self.last_release = release_at + apart * (advance.saturating_sub(1) / bytes);
        }
        self.lane.push_back(DelayedPacket { release_at, edit, packet, steps });
    }

    /// True while an acknowledgement leaves in steps, or one behind it.
    pub(crate) fn tells_in_steps(&self, now: Instant) -> bool {
        self.pace.is_some() && self.last_release > now
    }

    /// The next packet whose time has come.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<DelayedPacket> {
        let full = self.lane.len() > LANE_MAX;
        let front = self.lane.front_mut().filter(|front| full || front.release_at <= now)?;
        front.next_step().or_else(|| self.lane.pop_front())
    }

    /// Bytes of memory that waiting packets take.
    pub(crate) fn bytes(&self) -> u64 {
        (self.lane.len() * size_of::<DelayedPacket>()) as u64
    }

    /// When the next packet leaves.
    pub(crate) fn next_release(&self) -> Option<Instant> {
        self.lane.front().map(|held| held.release_at)
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use alloc::vec::Vec;

    use paceline_wire::{FlowKey, Payload, Seq, TcpRepr};

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn input() -> ModulationInput {
        ModulationInput { rtt: RTT, deviation: Duration::from_micros(100), window_filling: true }
    }

    fn ack() -> Packet {
        let address: SocketAddr = "10.0.0.1:80".parse().unwrap();
        Packet::build_tcp(FlowKey { src: address, dst: address }, &TcpRepr::default(), Payload::Length(0))
    }

    #[test]
    fn grows_by_beta_deviations_an_ack_up_to_l_round_trips() {
        let (config, mut modulation) = (RttModulationConfig::default(), Modulation::default());
        modulation.on_ack(&config, &input());
        assert_eq!(modulation.delay(), Duration::from_micros(200));
        (0..1000).for_each(|_| modulation.on_ack(&config, &input()));
        assert_eq!(modulation.delay(), RTT);
    }

    /// With the text's beta of 2 and a deviation of 7 ms a step is 14 ms, whether the server fills its window or not.
    /// The last step exceeds L x rtt, and D never shrinks.
    #[test]
    fn as_printed_a_step_has_no_limit_and_is_never_taken_back() {
        let config = RttModulationConfig { mode: RttModulationMode::Text, ..RttModulationConfig::default() };
        let mut modulation = Modulation::default();
        let input = ModulationInput { deviation: Duration::from_millis(7), window_filling: false, ..input() };
        (0..7).for_each(|_| modulation.on_ack(&config, &input));
        assert_eq!(modulation.delay(), Duration::from_millis(98));
        (0..7).for_each(|_| modulation.on_ack(&config, &input));
        assert_eq!(modulation.delay(), Duration::from_millis(112));
        modulation.on_round(Verdict::Behind);
        assert_eq!(modulation.delay(), Duration::from_millis(112));
        let now = Instant::ZERO + Duration::from_secs(1);
        modulation.push(now, RTT * 2, false, Edit::Window, ack());
        assert_eq!(modulation.next_release(), Some(now + Duration::from_millis(112)));
        // A deviation as after an outage.
        let input = ModulationInput { rtt: RTT * 2, deviation: Duration::from_secs(30), ..input };
        modulation.on_ack(&config, &input);
        modulation.push(now, RTT * 2, false, Edit::Window, ack());
        assert_eq!(modulation.lane.back().map(|held| held.release_at), Some(now + HOLD_MAX));
    }

    #[test]
    fn waits_for_the_server_to_be_ahead_and_shrinks_when_it_is_behind() {
        let (config, mut modulation) = (RttModulationConfig::default(), Modulation::default());
        modulation.on_ack(&config, &ModulationInput { window_filling: false, ..input() });
        assert!(modulation.delay().is_zero());
        (0..1000).for_each(|_| modulation.on_ack(&config, &input()));
        modulation.on_round(Verdict::Behind);
        assert_eq!(modulation.delay(), RTT / 2);
    }

    #[test]
    fn after_a_late_ack_the_delay_comes_back_by_a_quarter_of_the_time() {
        let (config, mut modulation) = (RttModulationConfig::default(), Modulation::default());
        (0..1000).for_each(|_| modulation.on_ack(&config, &input()));
        let start = Instant::ZERO + Duration::from_secs(1);
        modulation.push(start, RTT * 2, false, Edit::Window, ack());
        for n in 1..=6u64 {
            let now = start + RTT * n;
            modulation.push(now, Duration::ZERO, false, Edit::Window, ack());
            while modulation.lane.len() > 1 {
                modulation.lane.pop_front();
            }
            assert_eq!(modulation.next_release(), Some(now + (RTT * n / 4).min(RTT)));
        }
    }

    #[test]
    fn a_late_ack_waits_less_and_order_is_kept() {
        let (config, mut modulation) = (RttModulationConfig::default(), Modulation::default());
        (0..1000).for_each(|_| modulation.on_ack(&config, &input()));
        let now = Instant::ZERO + Duration::from_secs(1);
        modulation.push(now, Duration::ZERO, false, Edit::Window, ack());
        modulation.push(now + RTT / 2, RTT * 2, false, Edit::Window, ack());
        assert_eq!(modulation.next_release(), Some(now + RTT));
        assert!(modulation.pop_due(now + RTT / 2).is_none());
        assert!(modulation.pop_due(now + RTT).is_some());
        assert_eq!(modulation.next_release(), Some(now + RTT));
    }

    fn told(modulation: &mut Modulation, now: Instant) -> Vec<u32> {
        core::iter::from_fn(|| modulation.pop_due(now))
            .map(|held| held.packet.tcp().unwrap().ack().0)
            .collect()
    }

    fn told_in_steps(now: Instant) -> Modulation {
        let mut packet = ack();
        packet.tcp_mut().unwrap().set_ack(Seq(500));
        let mut modulation = Modulation::default();
        let steps = AckSteps { left: 1_000, bytes: 300, apart: Duration::from_millis(2) };
        modulation.push_steps(now, Edit::Window, packet, steps);
        modulation
    }

    #[test]
    fn an_acknowledgement_is_told_in_steps_and_what_comes_later_waits_for_the_last() {
        let start = Instant::ZERO + Duration::from_secs(1);
        let at = |ms| start + Duration::from_millis(ms);
        let mut modulation = told_in_steps(start);
        modulation.push(start, Duration::ZERO, false, Edit::Window, ack());
        // 500 less 700, modulo 2^32.
        assert_eq!(told(&mut modulation, start), [u32::MAX - 199]);
        assert_eq!(told(&mut modulation, at(3)), [100]);
        assert!(modulation.tells_in_steps(at(5)));
        assert_eq!(modulation.next_release(), Some(at(4)));
        assert_eq!(told(&mut modulation, at(6)), [400, 500, 0]);
        assert!(!modulation.tells_in_steps(at(6)));
    }

    #[test]
    fn what_comes_behind_steps_goes_on_at_their_pace_until_it_has_caught_up() {
        let start = Instant::ZERO + Duration::from_secs(1);
        let at = |ms| start + Duration::from_millis(ms);
        let mut modulation = told_in_steps(start);
        // The last step leaves after 6 ms, and 300 bytes take 2 ms.
        modulation.push_behind_steps(at(3), Edit::Window, ack(), 300);
        modulation.push_behind_steps(at(4), Edit::Window, ack(), 150);
        let released: Vec<_> = modulation.lane.iter().map(|held| held.release_at).collect();
        assert_eq!(released, [at(0), at(8), at(9)]);
        assert!(modulation.tells_in_steps(at(8)) && !modulation.tells_in_steps(at(9)));
        // The wait would exceed the 6 ms of the steps, so it does not grow, however much is acknowledged.
        modulation.push_behind_steps(at(2), Edit::Window, ack(), 3_000);
        assert_eq!(modulation.lane.back().map(|held| held.release_at), Some(at(9)));
        assert!(!modulation.tells_in_steps(at(9)));
    }

    #[test]
    fn acks_catch_up_though_they_come_faster_than_the_pace() {
        let start = Instant::ZERO + Duration::from_secs(1);
        let mut modulation = told_in_steps(start);
        // Each acknowledges 900 bytes, for which the pace needs 6 ms.
        let caught_up = (1..100).map(|ms| start + Duration::from_millis(ms)).find(|now| {
            let tells = modulation.tells_in_steps(*now);
            modulation.push_behind_steps(*now, Edit::Window, ack(), 900);
            !tells
        });
        assert!(caught_up.is_some_and(|now| now <= start + Duration::from_millis(40)), "{caught_up:?}");
    }

    #[test]
    fn what_is_urgent_ends_the_steps() {
        let start = Instant::ZERO + Duration::from_secs(1);
        let mut modulation = told_in_steps(start);
        modulation.push(start, Duration::ZERO, true, Edit::None, ack());
        assert_eq!(told(&mut modulation, start), [500, 0]);
    }
}
