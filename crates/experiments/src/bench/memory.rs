//! Gateway memory per flow.

use paceline_lab::Lab;

use super::forwarder::{Forwarder, Kind};
use super::load::{Amount, Load};
use crate::error::Result;

/// Growth of the gateway's resident memory per connection, in bytes. Each of the `flows` connections carries one packet
/// and then stays open. Traffic in progress needs more memory, bounded for all flows together.
pub(super) fn bytes_per_flow(lab: &Lab, flows: u32, clients: u8) -> Result<Option<f64>> {
    let gateway = Forwarder::start(Kind::Gateway, lab)?;
    // The first flows make buffers and tables take their first pages.
    let _first = Load::start(lab, FIRST_FLOWS, clients, ONE_PACKET)?;
    let before = gateway.resident_bytes();
    let _flows = Load::start(lab, flows, clients, ONE_PACKET)?;
    let after = gateway.resident_bytes();
    let growth = after.zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(growth.map(|bytes| bytes as f64 / f64::from(flows.max(1))))
}

const ONE_PACKET: Amount = Amount::Bytes(1_000);
/// These flows stay open while the others are measured.
pub(super) const FIRST_FLOWS: u32 = 100;
