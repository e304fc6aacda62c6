//! Dynamic receive window adjustment (DRWA) for a client that lacks it: the window that it would advertise with DRWA.
//!
//! The algorithm is the receiver's own ([`paceline_tcp::receive_window`]). Acknowledged bytes count as read by the
//! client. The RTT is the sum of two: gateway to client, sampled by every ACK, and the shortest between server and
//! gateway.

use paceline_tcp::receive_window::{Arrival, Drwa};
use paceline_tcp::{Config, ReceiveBuffer, ReceiveWindow, ReceiveWindowName};
use paceline_wire::{Duration, Instant};

use crate::config::VirtualWindowConfig;

/// DRWA for one flow.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ClientDrwa {
    drwa: Drwa,
    /// Position up to which the client has acknowledged.
    acked: u64,
    /// Number of RTT samples. It identifies a sample as the timestamp does for a receiver.
    samples: u32,
}

/// Input from one ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckView {
    pub(crate) now: Instant,
    pub(crate) ack: u64,
    /// The right edge that the server was last shown.
    pub(crate) edge: u64,
    /// Round trip from the server to the client, if this ACK measures it.
    pub(crate) rtt: Option<Duration>,
}

/// Linux's initial window: tcp_rmem, second value, of which half is window.
const INITIAL_BYTES: u32 = 65_536;

impl ClientDrwa {
    /// Creates the state of a flow acknowledged up to `acked`. Its window never exceeds `max_bytes`.
    pub(crate) fn new(config: &VirtualWindowConfig, acked: u64, max_bytes: u64) -> Self {
        let max = u32::try_from(max_bytes).unwrap_or(u32::MAX);
        // A receiver with DRWA starts as the operating system does. A window once shown cannot be taken back.
        let receive_buffer = ReceiveBuffer::Auto { initial: INITIAL_BYTES.min(max), max };
        let drwa_lambda_percent = config.drwa_lambda_percent;
        let tcp = Config { receive_buffer, drwa_lambda_percent, ..Config::default() };
        let mut drwa = match config.drwa {
            ReceiveWindowName::DrwaText => Drwa::text(&tcp),
            ReceiveWindowName::DrwaAdaptive => Drwa::adaptive(&tcp),
            _ => Drwa::new(&tcp),
        };
        drwa.start_at(acked);
        ClientDrwa { drwa, acked, samples: 0 }
    }

    /// Returns the window that the client would advertise.
    pub(crate) fn window(&mut self, view: AckView) -> u64 {
        let AckView { now, ack, edge, rtt } = view;
        if let Some(rtt) = rtt {
            self.samples = self.samples.wrapping_add(1);
            self.drwa.on_rtt(now, self.samples, rtt);
        }
        if ack > self.acked {
            self.drwa.on_segment(&Arrival { now, len: ack - self.acked, unread: 0, nxt: self.acked, edge });
            self.acked = ack;
            self.drwa.on_read(now, ack);
        }
        self.drwa.free(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of 500 bytes a millisecond and a path of 80 ms. The client offers 262,144 bytes: half a second of queue.
    #[test]
    fn the_window_is_lowered_to_what_the_path_needs() {
        for lambda in [2, 3] {
            let drwa_lambda_percent = 100 * lambda as u32;
            let flight =
                settled(&VirtualWindowConfig { drwa_lambda_percent, ..VirtualWindowConfig::default() });
            let target = lambda * 80 * 500;
            assert!((target * 8 / 10..target * 12 / 10).contains(&flight), "{flight} of {target}");
        }
    }

    /// Returns the bytes in flight at the end.
    fn settled(config: &VirtualWindowConfig) -> u64 {
        let mut client = ClientDrwa::new(config, 0, 8_000_000);
        let (mut now, mut ack, mut edge) = (Instant::ZERO, 0u64, 10_000u64);
        for _ in 0..3_000 {
            let flight = edge - ack;
            let rtt = Duration::from_micros((flight * 2).max(80_000));
            now += Duration::from_micros(2 * 2_896);
            ack = (ack + 2_896).min(edge);
            let window = client.window(AckView { now, ack, edge, rtt: Some(rtt) }).min(262_144);
            edge = edge.max(ack + window);
        }
        edge - ack
    }
}
