//! Congestion control: how much may be in flight, and how fast.
//!
//! Windows are counted in packets of one MSS, as in Linux. So the algorithms match its modules to the digit.

mod abc;
mod bbr;
mod copa;
mod cubic;
mod hystart;
mod interface;
mod reno;
mod rre;
mod vegas;
mod veno;
mod westwood;

use alloc::boxed::Box;

use crate::snapshot::snapshot;

pub use abc::Abc;
pub use bbr::Bbr;
pub use copa::Copa;
pub use cubic::Cubic;
pub use hystart::{Hystart, HystartName};
pub(crate) use interface::current_ssthresh;
pub use interface::{
    AckKind, AckSample, CaState, CongestionControl, CongestionEvent, CongestionName, SSTHRESH_INFINITE,
    Sending, Window,
};
pub use reno::Reno;
pub use rre::Rre;
pub use vegas::Vegas;
pub use veno::Veno;
pub use westwood::Westwood;

snapshot!(CongestionState of AnyCongestion, CongestionControl: Reno, Cubic, Veno, Westwood, Vegas, Bbr, Rre, Copa, Abc,);

impl CongestionName {
    /// Algorithms among which seeds choose. Our choice: the list does not grow. With another list each seed would mean
    /// another run.
    pub const DRAWN: &'static [CongestionName] = &[
        CongestionName::Reno,
        CongestionName::Cubic,
        CongestionName::Veno,
        CongestionName::Westwood,
        CongestionName::Vegas,
        CongestionName::Bbr,
        CongestionName::Rre,
    ];

    /// A new instance. `hystart` is for CUBIC. `seed` is for BBR: it draws the phase in which BBR starts to probe.
    pub fn build(self, hystart: HystartName, seed: u64) -> Box<dyn AnyCongestion> {
        match self {
            CongestionName::Reno => Box::new(Reno),
            CongestionName::Cubic => Box::new(Cubic::new(hystart)),
            CongestionName::Veno => Box::new(Veno::default()),
            CongestionName::Westwood => Box::new(Westwood::default()),
            CongestionName::Vegas => Box::new(Vegas::default()),
            CongestionName::Bbr => Box::new(Bbr::new(seed)),
            CongestionName::Rre => Box::new(Rre::default()),
            CongestionName::Copa => Box::new(Copa::default()),
            CongestionName::Abc => Box::new(Abc::default()),
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
