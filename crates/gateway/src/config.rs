//! Configuration of the gateway, part by part. Each part can be switched by name, so that each figure of the thesis can
//! be reproduced with parts off.

mod profile;
mod sharing;

use alloc::string::String;

use paceline_tcp::{ReceiveWindowName, ReceptionRate};

use crate::split::SplitConfig;

pub use profile::Profile;
use sharing::is_rate;
pub use sharing::{
    FlowAction, FlowMatch, FlowRule, OtherMode, Rules, ShareConfig, SharingConfig, SubscriberRule,
};

/// The configuration of a gateway. The default is the full accelerator.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GatewayConfig {
    /// Mode of a new flow, unless a rule says otherwise.
    pub mode: FlowMode,
    /// The window shown to the server.
    pub virtual_window: VirtualWindowConfig,
    /// When a packet may leave for the client (Section 4.3).
    pub schedule: ScheduleConfig,
    /// Who repairs what the radio link loses (Chapter 5).
    pub retransmission: RetransmissionConfig,
    /// Delay added to acknowledgements (Chapter 6).
    pub rtt_modulation: RttModulationConfig,
    /// The bound on what a subscriber may have outstanding.
    pub queue_bound: QueueBoundConfig,
    /// Whose packet leaves next (Chapter 7).
    pub sharing: SharingConfig,
    /// Algorithms of split flows.
    pub split: SplitConfig,
    /// Limits on memory and on the life of idle flows.
    pub limits: LimitsConfig,
    /// Rules for flows and subscribers.
    #[serde(skip)]
    pub rules: Rules,
}

/// How the gateway serves a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowMode {
    /// The two ends keep their own sequence numbers and acknowledgements.
    Transparent,
    /// Two connections back to back. The gateway acknowledges to each end, and sends with its own algorithms.
    Split,
    /// The gateway chooses by what it has measured ([`crate::auto`]).
    #[default]
    Auto,
}

/// How the window shown to the server is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VirtualWindowMode {
    /// The client's own window.
    None,
    /// A constant, as in the thesis (10 MB there).
    Fixed,
    /// The window that the flow's rate needs over its path, plus a target.
    #[default]
    Sized,
    /// The client's own, lowered to the window that it would advertise with dynamic receive window adjustment.
    Drwa,
}

/// The virtual advertised window.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct VirtualWindowConfig {
    /// How the window is chosen.
    pub mode: VirtualWindowMode,
    /// The constant of `fixed`, the ceiling of `sized` and `drwa`, in bytes.
    pub max_bytes: u64,
    /// Variant of DRWA in the mode `drwa`: `drwa`, `drwa-text`, or `drwa-adaptive`, whose lambda follows the link.
    #[serde(with = "crate::by_name")]
    pub drwa: ReceiveWindowName,
    /// DRWA's lambda in hundredths; the initial one of `drwa-adaptive`.
    pub drwa_lambda_percent: u32,
    /// Data that `sized` lets wait in the gateway, in milliseconds of the flow's rate.
    pub target_ms: u64,
    /// Add the window scale option to the SYN of a client that lacks it, and raise a shift below 5.
    pub add_window_scale: bool,
}

impl Default for VirtualWindowConfig {
    fn default() -> Self {
        // 8,000,000 < 65,535 << 7. A larger ceiling needs a larger shift. The larger the shift, the more wrong is the
        // window that each end reads while the gateway is away (design: fail open).
        VirtualWindowConfig {
            mode: VirtualWindowMode::Sized,
            max_bytes: 8_000_000,
            drwa: ReceiveWindowName::Drwa,
            drwa_lambda_percent: 300,
            target_ms: 20,
            add_window_scale: true,
        }
    }
}

/// When a packet may leave towards the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleMode {
    /// On arrival. The receiver's room does not matter.
    OnArrival,
    /// When the receiver is expected to have room for it (Eqs. (6)-(10)).
    #[default]
    ReceptionRate,
}

/// The forwarding schedule and the estimator that feeds it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ScheduleConfig {
    /// When a packet may leave.
    pub mode: ScheduleMode,
    /// k of Eqs. (3) and (5): the number of acknowledgements in one rate sample.
    pub ack_interval: usize,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        ScheduleConfig { mode: ScheduleMode::ReceptionRate, ack_interval: ReceptionRate::ACK_INTERVAL }
    }
}

/// Who repairs losses of the radio link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetransmissionMode {
    /// The server. Duplicate ACKs pass.
    None,
    /// The gateway repairs the holes that the client reports.
    Local,
    /// As `Local`. The gateway also resends at once what the client must have discarded beyond its window (Eq. (12),
    /// Fig. 12).
    #[default]
    Proactive,
}

/// Local retransmission.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RetransmissionConfig {
    /// Who repairs.
    pub mode: RetransmissionMode,
    /// Number of consecutive timeouts of the gateway after which the server has to repair.
    pub give_up_after_timeouts: u32,
}

impl Default for RetransmissionConfig {
    fn default() -> Self {
        // Our choice: six doublings from some 300 ms are 19 s. After that only end-to-end recovery is left to try.
        RetransmissionConfig {
            mode: RetransmissionMode::Proactive,
            give_up_after_timeouts: LINEAR_TIMEOUTS + 6,
        }
    }
}

/// Our choice: towards a client, in either mode, the first 30 consecutive timeouts do not double the timer. Linux does
/// so for six timeouts of thin streams (tcp_thin_linear_timeouts). docs/design/decisions.md has measurements with other
/// numbers. The cost is at most one packet in 100 ms.
pub const LINEAR_TIMEOUTS: u32 = 30;

/// Whether acknowledgements are delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttModulationMode {
    /// Never.
    None,
    /// Eqs. (14)-(17). The delay shrinks again when the server cannot keep up.
    #[default]
    Modulated,
    /// Eqs. (14)-(17) as printed: nothing limits a step, and nothing takes D back.
    Text,
}

/// RTT modulation.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RttModulationConfig {
    /// Whether ACKs are delayed.
    pub mode: RttModulationMode,
    /// L of Eq. (16): the number of local retransmissions that must fit into the server's timeout.
    pub attempts: u32,
    /// beta of Eq. (17), below 4.
    pub beta: u32,
}

impl Default for RttModulationConfig {
    fn default() -> Self {
        // The text gives beta = 2 and no L. Our choice: L = 1. A Linux server's RTO is at least SRTT + 200 ms, which
        // allows one more attempt on a radio link of up to 150 ms.
        RttModulationConfig { mode: RttModulationMode::Modulated, attempts: 1, beta: 2 }
    }
}

/// Whether a subscriber's outstanding bytes are bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueBoundMode {
    /// As in the thesis: only each receiver's buffer limits them.
    None,
    /// The rate times the shortest RTT, plus a queue target (docs/design/queue-bound.md).
    #[default]
    Adaptive,
}

/// Whether a short wait or full use matters more on a link that varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefer {
    /// A shorter wait. A varying link is idle for some percent of the time.
    Latency,
    /// Most of the link, with a short wait.
    #[default]
    Balanced,
    /// The link is hardly ever idle.
    Throughput,
}

impl Prefer {
    /// Returns the size of the queue in mean errors of the forecast, in percent. Our choice, by measurement
    /// (docs/design/queue-bound.md).
    pub fn error_gain_percent(self) -> u64 {
        match self {
            Prefer::Latency => 130,
            Prefer::Balanced => 300,
            Prefer::Throughput => 600,
        }
    }
}

/// The bound on the bottleneck queue.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct QueueBoundConfig {
    /// Whether the bound is on.
    pub mode: QueueBoundMode,
    /// What matters more on a link that varies.
    pub prefer: Prefer,
    /// The queue target in milliseconds. Without it the rule chooses.
    pub target_ms: Option<u64>,
    /// Whether the queue before the uplink is bounded, by the windows shown to clients.
    pub uploads: QueueBoundMode,
}

/// Limits.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Flows in the table; further ones are forwarded unchanged.
    pub max_flows: usize,
    /// Bytes of payload kept for all flows together.
    pub max_buffer_bytes: usize,
    /// Bytes of payload kept for one flow.
    pub max_flow_buffer_bytes: u64,
    /// Seconds without a packet after which a flow is forgotten.
    pub idle_timeout_s: u64,
}

impl LimitsConfig {
    /// The most memory of one flow beside the payload that it keeps. It includes a subscriber for this flow alone, and
    /// its part of tables and timers. Measured (tests/allocations.rs): 6.1 kB for a transparent flow, 8.6 kB for a
    /// split one.
    pub const FLOW_BYTES: usize = 10 << 10;
}

impl Default for LimitsConfig {
    fn default() -> Self {
        LimitsConfig {
            max_flows: 65_536,
            max_buffer_bytes: 512 << 20,
            max_flow_buffer_bytes: 16 << 20,
            // RFC 5382, REQ-5: not less than 2 hours 4 minutes for an established connection.
            idle_timeout_s: 2 * 3600 + 4 * 60,
        }
    }
}

impl GatewayConfig {
    /// Returns a configuration with every part off: packets pass as they come.
    pub fn all_off() -> Self {
        GatewayConfig {
            mode: FlowMode::Transparent,
            virtual_window: VirtualWindowConfig {
                mode: VirtualWindowMode::None,
                add_window_scale: false,
                ..VirtualWindowConfig::default()
            },
            schedule: ScheduleConfig { mode: ScheduleMode::OnArrival, ..ScheduleConfig::default() },
            retransmission: RetransmissionConfig {
                mode: RetransmissionMode::None,
                ..RetransmissionConfig::default()
            },
            rtt_modulation: RttModulationConfig {
                mode: RttModulationMode::None,
                ..RttModulationConfig::default()
            },
            queue_bound: QueueBoundConfig {
                mode: QueueBoundMode::None,
                uploads: QueueBoundMode::None,
                ..QueueBoundConfig::default()
            },
            ..GatewayConfig::default()
        }
    }

    /// Checks the values. The error is one line that names the key and the remedy.
    ///
    /// # Errors
    /// The first value that the gateway cannot work with.
    pub fn check(&self) -> Result<(), String> {
        let window = &self.virtual_window;
        let fail = |text: &str| Err(String::from(text));
        let lambdas = [window.drwa_lambda_percent, self.split.drwa_lambda_percent];
        if lambdas.iter().any(|percent| !(100..=1_000).contains(percent)) {
            return fail("drwa-lambda-percent: give 100 to 1000");
        }
        use ReceiveWindowName::{Drwa, DrwaAdaptive, DrwaText};
        if ![Drwa, DrwaText, DrwaAdaptive].contains(&window.drwa) {
            return fail("virtual-window.drwa: give drwa, drwa-text or drwa-adaptive");
        }
        if window.max_bytes < 65_535 || window.max_bytes > 1 << 30 {
            return fail(
                "virtual-window.max-bytes: give 65535 to 1073741824 bytes (RFC 7323 windows end at 1 GiB)",
            );
        }
        if self.schedule.ack_interval == 0 || self.schedule.ack_interval > 1024 {
            return fail("schedule.ack-interval: give 1 to 1024 acknowledgements");
        }
        if self.rtt_modulation.beta == 0 || self.rtt_modulation.beta >= 4 {
            return fail("rtt-modulation.beta: give 1, 2 or 3 (the thesis needs beta < 4)");
        }
        if self.rtt_modulation.attempts > 8 {
            return fail("rtt-modulation.attempts: give 0 to 8");
        }
        if self.sharing.subscriber_prefix_v4 > 32 || self.sharing.subscriber_prefix_v6 > 128 {
            return fail("sharing.subscriber-prefix: at most 32 bits (v4) and 128 bits (v6)");
        }
        if !is_rate(self.sharing.capacity_mbps) {
            return fail("sharing.capacity-mbps: give 0.001 to 1000000, or leave it out");
        }
        if !(65_535..=1 << 30).contains(&self.split.receive_window_bytes) {
            return fail("split.receive-window-bytes: give 65535 to 1073741824 bytes");
        }
        self.split.sender.check()?;
        self.rules.check()?;
        if self.limits.max_flows == 0 {
            return fail("limits.max-flows: give at least 1");
        }
        if self.limits.idle_timeout_s == 0 {
            return fail(
                "limits.idle-timeout-s: give at least 1 second, or flows are forgotten as they open",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_full_accelerator_and_passes_its_own_check() {
        let config = GatewayConfig::default();
        assert_eq!(config.check(), Ok(()));
        assert_eq!(config.retransmission.mode, RetransmissionMode::Proactive);
        assert_eq!(GatewayConfig::all_off().check(), Ok(()));
    }

    #[test]
    fn a_bad_value_is_named() {
        let mut config = GatewayConfig::default();
        config.rtt_modulation.beta = 4;
        assert!(config.check().unwrap_err().starts_with("rtt-modulation.beta"));
        let mut config = GatewayConfig::default();
        config.limits.idle_timeout_s = 0;
        assert!(config.check().unwrap_err().starts_with("limits.idle-timeout-s"));
        let share = ShareConfig { weight: 0, ..ShareConfig::default() };
        let mut config = GatewayConfig::default();
        config.rules.flows.push(FlowRule { share, ..FlowRule::default() });
        assert!(config.check().unwrap_err().starts_with("`weight`"));
    }
}
