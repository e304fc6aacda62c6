//! The one stream of events that tests, logs and plots read.

use core::fmt::Debug;

use paceline_wire::{Duration, Instant};

use crate::congestion::CaState;

/// Something that happened in a connection. Positions are of the 64-bit stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is over.
    Established,
    /// A data segment was sent.
    Sent {
        /// First position.
        start: u64,
        /// Position after the last.
        end: u64,
        /// It had been sent before.
        retransmission: bool,
    },
    /// New data was acknowledged or reported as arrived.
    Delivered {
        /// SND.UNA.
        una: u64,
        /// Packets newly delivered.
        packets: u32,
        /// The RTT, where one was measured.
        rtt: Option<Duration>,
    },
    /// Segments were taken for lost.
    Lost {
        /// How many.
        packets: u32,
    },
    /// The sender went over to another state.
    State {
        /// From.
        from: CaState,
        /// To.
        to: CaState,
    },
    /// cwnd or ssthresh changed.
    Window {
        /// cwnd in packets.
        cwnd: u32,
        /// ssthresh in packets.
        ssthresh: u32,
        /// Pipe in packets.
        in_flight: u32,
    },
    /// The retransmission timer expired.
    RetransmissionTimeout,
    /// The tail was probed.
    TailLossProbe,
    /// The window was probed.
    WindowProbe,
    /// A reduction was taken back.
    Undone,
    /// There was room to send and nothing to send, because the application had not been woken.
    ApplicationStall,
    /// The connection is over.
    Closed,
}

/// Whoever wants to know.
pub trait Observer: Debug + Send {
    /// Takes an event.
    fn on_event(&mut self, now: Instant, event: Event);
}
