//! Points that vary the client: small windows, missing options, slow readers. The wired side is clean and buffers are
//! deep.

use super::draw::{Draw, between, queue, rate, round3, time};
use super::impair::{self, add};
use super::parts::{Link, Parts, Side};
use super::path::{SENDERS, hosts};

pub(super) fn draw(draw: &mut Draw, rate_max: f64) -> Parts {
    let mbps = draw.log("radio rate, Mbit/s", 1.0, 80.0).min(rate_max);
    let (wired_ms, radio_ms) =
        (draw.log("wired RTT, ms", 5.0, 100.0), draw.log("radio RTT, ms", 10.0, 250.0));
    let bdp = draw.log("radio buffer, BDP", 3.0, 10.0);
    let rtt_ms = wired_ms + radio_ms;
    let up = rate(round3(mbps / draw.log("downlink / uplink", 2.0, 10.0)));
    let mut wired = Side {
        rtt: time(wired_ms),
        rtt_steps: String::new(),
        down: Link::new("1gbit", "10mb"),
        up: Link::new("1gbit", "10mb"),
    };
    let mut radio = Side {
        rtt: time(radio_ms),
        rtt_steps: String::new(),
        down: Link::new(&rate(mbps), &queue(bdp, mbps, rtt_ms)),
        up: Link::new(&up, "1000packets"),
    };
    let server = draw.name("server", SENDERS);
    let mut label = vec![format!("{server}"), format!("{mbps}M {wired_ms}+{radio_ms}ms {bdp}BDP")];
    let (client, words) = client(draw, mbps);
    label.extend(words);
    label.extend(add(draw, impair::CLIENTS, mbps, &mut wired, &mut radio));
    Parts {
        wired,
        radio,
        hosts: hosts(server, "cubic", false) + &client,
        flows: "[[flows]]\nname = \"download\"\n\n".into(),
        label,
        objects: false,
        radio_mbps: mbps,
        downloads: 1,
    }
}

/// Further lines of `[client]`, which is the last table so far, and a short description of them.
fn client(draw: &mut Draw, mbps: f64) -> (String, Vec<String>) {
    let (mut lines, mut label) = (Vec::new(), Vec::new());
    let window = draw.chance("window", 75.0).map(|place| between(9.0, 400.0, place));
    draw.note("window, KB", &window.map(|kb| kb.to_string()).unwrap_or_default());
    if let Some(kb) = window {
        lines.push(format!("receive-buffer = \"{kb}kb\""));
        label.push(format!("window {kb}KB"));
        if kb <= 65.0 && draw.chance("no scaling", 50.0).is_some() {
            lines.push("window-scaling = false".into());
            label.push("no scaling".into());
        }
    }
    for (key, name, percent) in [("sack", "no SACK", 25.0), ("timestamps", "no timestamps", 25.0)] {
        let absent = draw.chance(name, percent).is_some();
        draw.note(name, if absent { "yes" } else { "" });
        if absent {
            lines.push(format!("{key} = false"));
            label.push(name.into());
        }
    }
    // A reader is slow, or pauses once, but not both.
    let slow = draw.chance("slow reader", 20.0).map(|place| rate(mbps * between(0.2, 1.2, place)));
    draw.note("slow reader", slow.as_deref().unwrap_or_default());
    let pause = draw.chance("reader pauses", 10.0).filter(|_| slow.is_none());
    let pause = pause.map(|place| time(between(200.0, 5_000.0, place)));
    draw.note("reader pauses", pause.as_deref().unwrap_or_default());
    if let Some(rate) = slow {
        lines.push(format!("read-rate = \"{rate}\""));
        label.push(format!("reads {rate}"));
    }
    if let Some(pause) = pause {
        lines.push(format!("read-pause = {{ at = \"5s\", for = \"{pause}\" }}"));
        label.push(format!("pauses {pause}"));
    }
    let lines = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    (lines, label)
}
