//! Points of one flow, with draws for both sides of the path.

use super::draw::{Draw, between, queue, rate, round3, time};
use super::impair::{self, add};
use super::parts::{Link, Parts, Side};

/// Servers, roughly by their share of today's servers. Rare ones have enough weight to be tested.
pub(super) const SENDERS: &[(&str, u32)] =
    &[("cubic", 30), ("bbr", 25), ("reno", 10), ("westwood", 9), ("vegas", 8), ("rre", 8), ("qarr", 10)];
/// Senders at the client.
pub(super) const UPLOADERS: &[(&str, u32)] = &[("cubic", 50), ("bbr", 30), ("reno", 20)];
const LOADS: &[(&str, u32)] = &[("download", 70), ("upload", 12), ("objects", 18)];
/// Our choice: access networks are at most this fast, and faster ones would take long to simulate.
const WIRED_MBPS_MAX: f64 = 1_000.0;
/// The most hand-overs in 30 s.
const HAND_OVERS: u32 = 10;
/// Enough objects for a meaningful p95.
const OBJECTS: u32 = 30;

pub(super) fn draw(draw: &mut Draw, rate_max: f64) -> Parts {
    let radio_mbps = draw.log("radio rate, Mbit/s", 1.0, 150.0).min(rate_max);
    // The wired rate equals the radio rate at 8 % of the points. At the others it is between a little less and far
    // more.
    let same = draw.chance("wired rate as the radio's", 8.0).is_some();
    let times = draw.log("wired rate / radio rate", 0.3, 50.0);
    let wired_mbps = if same { radio_mbps } else { round3(radio_mbps * times).min(WIRED_MBPS_MAX) };
    draw.note("wired rate, Mbit/s", &wired_mbps.to_string());
    let (wired_ms, radio_ms) = (draw.log("wired RTT, ms", 1.0, 200.0), draw.log("radio RTT, ms", 5.0, 250.0));
    let rtt_ms = wired_ms + radio_ms;
    let wired_bdp = draw.log("wired buffer, BDP", 0.1, 4.0);
    let radio_bdp = draw.log("radio buffer, BDP", 0.1, 4.0);
    let up_mbps = round3(radio_mbps * draw.log("uplink / downlink", 0.1, 1.0));
    let up_bdp = draw.log("uplink buffer, BDP", 0.3, 4.0);
    let wired = rate(wired_mbps);
    let mut wired = Side {
        rtt: time(wired_ms),
        rtt_steps: String::new(),
        down: Link::new(&wired, &queue(wired_bdp, wired_mbps, rtt_ms)),
        up: Link::new(&wired, &queue(wired_bdp, wired_mbps, rtt_ms)),
    };
    let mut radio = Side {
        rtt: time(radio_ms),
        rtt_steps: String::new(),
        down: Link::new(&rate(radio_mbps), &queue(radio_bdp, radio_mbps, rtt_ms)),
        up: Link::new(&rate(up_mbps), &queue(up_bdp, up_mbps, rtt_ms)),
    };
    let load = draw.name("load", LOADS);
    let server = draw.name("server", SENDERS);
    let client = draw.name("client", UPLOADERS);
    let sender = if load == "upload" { client } else { server };
    let mut label = vec![
        format!("{load} {sender}"),
        format!("wired {}M {}ms {}BDP", wired_mbps, wired_ms, wired_bdp),
        format!("radio {}M {}ms {}BDP", radio_mbps, radio_ms, radio_bdp),
    ];
    let ecn = has_ecn(draw);
    label.extend(ecn.then(|| "ECN".into()));
    label.extend(add(draw, impair::PATH, wired_mbps.min(radio_mbps), &mut wired, &mut radio));
    label.extend(hand_overs(draw, radio_ms, &mut radio));
    Parts {
        wired,
        radio,
        hosts: hosts(server, client, ecn),
        flows: flow(load, wired_mbps.min(radio_mbps)),
        label,
        objects: load == "objects",
        radio_mbps,
        downloads: 1,
    }
}

/// At some points the radio's round-trip time alternates between its first value and another one.
fn hand_overs(draw: &mut Draw, radio_ms: f64, radio: &mut Side) -> Option<String> {
    const NAME: &str = "radio hand-overs";
    let Some(strength) = draw.chance(NAME, 6.0) else {
        draw.note(NAME, "");
        return None;
    };
    let further = |what: &str, low, high| between(low, high, draw.unit(&format!("{NAME} {what}")));
    let (was, other) = (time(radio_ms), time(radio_ms * between(0.3, 3.0, strength)));
    let (first, every) = (further("first", 2_000.0, 9_000.0), further("every", 3_000.0, 20_000.0));
    let steps: Vec<String> = (0..HAND_OVERS)
        .map(|n| {
            let rtt = if n % 2 == 0 { &other } else { &was };
            format!("{{ at = \"{}\", rtt = \"{rtt}\" }}", time(first + f64::from(n) * every))
        })
        .collect();
    radio.rtt_steps = format!("rtt-steps = [{}]\n", steps.join(", "));
    let drawn = format!("to {other} each {}", time(every));
    draw.note(NAME, &drawn);
    Some(format!("hand-overs {drawn}"))
}

/// True if both ends use ECN.
pub(super) fn has_ecn(draw: &mut Draw) -> bool {
    let ecn = draw.chance("ECN", 30.0).is_some();
    draw.note("ECN", if ecn { "yes" } else { "" });
    ecn
}

/// QARR means CUBIC with the rate reduction QARR.
pub(super) fn hosts(server: &str, client: &str, ecn: bool) -> String {
    let (server, mut tcp) = match server {
        "qarr" => ("cubic", vec!["rate-reduction = \"qarr\""]),
        other => (other, Vec::new()),
    };
    tcp.extend(ecn.then_some("ecn = true"));
    let tcp = if tcp.is_empty() { String::new() } else { format!("tcp = {{ {} }}\n", tcp.join(", ")) };
    let of_client = if ecn { "tcp = { ecn = true }\n" } else { "" };
    format!(
        "[server]\ncongestion-control = \"{server}\"\n{tcp}\n[client]\ncongestion-control = \"{client}\"\n{of_client}"
    )
}

fn flow(load: &str, mbps: f64) -> String {
    match load {
        "upload" => "[[flows]]\nname = \"upload\"\ndirection = \"up\"\n\n".into(),
        "objects" => {
            // On slow links no object takes longer than two seconds of the whole link.
            let largest = round3(mbps * 250.0).clamp(20.0, 1_000.0);
            format!(
                "[[flows]]\nname = \"object\"\nsize = \"10kb..{largest}kb\"\ncount = {OBJECTS}\nsequential = true\ninterval = \"200ms\"\n\n"
            )
        }
        _ => "[[flows]]\nname = \"download\"\n\n".into(),
    }
}
