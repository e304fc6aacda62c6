//! `paceline predict`: predictions of the theorems on loss recovery for a path, without a run.

mod tables;

use paceline_path::QueueLimit;
use paceline_theory::or::flow::{
    FlowPath, FlowPolicy, Growth, LARGEST_ERROR, LostRepair, MEAN_ERROR, least_bdp_packets, utilization,
};
use paceline_theory::or::{DomainError, Episode, RateReduction, theorem_10, theorem_11};
use serde::Serialize;

use crate::choices::{GrowthChoice, LostRepairChoice};
use crate::common;
use crate::error::{Error, Result};
use crate::options::PredictOptions;
use crate::output::say;

/// The whole output.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Prediction {
    path: PathView,
    recovery: Vec<RecoveryRow>,
    send_buffer: Vec<BufferRow>,
    flow: Vec<FlowRow>,
    /// The difference between whole flows in the simulator and `flow`, in `utilization`.
    flow_error: FlowError,
}

/// The error over a grid of paths; see docs/evidence/reproduction.md.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct FlowError {
    mean: f64,
    largest: f64,
}

/// The path as the model sees it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct PathView {
    rate_mbps: f64,
    rtt_ms: f64,
    packet_bytes: u64,
    /// C x U.
    bdp_packets: f64,
    /// AW.
    window_packets: u32,
    /// n.
    burst_packets: u32,
    /// p.
    loss: f64,
    /// The factor by which a loss reduces cwnd.
    beta: f64,
    /// E.
    efficiency: f64,
}

/// One rate reduction in one recovery.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct RecoveryRow {
    rate_reduction: &'static str,
    opportunistic: bool,
    theorem: u8,
    idle_ms: f64,
    utilization: f64,
}

/// One size of the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct BufferRow {
    /// True for reductions that lower ssthresh (`rh`, `prr`), false for `qarr` and `barr`.
    lowers_ssthresh: bool,
    /// Send buffer over cwnd.
    factor: f64,
    /// Theorem 10: the share of recoveries in which the application is woken too late.
    stalled_share: f64,
    /// Theorem 11: the least factor without such recoveries.
    least_factor: f64,
}

/// One rate reduction over a whole flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct FlowRow {
    rate_reduction: &'static str,
    opportunistic: bool,
    utilization: f64,
    goodput_mbps: f64,
    /// The smallest C x U at which the efficiency falls below the wanted one; null if there is none.
    least_bdp_packets: Option<f64>,
    least_bdp_mb: Option<f64>,
}

/// Computes and prints the predictions.
pub(crate) fn command(options: &PredictOptions) -> Result<()> {
    let prediction = Prediction::new(options)?;
    if options.json {
        say!("{}", common::json(&prediction)?);
    } else {
        tables::print(&prediction);
    }
    Ok(())
}

impl Prediction {
    fn new(options: &PredictOptions) -> Result<Prediction> {
        let path = path_view(options)?;
        Ok(Prediction {
            path,
            recovery: recoveries(&path).map_err(refused)?,
            send_buffer: send_buffers(path.beta),
            flow: flows(&path, options).map_err(refused)?,
            flow_error: FlowError { mean: MEAN_ERROR, largest: LARGEST_ERROR },
        })
    }
}

impl PathView {
    fn packets_per_s(&self) -> f64 {
        self.rate_mbps * 1e6 / 8.0 / self.packet_bytes as f64
    }

    fn rtt_s(&self) -> f64 {
        self.rtt_ms / 1e3
    }
}

fn path_view(options: &PredictOptions) -> Result<PathView> {
    let packet_bytes = options.packet.bytes();
    if packet_bytes <= HEADER_BYTES {
        return Err(Error::input("--packet: a packet has more than its 52 bytes of headers; give 1500b"));
    }
    let mut path = PathView {
        rate_mbps: options.rate.to_wire().as_mbps(),
        rtt_ms: options.rtt.seconds() * 1e3,
        packet_bytes,
        bdp_packets: 0.0,
        window_packets: 0,
        burst_packets: options.burst,
        loss: options.loss.as_fraction(),
        beta: growth(options.congestion_control).beta(),
        efficiency: options.efficiency.as_fraction(),
    };
    path.bdp_packets = path.packets_per_s() * path.rtt_s();
    path.window_packets = match options.window {
        None => (path.bdp_packets * WINDOW_RATIO).round() as u32,
        Some(QueueLimit::Packets(packets)) => packets,
        Some(QueueLimit::Bytes(bytes)) => {
            u32::try_from(bytes / (packet_bytes - HEADER_BYTES)).unwrap_or(u32::MAX)
        }
        Some(QueueLimit::Unlimited) => {
            return Err(Error::input("--window: the model needs a window, such as 260kb or 180packets"));
        }
    };
    Ok(path)
}

/// Theorems 1 to 9.
fn recoveries(path: &PathView) -> std::result::Result<Vec<RecoveryRow>, DomainError> {
    let episode =
        Episode::new(path.packets_per_s(), path.rtt_s(), path.window_packets, path.burst_packets, path.beta)?;
    let row = |(number, reduction): (usize, RateReduction), opportunistic: bool| {
        let recovery = reduction.recovery(&episode, opportunistic);
        // Theorems 1 to 5 are about the five reductions without opportunistic retransmission. With it, Theorems 6 to 8
        // are about the first three, and Theorem 9 about the other two.
        let theorem = if opportunistic { (6 + number).min(9) } else { 1 + number };
        RecoveryRow {
            rate_reduction: reduction.name(),
            opportunistic,
            theorem: theorem as u8,
            idle_ms: recovery.i_min_s * 1e3,
            utilization: recovery.utilization(),
        }
    };
    let all = RateReduction::ALL.into_iter().enumerate();
    Ok(all.flat_map(|reduction| [row(reduction, false), row(reduction, true)]).collect())
}

/// Theorems 10 and 11 for send buffers of 2 and 3 times cwnd.
fn send_buffers(beta: f64) -> Vec<BufferRow> {
    let row = |lowers_ssthresh: bool, factor: f64| {
        let beta = if lowers_ssthresh { beta } else { 1.0 };
        BufferRow {
            lowers_ssthresh,
            factor,
            stalled_share: theorem_10(factor, beta),
            least_factor: theorem_11(beta),
        }
    };
    [true, false].into_iter().flat_map(|lowers| [2.0, 3.0].map(|factor| row(lowers, factor))).collect()
}

fn flows(path: &PathView, options: &PredictOptions) -> std::result::Result<Vec<FlowRow>, DomainError> {
    let flow_path = FlowPath {
        c_packets_per_s: path.packets_per_s(),
        u_s: path.rtt_s(),
        aw_packets: f64::from(path.window_packets),
        loss: path.loss,
    };
    let window_ratio = flow_path.aw_packets / flow_path.bdp_packets();
    let payload = (path.packet_bytes - HEADER_BYTES) as f64 / path.packet_bytes as f64;
    let row = |reduction: RateReduction, opportunistic: bool| {
        let policy = FlowPolicy {
            reduction,
            opportunistic,
            growth: growth(options.congestion_control),
            lost_repair: lost_repair(options.lost_repair, path),
        };
        let utilization = utilization(&flow_path, &policy)?;
        let least = least_bdp_packets(path.loss, path.efficiency, path.rtt_s(), window_ratio, &policy)?;
        Ok(FlowRow {
            rate_reduction: reduction.name(),
            opportunistic,
            utilization,
            goodput_mbps: utilization * path.rate_mbps * payload,
            least_bdp_packets: least,
            least_bdp_mb: least.map(|packets| packets * path.packet_bytes as f64 / 1e6),
        })
    };
    let all = RateReduction::ALL.into_iter();
    all.flat_map(|reduction| [false, true].map(|opportunistic| row(reduction, opportunistic))).collect()
}

fn growth(name: GrowthChoice) -> Growth {
    match name {
        GrowthChoice::Cubic => Growth::Cubic,
        GrowthChoice::Reno => Growth::Reno,
    }
}

fn lost_repair(name: LostRepairChoice, path: &PathView) -> LostRepair {
    match name {
        LostRepairChoice::Detected => LostRepair::Detected,
        LostRepairChoice::Spared => LostRepair::Spared,
        LostRepairChoice::Timeout => LostRepair::Timeout(path.rtt_s() + RTO_MARGIN_S),
    }
}

/// Says which option to change.
fn refused(error: DomainError) -> Error {
    Error::input(match error {
        DomainError::NoPath => "--rate and --rtt: give values above zero, such as 20mbit and 100ms".into(),
        DomainError::BurstOutsideWindow => {
            "--burst: at least 1 packet, and fewer than the window holds; see --window".into()
        }
        DomainError::WindowBelowPath => {
            "--window: the model is about receive windows that hold at least rate x RTT, and 4 packets".into()
        }
        DomainError::NoProbability => "--loss: above 0% and below 100%, such as 0.1%".into(),
        DomainError::NoEfficiency => "--efficiency: above 0% and below 100%, such as 80%".into(),
        DomainError::NoReductionFactor => error.to_string(),
    })
}

/// The published tables imply a window of 180 packets for a path that holds 166.7.
const WINDOW_RATIO: f64 = 1.08;
/// Headers of IPv4 and TCP with timestamps.
const HEADER_BYTES: u64 = 52;
/// Linux: a timeout is at least 200 ms above the smoothed RTT (tcp_rtt_estimator, TCP_RTO_MIN).
const RTO_MARGIN_S: f64 = 0.2;

#[cfg(test)]
mod tests {
    use paceline_path::units::parse_probability;
    use serde::de::{Deserialize, IntoDeserializer};

    use super::*;

    /// Predicts for 20 Mbit/s and 100 ms with the defaults of the program, modified by `change`.
    fn predict(change: impl FnOnce(&mut PredictOptions)) -> Result<Prediction> {
        let mut options = PredictOptions {
            rate: "20mbit".parse().unwrap(),
            rtt: "100ms".parse().unwrap(),
            loss: parse_probability("0.1%").unwrap(),
            burst: 10,
            window: None,
            packet: "1500b".parse().unwrap(),
            congestion_control: GrowthChoice::Cubic,
            lost_repair: LostRepairChoice::Detected,
            efficiency: parse_probability("80%").unwrap(),
            json: false,
        };
        change(&mut options);
        Prediction::new(&options)
    }

    fn limit(text: &str) -> Option<QueueLimit> {
        let parsed: std::result::Result<_, serde::de::value::Error> =
            QueueLimit::deserialize(text.into_deserializer());
        Some(parsed.unwrap())
    }

    fn recovery(prediction: &Prediction, name: &str, opportunistic: bool) -> RecoveryRow {
        let mut rows = prediction.recovery.iter();
        *rows.find(|row| row.rate_reduction == name && row.opportunistic == opportunistic).unwrap()
    }

    /// The numbers of Tables 1 and 4, numerical, with a burst of 50.
    #[test]
    fn published_numbers_come_out() {
        let prediction = predict(|options| options.burst = 50).unwrap();
        assert_eq!(prediction.path.window_packets, 180);
        for (name, opportunistic, theorem, published) in [
            ("prr", false, 3, 0.294),
            ("prr", true, 8, 0.75),
            ("barr", false, 5, 0.294),
            ("barr", true, 9, 1.0),
        ] {
            let row = recovery(&prediction, name, opportunistic);
            assert_eq!(row.theorem, theorem);
            assert!((row.utilization - published).abs() < 0.0065, "{row:?}");
        }
        assert!((prediction.send_buffer[0].stalled_share - 0.55).abs() < 1e-9);
        assert!((prediction.send_buffer[2].least_factor - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_window_is_packets_or_bytes() {
        assert_eq!(predict(|options| options.window = limit("200packets")).unwrap().path.window_packets, 200);
        assert_eq!(predict(|options| options.window = limit("289600b")).unwrap().path.window_packets, 200);
    }

    #[test]
    fn what_the_model_does_not_cover_names_the_option() {
        type Change = fn(&mut PredictOptions);
        let cases: [(Change, &str); 6] = [
            (|options| options.burst = 180, "--burst:"),
            (|options| options.loss = parse_probability("0%").unwrap(), "--loss:"),
            (|options| options.window = limit("100packets"), "--window:"),
            (|options| options.window = limit("unlimited"), "--window:"),
            (|options| options.efficiency = parse_probability("100%").unwrap(), "--efficiency:"),
            (|options| options.packet = "40b".parse().unwrap(), "--packet:"),
        ];
        for (change, named) in cases {
            let error = predict(change).unwrap_err().to_string();
            assert!(error.starts_with(named) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn opportunistic_retransmission_helps_whole_flows() {
        let prediction = predict(|_| {}).unwrap();
        let of = |name: &str, opportunistic: bool| {
            let mut rows = prediction.flow.iter();
            *rows.find(|row| row.rate_reduction == name && row.opportunistic == opportunistic).unwrap()
        };
        assert!(of("qarr", true).utilization > of("qarr", false).utilization + 0.05);
        assert!(of("prr", false).least_bdp_packets.unwrap() < of("qarr", false).least_bdp_packets.unwrap());
    }
}
