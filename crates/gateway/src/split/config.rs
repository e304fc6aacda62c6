//! Algorithms of split flows: any of the TCP endpoint, by the names that scenarios use.

use alloc::string::String;

use paceline_tcp::{
    Config, CongestionName, DetectionName, HystartName, KeepAlive, ReceiveBuffer, ReceiveWindowName,
    ReductionName, ScheduleName, SendBufferName,
};

use crate::by_name;
use crate::config::{LINEAR_TIMEOUTS, LimitsConfig};

/// Configuration of split flows.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SplitConfig {
    /// The sender towards clients, unless a rule names another.
    pub sender: SenderConfig,
    /// The largest window shown to either end.
    pub receive_window_bytes: u32,
    /// Algorithm that sizes the window shown to either end, up to that limit.
    #[serde(with = "by_name")]
    pub receive_window: ReceiveWindowName,
    /// DRWA's lambda in hundredths, if `receive_window` is one of DRWA's variants.
    pub drwa_lambda_percent: u32,
}

impl Default for SplitConfig {
    fn default() -> Self {
        // Our choice: the ceiling of the virtual window, which serves the same purpose.
        SplitConfig {
            sender: SenderConfig::default(),
            receive_window_bytes: 8_000_000,
            receive_window: ReceiveWindowName::DrsLinux,
            drwa_lambda_percent: 300,
        }
    }
}

/// A sender towards clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SenderConfig {
    /// Congestion control. Without it CUBIC, or Reno if TCP-NCL detects losses. TCP-NCL's own congestion response is
    /// half of cwnd, with Reno's growth ([`SenderConfig::congestion`]).
    #[serde(with = "by_name_if_any", skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<CongestionName>,
    /// How slow start ends, for CUBIC.
    #[serde(with = "by_name")]
    pub hystart: HystartName,
    /// How cwnd is reduced in fast recovery.
    #[serde(with = "by_name")]
    pub rate_reduction: ReductionName,
    /// In fast recovery, new data may exceed the client's window.
    pub opportunistic_retransmission: bool,
    /// Duplicate ACKs without new information show that a retransmission was lost.
    pub hack1: bool,
    /// HACK1 as printed, without our additions.
    pub hack1_text: bool,
    /// Limit on outstanding data, beside the congestion window.
    #[serde(with = "by_name")]
    pub schedule: ScheduleName,
    /// Algorithm that detects lost segments.
    #[serde(with = "by_name")]
    pub loss_detection: DetectionName,
    /// How the send buffer grows, up to `limits.max-flow-buffer-bytes`.
    #[serde(with = "by_name")]
    pub send_buffer_growth: SendBufferName,
    /// Packets in the first round trip.
    pub initial_window: u32,
}

impl Default for SenderConfig {
    fn default() -> Self {
        // Linux's sender, except for what opportunistic retransmission needs (OR, Sections IV and V).
        SenderConfig {
            congestion_control: None,
            hystart: HystartName::Linux,
            rate_reduction: ReductionName::Qarr,
            opportunistic_retransmission: true,
            hack1: false,
            hack1_text: false,
            schedule: ScheduleName::Window,
            loss_detection: DetectionName::RackTlp,
            send_buffer_growth: SendBufferName::Refined,
            initial_window: 10,
        }
    }
}

impl SenderConfig {
    /// Returns the congestion control in use.
    pub fn congestion(&self) -> CongestionName {
        let published_with = match self.loss_detection {
            DetectionName::Ncl | DetectionName::NclSecondRd | DetectionName::NclAdaptive => {
                CongestionName::Reno
            }
            _ => CongestionName::Cubic,
        };
        self.congestion_control.unwrap_or(published_with)
    }

    /// Checks the values.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.initial_window {
            1..=1_000 => Ok(()),
            _ => Err(String::from("split.sender.initial-window: give 1 to 1000 packets")),
        }
    }

    /// Returns the configuration of the connection with the client.
    pub(super) fn towards_client(&self, split: &SplitConfig, limits: &LimitsConfig) -> Config {
        Config {
            congestion: self.congestion(),
            hystart: self.hystart,
            reduction: self.rate_reduction,
            opportunistic: self.opportunistic_retransmission,
            hack1: self.hack1,
            hack1_text: self.hack1_text,
            schedule: self.schedule,
            detection: self.loss_detection,
            send_buffer: self.send_buffer_growth,
            initial_cwnd: self.initial_window,
            linear_timeouts: LINEAR_TIMEOUTS,
            retries: Config::default().retries + LINEAR_TIMEOUTS,
            ..common(split, limits)
        }
    }
}

/// Returns the configuration of the connection with the server. Our choice: BBR. The gateway stands in for the client's
/// own sender, which is unknown. If the wired part loses 0.5 %, a loss-based sender has a tenth of the throughput of a
/// client with BBR. A sender that takes losses for the radio's (QARR) overruns small buffers of other networks. BBR is
/// as good as each of them, with and without losses, before small and large buffers.
pub(super) fn towards_server(split: &SplitConfig, limits: &LimitsConfig) -> Config {
    Config { congestion: CongestionName::Bbr, ..common(split, limits) }
}

fn common(split: &SplitConfig, limits: &LimitsConfig) -> Config {
    Config {
        send_buffer_max: limits.max_flow_buffer_bytes,
        receive_buffer: ReceiveBuffer::Auto {
            initial: RECEIVE_INITIAL.min(split.receive_window_bytes),
            max: split.receive_window_bytes,
        },
        receive_window: split.receive_window,
        drwa_lambda_percent: split.drwa_lambda_percent,
        // Data of one end leaves for the other at once. An application that writes less than a segment has its reason.
        nagle: false,
        // Keep-alive detects an end that is gone. Nobody else remembers the flow.
        keep_alive: Some(KeepAlive::default()),
        ..Config::default()
    }
}

/// Linux's initial receive window (65,535 bytes, tcp_select_initial_window), grown as it is used.
const RECEIVE_INITIAL: u32 = 65_535;

/// As `by_name`, for an optional name.
mod by_name_if_any {
    use core::fmt::Display;
    use core::str::FromStr;

    use paceline_tcp::UnknownName;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(name: &Option<impl Display>, to: S) -> Result<S::Ok, S::Error> {
        match name {
            Some(name) => crate::by_name::serialize(name, to),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err = UnknownName>,
    {
        crate::by_name::deserialize(from).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiving_side_is_sized_as_asked() {
        let split = SplitConfig {
            receive_window: ReceiveWindowName::Drwa,
            drwa_lambda_percent: 200,
            ..SplitConfig::default()
        };
        for config in [
            towards_server(&split, &LimitsConfig::default()),
            SenderConfig::default().towards_client(&split, &LimitsConfig::default()),
        ] {
            assert_eq!((config.receive_window, config.drwa_lambda_percent), (ReceiveWindowName::Drwa, 200));
        }
    }

    #[test]
    fn the_schedule_of_the_sender_is_the_clients() {
        let sender = SenderConfig { schedule: ScheduleName::Suppressing, ..SenderConfig::default() };
        let config = sender.towards_client(&SplitConfig::default(), &LimitsConfig::default());
        assert_eq!(config.schedule, ScheduleName::Suppressing);
        assert_eq!(
            towards_server(&SplitConfig::default(), &LimitsConfig::default()).schedule,
            ScheduleName::Window
        );
    }

    /// TCP-NCL's own congestion response is halving and Reno's growth, unless another congestion control is set.
    #[test]
    fn ncl_answers_congestion_as_published() {
        let of = |sender: SenderConfig| {
            sender.towards_client(&SplitConfig::default(), &LimitsConfig::default()).congestion
        };
        let ncl = SenderConfig { loss_detection: DetectionName::Ncl, ..SenderConfig::default() };
        assert_eq!((of(SenderConfig::default()), of(ncl)), (CongestionName::Cubic, CongestionName::Reno));
        let cubic = SenderConfig { congestion_control: Some(CongestionName::Cubic), ..ncl };
        assert_eq!(of(cubic), CongestionName::Cubic);
    }
}
