//! A tau_CD that follows the losses: the paper's model (Section III-B) with values that a sender can know. The paper
//! leaves this open (Section IV-B).

use paceline_wire::Duration;

use super::rtt_sketch::RttSketch;

/// Estimates of p_l and p_c, and the tau_CD of Eq. (23) for them.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Sts {
    pub(super) rtts: RttSketch,
    latest: Duration,
    /// Recent packets: acknowledged in time; lost; lost after a long queue.
    in_time: u32,
    lost: u32,
    congestive: u32,
    w_packets: u32,
    tau_cd: Option<Duration>,
}

/// The assumed kind of a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum Loss {
    Congestive,
    Other,
}

/// At this total the counts are halved. Our choice: enough losses to tell their kinds apart at 1 %.
const MEMORY: u32 = 4_000;

/// Our choice: with fewer losses their shares are unknown, and tau_u applies. In slow start every RTT exceeds those
/// before, so timers expire without a loss.
const LOSSES_MIN: u32 = 10;

impl Sts {
    pub(super) fn new(mrrl: u32) -> Self {
        Sts {
            rtts: RttSketch::new(mrrl),
            latest: Duration::ZERO,
            in_time: 0,
            lost: 0,
            congestive: 0,
            w_packets: 0,
            tau_cd: None,
        }
    }

    /// A packet was acknowledged without a retransmission. Or it was retransmitted, and turns out not to be lost.
    pub(super) fn on_rtt(&mut self, rtt: Duration, taken_for: Option<Loss>) {
        if let Some(loss) = taken_for {
            self.lost = self.lost.saturating_sub(1);
            self.congestive -= self.congestive.min(u32::from(loss == Loss::Congestive));
        }
        self.rtts.add(rtt);
        self.latest = rtt;
        self.in_time += 1;
        if self.in_time + self.lost >= MEMORY {
            (self.in_time, self.lost, self.congestive) =
                (self.in_time / 2, self.lost / 2, self.congestive / 2);
        }
        self.decide();
    }

    /// An RD timer has expired. Our choice: the loss is congestive if the last RTT is in the upper half of the range. A
    /// queue that overflows is full, and other queues mostly are not. Loss differentiation by RTT does the same.
    pub(super) fn on_loss(&mut self, cwnd: u32) -> Loss {
        self.w_packets = cwnd;
        self.lost += 1;
        let congestive = self.middle().is_some_and(|middle| self.latest > middle);
        self.congestive += u32::from(congestive);
        self.decide();
        if congestive { Loss::Congestive } else { Loss::Other }
    }

    pub(super) fn tau_cd(&self) -> Option<Duration> {
        self.tau_cd
    }

    /// tau_u. Our choice, to go with the above: an ACK faster than this has met no full queue, and so excludes
    /// congestion.
    fn middle(&self) -> Option<Duration> {
        Some((self.rtts.min()? + self.rtts.max()?) / 2)
    }

    /// Eq. (23).
    fn decide(&mut self) {
        let (lost, congestive) = (u64::from(self.lost), u64::from(self.congestive));
        let all = u64::from(self.in_time) + lost;
        let other = lost.saturating_sub(congestive);
        // Compares EC_D with EC_A, both times P(PU) and `all` squared: p_c p_l C_T and p_w C_S.
        let delayed = u128::from(congestive * lost) * u128::from(c_t(self.w_packets));
        let answered = u128::from(other * all) * u128::from(c_s(self.w_packets));
        self.tau_cd = if self.lost < LOSSES_MIN || congestive == 0 {
            self.middle()
        } else if delayed >= answered {
            Some(Duration::ZERO)
        } else {
            // F(tau_TH) = (1 - delayed / answered) / (1 - p_l). If that is one or more, there is no tau_TH, and tau_u
            // applies.
            let left = 1_000 - (delayed * 1_000 / answered) as u64;
            let per_mille = left * all / u64::from(self.in_time).max(1);
            let threshold = if per_mille >= 1_000 { None } else { self.rtts.quantile(per_mille) };
            threshold.into_iter().chain(self.middle()).min()
        };
    }
}

/// Eq. (17).
fn c_s(w_packets: u32) -> u64 {
    let n = u64::from(w_packets / 2);
    n * (n + 1) / 2
}

/// Eq. (19).
fn c_t(w_packets: u32) -> u64 {
    let n = w_packets.div_ceil(2).max(1).next_power_of_two().trailing_zeros();
    u64::from(n) * u64::from(w_packets) + 1 - (1 << n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// RTTs from 40 to 80 ms, and losses at the RTTs given.
    fn after(losses: &[u64]) -> Sts {
        let mut sts = Sts::new(1_000);
        for n in 0..400 {
            sts.on_rtt(ms(40 + n % 41), None);
        }
        for &rtt in losses {
            sts.on_rtt(ms(rtt), None);
            sts.on_loss(20);
        }
        sts
    }

    #[test]
    fn random_losses_leave_time_until_an_answer_could_be_of_a_full_queue() {
        let tau_cd = after(&[41; 20]).tau_cd().unwrap();
        assert!((ms(55)..ms(66)).contains(&tau_cd), "{tau_cd:?}");
    }

    #[test]
    fn congestive_losses_are_answered_at_once() {
        assert_eq!(after(&[80; 20]).tau_cd(), Some(Duration::ZERO));
    }

    #[test]
    fn what_was_no_loss_is_not_counted() {
        let mut sts = after(&[80; 20]);
        (0..20).for_each(|_| sts.on_rtt(ms(90), Some(Loss::Congestive)));
        assert_eq!((sts.lost, sts.congestive), (0, 0));
        assert!(sts.tau_cd() > Some(ms(50)));
    }

    #[test]
    fn both_kinds_are_weighed() {
        let mut both = [41; 40];
        both[..30].fill(80);
        let tau_cd = after(&both).tau_cd().unwrap();
        assert!(tau_cd > Duration::ZERO, "{tau_cd:?}");
        assert_eq!((c_s(20), c_t(20), c_s(1), c_t(1)), (55, 65, 0, 0));
    }
}
