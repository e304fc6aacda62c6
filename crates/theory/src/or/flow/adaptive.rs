//! Whole flows with QARR or BARR. The module above has the derivation.

use super::{FlowPath, FlowPolicy, LostRepair};

pub(super) fn utilization(path: &FlowPath, policy: &FlowPolicy) -> f64 {
    let (p, aw, bdp) = (path.loss, path.aw_packets, path.bdp_packets());
    let cost = lost_repair_packets(path, policy);
    if policy.opportunistic {
        // One event per cycle of 1/p^2 + AW - 1 new packets. A share p of them is sent twice.
        let new = 1.0 / (p * p) + aw - 1.0;
        return new / (new * (1.0 + p) + cost);
    }
    let new = 1.0 / p + aw - 1.0;
    let repairs = p * new;
    let idle = (bdp - (repairs - 1.0)).max(0.0);
    new / (new + repairs + idle + repairs * p * cost)
}

/// The cost of a lost repair, in packets that the bottleneck could have sent.
fn lost_repair_packets(path: &FlowPath, policy: &FlowPolicy) -> f64 {
    let bdp = path.bdp_packets();
    match policy.lost_repair {
        LostRepair::Spared => 0.0,
        LostRepair::Detected if policy.opportunistic => 2.0 * bdp,
        LostRepair::Detected => bdp,
        LostRepair::Timeout(rto_s) => {
            let ssthresh = policy.growth.beta() * path.aw_packets;
            path.c_packets_per_s * rto_s
                + slow_start_packets(bdp, ssthresh)
                + policy.growth.deficit_packets(path)
        }
    }
}

/// Packets that slow start from one packet to `ssthresh` leaves unsent. Each round doubles, so its rounds together
/// carry about twice the last one.
fn slow_start_packets(bdp: f64, ssthresh: f64) -> f64 {
    let target = ssthresh.min(bdp).max(1.0);
    (libm::log2(target) * bdp - 2.0 * target).max(0.0)
}
