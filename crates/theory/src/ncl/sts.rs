//! Expected costs, and the tau_CD that weighs them: Eqs. (8) to (15), (20) to (23).

use core::fmt;

use super::costs::{c_s_packets, c_t_packets};
use super::lemmas::unacknowledged;

/// A path and a sender in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sts {
    p_c: f64,
    p_w: f64,
    w_packets: u32,
}

/// The best tau_CD, Eq. (23) and Fig. 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TauCd {
    /// Case I: the congestion response comes with the retransmission.
    Zero,
    /// Case II: tau_u, the latest time at which an ACK excludes congestion.
    Upper,
    /// Case III: the time that this share of all round trips does not exceed, tau_TH = F^-1(share).
    Quantile(f64),
}

/// Invalid shares, or an empty window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StsError;

impl Sts {
    /// Shares of packets lost to congestion and otherwise, and the average cwnd.
    ///
    /// # Errors
    /// A share is negative, the shares make one or more together, or there is no window.
    pub fn new(p_c: f64, p_w: f64, w_packets: u32) -> Result<Sts, StsError> {
        let is_share = |p: f64| (0.0..1.0).contains(&p);
        let valid = is_share(p_c) && is_share(p_w) && is_share(p_c + p_w) && w_packets > 0;
        valid.then_some(Sts { p_c, p_w, w_packets }).ok_or(StsError)
    }

    /// p_l: the share of all losses.
    pub fn p_l(&self) -> f64 {
        self.p_c + self.p_w
    }

    /// Eqs. (11), (13): probability that a loss was not congestive if nothing was acknowledged by t; `f` = F(t).
    pub fn p_not_congestive(&self, f: f64) -> f64 {
        1.0 - self.p_c / self.p_unacknowledged(f)
    }

    /// Eqs. (14), (15): probability that it was congestive and that a timeout follows.
    pub fn p_timeout(&self, f: f64) -> f64 {
        self.p_c * self.p_l() / self.p_unacknowledged(f)
    }

    /// Eqs. (8), (20): the expected cost of a response at t, in packets.
    pub fn ec_a_packets(&self, f: f64) -> f64 {
        self.p_not_congestive(f) * c_s_packets(self.w_packets)
    }

    /// Eqs. (9), (21): the expected cost of further delay at t, in packets.
    pub fn ec_d_packets(&self, f: f64) -> f64 {
        self.p_timeout(f) * c_t_packets(self.w_packets)
    }

    /// Eq. (23); `f_tau_u` = F(tau_u).
    pub fn tau_cd(&self, f_tau_u: f64) -> TauCd {
        // Both sides of EC_A = EC_D are multiplied by P(PU), so that there is no division by zero.
        let answered = self.p_w * c_s_packets(self.w_packets);
        let delayed = self.p_c * self.p_l() * c_t_packets(self.w_packets);
        let left = |f: f64| 1.0 - (1.0 - self.p_l()) * f;
        if delayed >= answered && self.p_c > 0.0 {
            TauCd::Zero
        } else if delayed < answered * left(f_tau_u) || self.p_c <= 0.0 {
            TauCd::Upper
        } else {
            TauCd::Quantile((1.0 - delayed / answered) / (1.0 - self.p_l()))
        }
    }

    fn p_unacknowledged(&self, f: f64) -> f64 {
        unacknowledged(self.p_c, self.p_w, f)
    }
}

impl fmt::Display for StsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "shares of losses must be from 0 to less than 1, also together, and the window at least a packet",
        )
    }
}

impl core::error::Error for StsError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Eqs. (20) and (21) as they are printed.
    #[test]
    fn costs_by_hand() {
        let sts = Sts::new(0.01, 0.05, 20).unwrap();
        let below = 0.01 + 0.05 * (1.0 - 0.94 * 0.5);
        let ec_a = 0.05 * (1.0 - 0.94 * 0.5) / (2.0 * below) * 10.0 * 11.0;
        let ec_d = 0.01 * 0.06 / below * (4.0 * 20.0 - 16.0 + 1.0);
        assert!((sts.ec_a_packets(0.5) - ec_a).abs() < 1e-9);
        assert!((sts.ec_d_packets(0.5) - ec_d).abs() < 1e-9);
    }

    /// The bound of Case I, as it is printed.
    #[test]
    fn mostly_congestive_losses_are_answered_at_once() {
        let (p_l, w) = (0.06, 20);
        let bound = p_l / (p_l * c_t_packets(w) / c_s_packets(w) + 1.0);
        let case = |p_c: f64| Sts::new(p_c, p_l - p_c, w).unwrap().tau_cd(0.9);
        assert_eq!(case(bound * 1.001), TauCd::Zero);
        assert_ne!(case(bound * 0.999), TauCd::Zero);
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        for (p_c, p_w, w) in [(-0.1, 0.1, 5), (0.6, 0.5, 5), (0.1, 0.1, 0), (f64::NAN, 0.1, 5)] {
            assert_eq!(Sts::new(p_c, p_w, w), Err(StsError));
        }
    }

    proptest! {
        /// Eq. (22), and that Eq. (23) chooses what Fig. 2 shows.
        #[test]
        fn the_best_time_is_where_costs_meet(
            p_c in 0.0001f64..0.4, p_w in 0.0001f64..0.4, w in 4u32..200, f_u in 0.0f64..1.0, f in 0.0f64..0.99,
        ) {
            let sts = Sts::new(p_c, p_w, w).unwrap();
            prop_assert!(sts.ec_a_packets(f + 0.01) <= sts.ec_a_packets(f));
            prop_assert!(sts.ec_d_packets(f + 0.01) >= sts.ec_d_packets(f));
            let gap = |f: f64| sts.ec_a_packets(f) - sts.ec_d_packets(f);
            match sts.tau_cd(f_u) {
                TauCd::Zero => prop_assert!(gap(0.0) <= 1e-9),
                TauCd::Upper => prop_assert!(gap(f_u) >= -1e-9),
                TauCd::Quantile(f) => {
                    prop_assert!((0.0..=f_u + 1e-9).contains(&f));
                    prop_assert!(gap(f).abs() < 1e-6 * (1.0 + sts.ec_a_packets(f)));
                }
            }
        }
    }
}
