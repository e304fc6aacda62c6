//! TCP-NCL's model of a smart sender (STS): how long to wait after a retransmission before the congestion response.
//!
//! ```
//! use paceline_theory::ncl::{Sts, TauCd};
//!
//! // Shares of packets lost to congestion and otherwise, and the average window.
//! let sts = Sts::new(0.001, 0.05, 20)?;
//! // With 30 % of all round trips below tau_u, the response waits until tau_u.
//! assert_eq!(sts.tau_cd(0.3), TauCd::Upper);
//! // Without other losses it comes at once.
//! assert_eq!(Sts::new(0.01, 0.0, 20)?.tau_cd(0.3), TauCd::Zero);
//! # Ok::<(), paceline_theory::ncl::StsError>(())
//! ```

mod costs;
mod lemmas;
mod sts;

pub use costs::{c_s_packets, c_t_packets, n_ca, n_ss};
pub use lemmas::{goodput_per_throughput, not_congestive, unacknowledged};
pub use sts::{Sts, StsError, TauCd};
