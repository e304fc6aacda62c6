//! The schemes: the choices of sender, receiver and gateway, as dimensions of a scenario.
//!
//! Names are those of the engine, so that a new algorithm is compared as soon as it has a name.

use std::path::Path;

use paceline_tcp::{Config, CongestionName, DetectionName, ReceiveWindowName, ReductionName};
use toml::{Table, Value};

use crate::error::{Error, Result};
use crate::options::CompareOptions;
use crate::scenario::{Case, Vary};
use crate::units::Time;

/// Senders, receivers and gateways, in this order, follow the scenario's own dimensions.
pub(super) const DIMENSIONS: usize = 3;

pub(super) fn dimensions(options: &CompareOptions) -> Result<Vec<Vary>> {
    let senders = match options.sender.as_slice() {
        [] => all_senders(),
        given => given.to_vec(),
    };
    let mut senders = senders.iter().map(|name| sender(name)).collect::<Result<Vec<Case>>>()?;
    if let Some(flows) = options.flows {
        let count = Value::Integer(i64::from(flows));
        senders.iter_mut().for_each(|case| {
            case.set.insert("flows.*.count".into(), count.clone());
        });
    }
    let receivers = match options.receiver.as_slice() {
        [] => all_receivers(),
        given => given.to_vec(),
    };
    let receivers = receivers.iter().map(|name| receiver(name)).collect::<Result<Vec<Case>>>()?;
    let gateways = match options.gateway.as_slice() {
        [] => GATEWAYS.map(|(name, _)| name.to_string()).to_vec(),
        given => given.to_vec(),
    };
    let gateways = gateways.iter().map(|name| gateway(name)).collect::<Result<Vec<Case>>>()?;
    Ok([senders, receivers, gateways].map(|cases| Vary { cases, ..Vary::default() }).into())
}

/// Every congestion control with the default loss detection, every other detection under Reno, and opportunistic
/// retransmission. ABC is left out: without an ABC router it is CUBIC. The other detections were designed for Reno's
/// response.
fn all_senders() -> Vec<String> {
    let usual = Config::default().detection;
    let congestion = CongestionName::ALL.iter().filter(|name| **name != CongestionName::Abc);
    let congestion = congestion.map(|name| name.to_string());
    let detection = DetectionName::ALL.iter().filter(|name| **name != usual);
    let detection = detection.map(|name| format!("{}+{name}", CongestionName::Reno));
    let opportunistic = format!("{}+{}+{OPPORTUNISTIC}", CongestionName::Cubic, ReductionName::Qarr);
    congestion.chain(detection).chain([opportunistic]).collect()
}

const OPPORTUNISTIC: &str = "opportunistic";

/// Parses names of algorithms joined by `+`.
fn sender(name: &str) -> Result<Case> {
    let mut set = Table::new();
    for part in name.split('+') {
        let (key, value): (&str, Value) = if part.parse::<CongestionName>().is_ok() {
            ("server.congestion-control", part.into())
        } else if part.parse::<DetectionName>().is_ok() {
            ("server.tcp.loss-detection", part.into())
        } else if part.parse::<ReductionName>().is_ok() {
            ("server.tcp.rate-reduction", part.into())
        } else if part == OPPORTUNISTIC {
            ("server.tcp.opportunistic-retransmission", true.into())
        } else {
            return Err(Error::input(format!(
                "--sender {name}: nobody is called `{part}`; known are {}, {}, {} and {OPPORTUNISTIC}",
                names(CongestionName::ALL),
                names(DetectionName::ALL),
                names(ReductionName::ALL),
            )));
        };
        // RFC 6675 is the name of a detection and of a reduction. The first occurrence is the detection, the second the
        // reduction.
        let key = if set.contains_key(key) && part.parse::<ReductionName>().is_ok() {
            "server.tcp.rate-reduction"
        } else {
            key
        };
        set.insert(key.into(), value);
    }
    Ok(Case { name: name.into(), set })
}

fn names<T: std::fmt::Display>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<String>>().join(", ")
}

/// Windows that never change: one that never limits, and one of a small old client.
const FIXED: [(&str, &str); 2] = [("fixed-4mb", "4mb"), ("fixed-64kb", "64kb")];
/// The buffer of `drs-clamped`. The phone of the published HSPA+ network had a window of 262,144 bytes (DRWA, Table 1).
const CLAMPED_BUFFER: &str = "524288b";

/// Fixed windows, and every window that sizes itself.
fn all_receivers() -> Vec<String> {
    let fixed = FIXED.iter().map(|(name, _)| name.to_string());
    let sized = ReceiveWindowName::ALL.iter().filter(|name| **name != ReceiveWindowName::Fixed);
    fixed.chain(sized.map(ToString::to_string)).collect()
}

fn receiver(name: &str) -> Result<Case> {
    if let Some((_, window)) = FIXED.iter().find(|(known, _)| *known == name) {
        let fixed = ReceiveWindowName::Fixed.as_str();
        let keys = [("client.receive-buffer", (*window).into()), ("client.tcp.receive-window", fixed.into())];
        return Ok(case(name, &keys));
    }
    match name.parse::<ReceiveWindowName>() {
        Ok(window) if window != ReceiveWindowName::Fixed => {
            let mut case = case(name, &[("client.tcp.receive-window", name.into())]);
            if window == ReceiveWindowName::DrsClamped {
                case.set.insert("client.receive-buffer-max".into(), CLAMPED_BUFFER.into());
            }
            Ok(case)
        }
        _ => {
            let known = all_receivers().join(", ");
            Err(Error::input(format!("--receiver {name}: known are {known}")))
        }
    }
}

/// The gateways before the radio link, with their profiles.
const GATEWAYS: [(&str, &str); 4] =
    [("none", "off"), ("gateway", "full"), ("gateway-drwa", "drwa"), ("gateway-split", "split")];

fn gateway(name: &str) -> Result<Case> {
    match GATEWAYS.iter().find(|(known, _)| *known == name) {
        Some((_, profile)) => Ok(case(name, &[("gateway.profile", (*profile).into())])),
        None => {
            let known = GATEWAYS.map(|(name, _)| name).join(", ");
            Err(Error::input(format!("--gateway {name}: known are {known}")))
        }
    }
}

fn case(name: &str, set: &[(&str, Value)]) -> Case {
    let set = set.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
    Case { name: name.into(), set }
}

/// The scenario of a download over a radio link that follows this trace.
pub(crate) fn scenario_of_trace(trace: &Path, rtt: Time, queue: &str) -> String {
    let part =
        |part: Option<&std::ffi::OsStr>| part.map_or_else(String::new, |part| part.to_string_lossy().into());
    let stem: String = part(trace.file_stem());
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let file = Value::String(part(trace.file_name()));
    let queue = Value::String(queue.into());
    format!(
        "name = \"{name}\"\ntitle = \"a download over a recorded link\"\nduration = \"60s\"\n[radio]\nrtt = \"{rtt}\"\n[radio.down]\n\
         rate = {{ trace = {{ file = {file} }} }}\nqueue = {queue}\n[[flows]]\nname = \"download\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_sender_is_one() {
        let all = all_senders();
        assert!(all.len() >= CongestionName::ALL.len() - 1 + DetectionName::ALL.len());
        for name in &all {
            assert!(!sender(name).unwrap().set.is_empty(), "{name}");
        }
        let mixed = sender("cubic+qarr+opportunistic").unwrap().set;
        let keys: Vec<&str> = mixed.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "server.congestion-control",
                "server.tcp.opportunistic-retransmission",
                "server.tcp.rate-reduction"
            ]
        );
        assert!(sender("cubicle").unwrap_err().to_string().contains("nobody is called `cubicle`"));
        assert!(receiver("none").is_err() && receiver("fixed").is_err() && gateway("full").is_err());
    }

    #[test]
    fn every_receive_window_is_compared() {
        let all = all_receivers();
        assert_eq!(all.len(), ReceiveWindowName::ALL.len() - 1 + FIXED.len());
        for name in &all {
            assert!(!receiver(name).unwrap().set.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_trace_becomes_a_scenario() {
        let rtt: Time = toml::Value::String("80ms".into()).try_into().unwrap();
        let text = scenario_of_trace(Path::new("traces/my lte.down"), rtt, "1000packets");
        assert!(text.contains("name = \"my-lte\"") && text.contains("file = \"my lte.down\""), "{text}");
        assert!(toml::from_str::<Table>(&text).is_ok(), "{text}");
    }
}
