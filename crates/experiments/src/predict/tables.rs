//! The prediction as tables for the terminal.

use paceline_theory::or::flow::{LARGEST_ERROR, MEAN_ERROR};

use super::{FlowRow, Prediction, RecoveryRow};
use crate::output::say;
use crate::table::new_table;
use crate::units::format_number;

pub(super) fn print(prediction: &Prediction) {
    let path = &prediction.path;
    say!(
        "{} Mbit/s and {} ms hold {:.1} packets of {} bytes; the receive window holds {}.\n",
        format_number(path.rate_mbps),
        format_number(path.rtt_ms),
        path.bdp_packets,
        path.packet_bytes,
        path.window_packets
    );
    say!(
        "One recovery from a burst of {} lost packets, cwnd to {} of what it was (Theorems 1 to 9):",
        path.burst_packets,
        format_number(path.beta)
    );
    say!("{}\n", recovery_table(&prediction.recovery));
    say!("Send buffer: recoveries in which the application is woken too late (Theorems 10, 11):");
    say!("{}\n", buffer_table(prediction));
    say!(
        "A whole flow with {} % loss; the last columns are the smallest rate x RTT at which {} % of the link is lost:",
        format_number(path.loss * 100.0),
        format_number(path.efficiency * 100.0)
    );
    say!("{}", flow_table(&prediction.flow));
    say!(
        "The simulator differs from these shares of the link by {} % on average and {} % at most, on 64 paths and senders\n\
         (docs/evidence/reproduction.md; `paceline reproduce or --part formulas` measures it).",
        format_number(MEAN_ERROR * 100.0),
        format_number(LARGEST_ERROR * 100.0)
    );
}

fn recovery_table(rows: &[RecoveryRow]) -> String {
    let mut table = new_table(
        1,
        &["rate reduction", "theorem", "idle", "link used", "opportunistic", "idle", "link used"],
    );
    for pair in rows.chunks_exact(2) {
        let cells = |row: &RecoveryRow| {
            [row.theorem.to_string(), format!("{:.1} ms", row.idle_ms), percent(row.utilization)]
        };
        let [found, extended] = [cells(&pair[0]), cells(&pair[1])];
        table.add_row(std::iter::once(pair[0].rate_reduction.to_string()).chain(found).chain(extended));
    }
    table.to_string()
}

fn buffer_table(prediction: &Prediction) -> String {
    let mut table = new_table(1, &["rate reduction", "buffer / cwnd", "stalled", "least without stall"]);
    for row in &prediction.send_buffer {
        table.add_row([
            if row.lowers_ssthresh { "rfc6675, rh, prr" } else { "qarr, barr" }.to_string(),
            format_number(row.factor),
            percent(row.stalled_share),
            format_number(row.least_factor),
        ]);
    }
    table.to_string()
}

fn flow_table(rows: &[FlowRow]) -> String {
    let mut table = new_table(
        1,
        &["rate reduction", "link used", "goodput", "least", "opportunistic", "goodput", "least"],
    );
    for pair in rows.chunks_exact(2) {
        let cells = |row: &FlowRow| {
            let least = match (row.least_bdp_packets, row.least_bdp_mb) {
                (Some(packets), Some(mb)) => format!("{packets:.0} packets ({mb:.3} MB)"),
                _ => "none".into(),
            };
            [percent(row.utilization), format!("{:.2} Mbit/s", row.goodput_mbps), least]
        };
        let [found, extended] = [cells(&pair[0]), cells(&pair[1])];
        table.add_row(std::iter::once(pair[0].rate_reduction.to_string()).chain(found).chain(extended));
    }
    table.to_string()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
