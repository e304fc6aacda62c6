//! Why `auto` decides as it does: counted, told, and shown.

use core::fmt;

/// Why `auto` has decided as it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No flow of the client has been seen of late.
    Unknown,
    /// Its flows have shown nothing that speaks against the default. The older names were reasons once; a gateway of then may hand them over.
    #[serde(alias = "varying-link", alias = "steady-link", alias = "slow-reader")]
    Ordinary,
    /// Acknowledgements wait on the uplink.
    LateAcks,
    /// The link's buffer overflows, and is too short for a bound to be of use.
    ShortBuffer,
    /// Data is lost without load, on a path so long that a sender of our own repairs it better.
    LossyPath,
    /// What was repaired had not been lost.
    NeedlessRepairs,
    /// The client acknowledges what it cannot have.
    OptimisticAcks,
    /// The server recovers from losses as well by itself.
    ServerRecovers,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 8] = [
        Reason::Unknown,
        Reason::Ordinary,
        Reason::LateAcks,
        Reason::ShortBuffer,
        Reason::LossyPath,
        Reason::NeedlessRepairs,
        Reason::OptimisticAcks,
        Reason::ServerRecovers,
    ];

    /// As metrics and logs name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Unknown => "unknown",
            Reason::Ordinary => "ordinary",
            Reason::LateAcks => "late-acks",
            Reason::ShortBuffer => "short-buffer",
            Reason::LossyPath => "lossy-path",
            Reason::NeedlessRepairs => "needless-repairs",
            Reason::OptimisticAcks => "optimistic-acks",
            Reason::ServerRecovers => "server-recovers",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
