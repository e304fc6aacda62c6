//! The sender of ABC (Goyal et al., "ABC: A Simple Explicit Congestion Controller for Wireless Networks", NSDI 2020).

use super::{
    AckSample, CaState, CongestionControl, CongestionEvent, CongestionName, Cubic, HystartName, Window,
};

/// Keeps two windows; the smaller one counts. The marks of routers with ABC move the first. The second is CUBIC's, for
/// all other bottlenecks (the paper's coexistence with routers that do not know ABC). Without marks only CUBIC's
/// counts.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Abc {
    /// w_abc, in 1 / 65,536 packets.
    w_abc: u64,
    /// w_nonabc.
    w_nonabc: Option<Window>,
    cubic: Cubic,
    /// True once marks have come.
    guided: bool,
    /// w_abc before a timeout.
    before_timeout: u64,
}

const PACKET: u64 = 1 << 16;
/// Our choice: two packets, because a receiver may wait for a second packet before it sends an ACK.
const CWND_MIN: u32 = 2;
/// Neither window grows beyond this many times the packets in flight, so that the two do not diverge.
const CAP: u32 = 2;

impl Default for Abc {
    /// Our choice: CUBIC without HyStart, because the queue that HyStart would see belongs to the other window.
    fn default() -> Self {
        Abc {
            w_abc: 0,
            w_nonabc: None,
            cubic: Cubic::new(HystartName::Off),
            guided: false,
            before_timeout: 0,
        }
    }
}

impl Abc {
    /// Eq. (3): w + 1 + 1/w for a packet that accelerates, w - 1 + 1/w for one that brakes. An ACK counts for all
    /// packets that it acknowledges.
    fn follow(&mut self, accelerate: bool, packets: u32, in_flight: u32) {
        let step = u64::from(packets) * PACKET;
        let share = u128::from(step) * u128::from(PACKET) / u128::from(self.w_abc.max(PACKET));
        let share = share as u64;
        let cap = u64::from(in_flight.saturating_mul(CAP).max(CWND_MIN)) * PACKET;
        let most = self.w_abc.max(cap);
        self.w_abc = match accelerate {
            true => (self.w_abc + step + share).min(most),
            false => self.w_abc.saturating_sub(step).saturating_add(share).min(most),
        };
        self.w_abc = self.w_abc.max(u64::from(CWND_MIN) * PACKET);
    }

    /// CUBIC's window. It starts as the connection's window.
    fn other(&mut self, window: Window) -> Window {
        if self.w_abc == 0 {
            self.w_abc = u64::from(window.cwnd) * PACKET;
        }
        *self.w_nonabc.get_or_insert(window)
    }

    /// The smaller of both windows.
    fn smaller(&self, other: Window, window: Window) -> Window {
        let by_abc = u32::try_from(self.w_abc / PACKET).unwrap_or(u32::MAX);
        let cwnd = if self.guided { by_abc.min(other.cwnd) } else { other.cwnd };
        Window { cwnd: cwnd.max(1).min(window.clamp), ..other }
    }
}

impl CongestionControl for Abc {
    fn name(&self) -> CongestionName {
        CongestionName::Abc
    }

    fn on_measurement(&mut self, sample: &AckSample, window: Window) -> Window {
        let other = self.other(window);
        self.w_nonabc = Some(self.cubic.on_measurement(sample, other));
        window
    }

    fn on_ack(&mut self, sample: &AckSample, window: Window) -> Window {
        let mut other = self.other(window);
        let in_flight = sample.prior_in_flight;
        if let (Some(accelerate), true) = (sample.kind.accelerate, sample.delivered > 0) {
            self.guided = true;
            self.follow(accelerate, sample.delivered, in_flight);
        }
        let may_grow = !self.guided || other.cwnd < in_flight.saturating_mul(CAP);
        if sample.una_advanced && sample.state <= CaState::Disorder && may_grow {
            other = self.cubic.on_ack(sample, other);
        }
        self.w_nonabc = Some(other);
        self.smaller(other, window)
    }

    /// A loss reduces CUBIC's window at once. No rate reduction applies to the two windows.
    fn ssthresh(&mut self, window: Window) -> u32 {
        let mut other = self.other(window);
        other.ssthresh = self.cubic.ssthresh(other);
        other.cwnd = other.ssthresh.min(other.cwnd);
        other.cwnd_cnt = 0;
        self.w_nonabc = Some(other);
        other.ssthresh
    }

    fn undo(&mut self, window: Window, prior_cwnd: u32) -> u32 {
        let mut other = self.other(window);
        other.cwnd = self.cubic.undo(other, prior_cwnd);
        self.w_nonabc = Some(other);
        self.w_abc = self.w_abc.max(core::mem::take(&mut self.before_timeout));
        self.smaller(other, window).cwnd
    }

    fn on_state(&mut self, state: CaState, sample: &AckSample, window: Window) -> Window {
        let other = self.other(window);
        self.w_nonabc = Some(self.cubic.on_state(state, sample, other));
        window
    }

    fn on_event(&mut self, event: CongestionEvent, sample: &AckSample, window: Window) -> Window {
        let other = self.other(window);
        let mut other = self.cubic.on_event(event, sample, other);
        if event == CongestionEvent::Timeout {
            // The sender restarts with one packet, and so do both windows.
            self.before_timeout = self.w_abc;
            self.w_abc = u64::from(CWND_MIN) * PACKET;
            other.cwnd = 1;
        }
        self.w_nonabc = Some(other);
        window
    }

    fn owns_window(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use paceline_wire::Duration;

    use super::super::testing::Rounds;
    use super::*;

    /// Runs one round of ACKs. Packet `n` brakes if `brakes(n)`, else it accelerates. Returns cwnd.
    fn round(rounds: &mut Rounds, abc: &mut Abc, brakes: impl Fn(u32) -> bool) -> u32 {
        let rtt = Duration::from_millis(100);
        for n in 0..rounds.window.cwnd {
            rounds.sample.kind.accelerate = Some(!brakes(n));
            rounds.sample.prior_in_flight = rounds.window.cwnd;
            rounds.ack(abc, rtt, 1);
        }
        rounds.sample.now += rtt;
        rounds.window.cwnd
    }

    /// All packets accelerate: the window doubles. Half of them: it grows by one. None: it falls to the least.
    #[test]
    fn the_window_does_what_the_router_says() {
        let mut abc = Abc::default();
        let mut rounds = Rounds::new(50);
        assert!((100..=102).contains(&round(&mut rounds, &mut abc, |_| false)));
        let before = rounds.window.cwnd;
        let after = round(&mut rounds, &mut abc, |n| n % 2 == 0);
        assert!((1..=2).contains(&(after - before)), "{before} {after}");
        assert!(round(&mut rounds, &mut abc, |_| true) <= 4);
    }

    /// Two thirds of the marks brake: the window loses a third, 2/3 * w - 1/3 * w.
    #[test]
    fn more_brakes_than_accelerates_shrink_it() {
        let mut abc = Abc::default();
        let mut rounds = Rounds::new(90);
        let after = round(&mut rounds, &mut abc, |n| n % 3 != 0);
        assert!((58..=64).contains(&after), "{after}");
    }

    /// A loss takes 30 % off CUBIC's window. That window had grown to twice the packets in flight. It counts once it is
    /// the smaller one.
    #[test]
    fn losses_are_answered_by_the_other_window() {
        let mut abc = Abc::default();
        let mut rounds = Rounds::new(100);
        round(&mut rounds, &mut abc, |n| n % 2 == 0);
        let windows = [1, 2, 3].map(|_| {
            rounds.window.ssthresh = abc.ssthresh(rounds.window);
            rounds.sample.kind.accelerate = Some(true);
            rounds.ack(&mut abc, Duration::from_millis(100), 1);
            rounds.window.cwnd
        });
        assert!((101..=104).contains(&windows[0]), "{windows:?}");
        assert!((90..=100).contains(&windows[1]) && (63..=70).contains(&windows[2]), "{windows:?}");
    }

    /// Without marks ABC is CUBIC.
    #[test]
    fn without_routers_that_know_it_it_is_cubic() {
        let mut abc = Abc::default();
        let mut cubic = Cubic::new(HystartName::Off);
        let mut guided = Rounds::new(20);
        let mut plain = Rounds::new(20);
        for _ in 0..5 {
            guided.round(&mut abc, Duration::from_millis(100), 1);
            plain.round(&mut cubic, Duration::from_millis(100), 1);
        }
        assert_eq!(guided.window.cwnd, plain.window.cwnd);
    }
}
