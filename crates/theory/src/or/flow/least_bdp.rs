//! The smallest bandwidth-delay product at which a promised efficiency is lost.

use super::{FlowPath, FlowPolicy, utilization};
use crate::or::DomainError;

/// Our choice: beyond any path, 10 Tbit/s over a second.
const BDP_MAX_PACKETS: f64 = 1e9;
const BDP_MIN_PACKETS: f64 = 4.0;
const HALVINGS: u32 = 40;

/// The smallest C x U, in packets, with which a flow no longer uses `efficiency` of its link, at a given loss. `u_s` is
/// the path's round trip. The receive window is `window_ratio` (a, at least 1) times C x U. `None`: no path is too
/// long.
///
/// # Errors
/// Values for which the model says nothing.
pub fn least_bdp_packets(
    loss: f64,
    efficiency: f64,
    u_s: f64,
    window_ratio: f64,
    policy: &FlowPolicy,
) -> Result<Option<f64>, DomainError> {
    if !(efficiency > 0.0 && efficiency < 1.0) {
        return Err(DomainError::NoEfficiency);
    }
    let kept = |bdp: f64| {
        let aw_packets = (bdp * window_ratio).max(BDP_MIN_PACKETS);
        let path = FlowPath { c_packets_per_s: bdp / u_s, u_s, aw_packets, loss };
        utilization(&path, policy).map(|eta| eta >= efficiency)
    };
    let (mut low, mut high) = (BDP_MIN_PACKETS, BDP_MAX_PACKETS);
    if !kept(low)? {
        return Ok(Some(low));
    }
    // Double first: the chain of a very long path takes long to solve, and most answers are short ones.
    let mut next = low;
    loop {
        next *= 2.0;
        if next > BDP_MAX_PACKETS {
            return Ok(None);
        }
        if !kept(next)? {
            high = high.min(next);
            break;
        }
        low = next;
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if kept(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(Some(high))
}
