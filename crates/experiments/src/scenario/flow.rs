//! The transfers of a scenario.

use paceline_gateway::config::ShareConfig;
use serde::{Deserialize, Serialize};

use crate::units::{Rate, Size, Time};

/// One transfer, or several alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Flow {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) protocol: Protocol,
    #[serde(default)]
    pub(crate) direction: Direction,
    #[serde(default)]
    pub(crate) ip: IpVersion,
    #[serde(default)]
    pub(crate) start: Time,
    /// If absent, the flow sends until the run ends.
    #[serde(default)]
    pub(crate) size: Option<SizeSpec>,
    #[serde(default = "super::one")]
    pub(crate) count: u32,
    /// Each of `count` transfers waits for the one before it.
    #[serde(default)]
    pub(crate) sequential: bool,
    /// Time between the starts of `count` transfers. If sequential, between the end of one and the start of the next.
    /// Time between two requests of a ping.
    #[serde(default)]
    pub(crate) interval: Time,
    /// The gateway's weight for this flow, compared with other flows of the client.
    #[serde(default = "super::one")]
    pub(crate) weight: u32,
    /// 0 to 7. The gateway serves higher priorities first.
    #[serde(default)]
    pub(crate) priority: u8,
    /// The rate that the gateway gives it before any priority.
    #[serde(default)]
    pub(crate) guaranteed: Option<Rate>,
    /// The most that the gateway gives it.
    #[serde(default)]
    pub(crate) ceiling: Option<Rate>,
    /// The gateway forwards it unchanged.
    #[serde(default, alias = "bypass")]
    pub(crate) pass: bool,
    /// The rate of a UDP flow.
    #[serde(default)]
    pub(crate) rate: Option<Rate>,
    /// The sender's congestion control, if it differs from that of its host.
    #[serde(default)]
    pub(crate) congestion_control: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Protocol {
    #[default]
    Tcp,
    Udp,
    /// Only in the simulator.
    Ping,
}

impl Flow {
    /// Its share at the gateway.
    pub(crate) fn share(&self) -> ShareConfig {
        let mbps = |rate: Option<Rate>| rate.map(|rate| rate.to_wire().as_mbps());
        ShareConfig {
            weight: self.weight,
            priority: self.priority,
            guaranteed_mbps: mbps(self.guaranteed),
            ceiling_mbps: mbps(self.ceiling),
        }
    }
}

/// The direction of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    /// Towards the client.
    #[default]
    Down,
    /// Towards the server.
    Up,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum IpVersion {
    #[default]
    #[serde(rename = "4")]
    V4,
    #[serde(rename = "6")]
    V6,
}

/// `"100kb"`, or `"1kb..2mb"`. A range is drawn for each transfer, uniform on a logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct SizeSpec {
    pub(crate) min: Size,
    pub(crate) max: Size,
}

impl TryFrom<String> for SizeSpec {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let parse = |text: &str| text.parse::<Size>().map_err(|error| error.to_string());
        let (min, max) = match text.split_once("..") {
            Some((min, max)) => (parse(min)?, parse(max)?),
            None => {
                let size = parse(&text)?;
                (size, size)
            }
        };
        if min > max || min.bytes() == 0 {
            return Err(format!("`{text}`: give a size above zero, or \"smallest..largest\""));
        }
        Ok(SizeSpec { min, max })
    }
}

impl SizeSpec {
    /// The size for `uniform` in 0..1.
    pub(crate) fn at(self, uniform: f64) -> u64 {
        let (min, max) = (self.min.bytes() as f64, self.max.bytes() as f64);
        (min * (max / min).powf(uniform)).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_sizes_is_drawn_between_its_ends() {
        let range = SizeSpec::try_from("1kb..2mb".to_string()).unwrap();
        assert_eq!((range.at(0.0), range.at(1.0)), (1_000, 2_000_000));
        let fixed = SizeSpec::try_from("100kb".to_string()).unwrap();
        assert_eq!(fixed.at(0.7), 100_000);
        assert!(SizeSpec::try_from("2mb..1kb".to_string()).is_err());
        assert!(SizeSpec::try_from("0kb".to_string()).is_err());
    }
}
