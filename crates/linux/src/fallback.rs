//! What becomes of a flow when its gateway is gone.

use paceline_gateway::Shifts;

/// What the kernel does for a flow that cannot simply go on, and what a restarted gateway is to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// Its windows are rescaled.
    Rescale(Shifts),
    /// It was split: each end is answered with a reset, because neither knows what the other has.
    Reset,
}

impl From<Shifts> for Fallback {
    fn from(shifts: Shifts) -> Self {
        Fallback::Rescale(shifts)
    }
}
