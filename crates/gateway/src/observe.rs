//! What happens to a flow, as one stream of events for logs, plots and tests.

use paceline_wire::{Duration, FlowKey, Instant, Rate};

use crate::auto::Decision;
use crate::handshake::Shifts;
use crate::status::FlowStatus;

/// An event of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it is made once for a flow, and handed over by reference")]
pub enum Event {
    /// Both SYNs are through. Comes before the SYN-ACK leaves, so that shifts can be stored in time.
    Opened(Shifts),
    /// All that there is to say of a flow that is over, or forgotten. Comes before `Closed`.
    Ended(FlowStatus),
    /// The flow is over, or forgotten.
    Closed,
    /// The flow is split from here on. Comes before the client is answered.
    SplitOpened,
    /// The split flow is over.
    SplitClosed,
    /// Payload is new to the client: acknowledged, or of a split flow sent for the first time. Each byte counts once.
    NewData {
        /// Payload bytes.
        bytes: u64,
    },
    /// Data left for the client.
    Sent {
        /// Payload bytes.
        bytes: u64,
        /// Time since they came from the server.
        sojourn: Duration,
        /// It had left before.
        retransmission: bool,
    },
    /// An ACK passed towards the server.
    Acked {
        /// Window of the client, in bytes.
        client_window: u64,
        /// Window shown to the server, in bytes.
        virtual_window: u64,
        /// Bytes in flight to the client.
        in_flight: u64,
        /// Bytes waiting in the gateway.
        waiting: u64,
        /// Reception rate R, zero before the first estimate.
        rate: Rate,
        /// Smoothed RTT to the client, zero before the first sample.
        rtt: Duration,
        /// Delay added to the ACK.
        delay: Duration,
    },
    /// The round trip to the client was measured.
    Measured {
        /// Of one packet that left once.
        rtt: Duration,
        /// The shortest of late among the subscriber's flows.
        rtt_min: Option<Duration>,
    },
    /// Data was found lost.
    Lost {
        /// Bytes.
        bytes: u64,
    },
    /// The gateway's retransmission timer expired.
    Timeout,
    /// The server repairs from here on.
    GaveUp,
    /// `auto` has decided something about the flow, or about its subscriber's link.
    Decided(Decision),
}

/// Receives every event.
pub trait Observer {
    /// `event` happened to `flow` (source: the client) at `now`.
    fn on_event(&mut self, now: Instant, flow: &FlowKey, event: &Event);
}

/// Ignores everything.
impl Observer for () {
    fn on_event(&mut self, _now: Instant, _flow: &FlowKey, _event: &Event) {}
}
