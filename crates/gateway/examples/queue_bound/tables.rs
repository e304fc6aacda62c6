//! The tables of docs/design/queue-bound.md.

use std::fmt::Write as _;
use std::path::Path as FilePath;

use paceline_gateway::bound::QueueBoundConfig;
use paceline_path::{Trace, TraceFormat, TraceModel, TraceOptions};
use paceline_wire::{Duration, Rate};

use crate::link::Service;
use crate::measure::{delays, percentile, reaction, share, summary};
use crate::model::{Path, Rival, Server, run};
use crate::rules::{BbrLike, Fixed, Oracle, Ours, Reference, Rule};

type Make = Box<dyn Fn() -> Box<dyn Rule>>;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn reference() -> Box<dyn Rule> {
    Box::new(Reference::new(ms(100), ms(50)))
}

fn ours(change: impl Fn(&mut QueueBoundConfig)) -> Box<dyn Rule> {
    let mut config = QueueBoundConfig::default();
    change(&mut config);
    Box::new(Ours::new(config))
}

fn rules() -> Vec<(&'static str, Make)> {
    vec![
        ("oracle", Box::new(|| Box::new(Oracle))),
        ("fixed 500 KB", Box::new(|| Box::new(Fixed(500_000)))),
        ("2 x BBR's estimate", Box::new(|| Box::new(BbrLike::new()))),
        ("reference", Box::new(reference)),
        ("reference, target 30 ms", Box::new(|| Box::new(Reference::new(ms(100), ms(30))))),
        ("this rule", Box::new(|| ours(|_| ()))),
    ]
}

/// Returns all tables.
pub(crate) fn all(traces: &FilePath) -> String {
    let mut text = String::new();
    let recorded = recorded(traces);
    let generated = generated();
    if !recorded.is_empty() {
        links(&mut text, "Recorded delivery opportunities, radio RTT 50 ms", &recorded);
    }
    links(&mut text, "Traces of the project's own generator, radio RTT 50 ms, 120 s", &generated);
    let seconds = one_second(traces);
    if !seconds.is_empty() {
        links(&mut text, "Recorded goodput in steps of a second, expanded, radio RTT 30 ms", &seconds);
    }
    steady(&mut text);
    steps(&mut text);
    objects(&mut text);
    coexist(&mut text);
    sensitivity(&mut text, if recorded.is_empty() { &generated } else { &recorded });
    text
}

fn read(path: &FilePath, options: &TraceOptions<'_>) -> Option<Trace> {
    let text = std::fs::read_to_string(path).ok()?;
    Trace::parse(&text, TraceFormat::detect(&text), options).ok()
}

fn recorded(root: &FilePath) -> Vec<(String, Path)> {
    let files = [
        ("TMobile-LTE-short", "mahimahi/TMobile-LTE-short.down"),
        ("TMobile-UMTS-driving", "mahimahi/TMobile-UMTS-driving.down"),
        ("bus", "nyc-orca/trace-3114405-bus"),
        ("ATT-LTE-driving", "mahimahi/ATT-LTE-driving.down"),
        ("home1", "nyc-orca/trace-2925703-home1"),
    ];
    let path = |file: &str| {
        let link = Service::trace(&read(&root.join(file), &TraceOptions::default())?);
        let length = link.period();
        Some(Path::new(link, ms(50), length))
    };
    files.iter().filter_map(|(name, file)| Some(((*name).to_owned(), path(file)?))).collect()
}

fn generated() -> Vec<(String, Path)> {
    let models = [
        ("HSPA", TraceModel::hspa()),
        ("LTE driving", TraceModel::lte_driving()),
        ("5G", TraceModel::five_g()),
    ];
    let path = |model: TraceModel| {
        let model = TraceModel { duration: secs(120), ..model };
        Some(Path::new(Service::trace(&model.generate().ok()?), ms(50), secs(120)))
    };
    models.into_iter().filter_map(|(name, model)| Some((name.to_owned(), path(model)?))).collect()
}

fn one_second(root: &FilePath) -> Vec<(String, Path)> {
    let files = [
        ("5G driving (T-Mobile)", "5gophers/car-driving-trace-1.csv", Some("TMobile_throughput_mbps")),
        ("5G walking", "5gophers/walking-trace.csv", Some("throughput_mbps")),
        ("5G driving (Lumos5G)", "lumos5g/5g_trace_95_driving", None),
        ("HSDPA bus", "norway-hsdpa/norway_bus_12", None),
        ("Starlink", "starlink/autobahn.csv", Some("download_mbps")),
    ];
    let path = |file: &str, column| {
        let options = TraceOptions { column, ..TraceOptions::default() };
        let link = Service::trace(&read(&root.join(file), &options)?);
        let length = link.period().min(secs(120));
        Some(Path { queue_bytes: 6_000_000, ..Path::new(link, ms(30), length) })
    };
    files.iter().filter_map(|(name, file, column)| Some(((*name).to_owned(), path(file, *column)?))).collect()
}

fn links(text: &mut String, title: &str, paths: &[(String, Path)]) {
    let _ = write!(
        text,
        "### {title}\n\nUtilization in %, then p50 / p95 / p99 of the queueing delay in ms.\n\n| rule |"
    );
    paths.iter().for_each(|(name, _)| {
        let _ = write!(text, " {name} |");
    });
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(paths.len()));
    for (name, rule) in rules() {
        let _ = write!(text, "| {name} |");
        for (_, path) in paths {
            let s = summary(path, &mut *rule());
            let percent = s.utilization * 100.0;
            let _ = write!(text, " {percent:.1}: {:.0} / {:.0} / {:.0} |", s.p50, s.p95, s.p99);
        }
        text.push('\n');
    }
    text.push('\n');
}

fn constant(mbps: f64, rtt_ms: u64) -> Path {
    Path::new(Service::constant(Rate::from_mbps(mbps)), ms(rtt_ms), secs(40))
}

fn steady(text: &mut String) {
    let base = || constant(20.0, 50);
    let mut paths = Vec::new();
    for (mbps, rtt_ms) in [
        (20.0, 60),
        (7.2, 100),
        (0.3, 100),
        (1.0, 60),
        (3.0, 30),
        (100.0, 20),
        (500.0, 20),
        (20.0, 400),
        (2.0, 600),
    ] {
        paths.push((format!("{mbps} Mbit/s, {rtt_ms} ms"), constant(mbps, rtt_ms)));
    }
    for jitter in [5, 20, 40] {
        let path = Path { jitter: ms(jitter), ..base() };
        paths.push((format!("ACKs late by up to {jitter} ms"), path));
    }
    for batch in [10, 40] {
        paths.push((format!("ACKs in clumps, one each {batch} ms"), Path { ack_batch: ms(batch), ..base() }));
    }
    paths.push(("one ACK for 16 packets".into(), Path { ack_every: 16, ..base() }));
    for loss_ppm in [10_000, 50_000] {
        let path = Path { loss_ppm, ..base() };
        paths.push((format!("{} % random loss", loss_ppm / 10_000), path));
    }
    for queue_bytes in [15_000, 60_000] {
        let path = Path { queue_bytes, ..base() };
        paths.push((format!("buffer of {} KB", queue_bytes / 1_000), path));
    }
    text.push_str("### Steady links (20 Mbit/s and 50 ms unless stated, 40 s)\n\n");
    text.push_str(
        "| link | reference: %, p50 / p95 ms, drops | this rule: %, p50 / p95 ms, drops |\n|---|---|---|\n",
    );
    for (name, path) in &paths {
        let _ = write!(text, "| {name} |");
        for mut rule in [reference(), ours(|_| ())] {
            let s = summary(path, &mut *rule);
            let percent = s.utilization * 100.0;
            let _ = write!(text, " {percent:.1}: {:.0} / {:.0}, {} |", s.p50, s.p95, s.drops);
        }
        text.push('\n');
    }
    text.push('\n');
}

fn steps(text: &mut String) {
    let link = Service::steps(&[(0.0, 20.0), (15.0, 5.0), (30.0, 20.0)]);
    let paths = [
        ("RTT 40 ms", vec![(0, 40)]),
        ("RTT 40 -> 80 ms with the fall", vec![(0, 40), (15, 80)]),
        ("RTT 40 -> 80 ms 5 s earlier", vec![(0, 40), (10, 80)]),
        ("RTT 80 ms", vec![(0, 80)]),
    ];
    text.push_str(
        "### Steps of the rate: 20 -> 5 -> 20 Mbit/s\n\nEach fall and rise has three figures. First comes the longest queueing delay in ms. ",
    );
    text.push_str(
        "Then come the seconds until it stays below 200 ms, and those until every 200 ms carry 95 % of the link.\n\n",
    );
    text.push_str("| path | rule | 20 -> 5 | 5 -> 20 |\n|---|---|---|---|\n");
    for (name, rtts) in paths {
        let rtt = rtts.iter().map(|&(at, rtt)| (secs(at), ms(rtt))).collect();
        let path = Path { rtt, ..Path::new(link.clone(), ms(40), secs(45)) };
        for (rule_name, mut rule) in [("reference", reference()), ("this rule", ours(|_| ()))] {
            let outcome = run(&path, &mut *rule);
            let _ = write!(text, "| {name} | {rule_name} |");
            for event in [15.0, 30.0] {
                let r = reaction(&outcome.deliveries, &path, event, 5.0);
                let _ = write!(text, " {:.0}; {:.2}; {:.2} |", r.longest, r.below_200ms, r.busy);
            }
            text.push('\n');
        }
    }
    text.push('\n');
}

fn objects(text: &mut String) {
    text.push_str("### Objects from a server in slow start, completion in ms\n\n");
    text.push_str(
        "| link | wired RTT | object | no bound | reference | this rule |\n|---|---|---|---|---|---|\n",
    );
    for (mbps, rtt_ms, wired_ms) in [(20.0, 100, 0), (20.0, 50, 30), (100.0, 30, 30), (7.2, 100, 40)] {
        for total in [7, 67, 667] {
            let server = Server { wired_rtt: ms(wired_ms), total };
            let path = Path { server, ..constant(mbps, rtt_ms) };
            let kilobytes = total * 3 / 2;
            let _ = write!(text, "| {mbps} Mbit/s, {rtt_ms} ms | {wired_ms} ms | {kilobytes} KB |");
            for mut rule in [Box::new(Fixed(u64::MAX)), reference(), ours(|_| ())] {
                let done = run(&path, &mut *rule).completed.map_or(f64::NAN, |at| at.as_secs_f64() * 1e3);
                let _ = write!(text, " {done:.0} |");
            }
            text.push('\n');
        }
    }
    text.push('\n');
}

fn coexist(text: &mut String) {
    text.push_str("### Beside a CUBIC flow that bypasses the gateway, 20 Mbit/s\n\n");
    text.push_str("Shares of the link, ours / theirs; the other one leaves after 60 s. Delay: p95 of ours, in ms, 30 to 60 s after that.\n\n");
    text.push_str(
        "| RTT, buffer, other from | rule | 10-20 s | 20-30 s | 30-60 s | 0-60 s | delay when alone |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|\n");
    let cases = [
        (100, 125_000, 0),
        (100, 250_000, 0),
        (100, 500_000, 0),
        (50, 1_000_000, 0),
        (50, 1_000_000, 10),
        (100, 3_000_000, 0),
        (100, 3_000_000, 10),
        (100, 4_300_000, 0),
    ];
    for (rtt_ms, queue_bytes, from) in cases {
        let rival = Rival::Cubic { from: secs(from), to: secs(60) };
        let path = Path { queue_bytes, rival, length: secs(120), ..constant(20.0, rtt_ms) };
        for (name, mut rule) in [("reference", reference()), ("this rule", ours(|_| ()))] {
            let outcome = run(&path, &mut *rule);
            let kilobytes = queue_bytes / 1_000;
            let _ = write!(text, "| {rtt_ms} ms, {kilobytes} KB, {from} s | {name} |");
            for (start, end) in [(10.0, 20.0), (20.0, 30.0), (30.0, 60.0), (0.0, 60.0)] {
                let own = share(&outcome.deliveries, &path, start, end);
                let _ = write!(text, " {own:.2} / {:.2} |", share(&outcome.rival, &path, start, end));
            }
            let alone = delays(&outcome.deliveries, 90.0, 120.0);
            let _ = writeln!(text, " {:.0} |", percentile(&alone, 95));
        }
    }
    let rival = Rival::Udp(Rate::from_mbps(10.0));
    let path = Path { rival, ..constant(20.0, 100) };
    let s = summary(&path, &mut *ours(|_| ()));
    let percent = s.utilization * 100.0;
    let _ = writeln!(
        text,
        "\nUDP takes half of a link of 20 Mbit/s (RTT 100 ms). Beside it this rule gets {percent:.1} % of the link, with p50 / p95 of {:.0} / {:.0} ms.\n",
        s.p50, s.p95
    );
}

fn sensitivity(text: &mut String, paths: &[(String, Path)]) {
    let variants: Vec<(&str, Make)> = vec![
        ("reference", Box::new(reference)),
        ("reference, target 70 ms", Box::new(|| Box::new(Reference::new(ms(100), ms(70))))),
        ("this rule", Box::new(|| ours(|_| ()))),
        ("error gain 1.5", Box::new(|| ours(|c| c.error_gain_percent = 150))),
        ("error gain 2.5", Box::new(|| ours(|c| c.error_gain_percent = 250))),
        ("error gain 3", Box::new(|| ours(|c| c.error_gain_percent = 300))),
        (
            "no error term, target 50 ms",
            Box::new(|| ours(|c| (c.error_gain_percent, c.target) = (0, ms(50)))),
        ),
        ("target 6 ms", Box::new(|| ours(|c| c.target = ms(6)))),
        ("target 20 ms", Box::new(|| ours(|c| c.target = ms(20)))),
        ("window 60 ms", Box::new(|| ours(|c| c.delivery.window = ms(60)))),
        ("window 150 ms", Box::new(|| ours(|c| c.delivery.window = ms(150)))),
        ("no slow average", Box::new(|| ours(|c| c.delivery.slow_percent = 0))),
        ("slow average 60 %", Box::new(|| ours(|c| c.delivery.slow_percent = 60))),
        ("slow average over 250 ms", Box::new(|| ours(|c| c.delivery.slow = ms(250)))),
        ("slow average over 1 s", Box::new(|| ours(|c| c.delivery.slow = secs(1)))),
        ("error over 100 ms", Box::new(|| ours(|c| c.delivery.error = ms(100)))),
        ("error over 1 s", Box::new(|| ours(|c| c.delivery.error = secs(1)))),
    ];
    text.push_str("### Sensitivity: one parameter changed at a time\n\nUtilization in %, p95 of the queueing delay in ms.\n\n| rule |");
    paths.iter().for_each(|(name, _)| {
        let _ = write!(text, " {name} |");
    });
    let _ = writeln!(text, " mean %, geometric mean ms |\n|---|{}---|", "---|".repeat(paths.len()));
    for (name, rule) in variants {
        let _ = write!(text, "| {name} |");
        let (mut sum, mut logs) = (0.0, 0.0);
        for (_, path) in paths {
            let s = summary(path, &mut *rule());
            let percent = s.utilization * 100.0;
            sum += percent;
            logs += s.p95.ln();
            let _ = write!(text, " {percent:.1}: {:.0} |", s.p95);
        }
        let n = paths.len() as f64;
        let _ = writeln!(text, " {:.2}: {:.0} |", sum / n, (logs / n).exp());
    }
}
