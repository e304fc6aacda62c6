//! A radio link with a small buffer. What it drops is no radio loss, and is not repeated without end.

use paceline_gateway::{Gateway, GatewayConfig};
use paceline_path::{QueueLimit, RateProcess, RateStep};
use paceline_wire::{Duration, Node, Rate};

use crate::kit::scenario::{FlowSpec, Path, at_ms, modern_client, world};
use crate::kit::sim::Direct;
use crate::kit::{at_least, missed};

const MBPS: f64 = 20.0;
const RUN_MS: u64 = 40_000;

/// The number of packets that the radio link's queue dropped, and payload's share of the link.
struct Outcome {
    dropped: u64,
    share: f64,
}

/// Half as many drops more than without a gateway are allowed, and fifty.
fn allowed(passing: &Outcome) -> u64 {
    passing.dropped * 3 / 2 + 50
}

/// Runs four downloads before a buffer of 15 KB. The mean of the rate is about `mbps`.
fn downloads<G: Node>(gateway: G, mbps: f64, rate: RateProcess) -> Outcome {
    let path = Path { queue: QueueLimit::Bytes(15_000), rate, ..Path::new(mbps, 10, 20) };
    let mut sim = world(gateway, &path, 1);
    let spec = |n: u64| FlowSpec { start: at_ms(n * 7), ..FlowSpec::download(modern_client(6 << 20)) };
    let flows: Vec<_> = (0..4).map(|n| sim.add_flow(&spec(n))).collect();
    sim.run_until(at_ms(RUN_MS));
    sim.checker.assert_clean();
    let goodput: f64 = flows.iter().map(|&flow| sim.goodput_between(flow, at_ms(0), at_ms(RUN_MS))).sum();
    Outcome {
        dropped: sim.radio[0].down.link.counters().dropped_by_queue.packets,
        share: goodput / (mbps * 1448.0 / 1500.0),
    }
}

#[test]
fn a_small_buffer_is_not_flooded() {
    for mbps in [2.0, 20.0] {
        let constant = || RateProcess::Constant(Rate::from_mbps(mbps));
        let passing = downloads(Direct::default(), mbps, constant());
        let with = downloads(Gateway::new(GatewayConfig::default()), mbps, constant());
        println!(
            "dropped {} and {}, share {:.3} and {:.3}",
            passing.dropped, with.dropped, passing.share, with.share
        );
        assert!(with.share >= 0.98 * passing.share);
        assert!(with.dropped <= allowed(&passing), "{} of {}", with.dropped, passing.dropped);
    }
}

/// Rates from a seventh to twice the mean, each for 100 ms, in no order.
fn varying(mbps: f64) -> RateProcess {
    let steps = (0..RUN_MS / 100).map(|n| RateStep {
        at: Duration::from_millis(n * 100),
        rate: Rate::from_mbps(mbps * (2 * (n * n * 5 % 13) + 2) as f64 / 14.0),
    });
    RateProcess::Steps(steps.collect())
}

/// At a single rate the share is 0.97 to 1.01 of that without a gateway, by chance. So the mean over several rates
/// counts.
#[test]
fn a_small_buffer_is_found_where_the_link_varies() {
    let (mut shares, mut passing_shares) = (0.0, 0.0);
    for mbps in [4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 15.0, 20.0] {
        let passing = downloads(Direct::default(), mbps, varying(mbps));
        let with = downloads(Gateway::new(GatewayConfig::default()), mbps, varying(mbps));
        println!(
            "dropped {} and {}, share {:.3} and {:.3}",
            passing.dropped, with.dropped, passing.share, with.share
        );
        assert!(with.share >= 0.95 * passing.share);
        // On a fast link the limit grows between two changes of the rate, and the next change overflows the buffer. Up
        // to 30 % more payload arrives, and one packet in eight is dropped.
        let allowed = allowed(&passing) as f64 / with.dropped as f64;
        let what = format!("drops that are allowed over those on {mbps} Mbit/s");
        if mbps < 15.0 {
            at_least(&what, allowed, 1.0)
        } else {
            missed(&what, allowed, 1.0, 0.45)
        }
        (shares, passing_shares) = (shares + with.share, passing_shares + passing.share);
    }
    assert!(shares >= 0.98 * passing_shares, "{shares} of {passing_shares}");
}

#[test]
fn beside_an_upload_downloads_pass_through() {
    let path = Path {
        queue: QueueLimit::Bytes(75_000),
        uplink_queue: QueueLimit::Bytes(75_000),
        uplink_rate: RateProcess::Constant(Rate::from_mbps(5.0)),
        ..Path::new(MBPS, 10, 20)
    };
    // The starts decide which flow loses what, so the mean over several starts counts.
    let starts = [3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41];
    let mut sums = [[0.0; 2]; 2];
    for apart_ms in starts {
        let off = beside_upload(Direct::default(), &path, apart_ms);
        let with = beside_upload(Gateway::new(GatewayConfig::default()), &path, apart_ms);
        println!(
            "downloads {:.2} and {:.2}, upload {:.2} and {:.2} Mbit/s",
            off[0], with[0], off[1], with[1]
        );
        for (sum, run) in sums.iter_mut().zip([off, with]) {
            *sum = [sum[0] + run[0], sum[1] + run[1]];
        }
    }
    let [off, with] = sums;
    assert!(with[0] + with[1] >= 0.98 * (off[0] + off[1]));
}

fn beside_upload<G: Node>(gateway: G, path: &Path, apart_ms: u64) -> [f64; 2] {
    let mut sim = world(gateway, path, 1);
    let spec = FlowSpec::download(modern_client(6 << 20));
    let downloads: Vec<_> =
        (0..4).map(|n| sim.add_flow(&FlowSpec { start: at_ms(n * apart_ms), ..spec.clone() })).collect();
    let mut upload = spec;
    std::mem::swap(&mut upload.client_sends, &mut upload.server_sends);
    let upload = sim.add_flow(&upload);
    sim.run_until(at_ms(RUN_MS));
    sim.checker.assert_clean();
    let whole = |flow| sim.goodput_between(flow, at_ms(0), at_ms(RUN_MS));
    [downloads.into_iter().map(whole).sum(), sim.upload(upload).goodput_mbps]
}
