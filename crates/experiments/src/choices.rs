//! Values of options. Their comments are help texts, too.

use clap::ValueEnum;

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// Real packets between kernel sockets in network namespaces (needs root)
    Lab,
    /// The simulator. It needs no privilege, and a seed gives the same result on every machine
    Sim,
    /// First the simulator, then the lab, with the difference (needs root)
    Both,
}

/// Growth and decrease of a congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GrowthChoice {
    /// Keeps 0.7 of the window after a loss (RFC 9438)
    Cubic,
    /// Keeps half of the window after a loss (RFC 5681)
    Reno,
}

/// How the sender detects the loss of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LostRepairChoice {
    /// One round trip later (RACK, Hack 1)
    Detected,
    /// By the retransmission timeout, RTT + 200 ms
    Timeout,
    /// Retransmissions are never lost
    Spared,
}

/// File format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceFormatChoice {
    /// One line for each opportunity to deliver 1500 bytes: its time in milliseconds
    Mahimahi,
    /// A header line, then comma-separated rows
    Csv,
    /// One line per second: the second, a space, Mbit/s
    OneSecond,
}

/// Meaning of missing rows or values in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GapsChoice {
    /// An error that names the line
    Refuse,
    /// The last value holds
    Hold,
    /// Nothing is delivered
    Zero,
}

/// A kind of mobile link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelChoice {
    /// 3G on the move
    Hspa,
    /// LTE in a car
    LteDriving,
    /// 5G with hand-overs to 4G and back
    #[value(name = "5g")]
    FiveG,
}

/// A mode that is compared with no gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeChoice {
    /// The default profile
    Full,
    /// The gateway chooses a mode by its measurements
    Auto,
    /// Every flow is split
    Split,
}

/// Parts of `reproduce accelerator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AcceleratorPart {
    /// Figures and tables
    Figures,
    /// The bounds of scenarios/accelerator
    Bounds,
    /// The simulator compared with the virtual-time lab
    Lab,
}

/// Parts of `reproduce drwa`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DrwaPart {
    /// Figures and Table 3
    Figures,
    /// The rates of the networks, fitted to Table 3
    Fit,
    /// A lambda that follows the link, compared with fixed ones, over traces
    Adaptive,
}

/// Parts of `reproduce or`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrPart {
    /// Tables 1 to 15
    Tables,
    /// Figs. 3 to 5, and a run with and without Hack 1
    Figures,
    /// Congestion controls compared with those of Linux 6.1
    Linux,
    /// Higher loss, slow readers, and 10 Gbit/s
    Beyond,
    /// The formulas of `predict` compared with the simulator
    Formulas,
    /// Run time of the simulator (wall-clock)
    Speed,
}

/// Loss detection of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DetectionChoice {
    /// As in the paper's kernel, Linux 3.10
    Fack,
    /// As in Linux today (RFC 8985)
    RackTlp,
    /// FACK and RACK-TLP, side by side
    Both,
}

/// Parts of `reproduce ncl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NclPart {
    /// Figs. 3 to 5, 7 and 9
    Figures,
    /// Fig. 9a over windows, rates and round trips; Fig. 9c over paths
    Grid,
    /// The model's tau_CD compared with the best fixed one, and a tau_CD that follows the losses
    Model,
    /// The model's probabilities compared with counted ones
    Sts,
}
