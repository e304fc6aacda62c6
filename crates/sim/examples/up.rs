//! scratch
use paceline_gateway::GatewayConfig;
use paceline_path::TraceModel;
use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess, Trace};
use paceline_sim::result::Direction;
use paceline_sim::run;
use paceline_sim::scenario::{Flow, GatewayAt, Load, PathLink, Scenario, TcpFlow, Transport};
use paceline_sim::workload::SizeRange;
use paceline_tcp::{Config, CongestionName, ReceiveBuffer};
use paceline_wire::{Duration, Rate};

fn path(name: &str) -> (RateProcess, f64) {
    let (kind, value) = name.split_once(':').unwrap();
    match kind {
        "c" => (RateProcess::Constant(Rate::from_mbps(value.parse().unwrap())), 0.0),
        "lte" | "hspa" | "5g" => {
            let (mean, seed) = value.split_once(':').unwrap();
            let model = match kind { "lte" => TraceModel::lte_driving(), "hspa" => TraceModel::hspa(), _ => TraceModel::five_g() };
            let model = TraceModel { mean: Rate::from_mbps(mean.parse().unwrap()), seed: seed.parse().unwrap(), ..model };
            (RateProcess::Opportunities(model.generate().unwrap()), 0.0)
        }
        "t" => {
            let text = std::fs::read_to_string(format!("/work/shared/traces/mahimahi/{value}")).unwrap();
            (RateProcess::Opportunities(Trace::from_opportunities(text.lines().map(|l| l.trim().parse().unwrap())).unwrap()), 0.0)
        }
        _ => panic!(),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let get = |key: &str, default: &str| {
        args.iter().find_map(|a| a.strip_prefix(&format!("{key}="))).unwrap_or(default).to_string()
    };
    let num = |key: &str, default: &str| -> f64 { get(key, default).parse().unwrap() };
    let ms = |v: f64| Duration::from_micros((v * 1000.0) as u64);
    let secs = num("secs", "60");
    for cc in get("cc", "cubic,bbr").split(',') {
        for p in get("path", "c:1,c:5,t:TMobile-LTE-short.up,t:TMobile-UMTS-driving.up,lte:8:7,hspa:1:7").split(',') {
            let mut line = format!("{cc:6} {p:24}");
            for mode in get("mode", "off,full").split(',') {
                let wired = LinkConfig { delay: Delay::Constant(ms(num("wired", "30") / 2.0)), ..LinkConfig::default() };
                let mut wired_up = wired.clone();
                if num("wup", "0") > 0.0 {
                    wired_up.rate = RateProcess::Constant(Rate::from_mbps(num("wup", "0")));
                    wired_up.queue = QueueLimit::Bytes(num("wq", "100") as u64 * 1000);
                }
                let delay = Delay::Constant(ms(num("radio", "50") / 2.0));
                let down = LinkConfig { rate: RateProcess::Constant(Rate::from_mbps(num("down", "20"))), queue: QueueLimit::Bytes(3_000_000), delay: delay.clone(), ..LinkConfig::default() };
                let up = LinkConfig { rate: path(p).0, queue: QueueLimit::Bytes(num("q", "3000") as u64 * 1000), delay, ..LinkConfig::default() };
                let congestion: CongestionName = cc.parse().unwrap();
                let server = Config { receive_buffer: ReceiveBuffer::Auto { initial: 65_536, max: 3_145_728 }, ..Config::default() };
                let client = Config { congestion, ..server.clone() };
                let tcp = TcpFlow { client, server, ..TcpFlow::default() };
                let flow = |name: &str, direction, load, start: f64| Flow { name: name.into(), direction, start: ms(start), transport: Transport::Tcp(Box::new(TcpFlow { load, ..tcp.clone() })), ..Flow::default() };
                let mut flows = Vec::new();
                for n in 0..num("ups", "1") as u32 {
                    flows.push(flow("up", Direction::Up, Load::Bulk, f64::from(n) * num("gap", "1000")));
                }
                for n in 0..num("downs", "0") as u32 {
                    flows.push(flow("down", Direction::Down, Load::Bulk, f64::from(n) * 1000.0));
                }
                let objs = num("objs", "0") as u32;
                if objs > 0 {
                    let size = SizeRange::exactly(num("kb", "100") as u64 * 1000);
                    flows.push(Flow { count: objs, sequential: true, interval: ms(num("every", "500")), ..flow("obj", Direction::Up, Load::Size(size), 50.0) });
                }
                let gateway = (mode != "off").then(|| {
                    let mut config = GatewayConfig::default();
                    if mode == "none" { config.queue_bound.uploads = paceline_gateway::config::QueueBoundMode::None; }
                    if mode == "auto" { config.mode = paceline_gateway::config::FlowMode::Auto; }
                    GatewayAt { links_before: 1, config }
                });
                let scenario = Scenario {
                    duration: ms(secs * 1000.0), seed: num("seed", "1") as u64,
                    path: vec![PathLink { name: "wired".into(), down: wired.clone(), up: wired_up }, PathLink { name: "radio".into(), down, up }],
                    gateway, flows, patience: Duration::from_secs(60), checked: args.iter().any(|a| a == "checked"), ..Scenario::default()
                };
                let result = run(&scenario).unwrap();
                for f in &result.findings { println!("FINDING {f}"); }
                let link = &result.links["radio_up"];
                let sum = |name: &str| result.flows.iter().filter(|f| f.name == name).map(|f| f.goodput_mbps).sum::<f64>();
                let q = link.queue_delay_ms;
                line += &format!(" | {mode} {:.3} q {:.0}/{:.0}/{:.0} d{}", sum("up"), q.p50.unwrap_or(0.0), q.p95.unwrap_or(0.0), q.p99.unwrap_or(0.0), link.drops);
                if num("downs", "0") > 0.0 { line += &format!(" down {:.2}", sum("down")); }
                if objs > 0 {
                    let mut times: Vec<f64> = result.flows.iter().filter(|f| f.name == "obj").filter_map(|f| f.completion_s).collect();
                    times.sort_by(f64::total_cmp);
                    line += &format!(" obj {} p50 {:.3} max {:.3}", times.len(), times.get(times.len() / 2).unwrap_or(&0.0), times.last().unwrap_or(&0.0));
                }
                if num("ups", "1") > 1.0 { line += &format!(" [{}]", result.flows.iter().filter(|f| f.name == "up").map(|f| format!("{:.2}", f.goodput_mbps)).collect::<Vec<_>>().join(" ")); }
            }
            println!("{line}");
        }
    }
}
