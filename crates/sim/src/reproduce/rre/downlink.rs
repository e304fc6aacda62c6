//! The downlink: payload over time, and waits of packets.

use std::cell::RefCell;
use std::rc::Rc;

use paceline_path::Delivered;
use paceline_wire::{Duration, Instant};

use super::setup::{PAYLOAD_SHARE, Setup, Transfer};
use crate::network::Tap;
use crate::result::{Direction, RunResult};
use crate::run::{RunObserver, run_watched};
use crate::scenario::ScenarioError;
use crate::topology::transfer_of;

/// Watches data packets on the downlink. Clones share the observations.
#[derive(Clone, Debug, Default)]
struct Meter(Rc<RefCell<Downlink>>);

/// Measurements of all downloads together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Downlink {
    first: Option<Instant>,
    last: Instant,
    first_bytes: u64,
    bytes: u64,
    /// Bins of [`BIN`].
    bins: Vec<Bin>,
    /// Bytes in each bin, by transfer.
    of_transfers: Vec<Vec<u64>>,
}

/// Measurements of a tenth of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Payload that arrived in it.
    pub bytes: u64,
    /// The longest wait of a packet.
    pub wait: Duration,
    wait_sum: Duration,
    packets: u64,
}

/// The result of a run, and the measurements of the downlink.
#[derive(Clone, Debug, PartialEq)]
pub struct DownlinkRun {
    /// Flows are in the order of the transfers.
    pub result: RunResult,
    /// Measurements of all downloads.
    pub downlink: Downlink,
}

/// Length of a bin.
pub const BIN: Duration = Duration::from_millis(100);

impl Setup {
    /// Runs `transfers`.
    ///
    /// # Errors
    /// Fails if the transfers cannot be simulated, or if `watch` ends the run.
    pub fn run(
        &self,
        transfers: &[Transfer],
        duration_s: f64,
        seed: u64,
        watch: &mut dyn RunObserver,
    ) -> Result<DownlinkRun, ScenarioError> {
        let meter = Meter::default();
        let scenario = self.scenario(transfers, duration_s, seed);
        let result = run_watched(&scenario, vec![("radio_down", Box::new(meter.clone()))], watch)?;
        let downlink = meter.0.take();
        Ok(DownlinkRun { result, downlink })
    }
}

impl Tap for Meter {
    fn delivered(&mut self, delivered: &Delivered) {
        let bytes = delivered.packet.payload().len() as u64;
        if bytes > 0 {
            let transfer = delivered.packet.flow_key().as_ref().and_then(transfer_of);
            self.0.borrow_mut().add(delivered.at, bytes, delivered.queue_delay, transfer.unwrap_or(0));
        }
    }
}

impl Downlink {
    fn add(&mut self, at: Instant, bytes: u64, wait: Duration, transfer: usize) {
        if self.first.is_none() {
            (self.first, self.first_bytes) = (Some(at), bytes);
        }
        self.last = at;
        self.bytes += bytes;
        let number = (at.as_nanos() / BIN.as_nanos()) as usize;
        if self.bins.len() <= number {
            self.bins.resize(number + 1, Bin::default());
        }
        let bin = &mut self.bins[number];
        bin.bytes += bytes;
        bin.wait = bin.wait.max(wait);
        bin.wait_sum += wait;
        bin.packets += 1;
        if self.of_transfers.len() <= transfer {
            self.of_transfers.resize(transfer + 1, Vec::new());
        }
        let of = &mut self.of_transfers[transfer];
        of.resize(of.len().max(number + 1), 0);
        of[number] += bytes;
    }

    /// The used share of the link from the first data byte to the last.
    pub fn utilization(&self, mbps: f64) -> f64 {
        let Some(first) = self.first else { return 0.0 };
        let time_s = self.last.saturating_since(first).as_secs_f64();
        (self.bytes - self.first_bytes) as f64 * 8.0 / (time_s * mbps * 1e6 * PAYLOAD_SHARE)
    }

    /// All bins since the start of the run.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// The first transfer's share of the bytes of the first two, while both had data to send.
    pub fn share_of_first(&self) -> f64 {
        let [first, second, ..] = &self.of_transfers[..] else { return f64::NAN };
        let start = second.iter().take_while(|bytes| **bytes == 0).count();
        let both = first.iter().zip(second).skip(start);
        let sum = both.fold((0, 0), |sum, (first, second)| (sum.0 + first, sum.1 + second));
        sum.0 as f64 / (sum.0 + sum.1) as f64
    }

    /// Mean wait of a packet.
    pub fn mean_wait_s(&self) -> f64 {
        let packets: u64 = self.bins.iter().map(|bin| bin.packets).sum();
        let wait: f64 = self.bins.iter().map(|bin| bin.wait_sum.as_secs_f64()).sum();
        wait / packets.max(1) as f64
    }
}

impl Bin {
    /// Rate of the payload in this bin.
    pub fn mbps(&self) -> f64 {
        self.bytes as f64 * 8.0 / BIN.as_secs_f64() / 1e6
    }

    /// Mean wait of the bin's packets.
    pub fn mean_wait_s(&self) -> f64 {
        self.wait_sum.as_secs_f64() / self.packets.max(1) as f64
    }
}

impl DownlinkRun {
    /// Goodput of download `number`, counted among downloads.
    pub fn goodput_mbps(&self, number: usize) -> f64 {
        let mut downloads = self.result.flows.iter().filter(|flow| flow.direction == Direction::Down);
        downloads.nth(number).map_or(f64::NAN, |flow| flow.goodput_mbps)
    }

    /// Number of packets that found the downlink's buffer full.
    pub fn overflow(&self) -> u64 {
        let link = self.result.links.get("radio_down");
        link.and_then(|link| link.drops_by_cause.get("queue")).copied().unwrap_or(0)
    }
}
