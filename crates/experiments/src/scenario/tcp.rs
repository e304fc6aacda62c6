//! The algorithms of a host's TCP in the simulator. Hosts of the lab are kernels with fixed algorithms.

use std::str::FromStr;

use paceline_tcp::{
    DetectionName, HystartName, ReceiveWindowName, ReductionName, ScheduleName, SendBufferName, UnknownName,
};
use serde::de::{Deserialize, Deserializer, Error as _};

use crate::units::Time;

/// Differences from Linux 6.1, in the simulator.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Tcp {
    #[serde(deserialize_with = "by_name")]
    pub(crate) loss_detection: Option<DetectionName>,
    #[serde(deserialize_with = "by_name")]
    pub(crate) rate_reduction: Option<ReductionName>,
    /// New data may go beyond the receive window during recovery.
    pub(crate) opportunistic_retransmission: bool,
    /// Duplicate ACKs without new information indicate the loss of a retransmission.
    pub(crate) hack1: bool,
    /// Hack 1 as printed.
    pub(crate) hack1_text: bool,
    #[serde(deserialize_with = "by_name")]
    pub(crate) send_buffer_growth: Option<SendBufferName>,
    #[serde(deserialize_with = "by_name")]
    pub(crate) hystart: Option<HystartName>,
    /// Limits the data in flight, besides the congestion window.
    #[serde(deserialize_with = "by_name")]
    pub(crate) schedule: Option<ScheduleName>,
    /// Upper limit of cwnd in packets.
    pub(crate) cwnd_max: Option<u32>,
    /// Interval between two values of its timestamps.
    pub(crate) timestamp_tick: Option<Time>,
    /// How much the timestamp clock runs fast, in millionths; negative if it runs slow.
    pub(crate) timestamp_drift_ppm: i32,
    /// Explicit congestion notification (RFC 3168).
    pub(crate) ecn: bool,
    /// False if each segment is acknowledged at once.
    pub(crate) delayed_ack: Option<bool>,
    /// How the advertised window is sized.
    #[serde(deserialize_with = "by_name")]
    pub(crate) receive_window: Option<ReceiveWindowName>,
    /// DRWA's lambda.
    pub(crate) drwa_lambda: Option<f64>,
    /// The number of RTTs that TCP-NCL remembers.
    pub(crate) ncl_mrrl: Option<u32>,
    /// The part of tau_CD in which an ACK counts as that of the original, in percent.
    pub(crate) ncl_beta_percent: Option<u32>,
}

fn by_name<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = UnknownName>,
{
    let name = String::deserialize(deserializer)?;
    name.parse().map(Some).map_err(|unknown: UnknownName| D::Error::unknown_variant(&name, unknown.known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_have_names() {
        let text = "rate-reduction = \"qarr\"\nopportunistic-retransmission = true\n";
        let tcp: Tcp = toml::from_str(text).unwrap();
        assert_eq!(tcp.rate_reduction, Some(ReductionName::Qarr));
        assert!(tcp.opportunistic_retransmission && tcp.loss_detection.is_none());
        let error = toml::from_str::<Tcp>("loss-detection = \"rack\"\n").unwrap_err();
        assert!(error.message().contains("unknown variant `rack`, expected one of"), "{error}");
    }
}
