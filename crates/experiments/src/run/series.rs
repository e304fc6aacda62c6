//! Time series of a run as CSV files beside its result.

use paceline_lab::emulator::Series;
use paceline_wire::Duration;
use serde::{Serialize, Serializer};

use super::collect::Measured;
use super::hosts::{Plan, SAMPLE_INTERVAL};
use super::traces::Traces;
use crate::error::{Error, Result};
use crate::result::RunFiles;
use crate::scenario::{Protocol, Scenario};

/// Writes three files. `senders.csv`: the state of each sender every 100 ms. `delivered.csv`: the payload that the
/// radio link delivered to each flow in each 10 ms. `links.csv`: the state of each link direction in each 10 ms.
pub(super) fn write(
    files: &RunFiles,
    scenario: &Scenario,
    senders: &[SenderRow],
    traces: &Traces,
) -> Result<()> {
    let fault = |error: csv::Error| Error::failed(format!("cannot write the time series: {error}"));
    write_senders(files, senders).map_err(fault)?;
    write_delivered(files, scenario, traces).map_err(fault)?;
    write_links(files, traces).map_err(fault)
}

/// The state of a sender at one time.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct SenderRow {
    pub(super) flow: String,
    pub(super) index: u32,
    #[serde(serialize_with = "digits::<4, _>")]
    pub(super) time_s: f64,
    pub(super) cwnd_segments: u32,
    pub(super) ssthresh_segments: u32,
    #[serde(serialize_with = "digits::<3, _>")]
    pub(super) rtt_ms: f64,
    #[serde(serialize_with = "digits::<3, _>")]
    pub(super) rto_ms: f64,
    pub(super) peer_window_bytes: u64,
    pub(super) retransmitted_segments: u64,
    pub(super) acknowledged_bytes: u64,
    /// Rate at which its receiver read since the row before.
    #[serde(serialize_with = "digits::<4, _>")]
    pub(super) received_mbps: f64,
}

/// The state of a flow at the simulated gateway at one time, as of the last ACK before it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct GatewayRow {
    pub(super) flow: String,
    pub(super) index: u32,
    #[serde(serialize_with = "digits::<4, _>")]
    pub(super) time_s: f64,
    pub(super) client_window_bytes: u64,
    pub(super) virtual_window_bytes: u64,
    pub(super) in_flight_bytes: u64,
    pub(super) waiting_bytes: u64,
    #[serde(serialize_with = "digits::<4, _>")]
    pub(super) rate_mbps: f64,
    #[serde(serialize_with = "digits::<3, _>")]
    pub(super) rtt_ms: f64,
    #[serde(serialize_with = "digits::<3, _>")]
    pub(super) ack_delay_ms: f64,
}

/// Writes `gateway.csv` of a simulated run.
pub(super) fn write_gateway(files: &RunFiles, rows: &[GatewayRow]) -> Result<()> {
    let write = || -> csv::Result<()> {
        let mut out = csv::Writer::from_path(files.with("gateway.csv"))?;
        rows.iter().try_for_each(|row| out.serialize(row))?;
        Ok(out.flush()?)
    };
    write().map_err(|error| Error::failed(format!("cannot write the time series: {error}")))
}

fn digits<const N: usize, S: Serializer>(value: &f64, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{value:.N$}"))
}

/// The senders' rows, as the kernel reported them.
pub(super) fn senders_of_lab(plan: &Plan, scenario: &Scenario, measured: &Measured) -> Vec<SenderRow> {
    let mut rows = Vec::new();
    for planned in &plan.planned {
        let spec = &scenario.flows[planned.flow];
        if spec.protocol != Protocol::Tcp {
            continue;
        }
        let transfer = &measured.traffic.transfers[planned.place];
        for sample in &transfer.samples {
            let since = sample.at.saturating_since(measured.start);
            let bin = (since.as_nanos() / SAMPLE_INTERVAL.as_nanos()) as usize;
            let received = transfer.received_bins.get(bin).copied().unwrap_or(0);
            rows.push(SenderRow {
                flow: spec.name.clone(),
                index: planned.index,
                time_s: since.as_secs_f64(),
                cwnd_segments: sample.cwnd_segments,
                ssthresh_segments: sample.ssthresh_segments,
                rtt_ms: f64::from(sample.rtt_us) / 1e3,
                rto_ms: f64::from(sample.rto_us) / 1e3,
                peer_window_bytes: sample.peer_window_bytes.into(),
                retransmitted_segments: sample.retransmitted_segments.into(),
                acknowledged_bytes: sample.acknowledged_bytes,
                received_mbps: received as f64 * 8e-6 / SAMPLE_INTERVAL.as_secs_f64(),
            });
        }
    }
    rows
}

fn write_senders(files: &RunFiles, senders: &[SenderRow]) -> csv::Result<()> {
    let mut out = csv::WriterBuilder::new().has_headers(false).from_path(files.with("senders.csv"))?;
    out.write_record([
        "flow", "index", "time_s", "cwnd_segments", "ssthresh_segments", "rtt_ms", "rto_ms",
        "peer_window_bytes", "retransmitted_segments", "acknowledged_bytes", "received_mbps",
    ])?;
    for row in senders {
        out.serialize(row)?;
    }
    out.flush()?;
    Ok(())
}

fn write_delivered(files: &RunFiles, scenario: &Scenario, traces: &Traces) -> csv::Result<()> {
    let mut out = csv::Writer::from_path(files.with("delivered.csv"))?;
    out.write_record(["flow", "index", "time_s", "payload_bytes"])?;
    for transfer in &traces.transfers {
        let spec = &scenario.flows[transfer.flow];
        let Some(series) = &transfer.delivered else { continue };
        for (time, bytes) in bins(series).filter(|(_, bytes)| *bytes > 0) {
            let (index, time) = (transfer.index.to_string(), format!("{:.2}", time.as_secs_f64()));
            out.write_record([&spec.name, &index, &time, &bytes.to_string()])?;
        }
    }
    out.flush()?;
    Ok(())
}

fn write_links(files: &RunFiles, traces: &Traces) -> csv::Result<()> {
    let mut out = csv::Writer::from_path(files.with("links.csv"))?;
    out.write_record(["link", "time_s", "delivered_bytes", "queue_delay_max_ms"])?;
    for link in &traces.links {
        let delays: std::collections::HashMap<u64, u32> =
            bins(&link.queue_delay_max_us).map(|(time, us)| (time.as_nanos(), us)).collect();
        for (time, bytes) in bins(&link.delivered_bytes).filter(|(_, bytes)| *bytes > 0) {
            let delay = delays.get(&time.as_nanos()).copied().unwrap_or(0);
            out.write_record([
                link.name.clone(),
                format!("{:.2}", time.as_secs_f64()),
                bytes.to_string(),
                format!("{:.3}", f64::from(delay) / 1e3),
            ])?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Start of each bin, and its value.
fn bins(series: &Series) -> impl Iterator<Item = (Duration, u32)> + '_ {
    let first = series.first() as u64;
    series
        .values()
        .iter()
        .enumerate()
        .map(move |(index, value)| (Series::BIN * (first + index as u64), *value))
}
