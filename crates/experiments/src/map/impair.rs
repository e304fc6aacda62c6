//! Impairments of a link, and the share of the points that have them.

use super::draw::{Draw, between, rate, round3, share, time};
use super::parts::{Link, Side};

/// One row of a kind's table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Impairment {
    pub(super) at: At,
    pub(super) what: What,
    /// The percentage of points that have it.
    pub(super) percent: f64,
}

/// The side and direction of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    WiredDown,
    WiredUp,
    RadioDown,
    RadioUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    RandomLoss,
    BurstLoss,
    Reordering,
    /// Jitter that keeps the order.
    Jitter,
    /// Jitter with which packets overtake each other.
    LooseJitter,
    Duplicates,
    /// Loss of ACKs only.
    LostAcks,
    Outage,
    /// Queue management, by its name in a scenario. At half of the points it marks, if both ends use ECN.
    Aqm(&'static str),
    Policer,
}

const fn row(at: At, what: What, percent: f64) -> Impairment {
    Impairment { at, what, percent }
}

/// Impairments of the kind `path`: 1.4 per point on average. About 60 % of the points have one or none.
pub(super) const PATH: &[Impairment] = &[
    row(At::WiredDown, What::RandomLoss, 15.0),
    row(At::WiredDown, What::BurstLoss, 5.0),
    row(At::WiredDown, What::Reordering, 5.0),
    row(At::WiredDown, What::Jitter, 6.0),
    row(At::WiredDown, What::LooseJitter, 2.0),
    row(At::WiredDown, What::Duplicates, 3.0),
    row(At::WiredDown, What::Outage, 2.0),
    row(At::WiredDown, What::Policer, 4.0),
    row(At::WiredDown, What::Aqm("codel"), 2.0),
    row(At::WiredDown, What::Aqm("fq-codel"), 3.0),
    row(At::WiredDown, What::Aqm("pie"), 2.0),
    row(At::WiredDown, What::Aqm("red"), 2.0),
    row(At::WiredUp, What::LostAcks, 3.0),
    row(At::WiredUp, What::RandomLoss, 3.0),
    row(At::RadioDown, What::RandomLoss, 20.0),
    row(At::RadioDown, What::BurstLoss, 6.0),
    row(At::RadioDown, What::Reordering, 4.0),
    row(At::RadioDown, What::Jitter, 10.0),
    row(At::RadioDown, What::LooseJitter, 3.0),
    row(At::RadioDown, What::Duplicates, 3.0),
    row(At::RadioDown, What::Outage, 4.0),
    row(At::RadioDown, What::Policer, 2.0),
    row(At::RadioDown, What::Aqm("codel"), 3.0),
    row(At::RadioDown, What::Aqm("fq-codel"), 4.0),
    row(At::RadioDown, What::Aqm("pie"), 3.0),
    row(At::RadioDown, What::Aqm("red"), 3.0),
    row(At::RadioUp, What::LostAcks, 4.0),
    row(At::RadioUp, What::RandomLoss, 4.0),
    row(At::RadioUp, What::Aqm("fq-codel"), 4.0),
    row(At::RadioUp, What::Jitter, 5.0),
];

/// Impairments of the kind `clients`, on the radio link only.
pub(super) const CLIENTS: &[Impairment] = &[
    row(At::RadioDown, What::RandomLoss, 30.0),
    row(At::RadioDown, What::BurstLoss, 5.0),
    row(At::RadioDown, What::Reordering, 15.0),
];

/// An impairment of one point.
struct Drawn {
    /// Key of the link in a scenario.
    key: &'static str,
    value: String,
    /// Short description.
    label: String,
}

/// Adds to the links the impairments of `table` that the point has. If two have the same key in a scenario, the first
/// counts. `mbps` is the path's capacity.
pub(super) fn add(
    draw: &mut Draw,
    table: &[Impairment],
    mbps: f64,
    wired: &mut Side,
    radio: &mut Side,
) -> Vec<String> {
    let mut labels = Vec::new();
    for row in table {
        let (link, place): (&mut Link, &str) = match row.at {
            At::WiredDown => (&mut wired.down, "wired"),
            At::WiredUp => (&mut wired.up, "wired up"),
            At::RadioDown => (&mut radio.down, "radio"),
            At::RadioUp => (&mut radio.up, "radio up"),
        };
        let name = format!("{place} {}", row.what.name());
        let drawn =
            draw.chance(&name, row.percent).map(|strength| row.what.draw(draw, &name, mbps, strength));
        match drawn.filter(|drawn| !link.has(drawn.key)) {
            None => draw.note(&name, ""),
            Some(drawn) => {
                draw.note(&name, &drawn.label);
                labels.push(format!("{name} {}", drawn.label));
                link.set(drawn.key, drawn.value);
                if row.what == What::LostAcks {
                    link.set("loss-on", "\"acks\"".into());
                }
            }
        }
    }
    labels
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::RandomLoss => "loss",
            What::BurstLoss => "bursts",
            What::Reordering => "reorder",
            What::Jitter => "jitter",
            What::LooseJitter => "loose jitter",
            What::Duplicates => "duplicates",
            What::LostAcks => "lost ACKs",
            What::Outage => "outage",
            What::Aqm(name) => name,
            What::Policer => "policer",
        }
    }

    /// `strength` is from 0 to below 1. Further parameters have their own coordinates.
    fn draw(self, draw: &Draw, name: &str, mbps: f64, strength: f64) -> Drawn {
        let further =
            |what: &str, low: f64, high: f64| between(low, high, draw.unit(&format!("{name} {what}")));
        let (key, value, label) = match self {
            What::RandomLoss => {
                let loss = share(between(0.01, 4.0, strength));
                ("loss", format!("{{ independent = \"{loss}\" }}"), loss)
            }
            What::LostAcks => {
                let loss = share(between(0.1, 10.0, strength));
                ("loss", format!("{{ independent = \"{loss}\" }}"), loss)
            }
            What::BurstLoss => {
                let (start, length) = (share(between(0.005, 0.5, strength)), further("length", 2.0, 30.0));
                let ends = share(100.0 / length);
                let value = format!(
                    "{{ gilbert-elliott = {{ good-to-bad = \"{start}\", bad-to-good = \"{ends}\" }} }}"
                );
                ("loss", value, format!("{start}x{length:.0}"))
            }
            What::Reordering => {
                let (probability, by) = (share(between(0.1, 3.0, strength)), time(further("by", 1.0, 60.0)));
                let value = format!("{{ probability = \"{probability}\", by = \"{by}\" }}");
                ("reorder", value, format!("{probability} {by}"))
            }
            What::Jitter => {
                let up_to = time(between(1.0, 50.0, strength));
                ("jitter", format!("{{ up-to = \"{up_to}\", keep-order = true }}"), up_to)
            }
            What::LooseJitter => {
                let up_to = time(between(0.2, 20.0, strength));
                ("jitter", format!("{{ up-to = \"{up_to}\" }}"), up_to)
            }
            What::Duplicates => {
                let probability = share(between(0.05, 3.0, strength));
                ("duplicate", format!("\"{probability}\""), probability)
            }
            What::Aqm(aqm) => {
                let marks = strength < 0.5;
                let value = format!("{{ name = \"{aqm}\", ecn = {marks} }}");
                ("aqm", value, if marks { "marks" } else { "drops" }.into())
            }
            What::Policer => {
                let (to, burst) =
                    (rate(mbps * between(0.3, 1.5, strength)), round3(further("burst", 10.0, 500.0)));
                (
                    "policer",
                    format!("{{ rate = \"{to}\", burst = \"{burst}kb\" }}"),
                    format!("{to} {burst}KB"),
                )
            }
            What::Outage => {
                let length = time(between(50.0, 3_000.0, strength));
                let (first, every) =
                    (time(further("first", 2_000.0, 9_000.0)), time(further("every", 6_000.0, 20_000.0)));
                let effect = if draw.unit(&format!("{name} effect")) < 0.5 { "hold" } else { "drop" };
                let value = format!(
                    "{{ periodic = {{ first = \"{first}\", every = \"{every}\", length = \"{length}\" }}, effect = \"{effect}\" }}"
                );
                ("outage", value, format!("{length} {effect}"))
            }
        };
        Drawn { key, value, label }
    }
}
