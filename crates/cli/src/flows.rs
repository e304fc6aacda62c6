//! `paceline flows`: prints the flows and subscribers of a running gateway.

use crate::args::FlowsArgs;
use crate::error::{Error, Result};
use crate::output::say;
use crate::table::{Column, fitted, table_of};
use crate::units::counted;
use paceline_service::control;
use paceline_service::rows::{FlowRow, Report, SubscriberRow};

pub(crate) fn command(args: &FlowsArgs) -> Result<()> {
    let report = control::ask(args.control.as_deref())?;
    if args.json {
        let text = serde_json::to_string(&report).map_err(|error| Error::failed(error.to_string()))?;
        say!("{text}");
        return Ok(());
    }
    say!("{}", tables(&report).trim_end());
    Ok(())
}

fn tables(report: &Report) -> String {
    let flows = flow_table(report);
    let mut text = format!("{flows}\n{}\n\n", counted(report.flows.len(), "flow"));
    if let Some(reason) = &report.absent {
        text = format!("the gateway is not in place, and the kernel forwards: {reason}\n\n{text}");
    }
    let subscribers = subscriber_table(report);
    text.push_str(&format!("{subscribers}\n{}\n", counted(report.subscribers.len(), "subscriber")));
    text
}

/// Columns of the first table of `paceline flows`.
const FLOWS: [Column<FlowRow>; 12] = [
    ("client", |flow| flow.client.to_string()),
    ("server", |flow| flow.server.to_string()),
    ("mode", |flow| flow.mode.clone()),
    ("stage", |flow| flow.stage.clone()),
    ("age", |flow| span(flow.age_s)),
    ("down", |flow| bytes(flow.totals.downlink_bytes)),
    ("up", |flow| bytes(flow.totals.uplink_bytes)),
    ("Mbit/s", |flow| number(flow.rate_mbps)),
    ("RTT\nms", |flow| number(flow.rtt_ms)),
    ("in\nflight", |flow| bytes(flow.in_flight_bytes)),
    ("waiting", |flow| bytes(flow.waiting_bytes)),
    ("resent", |flow| flow.totals.retransmissions.to_string()),
];

/// Columns of the second table.
const SUBSCRIBERS: [Column<SubscriberRow>; 9] = [
    ("subscriber", |one| one.subscriber.clone()),
    ("flows", |one| one.flows.to_string()),
    ("weight", |one| one.weight.to_string()),
    ("Mbit/s", |one| number(one.rate_mbps)),
    ("RTT min\nms", |one| number(one.rtt_min_ms)),
    ("in\nflight", |one| bytes(one.in_flight_bytes)),
    ("limit", |one| one.limit_bytes.map_or("-".into(), bytes)),
    ("other\ndown", |one| bytes(one.other_downlink_bytes)),
    ("other\nup", |one| bytes(one.other_uplink_bytes)),
];

fn flow_table(report: &Report) -> String {
    let mut flows: Vec<&FlowRow> = report.flows.iter().collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.totals.downlink_bytes));
    fitted(table_of(4, &FLOWS, flows), &["waiting", "up", "in\nflight", "resent", "age"])
}

fn subscriber_table(report: &Report) -> String {
    let mut subscribers: Vec<&SubscriberRow> = report.subscribers.iter().collect();
    subscribers.sort_by_key(|subscriber| std::cmp::Reverse(subscriber.in_flight_bytes));
    fitted(table_of(1, &SUBSCRIBERS, subscribers), &["weight", "limit", "in\nflight"])
}

/// Formats a number of bytes with powers of 1000, as in `17.5k`, `3.2M`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.1}k", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1}M", count as f64 / 1e6),
        _ => format!("{:.2}G", count as f64 / 1e9),
    }
}

/// Formats a number with one digit after the point, or `-` for an unknown one.
pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.1}"))
}

/// Formats a time, as in `12s`, `3m20s`, `2h05m`.
pub(crate) fn span(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0, 999, 17_520, 3_200_000, 5_000_000_000].map(bytes),
            ["0", "999", "17.5k", "3.2M", "5.00G"]
        );
        assert_eq!([5.9, 200.0, 7500.0].map(span), ["5s", "3m20s", "2h05m"]);
        assert_eq!(number(None), "-");
    }
}
