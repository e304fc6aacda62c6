//! Time series of a run, read from the files beside its result.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::plot::{Line, Panel};
use crate::result::RunFiles;

/// All time series of one run that a figure may show.
#[derive(Debug, Default)]
pub(super) struct Series {
    pub(super) senders: Vec<Sender>,
    links: Vec<Link>,
    /// Empty without a gateway.
    pub(super) gateway: Vec<Gateway>,
}

/// A sample of a sender, every 100 ms.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sender {
    flow: String,
    pub(super) time_s: f64,
    pub(super) cwnd_segments: f64,
    pub(super) rtt_ms: f64,
    pub(super) rto_ms: f64,
    pub(super) peer_window_bytes: f64,
    pub(super) retransmitted_segments: u64,
    received_mbps: f64,
}

/// A sample of a flow at the gateway, every 100 ms.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Gateway {
    pub(super) time_s: f64,
    pub(super) client_window_bytes: f64,
    pub(super) virtual_window_bytes: f64,
    pub(super) waiting_bytes: f64,
    pub(super) ack_delay_ms: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Link {
    link: String,
    time_s: f64,
    delivered_bytes: f64,
}

impl Series {
    pub(super) fn read(files: &RunFiles) -> Result<Series> {
        let gateway = files.with("gateway.csv");
        Ok(Series {
            senders: rows(&files.with("senders.csv"))?,
            links: rows(&files.with("links.csv"))?,
            gateway: if gateway.exists() { rows(&gateway)? } else { Vec::new() },
        })
    }

    /// Rate in Mbit/s at which a flow's receiver reads, averaged over `bin_s`, a multiple of 100 ms.
    pub(super) fn throughput(&self, flow: &str, bin_s: f64, until_s: f64) -> Vec<(f64, f64)> {
        // A row describes the 100 ms before it.
        rates(self.received(flow).map(|(time_s, bytes)| (time_s - STEP_S, bytes)), bin_s, until_s)
    }

    fn received<'a>(&'a self, flow: &'a str) -> impl Iterator<Item = (f64, f64)> + 'a {
        let rows = self.senders.iter().filter(move |row| row.flow == flow);
        rows.map(|row| (row.time_s, row.received_mbps * STEP_S / 8e-6))
    }

    /// Rate in Mbit/s of the IP bytes that a link delivered.
    pub(super) fn link_rate(&self, link: &str, bin_s: f64, until_s: f64) -> Vec<(f64, f64)> {
        let rows = self.links.iter().filter(|row| row.link == link);
        rates(rows.map(|row| (row.time_s, row.delivered_bytes)), bin_s, until_s)
    }

    /// Bytes that a flow's receiver read within a part of the run.
    pub(super) fn bytes(&self, flow: &str, from_s: f64, to_s: f64) -> f64 {
        self.received(flow)
            .filter(|(time_s, _)| (from_s..to_s).contains(time_s))
            .map(|(_, bytes)| bytes)
            .sum()
    }

    /// A quantity of the sender until `until_s`.
    pub(super) fn of_sender(&self, until_s: f64, of: impl Fn(&Sender) -> f64) -> Vec<(f64, f64)> {
        let rows = self.senders.iter().filter(|row| row.time_s <= until_s);
        rows.map(|row| (row.time_s, of(row))).collect()
    }

    /// A quantity of the gateway until `until_s`.
    pub(super) fn of_gateway(&self, until_s: f64, of: impl Fn(&Gateway) -> f64) -> Vec<(f64, f64)> {
        let rows = self.gateway.iter().filter(|row| row.time_s <= until_s);
        rows.map(|row| (row.time_s, of(row))).collect()
    }
}

/// Interval between rows of a sender.
const STEP_S: f64 = 0.1;

/// A name and its points.
type Named<'a> = (&'a str, Vec<(f64, f64)>);

pub(super) fn panel(title: &str, lines: Vec<Named<'_>>) -> Panel {
    let line = |(colour, (label, points)): (usize, Named<'_>)| Line { label: label.into(), colour, points };
    Panel { title: title.into(), lines: lines.into_iter().enumerate().map(line).collect() }
}

fn rates(rows: impl Iterator<Item = (f64, f64)>, bin_s: f64, until_s: f64) -> Vec<(f64, f64)> {
    let mut bins = vec![0.0; (until_s / bin_s).ceil() as usize];
    for (time_s, bytes) in rows {
        // Times have two decimals. Half a hundredth protects them from rounding into the bin before.
        if let Some(bin) = bins.get_mut(((time_s + 0.005) / bin_s) as usize) {
            *bin += bytes;
        }
    }
    let mbps = |(bin, bytes): (usize, f64)| ((bin as f64 + 0.5) * bin_s, bytes * 8e-6 / bin_s);
    bins.into_iter().enumerate().map(mbps).collect()
}

fn rows<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let fault = |error: csv::Error| Error::failed(format!("cannot read {}: {error}", path.display()));
    let mut reader = csv::Reader::from_path(path).map_err(fault)?;
    reader.deserialize().collect::<csv::Result<Vec<T>>>().map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_rates() {
        let rows = [(0.0, 100_000.0), (0.99, 25_000.0), (1.0, 250_000.0), (7.0, 1.0)];
        assert_eq!(rates(rows.into_iter(), 1.0, 2.0), [(0.5, 1.0), (1.5, 2.0)]);
    }
}
