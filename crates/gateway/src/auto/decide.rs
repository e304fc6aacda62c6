//! What a new flow becomes, by what is known of its client. A handful of rules, the first that holds decides.
//!
//! The figures behind them are in docs/design/auto.md, which `paceline profiles` measures: the transparent mode is the best of the fixed
//! profiles, or within some percent of it, wherever neither of these rules holds.

use paceline_tcp::{CongestionName, ReductionName};

use super::memory::{ClientRecord, Known};
use super::{Decision, Reason, What};
use crate::mode::Mode;
use crate::split::SenderConfig;

/// Our choice: less data than this says nothing of a loss rate.
const LOSS_BYTES_MIN: u64 = 200_000;
/// By measurement: where the path holds 450 KB (20 Mbit/s x 180 ms, 100 Mbit/s x 36 ms) and more than one packet in 20,000 is lost,
/// a hole keeps the client's window closed for longer than the gateway's schedule can look beyond it: up to a sixth is lost.
const LONG_PATH: u64 = 450_000;
const SOME_LOSS_PPM: u64 = 50;
/// By measurement: no sender of ours is better than the transparent mode where one packet in twenty is lost.
const ENOUGH_LOSS_PPM: u64 = 20_000;
/// By measurement: a client whose window is smaller is limited by it, and only the transparent mode sends beyond a window.
const SMALL_WINDOW: u64 = 65_535;

/// What becomes of a flow that might be split: data in its SYN, or a SYN of the server, say no.
pub(crate) fn decide(known: &Known, may_split: bool) -> Decision {
    let default = |reason| Decision { what: What::Mode(Mode::Transparent), reason };
    let split = |sender, reason| Decision { what: What::Mode(Mode::Split(sender)), reason };
    let Some(client) = &known.client else { return default(Reason::Unknown) };
    if !may_split {
        return default(Reason::Ordinary);
    }
    // ACKs that wait on a full or slow uplink starve every sender that waits for them; RRE goes by the client's clock (RRE, Section II).
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

/// Losses that do not follow load, of a client whose window is not the limit: the rate that is known may be above the mean by a quarter.
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

    fn with(client: ClientRecord) -> Known {
        let now = Instant::ZERO + Duration::from_secs(100);
        Known { client: Some(client), server_rtt: None, now }
    }

    #[test]
    fn the_default_is_transparent() {
        let unknown = decide(&Known::default(), true);
        assert_eq!((unknown.what, unknown.reason), (What::Mode(Mode::Transparent), Reason::Unknown));
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
            Decision { what: What::Mode(Mode::Split(rre())), reason: Reason::LateAcks }
        );
        assert_eq!(decide(&late, false).what, What::Mode(Mode::Transparent));
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
