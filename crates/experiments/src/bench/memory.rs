//! What a flow adds to the gateway's memory.

use paceline_lab::Lab;

use super::forwarder::{Forwarder, Kind};
use super::load::{Amount, Load};
use crate::error::Result;

/// Growth of the gateway's resident memory with each of `flows` connections that carried a packet and then stay open, in
/// bytes. What traffic in progress needs comes on top and is bounded for all flows together.
pub(super) fn bytes_per_flow(lab: &Lab, flows: u32, clients: u8) -> Result<Option<f64>> {
    let gateway = Forwarder::start(Kind::Gateway, lab)?;
    // Buffers and tables take their first pages.
    let _first = Load::start(lab, FIRST_FLOWS, clients, ONE_PACKET)?;
    let before = gateway.resident_bytes();
    let _flows = Load::start(lab, flows, clients, ONE_PACKET)?;
    let after = gateway.resident_bytes();
    let growth = after.zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(growth.map(|bytes| bytes as f64 / f64::from(flows.max(1))))
}

const ONE_PACKET: Amount = Amount::Bytes(1_000);
/// These stay open beside the others.
pub(super) const FIRST_FLOWS: u32 = 100;
