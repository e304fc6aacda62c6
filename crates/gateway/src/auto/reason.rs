//! Why `auto` decides as it does: counted, logged and shown.

use core::fmt;

/// The reason of a decision of `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No recent flow of the client is known.
    Unknown,
    /// The client's flows have shown nothing against the default. An older gateway may hand over one of the former
    /// names.
    #[serde(alias = "varying-link", alias = "steady-link", alias = "slow-reader", alias = "short-buffer")]
    Ordinary,
    /// Acknowledgements wait on the uplink.
    LateAcks,
    /// Data is lost without load, on a path so long that the gateway's own sender repairs it better.
    LossyPath,
    /// The data that the gateway retransmitted had not been lost.
    NeedlessRepairs,
    /// The client acknowledges data that it cannot have.
    OptimisticAcks,
    /// The server's own loss recovery is as good as the gateway's.
    ServerRecovers,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 7] = [
        Reason::Unknown,
        Reason::Ordinary,
        Reason::LateAcks,
        Reason::LossyPath,
        Reason::NeedlessRepairs,
        Reason::OptimisticAcks,
        Reason::ServerRecovers,
    ];

    /// The name in metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Unknown => "unknown",
            Reason::Ordinary => "ordinary",
            Reason::LateAcks => "late-acks",
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
