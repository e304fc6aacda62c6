//! Decides what a new flow becomes, by what is known of its client. The first rule that holds decides.
//!
//! The figures behind the rules are in docs/design/auto.md, measured by `paceline profiles`. Where no rule holds, the
//! transparent mode is the best of the fixed profiles, or within some percent of it.

use paceline_tcp::{CongestionName, ReductionName};

use super::history::{ClientRecord, KnownPath};
use super::{Decision, DecisionKind, Reason};
use crate::mode::Mode;
use crate::split::SenderConfig;

/// Our choice: less data than this does not show a loss rate.
const LOSS_BYTES_MIN: u64 = 200_000;
/// By measurement: these paths hold 450 KB (20 Mbit/s x 180 ms, 100 Mbit/s x 36 ms) and lose more than one packet in
/// 20,000. There a hole keeps the client's window closed for longer than the gateway's schedule can look beyond it.
/// That costs up to a sixth of the throughput.
const LONG_PATH: u64 = 450_000;
const SOME_LOSS_PPM: u64 = 50;
/// More loss than this stays transparent. By measurement: where one packet in twenty is lost, no sender of ours is
/// better than the transparent mode.
const ENOUGH_LOSS_PPM: u64 = 20_000;
/// By measurement: a smaller window limits its client, and only the transparent mode sends beyond a window.
const SMALL_WINDOW: u64 = 65_535;

/// Decides on a new flow. `may_split` is false if its SYN has data or asks for TCP Fast Open.
pub(crate) fn decide(known: &KnownPath, may_split: bool) -> Decision {
    let default = |reason| Decision { what: DecisionKind::Mode(Mode::Transparent), reason };
    let split = |sender, reason| Decision { what: DecisionKind::Mode(Mode::Split(sender)), reason };
    let Some(client) = &known.client else { return default(Reason::Unknown) };
    if !may_split {
        return default(Reason::Ordinary);
    }
    // Late ACKs on a full or slow uplink starve every sender that waits for them. RRE uses the client's clock (RRE,
    // Section II).
    if known.has_late_acks() {
        return split(rre(), Reason::LateAcks);
    }
    if loses_much(client) {
        return split(SenderConfig::default(), Reason::LossyPath);
    }
    default(Reason::Ordinary)
}

/// RRE, with the rate reduction and the windows that it was published with.
fn rre() -> SenderConfig {
    SenderConfig {
        congestion_control: Some(CongestionName::Rre),
        rate_reduction: ReductionName::Prr,
        opportunistic_retransmission: false,
        ..SenderConfig::default()
    }
}

/// True if losses do not follow load and the client's window is not the limit. The known rate may be a quarter above
/// the mean.
fn loses_much(client: &ClientRecord) -> bool {
    let all = client.delivered + client.lost;
    let path = client.rtt.map_or(0, |rtt| client.rate.bytes_in(rtt));
    if all < LOSS_BYTES_MIN
        || path < LONG_PATH
        || client.window <= SMALL_WINDOW
        || client.window < path / 4 * 3
    {
        return false;
    }
    let ppm = client.lost.saturating_mul(1_000_000) / all;
    (SOME_LOSS_PPM..=ENOUGH_LOSS_PPM).contains(&ppm)
}

#[cfg(test)]
mod tests {
    use paceline_wire::{Duration, Instant, Rate};

    use super::*;

    fn with(client: ClientRecord) -> KnownPath {
        let now = Instant::ZERO + Duration::from_secs(100);
        KnownPath { client: Some(client), server_rtt: None, now }
    }

    #[test]
    fn the_default_is_transparent() {
        let unknown = decide(&KnownPath::default(), true);
        assert_eq!((unknown.what, unknown.reason), (DecisionKind::Mode(Mode::Transparent), Reason::Unknown));
        let ordinary = ClientRecord { delivered: 4_000_000, lost: 40_000, ..Default::default() };
        assert_eq!(decide(&with(ordinary), true).reason, Reason::Ordinary);
    }

    #[test]
    fn late_acks_ask_for_rre_and_lossy_path_for_a_sender_that_repairs() {
        let late = with(ClientRecord {
            late_acks: Some(Instant::ZERO + Duration::from_secs(90)),
            ..Default::default()
        });
        assert_eq!(
            decide(&late, true),
            Decision { what: DecisionKind::Mode(Mode::Split(rre())), reason: Reason::LateAcks }
        );
        assert_eq!(decide(&late, false).what, DecisionKind::Mode(Mode::Transparent));
        let lossy = ClientRecord {
            delivered: 4_000_000,
            lost: 1_448,
            window: 1_300_000,
            rtt: Some(Duration::from_millis(100)),
            rate: Rate::from_mbps(90.0),
            ..ClientRecord::default()
        };
        assert_eq!(decide(&with(lossy), true).reason, Reason::LossyPath);
        for other in [
            ClientRecord { window: 800_000, ..lossy },
            ClientRecord { delivered: 100_000, ..lossy },
            ClientRecord { lost: 100, ..lossy },
            ClientRecord { lost: 200_000, ..lossy },
            ClientRecord { rate: Rate::from_mbps(9.0), ..lossy },
        ] {
            assert_eq!(decide(&with(other), true).reason, Reason::Ordinary, "{other:?}");
        }
    }
}
