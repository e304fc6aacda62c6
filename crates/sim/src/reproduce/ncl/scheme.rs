//! The senders that are compared.

use paceline_tcp::{Config, CongestionName, DetectionName, NclConfig, ReductionName, RtoName};

/// A sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// TCP-NCL.
    Ncl,
    /// TCP-NCL with an RD timer for retransmissions, too.
    NclSecondRd,
    /// Ours: as `NclSecondRd`, with a tau_CD that follows the losses, and a sketch of RTTs.
    NclAdaptive,
    /// RR-TCP.
    RrTcp,
    /// TCP-DCR.
    TcpDcr,
    /// TCP-DOOR.
    TcpDoor,
    /// TCP-PR.
    TcpPr,
    /// Veno with SACK.
    Veno,
    /// Westwood with SACK.
    Westwood,
    /// Reno with SACK, by RFC 6675: not in the paper.
    Reno,
    /// CUBIC with PRR and RACK-TLP, as Linux 6.1: not in the paper.
    Cubic,
}

impl Scheme {
    /// TCP-NCL and its variants first, then the others of the paper in its order, then the well-known ones.
    pub const ALL: [Scheme; 11] = [
        Scheme::Ncl,
        Scheme::NclSecondRd,
        Scheme::NclAdaptive,
        Scheme::RrTcp,
        Scheme::TcpDcr,
        Scheme::TcpDoor,
        Scheme::TcpPr,
        Scheme::Veno,
        Scheme::Westwood,
        Scheme::Reno,
        Scheme::Cubic,
    ];

    /// The senders that the paper compares TCP-NCL with.
    pub const COMPARED: [Scheme; 6] =
        [Scheme::RrTcp, Scheme::TcpDcr, Scheme::TcpDoor, Scheme::TcpPr, Scheme::Veno, Scheme::Westwood];

    /// The sender's name. This is the name of its loss detection, if that distinguishes it.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Veno => "veno",
            Scheme::Westwood => "westwood",
            Scheme::Reno => "reno",
            Scheme::Cubic => "cubic",
            other => other.detection().as_str(),
        }
    }

    /// True if the sender uses MRRL, beta and tau_CD.
    pub fn is_ncl(self) -> bool {
        matches!(self, Scheme::Ncl | Scheme::NclSecondRd | Scheme::NclAdaptive)
    }

    fn detection(self) -> DetectionName {
        match self {
            Scheme::Ncl => DetectionName::Ncl,
            Scheme::NclSecondRd => DetectionName::NclSecondRd,
            Scheme::NclAdaptive => DetectionName::NclAdaptive,
            Scheme::RrTcp => DetectionName::RrTcp,
            Scheme::TcpDcr => DetectionName::TcpDcr,
            Scheme::TcpDoor => DetectionName::TcpDoor,
            Scheme::TcpPr => DetectionName::TcpPr,
            Scheme::Veno | Scheme::Westwood | Scheme::Reno => DetectionName::Rfc6675,
            Scheme::Cubic => DetectionName::RackTlp,
        }
    }

    /// The sender's configuration. All but CUBIC are of the paper's time, as in ns-2 2.29. They have Reno's growth
    /// unless their name says otherwise, halve the window at once, and have timeouts by RFC 6298 without F-RTO. Only
    /// senders that are defined by it undo a reduction.
    pub fn config(self, ncl: NclConfig) -> Config {
        let base = Config { detection: self.detection(), ncl, ..Config::default() };
        let congestion = match self {
            Scheme::Veno => CongestionName::Veno,
            Scheme::Westwood => CongestionName::Westwood,
            Scheme::Cubic => return base,
            _ => CongestionName::Reno,
        };
        Config {
            congestion,
            reduction: ReductionName::Rfc6675,
            rto: RtoName::Rfc6298,
            // Undo by D-SACK: RR-TCP, Section 3.
            undo: self == Scheme::RrTcp,
            frto: false,
            initial_cwnd: 2,
            ..base
        }
    }
}
