//! Rows and columns: rates from two reports, and the order of rows.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::net::SocketAddr;

use crate::flows::{bytes, number, span};
use paceline_service::rows::{FlowRow, Report, SubscriberRow};

/// A report, and the rates since the report before it.
#[derive(Debug)]
pub(super) struct Traffic {
    pub(super) report: Report,
    pub(super) flows: Vec<Row>,
    pub(super) subscribers: Vec<Row>,
    pub(super) down_mbps: f64,
    pub(super) up_mbps: f64,
}

/// The cells of a row, each with its text and its sort key.
pub(super) type Row = Vec<Cell>;

#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    key: Key,
}

#[derive(Clone, Debug)]
enum Key {
    Text(String),
    /// An unknown number sorts below all known ones.
    Number(Option<f64>),
}

pub(super) const FLOW_COLUMNS: [&str; 11] = [
    "client", "server", "state", "down Mbit/s", "up Mbit/s", "RTT ms", "queue ms", "in flight", "waiting",
    "resent %", "age",
];
pub(super) const SUBSCRIBER_COLUMNS: [&str; 9] = [
    "subscriber", "flows", "weight", "down Mbit/s", "link Mbit/s", "RTT min ms", "in flight", "limit",
    "not TCP",
];

impl Traffic {
    /// Computes the rates between two reports. Without an earlier report of the same process, rates are zero.
    pub(super) fn between(before: Option<&Report>, report: Report) -> Traffic {
        let before = before.filter(|before| before.uptime_s < report.uptime_s);
        let elapsed_s = before.map_or(f64::INFINITY, |before| report.uptime_s - before.uptime_s);
        let known: HashMap<(SocketAddr, SocketAddr), &FlowRow> = before
            .iter()
            .flat_map(|before| &before.flows)
            .map(|flow| ((flow.client, flow.server), flow))
            .collect();
        let mut downs: HashMap<&str, f64> = HashMap::new();
        let (mut flows, mut down_mbps, mut up_mbps) = (Vec::new(), 0.0, 0.0);
        for flow in &report.flows {
            let earlier =
                known.get(&(flow.client, flow.server)).filter(|earlier| earlier.age_s <= flow.age_s);
            let mbps = |count: u64, earlier: Option<u64>| {
                count.saturating_sub(earlier.unwrap_or(0)) as f64 * 8e-6 / elapsed_s
            };
            let down = mbps(flow.totals.downlink_bytes, earlier.map(|flow| flow.totals.downlink_bytes));
            let up = mbps(flow.totals.uplink_bytes, earlier.map(|flow| flow.totals.uplink_bytes));
            *downs.entry(&flow.subscriber).or_default() += down;
            (down_mbps, up_mbps) = (down_mbps + down, up_mbps + up);
            flows.push(flow_row(flow, down, up));
        }
        let subscribers = report
            .subscribers
            .iter()
            .map(|one| subscriber_row(one, downs.get(one.subscriber.as_str()).copied().unwrap_or(0.0)))
            .collect();
        Traffic { flows, subscribers, down_mbps, up_mbps, report }
    }
}

fn flow_row(flow: &FlowRow, down: f64, up: f64) -> Row {
    let queue = flow.rtt_ms.zip(flow.rtt_min_ms).map(|(rtt, least)| (rtt - least).max(0.0));
    let sent = flow.totals.downlink_bytes + flow.totals.retransmitted_bytes;
    let resent = (sent > 0).then(|| 100.0 * flow.totals.retransmitted_bytes as f64 / sent as f64);
    vec![
        text(&flow.client.to_string()),
        text(&flow.server.to_string()),
        // The mode of an open flow, or the stage of another.
        text(if flow.stage == "open" { &flow.mode } else { &flow.stage }),
        value(Some(down)),
        value(Some(up)),
        value(flow.rtt_ms),
        value(queue),
        amount(flow.in_flight_bytes),
        amount(flow.waiting_bytes),
        value(resent),
        Cell { text: span(flow.age_s), key: Key::Number(Some(flow.age_s)) },
    ]
}

fn subscriber_row(subscriber: &SubscriberRow, down: f64) -> Row {
    let count = |count: u32| Cell { text: count.to_string(), key: Key::Number(Some(f64::from(count))) };
    vec![
        text(&subscriber.subscriber),
        count(subscriber.flows),
        count(subscriber.weight),
        value(Some(down)),
        value(subscriber.rate_mbps),
        value(subscriber.rtt_min_ms),
        amount(subscriber.in_flight_bytes),
        subscriber.limit_bytes.map_or(Cell { text: "-".into(), key: Key::Number(None) }, amount),
        amount(subscriber.other_downlink_bytes),
    ]
}

fn text(text: &str) -> Cell {
    Cell { text: text.to_owned(), key: Key::Text(text.to_owned()) }
}

fn value(value: Option<f64>) -> Cell {
    Cell { text: number(value), key: Key::Number(value) }
}

fn amount(count: u64) -> Cell {
    Cell { text: bytes(count), key: Key::Number(Some(count as f64)) }
}

/// Sorts the rows: numbers from the largest, text from the first. `reversed` reverses this order.
pub(super) fn sort(rows: &mut [Row], column: usize, reversed: bool) {
    rows.sort_by(|a, b| {
        let natural = match (a.get(column).map(|cell| &cell.key), b.get(column).map(|cell| &cell.key)) {
            (Some(Key::Text(a)), Some(Key::Text(b))) => a.cmp(b),
            (Some(Key::Number(a)), Some(Key::Number(b))) => b.partial_cmp(a).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        };
        // Rows that are equal in this column keep their places, so that the screen is calm.
        let natural = natural.then_with(|| name(a).cmp(&name(b)));
        if reversed { natural.reverse() } else { natural }
    });
}

fn name(row: &Row) -> (&str, &str) {
    let text = |index: usize| row.get(index).map_or("", |cell| cell.text.as_str());
    (text(0), text(1))
}
