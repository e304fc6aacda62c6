//! A point of the map: the text of a scenario, and its drawn values.

use std::fmt::Write as _;

use clap::ValueEnum;

use super::draw::Draw;
use super::{clients, mixed, path};
use crate::units::Time;

/// The gateway's profiles. The others are compared with the first.
pub(super) const PROFILES: [&str; 4] = ["off", "full", "auto", "split"];

/// A kind of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// One flow over both sides: rates, delays, buffers, impairments, senders, downloads, uploads, objects
    Path,
    /// Four downloads of mixed senders, an upload, web objects and datagrams over drawn radio links
    Mixed,
    /// `mixed` without the upload
    MixedDown,
    /// Clients with small windows, missing options or slow readers, behind a deep buffer
    Clients,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Path, Kind::Mixed, Kind::MixedDown, Kind::Clients];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Path => "path",
            Kind::Mixed => "mixed",
            Kind::MixedDown => "mixed-down",
            Kind::Clients => "clients",
        }
    }

    /// Default duration of one run.
    fn seconds(self) -> u64 {
        match self {
            Kind::Path | Kind::Clients => 30,
            Kind::Mixed | Kind::MixedDown => 40,
        }
    }
}

/// The parameters that determine the points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    pub(super) seed: u64,
    pub(super) duration: Option<Time>,
    /// In Mbit/s. Faster radio links get this rate.
    pub(super) rate_max: f64,
}

/// The kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// All flows together, as fast as they can.
    Bulk,
    /// One object after the other. The completion time of each counts.
    Objects,
}

/// A drawn point.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) kind: Kind,
    pub(super) index: u32,
    /// The scenario, with all profiles as variants.
    pub(super) text: String,
    /// Short description.
    pub(super) label: String,
    pub(super) load: Load,
    /// Rate of the radio downlink.
    pub(super) radio_mbps: f64,
    /// The number of downloads that may have segments in the queue at the same time.
    pub(super) downloads: u32,
    /// All drawn values, by name.
    pub(super) columns: Vec<(String, String)>,
}

/// Draws a point. Only the plan and the index determine it.
pub(super) fn draw(plan: Plan, index: u32) -> Point {
    let Plan { kind, seed, duration, rate_max } = plan;
    let mut draw = Draw::new(seed, index);
    let mut parts = match kind {
        Kind::Path => path::draw(&mut draw, rate_max),
        Kind::Mixed => mixed::draw(&mut draw, rate_max, true),
        Kind::MixedDown => mixed::draw(&mut draw, rate_max, false),
        Kind::Clients => clients::draw(&mut draw, rate_max),
    };
    let name = format!("map-{}-{seed}-{index}", kind.name());
    let label = std::mem::take(&mut parts.label).join(", ");
    let duration = duration.unwrap_or_else(|| Time::from_millis(kind.seconds() * 1000));
    // Every point has its own seeds, with room for repetitions.
    let first = 1 + u64::from(index) * 100;
    let mut text =
        format!("name = \"{name}\"\ntitle = \"{label}\"\nduration = \"{duration}\"\nseed = {first}\n\n");
    text.push_str(&parts.hosts);
    text.push('\n');
    for (side, name) in [(&parts.wired, "wired"), (&parts.radio, "radio")] {
        let _ = write!(text, "[{name}]\nrtt = \"{}\"\n{}\n", side.rtt, side.rtt_steps);
        for (link, direction) in [(&side.down, "down"), (&side.up, "up")] {
            let _ = writeln!(text, "[{name}.{direction}]");
            for (key, value) in &link.0 {
                let _ = writeln!(text, "{key} = {value}");
            }
            text.push('\n');
        }
    }
    text.push_str(&parts.flows);
    let profiles = PROFILES.map(|name| format!("\"{name}\"")).join(", ");
    let _ =
        write!(text, "[[vary]]\nkey = \"gateway.profile\"\nvalues = [{profiles}]\nnames = [{profiles}]\n");
    Point {
        kind,
        index,
        text,
        label,
        load: if parts.objects { Load::Objects } else { Load::Bulk },
        radio_mbps: parts.radio_mbps,
        downloads: parts.downloads,
        columns: draw.columns,
    }
}
