use super::*;
use crate::result::Store;
use crate::scenario::{load_file, parse_text};

struct Nobody;

impl Watch for Nobody {
    fn progress(&self, _seconds: f64, _received_bytes: u64) {}
}

fn scenario(extra: &str) -> String {
    format!(
        "name=\"x\"\nduration=\"5s\"\n{extra}\n[radio]\nrtt=\"50ms\"\n[radio.down]\nrate=\"10mbit\"\n\
         queue=\"100packets\"\n[[flows]]\nname=\"download\"\n[[flows]]\nname=\"objects\"\nsize=\"20kb..200kb\"\n\
         count=3\nsequential=true\nip=\"6\"\n[[flows]]\nname=\"noise\"\nprotocol=\"udp\"\nrate=\"1mbit\"\n"
    )
}

fn executed(text: &str) -> Run {
    let variant = parse_text(text).unwrap().variants.remove(0);
    execute(&variant, 3, Path::new(""), None, &Nobody).unwrap()
}

#[test]
fn a_run_has_what_a_run_of_the_lab_has() {
    let run = executed(&scenario("gateway = { profile = \"full\" }"));
    let names: Vec<(&str, u32)> = run.flows.iter().map(|flow| (flow.name.as_str(), flow.index)).collect();
    assert_eq!(names, [("download", 0), ("objects", 0), ("objects", 1), ("objects", 2), ("noise", 0)]);
    assert!(run.flows.iter().all(|flow| flow.completed), "{:?}", run.flows);
    assert!((7.0..9.7).contains(&run.flows[0].goodput_mbps), "{}", run.flows[0].goodput_mbps);
    assert!(run.links["radio_down"].utilization.unwrap() > 0.9);
    assert!(run.gateway.sojourn_ms.is_some() && run.gateway.counters.len() > 5);
    assert!(run.path_delay_ms.p95.is_some() && run.oracle.is_some());
    assert_eq!(run.flows[1].ip, crate::scenario::IpVersion::V6);
}

#[test]
fn one_seed_gives_one_result() {
    let text = scenario("").replace("queue=", "loss={independent=\"0.5%\"}\nqueue=");
    let as_text = |run: Run| serde_json::to_string(&run).unwrap();
    assert_eq!(as_text(executed(&text)), as_text(executed(&text)));
}

#[test]
fn time_series_are_written() {
    let variant = parse_text(&scenario("")).unwrap().variants.remove(0);
    let folder = tempfile::tempdir().unwrap();
    let files = Store::open(folder.path()).unwrap().files(&variant, 3);
    let run = execute(&variant, 3, Path::new(""), Some(&files), &Nobody).unwrap();
    let read = |name: &str| std::fs::read_to_string(files.with(name)).unwrap();
    assert!(read("senders.csv").lines().filter(|line| line.starts_with("download,0,")).count() >= 45);
    let delivered = read("delivered.csv");
    let bytes = delivered.lines().filter_map(|line| line.strip_prefix("objects,1,"));
    let bytes: u64 = bytes.map(|rest| rest.split(',').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    assert!(bytes >= run.flows[2].bytes && bytes > 20_000, "{bytes}");
    assert!(read("links.csv").contains("wired_up,"));
}

#[test]
fn what_cannot_be_simulated_names_the_key() {
    let cases = [
        (
            "server = { congestion-control = \"illinois\" }",
            "server.congestion-control: the simulator has no `illinois`",
        ),
        (
            "gateway = { profile = \"full\", events = [{ at = \"1s\", action = \"kill\" }] }",
            "gateway.events: ",
        ),
        (
            "server = { tail-loss-probe = false, tcp = { loss-detection = \"rack-tlp\" } }",
            "server.tail-loss-probe: ",
        ),
    ];
    for (extra, named) in cases {
        let variant = parse_text(&scenario(extra)).unwrap().variants.remove(0);
        let error = check(&variant, Path::new("")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("variant `base`: {named}")), "{error}");
    }
}

/// Excludes scenarios whose traces are not in the repository, and variants with events of the gateway's process.
#[test]
fn the_scenarios_of_the_repository_can_be_simulated() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let folders = [root.join("accelerator"), root];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut count = 0;
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let Ok(file) = load_file(&path, None) else { continue };
        for variant in &file.variants {
            match check(variant, &file.folder) {
                Ok(()) => count += 1,
                Err(error) => {
                    assert!(error.to_string().contains("gateway.events"), "{}: {error}", path.display())
                }
            }
        }
    }
    assert!(count > 50, "{count}");
}
