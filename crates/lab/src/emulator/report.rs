//! Measurements of an emulator.

use paceline_linux::Quantiles;
use paceline_wire::Duration;

use super::flows::FlowDelivery;
use super::path_delay::PathDelay;
use super::series::Series;

/// All measurements of an emulator since its start.
#[derive(Clone, Debug)]
pub struct EmulatorReport {
    /// Time from the start to the report.
    pub duration: Duration,
    /// Downlink and uplink of each link.
    pub directions: Vec<DirectionReport>,
    /// The delay from one link to another, if it was measured.
    pub path_delay: Option<PathDelay>,
    /// Deliveries to each flow, in order of appearance.
    pub flows: Vec<FlowDelivery>,
    /// Packets of flows that were not counted for lack of room.
    pub flows_not_tracked: u64,
}

/// One direction of an emulated link.
#[derive(Clone, Debug)]
pub struct DirectionReport {
    /// The link's name and `_down` or `_up`.
    pub name: String,
    /// Packets handed to the link. If the link splits super-packets, the count is after the split.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: u64,
    /// Packets that came out, duplicates included.
    pub delivered_packets: u64,
    /// Their IP bytes.
    pub delivered_bytes: u64,
    /// IP bytes and framing that left the bottleneck, lost packets included.
    pub charged_bytes: u64,
    /// Bytes that the bottleneck could have carried. `None` without a limit.
    pub capacity_bytes: Option<u64>,
    /// Packets that found the queue full.
    pub dropped_by_queue: u64,
    /// Packets dropped by queue management before the queue was full.
    pub dropped_by_aqm: u64,
    /// Packets beyond the policer's rate.
    pub dropped_by_policer: u64,
    /// Packets marked by queue management and delivered.
    pub marked: u64,
    /// Packets lost at random or by script.
    pub dropped_by_loss: u64,
    /// Packets lost in an outage.
    pub dropped_by_outage: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets that others overtook.
    pub reordered: u64,
    /// Packets that bypassed queue and losses: ARP and neighbour discovery.
    pub spared: u64,
    /// The largest number of IP bytes that waited, also before the start.
    pub queued_bytes_max: u64,
    /// Queueing delay of each delivered packet.
    pub queue_delay: Quantiles,
    /// Delivered IP bytes over time.
    pub delivered_series: Series,
    /// The longest queueing delay in microseconds among delivered packets, over time.
    pub queue_delay_max_us: Series,
}

impl DirectionReport {
    /// Returns the used share of the capacity. `None` without a limit.
    pub fn utilization(&self) -> Option<f64> {
        let capacity = self.capacity_bytes?;
        Some(if capacity == 0 { 0.0 } else { self.charged_bytes as f64 / capacity as f64 })
    }

    /// Returns the number of packets that were handed to the link and never come out.
    pub fn drops(&self) -> u64 {
        self.dropped_by_queue
            + self.dropped_by_aqm
            + self.dropped_by_policer
            + self.dropped_by_loss
            + self.dropped_by_outage
    }
}
