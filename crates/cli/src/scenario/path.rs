//! A path between two hosts: round-trip time, and a link each way. Not given means: no limit, no delay, no fault.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Span;
use crate::units::{Percent, Rate, Size, Time};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Path {
    /// Propagation there and back; half of it each way.
    pub(crate) rtt: Time,
    /// Later values of `rtt`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rtt_steps: Vec<RttStep>,
    /// Towards the client.
    pub(crate) down: PathDirection,
    /// Towards the server.
    pub(crate) up: PathDirection,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RttStep {
    pub(crate) at: Time,
    pub(crate) rtt: Time,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct PathDirection {
    /// Of IP bytes.
    pub(crate) rate: Rate,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rate_steps: Vec<RateStep>,
    /// In place of `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<TraceSpec>,
    pub(crate) queue: Queue,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jitter: Option<Jitter>,
    /// Each packet by itself.
    pub(crate) loss: Percent,
    /// Bursts (Gilbert-Elliott).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) loss_bursts: Option<LossBursts>,
    /// Rising with the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) loss_with_load: Option<LossWithLoad>,
    /// The n-th packets with payload, counted from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) loss_of_packets: Vec<u64>,
    pub(crate) loss_scope: LossScope,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reorder: Option<Reorder>,
    pub(crate) duplicate: Percent,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) outages: Vec<Span>,
}

impl Default for PathDirection {
    fn default() -> Self {
        PathDirection {
            rate: Rate::UNLIMITED,
            rate_steps: Vec::new(),
            trace: None,
            queue: Queue::default(),
            jitter: None,
            loss: Percent::ZERO,
            loss_bursts: None,
            loss_with_load: None,
            loss_of_packets: Vec::new(),
            loss_scope: LossScope::All,
            reorder: None,
            duplicate: Percent::ZERO,
            outages: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RateStep {
    pub(crate) at: Time,
    pub(crate) rate: Rate,
}

/// A recorded trace (`file`), or one made from the run's seed (`generate`).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TraceSpec {
    /// Relative to the scenario file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    /// Of `file`; told from its contents when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<TraceFormat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) generate: Option<TraceModel>,
    /// Of a generated trace, before it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<Time>,
    /// Mean rate of a generated trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mean: Option<Rate>,
    /// Standard deviation over mean of a generated trace, in one-second steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) variation: Option<Percent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TraceFormat {
    /// One line for each chance to deliver 1500 bytes: its time in milliseconds.
    Mahimahi,
    /// `second,mbit` lines.
    Csv,
    /// One rate in Mbit/s a line, one line a second.
    Seconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TraceModel {
    Hspa,
    LteDriving,
    #[serde(rename = "5g-handover")]
    #[value(name = "5g-handover")]
    Nr5gHandover,
}

/// `"3mb"`, `"1000 packets"` or `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Queue {
    Bytes(Size),
    Packets(u32),
    Unlimited,
}

impl Default for Queue {
    /// netem's default, which the emulator of the thesis had.
    fn default() -> Self {
        Queue::Packets(1000)
    }
}

impl std::str::FromStr for Queue {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "unlimited" {
            return Ok(Queue::Unlimited);
        }
        if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
            return match number.trim().parse() {
                Ok(packets) if packets > 0 => Ok(Queue::Packets(packets)),
                _ => Err(format!("`{text}`: give a whole number of packets above zero")),
            };
        }
        match text.parse::<Size>() {
            Ok(size) if size.bytes() > 0 => Ok(Queue::Bytes(size)),
            Ok(_) => Err("a queue of zero bytes passes nothing".into()),
            Err(why) => Err(format!("{why}, \"1000 packets\" or \"unlimited\"")),
        }
    }
}

impl TryFrom<String> for Queue {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Queue> for String {
    fn from(queue: Queue) -> String {
        match queue {
            Queue::Bytes(size) => size.to_string(),
            Queue::Packets(packets) => format!("{packets} packets"),
            Queue::Unlimited => "unlimited".into(),
        }
    }
}

/// Extra delay of each packet.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Jitter {
    /// Evenly from zero to this.
    pub(crate) max: Time,
    /// Whether a packet may overtake another by it.
    #[serde(default)]
    pub(crate) reorders: bool,
}

/// A two-state channel: in the bad state packets are lost with `loss-bad`, else with `loss-good`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct LossBursts {
    /// Per packet, good to bad.
    pub(crate) enter: Percent,
    /// Per packet, bad to good.
    pub(crate) leave: Percent,
    #[serde(default)]
    pub(crate) loss_good: Percent,
    pub(crate) loss_bad: Percent,
}

/// `base` up to the load `from` (share of the link rate), then rising in a line to `full` at 100 %.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct LossWithLoad {
    pub(crate) base: Percent,
    pub(crate) from: Percent,
    pub(crate) full: Percent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LossScope {
    #[default]
    All,
    /// A retransmission is never lost.
    Originals,
}

/// This share of packets is held back by `delay`, so that later ones overtake.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Reorder {
    pub(crate) share: Percent,
    pub(crate) delay: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_bytes_or_packets() {
        assert_eq!("3mb".parse(), Ok(Queue::Bytes(Size::from_bytes(3_000_000))));
        assert_eq!("180 packets".parse(), Ok(Queue::Packets(180)));
        assert_eq!("unlimited".parse(), Ok(Queue::Unlimited));
        for bad in ["0b", "0 packets", "3", "many packets"] {
            assert!(bad.parse::<Queue>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_loss_model_is_a_table_of_its_own() {
        let text =
            "rate = \"5mbit\"\nloss-bursts = { enter = \"0.1%\", leave = \"10%\", loss-bad = \"50%\" }\n";
        let direction: PathDirection = toml::from_str(text).unwrap();
        assert_eq!(direction.loss_bursts.unwrap().loss_good, Percent::ZERO);
    }
}
