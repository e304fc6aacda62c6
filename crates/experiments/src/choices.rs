//! Words that options take. Comments there are help texts, too.

use clap::ValueEnum;

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// Real packets between kernel sockets in network namespaces (needs root)
    Lab,
    /// The simulator. It needs no privilege, and one seed gives one result on every machine
    Sim,
    /// First the simulator, then the lab, with the difference (needs root)
    Both,
}

/// How a congestion window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GrowthChoice {
    /// Keeps 0.7 of the window (RFC 9438)
    Cubic,
    /// Keeps half of the window (RFC 5681)
    Reno,
}

/// How the loss of a retransmission is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LostRepairChoice {
    /// A round trip later (RACK, Hack 1)
    Detected,
    /// By the retransmission timeout, RTT + 200 ms
    Timeout,
    /// Retransmissions are never lost
    Spared,
}

/// How a trace is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceFormatChoice {
    /// One line for each opportunity to deliver 1500 bytes: its time in milliseconds
    Mahimahi,
    /// Header line, rows with commas
    Csv,
    /// One line a second: the second, a blank, Mbit/s
    OneSecond,
}

/// What a trace means where it says nothing.
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
    /// The gateway chooses by what it measures
    Auto,
    /// Every flow is split
    Split,
}

/// What `reproduce accelerator` consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AcceleratorPart {
    /// Figures and tables
    Figures,
    /// The bounds of scenarios/accelerator
    Bounds,
    /// The simulator beside the virtual-time lab
    Lab,
}

/// What `reproduce drwa` consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DrwaPart {
    /// Figures and Table 3
    Figures,
    /// The rates of the networks, fitted to Table 3
    Fit,
    /// A lambda that follows the link, beside fixed ones, over traces
    Adaptive,
}

/// What `reproduce or` consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrPart {
    /// Tables 1 to 15
    Tables,
    /// Figs. 3 to 5, and a run with and without Hack 1
    Figures,
    /// Congestion controls beside Linux 6.1
    Linux,
    /// Higher loss, slow readers, and 10 Gbit/s
    Beyond,
    /// The formulas of `predict` beside the simulator
    Formulas,
    /// Run time of the simulator, by the clock
    Speed,
}

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DetectionChoice {
    /// As in the paper's kernel, Linux 3.10
    Fack,
    /// As in Linux today (RFC 8985)
    RackTlp,
    /// FACK, and RACK-TLP beside it
    Both,
}

/// What `reproduce ncl` consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NclPart {
    /// Figs. 3 to 5, 7 and 9
    Figures,
    /// Fig. 9a over windows, rates and round trips; Fig. 9c over paths
    Grid,
    /// The model's tau_CD beside the best fixed one, and a tau_CD that follows the losses
    Model,
    /// The model's probabilities beside counted ones
    Sts,
}
