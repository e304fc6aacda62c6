//! Points with several flows: downloads, an upload, web objects and datagrams over drawn radio links.

use super::draw::{Draw, queue, rate, round3, share, time};
use super::parts::{Link, Parts, Side};
use super::path::{UPLOADERS, has_ecn, hosts};
use crate::units::format_number;

const SENDERS: &[(&str, u32)] =
    &[("cubic", 40), ("bbr", 30), ("reno", 12), ("westwood", 6), ("vegas", 6), ("rre", 6)];
const RADIOS: &[(&str, u32)] =
    &[("steady", 40), ("steps", 20), ("hspa", 13), ("lte-driving", 14), ("5g", 13)];
/// Queue management of the radio downlink, at the 5G core or the base station.
const QUEUES: &[(&str, u32)] = &[("drop-tail", 80), ("codel", 5), ("fq-codel", 7), ("pie", 4), ("red", 4)];
const DOWNLOADS: u32 = 4;

pub(super) fn draw(draw: &mut Draw, rate_max: f64, with_upload: bool) -> Parts {
    let mbps = draw.log("radio rate, Mbit/s", 1.0, 80.0).min(rate_max);
    let (wired_ms, radio_ms) =
        (draw.log("wired RTT, ms", 2.0, 100.0), draw.log("radio RTT, ms", 10.0, 150.0));
    let rtt_ms = wired_ms + radio_ms;
    let (down_bdp, up_bdp) =
        (draw.log("radio buffer, BDP", 0.3, 10.0), draw.log("uplink buffer, BDP", 0.3, 10.0));
    let up_mbps = round3(mbps / draw.log("downlink / uplink", 2.0, 10.0));
    let mut down = Link::new(&rate(mbps), &queue(down_bdp, mbps, rtt_ms));
    let kind = draw.name("radio", RADIOS);
    if kind != "steady" {
        down.set("rate", changing(draw, kind, mbps));
    }
    let loss = draw.chance("radio loss", 15.0);
    let loss = loss.map(|strength| share(super::draw::between(0.01, 2.0, strength)));
    draw.note("radio loss", loss.as_deref().unwrap_or_default());
    if let Some(loss) = &loss {
        down.set("loss", format!("{{ independent = \"{loss}\" }}"));
    }
    let aqm = draw.name("radio queue", QUEUES);
    let ecn = has_ecn(draw);
    if aqm != "drop-tail" {
        down.set("aqm", format!("{{ name = \"{aqm}\", ecn = {ecn} }}"));
    }
    let reduction = if draw.chance("qarr", 12.0).is_some() { "qarr" } else { "cubic" };
    draw.note("qarr", reduction);
    let (flows, senders) = flows(draw, mbps, with_upload);
    let mut label = vec![
        senders,
        format!("radio {kind} {mbps}M up {up_mbps}M, {rtt_ms}ms", rtt_ms = round3(rtt_ms)),
        format!("buffers {down_bdp} {up_bdp}BDP"),
    ];
    label.extend(loss.map(|loss| format!("loss {loss}")));
    label.extend((aqm != "drop-tail").then(|| aqm.into()));
    label.extend(ecn.then(|| "ECN".into()));
    label.extend((reduction == "qarr").then(|| "QARR".into()));
    Parts {
        wired: Side {
            rtt: time(wired_ms),
            rtt_steps: String::new(),
            down: Link::new("1gbit", "1000packets"),
            up: Link::new("1gbit", "1000packets"),
        },
        radio: Side {
            rtt: time(radio_ms),
            rtt_steps: String::new(),
            down,
            up: Link::new(&rate(up_mbps), &queue(up_bdp, up_mbps, rtt_ms)),
        },
        hosts: hosts(reduction, "cubic", ecn),
        flows,
        label,
        objects: false,
        radio_mbps: mbps,
        // The web objects, one at a time, count as one more download.
        downloads: DOWNLOADS + 1,
    }
}

/// Returns a changing rate with the mean `mbps`, as TOML.
fn changing(draw: &Draw, kind: &str, mbps: f64) -> String {
    if kind != "steps" {
        let (mean, seed) = (rate(mbps), draw.seed("trace"));
        return format!(
            "{{ generate = {{ model = \"{kind}\", mean = \"{mean}\", seed = {seed}, duration = \"60s\" }} }}"
        );
    }
    // The rate changes between high and low every 5 to 15 s.
    let every = 5.0 + 10.0 * draw.unit("step length");
    let depth = super::draw::between(1.5, 6.0, draw.unit("step depth"));
    let (high, low) = (rate(mbps * 2.0 * depth / (1.0 + depth)), rate(mbps * 2.0 / (1.0 + depth)));
    let step = |number: u32| {
        let rate = if number.is_multiple_of(2) { &high } else { &low };
        format!("{{ at = \"{}s\", rate = \"{rate}\" }}", format_number(round3(f64::from(number) * every)))
    };
    let steps: Vec<String> = (0..8).map(step).collect();
    format!("{{ steps = [{}] }}", steps.join(", "))
}

/// Returns all flows, and a short list of the downloads' senders.
fn flows(draw: &mut Draw, mbps: f64, with_upload: bool) -> (String, String) {
    let mut text = String::new();
    let mut names: Vec<&str> = Vec::new();
    for number in 1..=DOWNLOADS {
        let sender = draw.name(&format!("sender {number}"), SENDERS);
        names.push(sender);
        text.push_str(&format!(
            "[[flows]]\nname = \"download-{number}\"\nstart = \"{}ms\"\ncongestion-control = \"{sender}\"\n\n",
            (number - 1) * 200
        ));
    }
    if with_upload {
        let sender = draw.name("uploader", UPLOADERS);
        text.push_str(&format!(
            "[[flows]]\nname = \"upload\"\ndirection = \"up\"\nstart = \"1s\"\ncongestion-control = \"{sender}\"\n\n"
        ));
        names.push("up:");
        names.push(sender);
    }
    let largest = round3(mbps * 50.0).clamp(30.0, 500.0);
    text.push_str(&format!(
        "[[flows]]\nname = \"web\"\nstart = \"2s\"\nsize = \"10kb..{largest}kb\"\ncount = 40\nsequential = true\ninterval = \"500ms\"\n\n"
    ));
    let datagrams = rate(mbps * draw.log("datagrams, %", 0.5, 15.0) / 100.0);
    text.push_str(&format!(
        "[[flows]]\nname = \"datagrams\"\nprotocol = \"udp\"\nrate = \"{datagrams}\"\nstart = \"500ms\"\n\n"
    ));
    (text, names.join(" "))
}
