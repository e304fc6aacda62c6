use paceline_gateway::Counters;
use paceline_wire::{Duration, Instant};

use super::*;
use crate::status::Reloads;
use crate::totals::Totals;

pub(crate) fn snapshot() -> Snapshot {
    let mut totals = Totals::default();
    totals.radio_rtt.record(Duration::from_millis(120));
    let counters = Counters { local_retransmissions: 3, passed_mptcp: 2, ..Counters::default() };
    Snapshot {
        taken: Instant::from_nanos(9_000_000_000),
        started: Instant::from_nanos(2_000_000_000),
        counters,
        totals,
        flows: 5,
        split_flows: 1,
        subscribers: 2,
        buffered_bytes: 4096,
        packet_memory_bytes: 8192,
        ports: vec![PortCounters { received_ip_bytes: 77, ..PortCounters::default() }; 2],
        reloads: Reloads::default(),
        absence: None,
    }
}

pub(crate) fn metrics() -> Metrics {
    let status = Arc::new(Status::default());
    assert!(status.show(snapshot()));
    let names = |names: [&str; 2]| names.map(String::from).to_vec();
    let (ports, interfaces) = (names(["wan", "radio"]), names(["lo", "nosuch"]));
    Metrics::new(status, Labels { ports, interfaces, packet_memory_limit_bytes: 1 << 20 })
}

fn exported() -> String {
    metrics().text().unwrap()
}

#[test]
fn names_and_units_follow_prometheus() {
    let text = exported();
    for line in [
        "paceline_flows 5",
        "paceline_retransmissions_total{by=\"gateway\"} 3",
        "paceline_passed_total{reason=\"mptcp\"} 2",
        "paceline_radio_rtt_seconds_bucket{le=\"0.1\"} 0",
        "paceline_radio_rtt_seconds_bucket{le=\"0.15\"} 1",
        "paceline_radio_rtt_seconds_bucket{le=\"+Inf\"} 1",
        "paceline_radio_rtt_seconds_sum 0.12",
        "paceline_radio_rtt_seconds_count 1",
        "paceline_received_bytes_total{port=\"radio\"} 77",
        "paceline_uptime_seconds 7",
        "# UNIT paceline_buffered_bytes bytes",
        "# TYPE process_cpu_seconds counter",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is missing in\n{text}");
    }
    assert!(text.contains("paceline_interface_received_bytes_total{interface=\"lo\"}"));
    assert!(!text.contains("nosuch"));
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn every_reason_to_pass_is_exported() {
    let counters = serde_json::to_value(Counters::default()).unwrap();
    let text = exported();
    for name in counters.as_object().unwrap().keys() {
        if let Some(reason) = name.strip_prefix("passed_") {
            let series = format!("paceline_passed_total{{reason=\"{}\"}}", reason.replace('_', "-"));
            assert!(text.contains(&series), "{series} is missing");
        }
    }
}

/// Counters for tests and for the gateway's own use only.
const NOT_EXPORTED: [&str; 4] = ["packets_in", "packets_out", "flows_expired", "peak_buffered_bytes"];

#[test]
fn every_counter_is_exported() {
    const MARK: u64 = 987_654_321;
    let zero = serde_json::to_value(Counters::default()).unwrap();
    for name in zero.as_object().unwrap().keys() {
        let mut marked = zero.clone();
        marked[name] = MARK.into();
        let counters: Counters = serde_json::from_value(marked).unwrap();
        let status = Arc::new(Status::default());
        assert!(status.show(Snapshot { counters, ..snapshot() }));
        let labels = Labels { ports: Vec::new(), interfaces: Vec::new(), packet_memory_limit_bytes: 0 };
        let text = Metrics::new(status, labels).text().unwrap();
        let is_exported = text.lines().any(|line| line.ends_with(&format!(" {MARK}")));
        assert_eq!(is_exported, !NOT_EXPORTED.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn every_metric_is_documented() {
    let page = include_str!("../../../../docs/reference/metrics.md");
    let text = crate::plain_text::of(&exported());
    let names: Vec<&str> =
        text.lines().filter_map(|line| Some(line.strip_prefix("# TYPE ")?.split_once(' ')?.0)).collect();
    assert!(names.len() > 40);
    let missing: Vec<&&str> = names
        .iter()
        .filter(|name| !page.contains(&format!("`{name}`")) && !page.contains(&format!("`{name}{{")))
        .collect();
    assert!(missing.is_empty(), "docs/reference/metrics.md has no row of {missing:?}");
}

#[test]
fn the_dashboard_asks_for_nothing_that_is_not_exported() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana-dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let text = exported();
    let known: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            let names = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for name in names.filter(|name| name.starts_with("paceline_") || name.starts_with("process_")) {
                assert!(known.contains(&name), "{name} in {expression} is not exported");
                asked += 1;
            }
        }
    }
    assert!(asked > 20);
}
