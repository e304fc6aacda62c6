use super::*;

pub(crate) fn sample(variant: &str, seed: u64, goodput_mbps: f64) -> Run {
    let percentiles = Percentiles { p50: Some(100.0), p95: Some(101.5), p99: Some(110.25) };
    let flow = FlowResult {
        name: "download".into(),
        bytes: 10_000_000,
        goodput_mbps,
        completion_s: Some(60.0),
        retransmitted_segments: 2,
        rtt_ms: percentiles,
        completed: true,
        sha256_ok: true,
        longest_gap_s: 0.25,
        ..FlowResult::default()
    };
    let link = LinkResult {
        utilization: Some(0.97),
        capacity_mbps: Some(7.2),
        queue_delay_ms: percentiles,
        drops: 3,
        drops_by_cause: BTreeMap::from([("loss".into(), 2), ("queue".into(), 1)]),
        marks: 0,
        delivered_packets: 7_000,
        delivered_bytes: 10_400_000,
    };
    Run {
        variant: variant.into(),
        seed,
        duration_s: 60.0,
        flows: vec![flow],
        links: BTreeMap::from([("radio_down".to_string(), link)]),
        gateway: GatewayResult::default(),
        path_delay_ms: percentiles,
        fairness: None,
        changes: Vec::new(),
        rate_settled_s: None,
        delay_settled_s: None,
        oracle: None,
    }
}

fn results() -> Results {
    let mut accelerated = sample("accelerated", 1, 6.8);
    accelerated.gateway.sojourn_ms = Some(Percentiles { p50: Some(2.001), p95: Some(3.0), p99: Some(3.0) });
    accelerated.gateway.counters.insert("forwarded_packets".into(), 7_000.into());
    Results {
        schema: SCHEMA,
        program: "paceline 0".into(),
        scenario: "window-limited".into(),
        on: "lab".into(),
        runs: vec![sample("unaccelerated", 1, 1.36), accelerated],
    }
}

#[test]
fn the_schema_stays_as_it_is() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&results()).unwrap());
}

#[test]
fn the_binding_names_are_there() {
    let value = serde_json::to_value(results()).unwrap();
    assert_eq!(value["schema"], 1);
    let run = &value["runs"][1];
    for key in ["variant", "seed", "flows", "links", "gateway", "path_delay_ms"] {
        assert!(run.get(key).is_some(), "{key}");
    }
    for key in [
        "goodput_mbps", "completion_s", "retransmitted_segments", "timeouts", "tail_loss_probes", "rtt_ms",
        "completed", "sha256_ok",
    ] {
        assert!(run["flows"][0].get(key).is_some(), "{key}");
    }
    for key in ["utilization", "queue_delay_ms", "drops"] {
        assert!(run["links"]["radio_down"].get(key).is_some(), "{key}");
    }
    for quantile in ["p50", "p95", "p99"] {
        assert!(run["gateway"]["sojourn_ms"][quantile].is_number(), "{quantile}");
    }
    assert_eq!(value["runs"][0]["gateway"], serde_json::json!({}));
}

#[test]
fn results_read_back_as_they_were_written() {
    let text = serde_json::to_string(&results()).unwrap();
    let back: Results = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
}
