//! Whole transfers over lossy paths, with every combination of algorithms.

#![allow(clippy::unwrap_used)]

mod harness;

use harness::{Duplex, client_config, mobile_path, ms};
use paceline_path::{LinkConfig, Loss, ScriptedLoss};
use paceline_tcp::{
    CloseReason, Config, CongestionName, DetectionName, HystartName, ReceiveBuffer, ReductionName,
    SendBufferName, State,
};
use paceline_wire::Duration;

fn finish(duplex: &mut Duplex, bytes: u64, seconds: u64, what: &str) {
    duplex.to_write = bytes;
    let end = duplex.now + Duration::from_secs(seconds);
    duplex.run(end, &mut ());
    assert_eq!(duplex.received, bytes, "{what}: {:?}", duplex.server_status());
    let server = duplex.server_status().unwrap();
    assert!(matches!(server.state, State::TimeWait | State::Closed), "{what}: {server:?}");
    assert_eq!(duplex.client_status().state, State::Closed, "{what}");
    let id = duplex.client_id;
    let reason = duplex.client.connection(id).and_then(|c| c.close_reason());
    assert_eq!(reason, Some(CloseReason::Finished), "{what}");
}

#[test]
fn every_combination_of_algorithms_delivers_everything() {
    let mut seed = 1;
    for &congestion in CongestionName::ALL {
        for &reduction in ReductionName::ALL {
            for &detection in DetectionName::ALL {
                for opportunistic in [false, true] {
                    seed += 100;
                    let (down, up) = mobile_path(20.0, ms(100), 5_000_000);
                    let send_buffer =
                        if opportunistic { SendBufferName::Refined } else { SendBufferName::Linux };
                    let server = Config {
                        congestion,
                        reduction,
                        detection,
                        opportunistic,
                        hack1: opportunistic,
                        send_buffer,
                        ..Config::default()
                    };
                    let mut duplex = Duplex::new(server, client_config(180 * 1_448), down, up, seed);
                    let what = format!("{congestion} {reduction} {detection} {opportunistic}");
                    finish(&mut duplex, 5_000_000, 120, &what);
                }
            }
        }
    }
}

#[test]
fn options_may_be_missing() {
    for (timestamps, sack, window_scaling) in
        [(true, true, false), (true, false, true), (false, true, true), (false, false, false)]
    {
        for detection in [DetectionName::RackTlp, DetectionName::Rfc6675] {
            let (down, up) = mobile_path(20.0, ms(40), 2_000_000);
            let server = Config { timestamps, sack, window_scaling, detection, ..Config::default() };
            let mut duplex = Duplex::new(server, client_config(260_640), down, up, 7);
            finish(&mut duplex, 3_000_000, 200, &format!("{timestamps} {sack} {window_scaling} {detection}"));
        }
    }
}

#[test]
fn real_bytes_arrive_as_they_were_sent() {
    for seed in 0..5 {
        let (mut down, mut up) = mobile_path(20.0, ms(30), 10_000_000);
        down.duplicate = paceline_path::random::Probability::from_ppb(10_000_000);
        down.reorder = Some(paceline_path::Reorder {
            probability: paceline_path::random::Probability::from_ppb(20_000_000),
            by: ms(8),
        });
        up.loss = down.loss.clone();
        let mut duplex = Duplex::new(Config::default(), client_config(260_640), down, up, seed * 10);
        duplex.content = true;
        finish(&mut duplex, 2_000_000, 200, &format!("seed {seed}"));
    }
}

/// 20 Mbit/s on a link that charges 1,515 bytes for 1,448 of payload: 19.12 Mbit/s, without the slow start.
#[test]
fn a_path_without_loss_is_filled() {
    for &congestion in CongestionName::ALL {
        let (down, up) = mobile_path(20.0, ms(100), 0);
        let mut duplex =
            Duplex::new(Config { congestion, ..Config::default() }, client_config(180 * 1_448), down, up, 5);
        let start = duplex.now;
        duplex.run(start + Duration::from_secs(20), &mut ());
        let first = duplex.received;
        duplex.run(start + Duration::from_secs(60), &mut ());
        let mbps = (duplex.received - first) as f64 * 8.0 / 40e6;
        let least = if congestion == CongestionName::Bbr { 18.2 } else { 19.1 };
        assert!((least..=19.13).contains(&mbps), "{congestion}: {mbps}");
        let status = duplex.server_status().unwrap();
        assert_eq!((status.sent.total_retrans, status.episodes.total_rto), (0, 0), "{congestion}");
    }
}

#[test]
fn slow_start_may_end_in_three_ways() {
    for &hystart in HystartName::ALL {
        let (down, up) = mobile_path(20.0, ms(100), 0);
        let client = client_config(4_000_000);
        let mut duplex = Duplex::new(Config { hystart, ..Config::default() }, client, down, up, 5);
        finish(&mut duplex, 20_000_000, 60, hystart.as_str());
    }
}

fn lossy(packets: &[(u64, u64)]) -> LinkConfig {
    let scripts = packets.iter().map(|&(packet, count)| ScriptedLoss { packet, count }).collect();
    LinkConfig { loss: Loss::Scripted(scripts), ..mobile_path(20.0, ms(100), 0).0 }
}

#[test]
fn one_loss_costs_one_retransmission() {
    for &detection in DetectionName::ALL {
        let up = mobile_path(20.0, ms(100), 0).1;
        let server = Config { detection, ..Config::default() };
        let mut duplex = Duplex::new(server, client_config(260_640), lossy(&[(500, 1)]), up, 3);
        finish(&mut duplex, 3_000_000, 20, detection.as_str());
        let status = duplex.server_status().unwrap();
        if matches!(detection, DetectionName::Ncl | DetectionName::NclSecondRd | DetectionName::NclAdaptive) {
            // It was no congestion. In slow start every RTT exceeds the previous ones, so the timers of many packets
            // expire.
            assert_eq!(
                (status.episodes.total_rto, status.episodes.recoveries),
                (0, 0),
                "{detection}: {status:?}"
            );
            continue;
        }
        // RFC 6675 adds one rescue to a recovery in which nothing else may leave. Here the window is full.
        let rescues =
            [DetectionName::Rfc6675, DetectionName::TcpDoor, DetectionName::RrTcp].contains(&detection);
        let retransmitted = if rescues { 2 } else { 1 };
        assert_eq!(
            (status.sent.total_retrans, status.episodes.total_rto, status.episodes.recoveries),
            (retransmitted, 0, 1),
            "{detection}: {status:?}"
        );
    }
}

#[test]
fn the_tail_is_probed_before_it_times_out() {
    // The last three segments of 100 are lost. (The SYN-ACK is packet 1, and the last segment carries the FIN.)
    let run = |detection| {
        let up = mobile_path(20.0, ms(100), 0).1;
        let server = Config { detection, ..Config::default() };
        let mut duplex = Duplex::new(server, client_config(260_640), lossy(&[(99, 3)]), up, 3);
        finish(&mut duplex, 100 * 1_448, 20, "tail");
        duplex.server_status().unwrap()
    };
    let probed = run(DetectionName::RackTlp);
    assert_eq!((probed.episodes.loss_probes, probed.episodes.total_rto), (1, 0), "{probed:?}");
    let timed_out = run(DetectionName::Rfc6675);
    assert_eq!((timed_out.episodes.loss_probes, timed_out.episodes.total_rto), (0, 1), "{timed_out:?}");
}

#[test]
fn a_silence_ends_in_a_timeout_and_is_survived() {
    for &detection in DetectionName::ALL {
        for &congestion in CongestionName::ALL {
            let (mut down, up) = mobile_path(20.0, ms(100), 0);
            down.outage.windows = vec![paceline_path::OutageWindow { start: ms(2_000), end: ms(5_000) }];
            down.outage.effect = paceline_path::OutageEffect::Drop;
            let server = Config { detection, congestion, ..Config::default() };
            let mut duplex = Duplex::new(server, client_config(260_640), down, up, 3);
            finish(&mut duplex, 10_000_000, 60, &format!("{detection} {congestion}"));
            // TCP-PR's own timer handles losses that others leave to the timeout.
            let timeouts = duplex.server_status().unwrap().episodes.total_rto;
            assert!(timeouts > 0 || detection == DetectionName::TcpPr, "{detection} {congestion}");
        }
    }
}

/// A path that stalls and then delivers everything. F-RTO or timestamps show that nothing was lost.
#[test]
fn a_pause_is_no_loss() {
    let (mut down, up) = mobile_path(20.0, ms(100), 0);
    down.outage.windows = vec![paceline_path::OutageWindow { start: ms(2_000), end: ms(3_000) }];
    down.outage.effect = paceline_path::OutageEffect::Hold;
    let mut duplex = Duplex::new(Config::default(), client_config(260_640), down, up, 3);
    finish(&mut duplex, 10_000_000, 60, "pause");
    let status = duplex.server_status().unwrap();
    assert!(status.episodes.total_rto > 0 && status.episodes.undos > 0, "{status:?}");
    assert!(status.sent.total_retrans < 10, "{status:?}");
}

#[test]
fn a_reader_that_sleeps_closes_the_window_and_opens_it_again() {
    let (down, up) = mobile_path(20.0, ms(100), 0);
    let mut duplex = Duplex::new(Config::default(), client_config(100_000), down, up, 3);
    duplex.to_write = 1_000_000;
    duplex.reading = false;
    let start = duplex.now;
    duplex.run(start + Duration::from_secs(30), &mut ());
    let status = duplex.server_status().unwrap();
    // The window is used to its last byte. Then probes become ever rarer.
    assert!(status.timing.backoff >= 4 && status.window.snd_wnd == 0, "{status:?}");
    assert_eq!(status.sent.total_retrans, 0);
    duplex.reading = true;
    duplex.run(start + Duration::from_secs(120), &mut ());
    assert_eq!(duplex.received, 1_000_000);
}

#[test]
fn linux_tuning_of_the_receive_buffer_lets_a_flow_grow() {
    let (down, up) = mobile_path(100.0, ms(100), 0);
    let receive_buffer = ReceiveBuffer::Auto { initial: 65_536, max: 6 << 20 };
    let client = Config { receive_buffer, ..Config::default() };
    let mut duplex = Duplex::new(Config::default(), client, down, up, 3);
    let start = duplex.now;
    duplex.run(start + Duration::from_secs(20), &mut ());
    assert!(duplex.client_status().receiver.rcvbuf > 1_250_000, "{}", duplex.client_status().receiver.rcvbuf);
    assert!(duplex.received > 150_000_000, "{}", duplex.received);
}
