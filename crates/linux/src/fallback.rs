//! What the kernel does with a flow when its gateway is gone.

use paceline_gateway::Shifts;

/// The kernel's treatment of a flow that cannot simply continue. A restarted gateway reads it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// Rescale its windows.
    Rescale(Shifts),
    /// A split flow. Answer each end with a reset, because neither end knows which data the other has.
    Reset,
}

impl From<Shifts> for Fallback {
    fn from(shifts: Shifts) -> Self {
        Fallback::Rescale(shifts)
    }
}
