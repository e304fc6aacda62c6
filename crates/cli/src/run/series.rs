//! Time series of a run as CSV files beside its result.

use paceline_linux::emulator::Series;
use paceline_wire::Duration;

use super::collect::{Measured, delivery};
use super::hosts::{Plan, SAMPLE_INTERVAL};
use crate::error::{Error, Result};
use crate::result::RunFiles;
use crate::scenario::{Direction, Protocol, Scenario};

/// `senders.csv`: state of each sender every 100 ms; `delivered.csv`: payload that the radio link delivered to each flow in
/// each 10 ms; `links.csv`: each link direction in each 10 ms.
pub(super) fn write(files: &RunFiles, plan: &Plan, scenario: &Scenario, measured: &Measured) -> Result<()> {
    let fault = |error: csv::Error| Error::failed(format!("cannot write the time series: {error}"));
    senders(files, plan, scenario, measured).map_err(fault)?;
    delivered(files, plan, scenario, measured).map_err(fault)?;
    links(files, measured).map_err(fault)
}

fn senders(files: &RunFiles, plan: &Plan, scenario: &Scenario, measured: &Measured) -> csv::Result<()> {
    let mut out = csv::Writer::from_path(files.with("senders.csv"))?;
    out.write_record([
        "flow",
        "index",
        "time_s",
        "cwnd_segments",
        "ssthresh_segments",
        "rtt_ms",
        "rto_ms",
        "peer_window_bytes",
        "retransmitted_segments",
        "acknowledged_bytes",
        "received_mbps",
    ])?;
    for planned in &plan.planned {
        let spec = &scenario.flows[planned.flow];
        if spec.protocol == Protocol::Udp {
            continue;
        }
        let transfer = &measured.traffic.transfers[planned.place];
        for sample in &transfer.samples {
            let since = sample.at.saturating_since(measured.start);
            let bin = (since.as_nanos() / SAMPLE_INTERVAL.as_nanos()) as usize;
            let received = transfer.received_bins.get(bin).copied().unwrap_or(0);
            out.write_record([
                spec.name.clone(),
                planned.index.to_string(),
                format!("{:.4}", since.as_secs_f64()),
                sample.cwnd_segments.to_string(),
                sample.ssthresh_segments.to_string(),
                format!("{:.3}", f64::from(sample.rtt_us) / 1e3),
                format!("{:.3}", f64::from(sample.rto_us) / 1e3),
                sample.peer_window_bytes.to_string(),
                sample.retransmitted_segments.to_string(),
                sample.acknowledged_bytes.to_string(),
                format!("{:.4}", received as f64 * 8e-6 / SAMPLE_INTERVAL.as_secs_f64()),
            ])?;
        }
    }
    out.flush()?;
    Ok(())
}

fn delivered(files: &RunFiles, plan: &Plan, scenario: &Scenario, measured: &Measured) -> csv::Result<()> {
    let mut out = csv::Writer::from_path(files.with("delivered.csv"))?;
    out.write_record(["flow", "index", "time_s", "payload_bytes"])?;
    for planned in &plan.planned {
        let spec = &scenario.flows[planned.flow];
        let down = spec.direction == Direction::Down;
        let Some(flow) = delivery(planned, down, &measured.links.last) else { continue };
        for (time, bytes) in bins(&flow.series).filter(|(_, bytes)| *bytes > 0) {
            let (index, time) = (planned.index.to_string(), format!("{:.2}", time.as_secs_f64()));
            out.write_record([&spec.name, &index, &time, &bytes.to_string()])?;
        }
    }
    out.flush()?;
    Ok(())
}

fn links(files: &RunFiles, measured: &Measured) -> csv::Result<()> {
    let mut out = csv::Writer::from_path(files.with("links.csv"))?;
    out.write_record(["link", "time_s", "delivered_bytes", "queue_delay_max_ms"])?;
    for direction in &measured.links.last.directions {
        let delays: std::collections::HashMap<u64, u32> =
            bins(&direction.queue_delay_max_us).map(|(time, us)| (time.as_nanos(), us)).collect();
        for (time, bytes) in bins(&direction.delivered_series).filter(|(_, bytes)| *bytes > 0) {
            let delay = delays.get(&time.as_nanos()).copied().unwrap_or(0);
            out.write_record([
                direction.name.clone(),
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
