//! What a gateway does, part by part. Every part can be switched by name, so that each figure of the thesis can be
//! redone with parts off.

mod profile;
mod sharing;

use alloc::string::String;

use paceline_tcp::ReceiveWindowName;

use crate::split::SplitConfig;

pub use profile::Profile;
use sharing::is_rate;
pub use sharing::{FlowAction, FlowMatch, FlowRule, OtherMode, ShareConfig, SharingConfig, SubscriberRule};

/// Everything that can be set on a gateway. The default is the full accelerator.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GatewayConfig {
    /// What a new flow is, unless a rule says otherwise.
    pub mode: FlowMode,
    /// The window shown to the server.
    pub virtual_window: VirtualWindowConfig,
    /// When a packet may leave for the client (Section 4.3).
    pub schedule: ScheduleConfig,
    /// Who repairs what the radio link loses (Chapter 5).
    pub retransmission: RetransmissionConfig,
    /// Delay added to acknowledgements (Chapter 6).
    pub rtt_modulation: RttModulationConfig,
    /// How much a subscriber may have outstanding.
    pub queue_bound: QueueBoundConfig,
    /// Whose packet leaves next (Chapter 7).
    pub sharing: SharingConfig,
    /// What split flows run.
    pub split: SplitConfig,
    /// Bounds on memory and on the life of idle flows.
    pub limits: LimitsConfig,
}

/// The two ways to serve a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowMode {
    /// Sequence numbers and acknowledgements are those of the ends.
    Transparent,
    /// Two connections back to back: the gateway acknowledges, and sends with algorithms of its own.
    Split,
    /// What is best for the flow by what is measured ([`crate::auto`]).
    #[default]
    Auto,
}

/// How the window towards the server is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VirtualWindowMode {
    /// The client's own window.
    None,
    /// A constant, as in the thesis (10 MB there).
    Fixed,
    /// What the flow's rate needs over its path, plus a target.
    #[default]
    Sized,
    /// The client's own, lowered to what it would advertise with dynamic receive window adjustment.
    Drwa,
}

/// The virtual advertised window.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct VirtualWindowConfig {
    /// How the window is made.
    pub mode: VirtualWindowMode,
    /// The constant of `fixed`, the ceiling of `sized` and `drwa`, in bytes.
    pub max_bytes: u64,
    /// Which DRWA the mode `drwa` is: `drwa`, `drwa-text`, or `drwa-adaptive` with a lambda that follows the link.
    #[serde(with = "crate::by_name")]
    pub drwa: ReceiveWindowName,
    /// Its lambda in hundredths, or where an adaptive one starts.
    pub drwa_lambda_percent: u32,
    /// What `sized` lets wait in the gateway, in milliseconds of the flow's rate.
    pub target_ms: u64,
    /// Add the window scale option to the SYN of a client that lacks it, and raise a shift below 5.
    pub add_window_scale: bool,
}

impl Default for VirtualWindowConfig {
    fn default() -> Self {
        // 8,000,000 < 65,535 << 7. A larger ceiling needs a larger shift, and the larger the shift, the further off is
        // the window that each end reads while the gateway is away (design: fail open).
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
    /// On arrival, whatever the receiver can hold.
    OnArrival,
    /// Eqs. (6)-(10): when the receiver is expected to have room for it.
    #[default]
    ReceptionRate,
}

/// The forwarding schedule and the estimator that feeds it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ScheduleConfig {
    /// When a packet may leave.
    pub mode: ScheduleMode,
    /// k of Eqs. (3) and (5): acknowledgements in one rate sample.
    pub ack_interval: usize,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        // Our choice, the text gives no k: 16 acknowledgements are 32 segments, some 50 ms at 7.2 Mbit/s, so that the
        // pairs of a delayed-ACK receiver and a clump of the radio scheduler stay below a tenth of a sample.
        ScheduleConfig { mode: ScheduleMode::ReceptionRate, ack_interval: 16 }
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
    /// And resends at once what the client must have discarded beyond its window (Eq. (12), Fig. 12).
    #[default]
    Proactive,
}

/// Local retransmission.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RetransmissionConfig {
    /// Who repairs.
    pub mode: RetransmissionMode,
    /// Consecutive timeouts of the gateway after which the server has to repair.
    pub give_up_after_timeouts: u32,
}

impl Default for RetransmissionConfig {
    fn default() -> Self {
        // Our choice: six doublings from some 300 ms are 19 s. By then end-to-end recovery is all that is left to try.
        RetransmissionConfig {
            mode: RetransmissionMode::Proactive,
            give_up_after_timeouts: LINEAR_TIMEOUTS + 6,
        }
    }
}

/// Our choice: towards a client the timeout is not made longer until its 31st expiry in a row, in either mode. Linux has it so for six timeouts of
/// thin streams (tcp_thin_linear_timeouts). What was measured with other numbers is in docs/design/decisions.md. It is one packet in 100 ms at most.
pub const LINEAR_TIMEOUTS: u32 = 30;

/// Whether acknowledgements are delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttModulationMode {
    /// Never.
    None,
    /// Eqs. (14)-(17), and back again when the server cannot keep up.
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
    /// L of Eq. (16): how many local retransmissions shall fit into the server's timeout.
    pub attempts: u32,
    /// beta of Eq. (17), below 4.
    pub beta: u32,
}

impl Default for RttModulationConfig {
    fn default() -> Self {
        // L is not in the text. Our choice: 1. A Linux server's RTO is at least SRTT + 200 ms, which is another
        // attempt on a radio link of up to 150 ms. beta = 2 is the text's.
        RttModulationConfig { mode: RttModulationMode::Modulated, attempts: 1, beta: 2 }
    }
}

/// Whether a subscriber's outstanding bytes are bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueBoundMode {
    /// As in the thesis: only each receiver's buffer bounds.
    None,
    /// The rate times the shortest RTT, plus a queue target (docs/design/queue-bound.md).
    #[default]
    Adaptive,
}

/// Which of the two is wanted more where a link varies: a short wait, or all that the link carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefer {
    /// A shorter wait; some percent of such a link stay idle.
    Latency,
    /// Most of the link with a short wait.
    #[default]
    Balanced,
    /// The link is hardly ever idle.
    Throughput,
}

impl Prefer {
    /// How many mean errors of the forecast the queue covers, in percent. Our choice, by measurement (docs/design/queue-bound.md).
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
    /// Whether it is on.
    pub mode: QueueBoundMode,
    /// What a link that varies is used for.
    pub prefer: Prefer,
    /// The queue target in milliseconds; the rule's own when absent.
    pub target_ms: Option<u64>,
    /// Whether the uplink's queue is bounded, too, by the windows that clients of transparent flows are shown.
    pub uploads: QueueBoundMode,
}

/// Bounds.
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
    /// The most memory of a flow beside what it keeps, with a subscriber of its own, and its part of tables and timers. Measured
    /// (tests/allocations.rs) are 6.1 kB of a transparent and 8.6 kB of a split one.
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
    /// Every part off: packets pass as they come.
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

    /// What is wrong with the values, as one line that names the key and the remedy.
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
        let sharing = &self.sharing;
        if !is_rate(sharing.capacity_mbps) {
            return fail("sharing.capacity-mbps: give 0.001 to 1000000, or leave it out");
        }
        if !(65_535..=1 << 30).contains(&self.split.receive_window_bytes) {
            return fail("split.receive-window-bytes: give 65535 to 1073741824 bytes");
        }
        self.split.sender.check()?;
        self.sharing.flows.iter().filter_map(|rule| rule.sender).try_for_each(|sender| sender.check())?;
        let empty = |rule: &FlowRule| {
            rule.matches.rtt_min_ms.zip(rule.matches.rtt_max_ms).is_some_and(|(a, b)| a > b)
        };
        if sharing.flows.iter().any(empty) {
            return fail("sharing.flows: match.rtt-min-ms is above match.rtt-max-ms");
        }
        sharing.flows.iter().try_for_each(FlowRule::check)?;
        let flows = sharing.flows.iter().map(|rule| &rule.share);
        let subscribers = sharing.subscribers.iter().map(|rule| &rule.share);
        flows
            .chain(subscribers)
            .try_for_each(ShareConfig::check)
            .map_err(|why| alloc::format!("sharing: {why}"))?;
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
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_named() {
        let ports = |first, last| FlowRule {
            matches: FlowMatch { server_port: first, server_port_last: last, ..FlowMatch::default() },
            ..FlowRule::default()
        };
        let window = |bytes| FlowRule { virtual_window_max_bytes: Some(bytes), ..FlowRule::default() };
        let check = |rule| {
            let sharing = SharingConfig { flows: alloc::vec![rule], ..SharingConfig::default() };
            GatewayConfig { sharing, ..GatewayConfig::default() }.check()
        };
        assert!(check(ports(None, Some(443))).unwrap_err().contains("without match.server-port"));
        assert!(check(ports(Some(443), Some(80))).unwrap_err().contains("above match.server-port-last"));
        assert!(check(window(0)).unwrap_err().contains("virtual-window-max-bytes"));
        for rule in
            [ports(Some(80), Some(80)), ports(Some(80), Some(443)), ports(Some(80), None), window(1 << 14)]
        {
            assert_eq!(check(rule), Ok(()));
        }
        let mut config = GatewayConfig::default();
        config.limits.idle_timeout_s = 0;
        assert!(config.check().unwrap_err().starts_with("limits.idle-timeout-s"));
    }
}
