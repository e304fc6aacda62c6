//! Named sets of parts: those of the text, one after the other, and those that we recommend.

use super::{
    FlowMode, GatewayConfig, RetransmissionMode, RttModulationMode, ScheduleMode, VirtualWindowMode,
};

/// The window that the text shows to a server, in bytes.
const TEXT_WINDOW: u64 = 10_000_000;

/// A named set of parts. Each from `Null` to `Thesis` adds one part to the one before it. [`Profile::about`] describes
/// each.
#[allow(missing_docs, reason = "`about` says it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    Null,
    Window,
    Schedule,
    Local,
    Proactive,
    Thesis,
    Full,
    Drwa,
    Split,
    Auto,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 10] = [
        Profile::Null,
        Profile::Window,
        Profile::Schedule,
        Profile::Local,
        Profile::Proactive,
        Profile::Thesis,
        Profile::Full,
        Profile::Drwa,
        Profile::Split,
        Profile::Auto,
    ];

    /// Returns the name that files and commands use.
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns a description in one sentence.
    pub const fn about(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Profile::Null => ("null", "A gateway with every part off"),
            Profile::Window => ("window", "The window towards the server is a constant 10 MB"),
            Profile::Schedule => ("schedule", "`window`, and packets leave as the reception rate allows"),
            Profile::Local => ("local", "`schedule`, and the gateway repairs holes that the client reports"),
            Profile::Proactive => {
                ("proactive", "`local`, and the gateway repeats at once what the client must have discarded")
            }
            Profile::Thesis => (
                "thesis",
                "`proactive`, and RTT modulation as printed: everything in the published text, and nothing else",
            ),
            Profile::Full => ("full", "A sized window and a bounded queue. Every flow is transparent"),
            Profile::Drwa => (
                "drwa",
                "Only the client's window, lowered to what it would advertise with dynamic receive window adjustment",
            ),
            Profile::Split => ("split", "Every flow is split. The gateway sends to its client"),
            Profile::Auto => {
                ("auto", "The default of `gateway`: it chooses mode and sender by what it measures")
            }
        }
    }

    /// Returns its configuration.
    pub fn config(self) -> GatewayConfig {
        let default = GatewayConfig::default();
        match self {
            Profile::Full => GatewayConfig { mode: FlowMode::Transparent, ..default },
            Profile::Split => GatewayConfig { mode: FlowMode::Split, ..default },
            Profile::Auto => default,
            Profile::Drwa => {
                let mut config = GatewayConfig::all_off();
                config.virtual_window.mode = VirtualWindowMode::Drwa;
                config
            }
            _ => self.of_text(),
        }
    }

    fn of_text(self) -> GatewayConfig {
        let mut config = GatewayConfig::all_off();
        if self >= Profile::Window {
            config.virtual_window.mode = VirtualWindowMode::Fixed;
            config.virtual_window.max_bytes = TEXT_WINDOW;
            config.virtual_window.add_window_scale = true;
        }
        if self >= Profile::Schedule {
            config.schedule.mode = ScheduleMode::ReceptionRate;
        }
        config.retransmission.mode = match self {
            Profile::Local => RetransmissionMode::Local,
            _ if self >= Profile::Proactive => RetransmissionMode::Proactive,
            _ => RetransmissionMode::None,
        };
        if self == Profile::Thesis {
            config.rtt_modulation.mode = RttModulationMode::Text;
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::super::QueueBoundMode;
    use super::*;

    #[test]
    fn each_profile_adds_a_part() {
        let local = Profile::Local.config();
        assert_eq!(local.retransmission.mode, RetransmissionMode::Local);
        assert_eq!(local.rtt_modulation.mode, RttModulationMode::None);
        let thesis = Profile::Thesis.config();
        assert_eq!(thesis.rtt_modulation.mode, RttModulationMode::Text);
        assert_eq!(thesis.queue_bound.mode, QueueBoundMode::None);
        assert_eq!(Profile::Null.config(), GatewayConfig::all_off());
        let drwa = Profile::Drwa.config();
        assert_eq!(drwa.virtual_window.mode, VirtualWindowMode::Drwa);
        assert_eq!(
            GatewayConfig { virtual_window: GatewayConfig::all_off().virtual_window, ..drwa },
            GatewayConfig::all_off()
        );
        let split = Profile::Split.config();
        assert_eq!(GatewayConfig { mode: FlowMode::Auto, ..split }, GatewayConfig::default());
    }
}
