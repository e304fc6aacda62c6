//! The events of a flow, as one stream for logs, plots and tests.

use paceline_wire::{Duration, FlowKey, Instant, Rate};

use crate::auto::Decision;
use crate::handshake::Shifts;
use crate::status::FlowStatus;

/// An event of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it is made once for a flow, and handed over by reference")]
pub enum Event {
    /// Both SYNs have passed. The event precedes the SYN-ACK, so that the shifts can be stored in time.
    Opened(Shifts),
    /// The final status of a flow that is over, or forgotten. The event precedes `Closed`.
    Ended(FlowStatus),
    /// The flow is over, or forgotten.
    Closed,
    /// The flow is split. The event precedes the answer to the client.
    SplitOpened,
    /// The split flow is over.
    SplitClosed,
    /// The client has new payload: acknowledged, or sent for the first time if the flow is split. Each byte counts
    /// once.
    NewData {
        /// Payload bytes.
        bytes: u64,
    },
    /// Data left for the client.
    Sent {
        /// Payload bytes.
        bytes: u64,
        /// Time since the data came from the server.
        sojourn: Duration,
        /// True if it had left before.
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
        /// Round trip of one packet that was sent only once.
        rtt: Duration,
        /// The shortest recent round trip among the subscriber's flows.
        rtt_min: Option<Duration>,
    },
    /// Data was found lost.
    Lost {
        /// Payload bytes.
        bytes: u64,
    },
    /// The gateway's retransmission timer expired.
    Timeout,
    /// The server repairs the flow from here on.
    GaveUp,
    /// `auto` has decided something about the flow, or about its subscriber's link.
    Decided(Decision),
}

/// Receives all events.
pub trait Observer {
    /// `event` happened to `flow` (source: the client) at `now`.
    fn on_event(&mut self, now: Instant, flow: &FlowKey, event: &Event);
}

/// Ignores all events.
impl Observer for () {
    fn on_event(&mut self, _now: Instant, _flow: &FlowKey, _event: &Event) {}
}
