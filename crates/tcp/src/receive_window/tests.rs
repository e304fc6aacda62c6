use std::vec::Vec;

use paceline_wire::{Duration, Instant};
use proptest::prelude::*;

use super::*;
use crate::config::ReceiveBuffer;

#[test]
fn every_name_builds_what_it_names() {
    for &name in ReceiveWindowName::ALL {
        assert_eq!(name.build(&Config::default()).name(), name);
    }
}

fn config() -> Config {
    Config { receive_buffer: ReceiveBuffer::Auto { initial: 65_536, max: 8 << 20 }, ..Config::default() }
}

/// A path of fixed rate before the receiver. A round carries the window, or as much as the sender has.
struct Path {
    now_us: u64,
    read: u64,
    echo: u32,
}

impl Path {
    /// One round: `bytes` arrive within `rtt_us`. Each segment is acknowledged and answered at once.
    fn round(&mut self, window: &mut dyn ReceiveWindow, bytes: u64, rtt_us: u64) {
        let segments = (bytes / 1_448).max(1);
        for _ in 0..segments {
            self.now_us += rtt_us / segments;
            let now = Instant::ZERO + Duration::from_micros(self.now_us);
            self.echo += 1;
            window.on_rtt(now, self.echo, Duration::from_micros(rtt_us));
            let edge = self.read + window.free(0);
            window.on_segment(&Arrival { now, len: 1_448, unread: 0, nxt: self.read, edge });
            self.read += 1_448;
            window.on_read(now, self.read);
        }
    }

    /// One round on a path of 1,250 bytes a millisecond, `base_us` long, that the window fills. Returns the RTT.
    fn steady(&mut self, window: &mut dyn ReceiveWindow, base_us: u64) -> u64 {
        let flight = window.size();
        let rtt_us = (flight * 1_000 / 1_250).max(base_us);
        self.round(window, flight, rtt_us);
        rtt_us
    }
}

fn path() -> Path {
    Path { now_us: 1_000_000, read: 0, echo: 0 }
}

/// Algorithm 3: RTT settles at lambda x RTTmin.
#[test]
fn drwa_settles_at_lambda_times_the_shortest_rtt() {
    for lambda in [200, 300, 400] {
        let mut window = ReceiveWindowName::Drwa.build(&Config { drwa_lambda_percent: lambda, ..config() });
        let mut path = path();
        path.round(&mut *window, 14_480, 80_000);
        let rtts: Vec<u64> = (0..60).map(|_| path.steady(&mut *window, 80_000)).collect();
        let mean = rtts[40..].iter().sum::<u64>() / 20;
        let target = 800 * u64::from(lambda);
        assert!(mean > target * 85 / 100 && mean < target * 115 / 100, "lambda {lambda}: {rtts:?}");
    }
}

/// The path becomes four times as long: RTTmin follows, and the window fills it again.
#[test]
fn drwa_is_not_strangled_by_a_longer_path() {
    let mut window = ReceiveWindowName::Drwa.build(&config());
    let mut path = path();
    path.round(&mut *window, 14_480, 80_000);
    for _ in 0..40 {
        path.steady(&mut *window, 80_000);
    }
    for _ in 0..40 {
        path.steady(&mut *window, 320_000);
    }
    let view = window.path();
    assert!(view.rtt_min >= Duration::from_millis(320), "{view:?}");
    assert!(window.size() >= 320 * 1_250, "{} bytes", window.size());
}

/// DRS takes twice the data of a round trip, never shrinks, and stops at the clamp.
#[test]
fn drs_grows_to_its_clamp() {
    let buffer = ReceiveBuffer::Auto { initial: 65_536, max: 262_144 };
    for (name, most) in [(ReceiveWindowName::Drs, u64::MAX), (ReceiveWindowName::DrsClamped, 262_144)] {
        let mut window = name.build(&Config { receive_buffer: buffer, ..config() });
        let mut path = path();
        let mut before = window.size();
        for _ in 0..20 {
            let flight = window.size();
            path.round(&mut *window, flight, 100_000);
            assert!(window.size() >= before && window.size() <= most);
            before = window.size();
        }
        assert!(before > 262_143, "{name}: {before}");
    }
}

proptest! {
    /// Whatever comes: no panic, and every DRWA offers between four segments and its buffer.
    #[test]
    fn windows_stay_within_their_bounds(
        steps in proptest::collection::vec((0u64..2_000_000, 0u64..3_000_000, 0u64..100_000), 1..200),
    ) {
        for &name in ReceiveWindowName::ALL {
            let mut window = name.build(&config());
            let (mut now, mut read) = (Instant::ZERO, 0);
            for (n, &(wait_us, rtt_us, bytes)) in steps.iter().enumerate() {
                now += Duration::from_micros(wait_us);
                let arrival = Arrival { now, len: bytes, unread: 0, nxt: read, edge: read + window.free(0) };
                window.on_rtt(now, n as u32, Duration::from_micros(rtt_us));
                window.on_segment(&arrival);
                read += bytes;
                window.on_read(now, read);
                prop_assert!(window.free(0) <= window.size() && window.size() >= 4 * 1_460);
                if name != ReceiveWindowName::Drs {
                    prop_assert!(window.size() <= 8 << 20);
                }
            }
        }
    }
}
