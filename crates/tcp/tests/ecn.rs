//! Transfers through queues that mark packets.

#![allow(clippy::unwrap_used)]

mod harness;

use harness::{Duplex, client_config, mobile_path, ms};
use paceline_path::{Aqm, CodelConfig, RedConfig};
use paceline_tcp::{Config, CongestionName, DetectionName};
use paceline_wire::Duration;

fn codel() -> Aqm {
    Aqm::Codel(CodelConfig { ecn: true, ..CodelConfig::default() })
}

fn duplex(config: Config, client_ecn: bool, aqm: Aqm) -> Duplex {
    let (mut down, up) = mobile_path(20.0, ms(50), 0);
    down.aqm = aqm;
    let client = Config { ecn: client_ecn, ..client_config(2_000_000) };
    Duplex::new(config, client, down, up, 7)
}

#[test]
fn a_marked_path_is_filled_without_a_loss() {
    for &congestion in CongestionName::ALL {
        for &detection in [DetectionName::RackTlp, DetectionName::Rfc6675, DetectionName::Ncl].iter() {
            let config = Config { congestion, detection, ecn: true, ..Config::default() };
            let mut duplex = duplex(config, true, codel());
            let end = duplex.now + Duration::from_secs(20);
            duplex.run(end, &mut ());
            let status = duplex.server_status().unwrap();
            let counters = *duplex.down.counters();
            let what = format!("{congestion} {detection}: {status:?} {counters:?}");
            // TCP-NCL retransmits unnecessarily while the queue grows, and retransmissions cannot be marked.
            if detection != DetectionName::Ncl {
                assert_eq!((counters.dropped().packets, status.sent.total_retrans), (0, 0), "{what}");
            }
            assert!(duplex.received > 20 * 1_500_000, "{} {what}", duplex.received);
            // Vegas keeps its queue below the target, and BBR near it.
            if !matches!(congestion, CongestionName::Vegas | CongestionName::Bbr | CongestionName::Rre) {
                assert!(status.episodes.ecn_reductions > 3 && counters.marked.packets > 3, "{what}");
            }
            assert!(status.episodes.ecn_reductions <= counters.marked.packets, "{what}");
        }
    }
}

#[test]
fn without_agreement_the_queue_drops() {
    for client_ecn in [true, false] {
        let config = Config { ecn: !client_ecn, ..Config::default() };
        let mut duplex = duplex(config, client_ecn, codel());
        let end = duplex.now + Duration::from_secs(10);
        duplex.run(end, &mut ());
        let counters = *duplex.down.counters();
        assert!(counters.marked.packets == 0 && counters.dropped_by_aqm.packets > 3, "{counters:?}");
    }
}

#[test]
fn a_queue_that_marks_and_drops_delivers_everything() {
    let red = Aqm::Red(RedConfig { ecn: true, ..RedConfig::default() });
    let mut duplex = duplex(Config { ecn: true, ..Config::default() }, true, red);
    duplex.to_write = 5_000_000;
    let end = duplex.now + Duration::from_secs(60);
    duplex.run(end, &mut ());
    assert_eq!(duplex.received, 5_000_000);
}
