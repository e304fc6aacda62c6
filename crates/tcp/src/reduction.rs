//! Rate reduction: what cwnd does during fast recovery, and how far beyond the advertised window new data may go.

mod barr;
mod interface;
mod opportunistic;
mod prr;
mod qarr;
mod rate_halving;
mod rfc6675;

use alloc::boxed::Box;

use crate::snapshot::snapshot;

pub use barr::Barr;
pub use interface::{Entry, Holes, RateReduction, ReductionName};
pub use opportunistic::Opportunistic;
pub use prr::Prr;
pub use qarr::Qarr;
pub use rate_halving::RateHalving;
pub use rfc6675::Halving;

snapshot!(ReductionState of AnyReduction, RateReduction: Halving, RateHalving, Prr, Qarr, Barr, Opportunistic,);

impl ReductionName {
    /// Algorithms among which seeds choose. Our choice: the list does not grow. With another list each seed would mean
    /// another run.
    pub const DRAWN: &'static [ReductionName] = ReductionName::ALL.split_at(17).0;

    /// The recommended algorithm of which it is a form.
    pub fn base(self) -> ReductionName {
        match self {
            ReductionName::QarrText
            | ReductionName::QarrTextRaises
            | ReductionName::QarrTextRecord
            | ReductionName::QarrTextRound
            | ReductionName::QarrTextShortest
            | ReductionName::QarrTextCumulative => ReductionName::Qarr,
            ReductionName::BarrText
            | ReductionName::BarrTextDelivered
            | ReductionName::BarrTextHighest
            | ReductionName::BarrTextRecord
            | ReductionName::BarrTextSlowStart
            | ReductionName::BarrTextKeeps => ReductionName::Barr,
            other => other,
        }
    }

    /// A new instance, with or without opportunistic retransmission.
    pub fn build(self, opportunistic: bool) -> Box<dyn AnyReduction> {
        let plain: Box<dyn AnyReduction> = match self.base() {
            ReductionName::Rfc6675 => Box::new(Halving),
            ReductionName::Rh => Box::new(RateHalving),
            ReductionName::Prr => Box::new(Prr::default()),
            ReductionName::PrrSsrb => Box::new(Prr::ssrb()),
            ReductionName::Qarr => Box::new(Qarr::named(self)),
            ReductionName::Barr => Box::new(Barr::named(self)),
            // No name has another base.
            _ => Box::new(Prr::default()),
        };
        if opportunistic { Box::new(Opportunistic::new(plain)) } else { plain }
    }
}
