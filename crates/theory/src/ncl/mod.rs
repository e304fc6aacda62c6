//! TCP-NCL's model of a smart sender (STS): how long to wait, after a packet was sent again, before congestion is answered.
//!
//! ```
//! use paceline_theory::ncl::{Sts, TauCd};
//!
//! // Packets lost to congestion and otherwise, and an average window.
//! let sts = Sts::new(0.001, 0.05, 20)?;
//! // With 30 % of all round trips below tau_u: never before tau_u.
//! assert_eq!(sts.tau_cd(0.3), TauCd::Upper);
//! // Without other losses: at once.
//! assert_eq!(Sts::new(0.01, 0.0, 20)?.tau_cd(0.3), TauCd::Zero);
//! # Ok::<(), paceline_theory::ncl::StsError>(())
//! ```

mod costs;
mod lemmas;
mod sts;

pub use costs::{c_s_packets, c_t_packets, n_ca, n_ss};
pub use lemmas::{goodput_per_throughput, not_congestive, unacknowledged};
pub use sts::{Sts, StsError, TauCd};
