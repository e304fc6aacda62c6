//! The status of a split flow, for an operator.

use paceline_tcp::{CloseReason, Status};
use paceline_wire::{Duration, Instant, Rate};

use super::split_flow::{Leg, SplitFlow};
use crate::config::{FlowMode, GatewayConfig};
use crate::status::{FlowStage, FlowStatus, FlowTotals};

impl SplitFlow {
    /// Returns a copy of its state.
    pub(super) fn status(&self, config: &GatewayConfig) -> FlowStatus {
        let server = self.server.connection.status(self.last_packet);
        let client = self.client.as_ref().map(|leg| leg.connection.status(self.last_packet));
        let segment = client.map_or(0, |status| u64::from(status.snd_mss));
        let packets =
            |count: fn(&Status) -> u32| client.map_or(0, |status| u64::from(count(&status)) * segment);
        FlowStatus {
            key: self.key,
            mode: FlowMode::Split,
            reason: self.reason,
            subscriber: config.sharing.subscriber(self.key.src.ip()),
            stage: if self.opening.is_some() { FlowStage::Opening } else { FlowStage::Open },
            since: self.since,
            last_packet: self.last_packet,
            weight: self.weight,
            rescaled: false,
            gave_up: false,
            rtt: client.and_then(|status| known(status.pulse.rtt)),
            server_rtt: Duration::from_micros(server.pulse.rtt),
            rate: Rate::from_bytes_per_sec(client.map_or(0, |status| status.window.pacing_rate)),
            client_window: client.map_or(0, |status| status.window.snd_wnd),
            in_flight: packets(|status| status.pulse.in_flight),
            waiting: client.map_or(0, |status| status.window.notsent_bytes),
            buffered: self.buffered(),
            ack_delay: Duration::ZERO,
            totals: client.map_or(FlowTotals::default(), |client| FlowTotals {
                waited: self.waited,
                ..totals(&client, &server)
            }),
        }
    }

    /// Returns its state at the end.
    pub(super) fn final_status(&self, config: &GatewayConfig, now: Instant) -> FlowStatus {
        let idle = self.expires_at(config.limits.idle_timeout_s) <= now;
        let aborted = |leg: &Leg| {
            matches!(leg.connection.close_reason(), Some(CloseReason::Reset | CloseReason::Refused))
        };
        let reset = aborted(&self.server) || self.client.as_ref().is_some_and(aborted);
        let stage = match (idle, reset) {
            (true, _) => FlowStage::Idle,
            (_, true) => FlowStage::Reset,
            _ => FlowStage::Finished,
        };
        FlowStatus { stage, ..self.status(config) }
    }
}

fn totals(client: &Status, server: &Status) -> FlowTotals {
    FlowTotals {
        downlink_bytes: client.sent.bytes_sent.saturating_sub(client.sent.bytes_retrans),
        uplink_bytes: client.receiver.bytes_received,
        departures: client.sent.data_segs_out.saturating_sub(client.sent.total_retrans),
        waited: Duration::ZERO,
        retransmissions: client.sent.total_retrans,
        retransmitted_bytes: client.sent.bytes_retrans,
        server_retransmissions: 0,
        lost_bytes: u64::from(client.pulse.lost) * u64::from(client.snd_mss),
        timeouts: client.episodes.total_rto + server.episodes.total_rto,
        rtt_min: known(client.timing.min_rtt),
    }
}

fn known(us: u64) -> Option<Duration> {
    (us > 0).then(|| Duration::from_micros(us))
}
