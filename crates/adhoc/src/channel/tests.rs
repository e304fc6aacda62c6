//! The medium access beside Bianchi's model, the arithmetic of the standard, and hidden stations.

use super::*;
use crate::config::Radio;
use crate::mac::{EVERYBODY, Timing};

const BYTES: u32 = 1_000;

/// Every station always has a frame for the station in `to`, if there is one.
struct Saturated {
    channel: Channel,
    to: Vec<Option<StationId>>,
    /// Frames that arrived, by receiver.
    arrived: Vec<u64>,
    done: u64,
    gave_up: u64,
}

impl Saturated {
    fn new(config: &AdHocConfig, to: Vec<Option<StationId>>) -> Self {
        let stations = config.stations();
        Saturated { channel: Channel::new(config, 7), to, arrived: vec![0; stations], done: 0, gave_up: 0 }
    }

    fn offer(&mut self, now: Instant, station: StationId) {
        if let Some(to) = self.to[usize::from(station)] {
            let job = Job { datagram: DatagramId::numbered(0), to, bytes: BYTES };
            self.channel.offer(now, station, job);
        }
    }

    fn run(mut self, seconds: u64) -> Self {
        (0..self.to.len()).for_each(|station| self.offer(Instant::ZERO, station as StationId));
        let mut events = Vec::new();
        while let Some(now) = self.channel.next().filter(|at| at.as_nanos() < seconds * 1_000_000_000) {
            self.channel.step(now, &mut events);
            for event in std::mem::take(&mut events) {
                match event {
                    Event::Arrived { at, .. } => self.arrived[usize::from(at)] += 1,
                    Event::Done(station, _) => {
                        self.done += 1;
                        self.offer(now, station);
                    }
                    Event::GaveUp(station, _) => {
                        self.gave_up += 1;
                        self.offer(now, station);
                    }
                }
            }
        }
        self
    }

    fn per_second(&self, seconds: u64) -> f64 {
        self.arrived.iter().sum::<u64>() as f64 / seconds as f64
    }
}

fn with(rts: bool, config: AdHocConfig) -> AdHocConfig {
    AdHocConfig { timing: Timing { rts, ..config.timing }, ..config }
}

/// Stations in range of each other. No frame survives another.
fn circle(stations: usize) -> AdHocConfig {
    let places: Vec<(f64, f64)> = (0..stations).map(|n| (n as f64, (n * n % 7) as f64)).collect();
    let config = AdHocConfig::standing(&places);
    AdHocConfig { radio: Radio { capture: 1e6, ..config.radio }, ..config }
}

/// One sender needs DIFS, half the smallest window on average, frame, SIFS and ACK. No other station sends.
#[test]
fn one_sender_has_the_throughput_of_the_standards_arithmetic() {
    for rts in [false, true] {
        let timing = Timing { rts, ..Timing::default() };
        let sent = Saturated::new(&with(rts, circle(2)), vec![Some(1), None]).run(20);
        let announced = if rts { timing.rts_time() + timing.cts() + timing.sifs * 2 } else { Duration::ZERO };
        let one = timing.difs()
            + timing.slot.mul_ratio(31, 2)
            + announced
            + timing.data(BYTES)
            + timing.sifs
            + timing.ack();
        let expected = 1.0 / one.as_secs_f64();
        let ours = sent.per_second(20);
        assert!((ours / expected - 1.0).abs() < 0.005, "rts {rts}: {ours} frames/s, not {expected}");
        assert_eq!(sent.gave_up, 0);
    }
}

/// G. Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", 2000, Eqs. (7), (9), (13),
/// (14) and (17), with five doublings of the window.
fn bianchi(n: i32, timing: &Timing) -> f64 {
    let (w, m) = (f64::from(timing.cw_min) + 1.0, 5);
    let tau_of =
        |p: f64| 2.0 * (1.0 - 2.0 * p) / ((1.0 - 2.0 * p) * (w + 1.0) + p * w * (1.0 - (2.0 * p).powi(m)));
    // The two equations have one solution, because tau falls as p rises.
    let (mut low, mut high) = (0.0, 0.499_999);
    for _ in 0..100 {
        let p = (low + high) / 2.0;
        if 1.0 - (1.0 - tau_of(p)).powi(n - 1) > p { low = p } else { high = p }
    }
    let tau = tau_of(low);
    let some = 1.0 - (1.0 - tau).powi(n);
    let success = f64::from(n) * tau * (1.0 - tau).powi(n - 1) / some;
    let difs = timing.difs();
    let (good, bad) = if timing.rts {
        let good =
            timing.rts_time() + timing.cts() + timing.data(BYTES) + timing.ack() + timing.sifs * 3 + difs;
        (good, timing.rts_time() + timing.sifs + timing.cts() + difs)
    } else {
        let good = timing.data(BYTES) + timing.sifs + timing.ack() + difs;
        (good, timing.data(BYTES) + timing.sifs + timing.ack() + difs)
    };
    let slot = (1.0 - some) * timing.slot.as_secs_f64()
        + some * success * good.as_secs_f64()
        + some * (1.0 - success) * bad.as_secs_f64();
    some * success / slot
}

#[test]
fn saturated_stations_have_the_throughput_of_bianchis_model() {
    for rts in [false, true] {
        for stations in [2, 5, 10, 20] {
            // Many retries, because the model never gives up.
            let mut config = with(rts, circle(stations));
            config.timing.short_retries = 100;
            config.timing.long_retries = 100;
            let to = (0..stations).map(|n| Some(((n + 1) % stations) as StationId)).collect();
            let ours = Saturated::new(&config, to).run(60).per_second(60);
            let expected = bianchi(stations as i32, &config.timing);
            println!("{stations} stations, rts {rts}: {ours:.1} frames/s, Bianchi {expected:.1}");
            assert!((ours / expected - 1.0).abs() < 0.015, "{stations}, rts {rts}: {ours} not {expected}");
        }
    }
}

#[test]
fn stations_share_alike() {
    let all = (0..8).map(|n| Some((n + 1) % 8)).collect();
    let sent = Saturated::new(&circle(8), all).run(60);
    let mean = sent.arrived.iter().sum::<u64>() as f64 / 8.0;
    assert!(sent.arrived.iter().all(|count| (*count as f64 / mean - 1.0).abs() < 0.1), "{:?}", sent.arrived);
}

/// Stations 0 and 2 do not sense each other, and both send to 1. Without RTS nearly every frame of 4 ms is hit.
#[test]
fn rts_helps_against_hidden_stations() {
    let arrived = |rts: bool| {
        let mut config = with(rts, AdHocConfig::standing(&[(0.0, 0.0), (200.0, 0.0), (400.0, 0.0)]));
        config.radio.sensing_m = 250.0;
        let sent = Saturated::new(&config, vec![Some(1), None, Some(1)]).run(30);
        sent.arrived[1] as f64 / 30.0
    };
    let (plain, announced) = (arrived(false), arrived(true));
    assert!(announced > 1.5 * plain, "{plain} without, {announced} with RTS");
}

#[test]
fn a_neighbour_out_of_range_is_given_up() {
    let config = AdHocConfig::standing(&[(0.0, 0.0), (300.0, 0.0)]);
    let sent = Saturated::new(&config, vec![Some(1), None]).run(1);
    assert!(sent.gave_up > 5 && sent.done == 0 && sent.arrived == [0, 0]);
    let counters = sent.channel.counters();
    // Seven RTS for each job. The last job may still go on.
    assert!((sent.gave_up * 7..sent.gave_up * 7 + 7).contains(&counters.frames), "{counters:?}");
}

#[test]
fn broadcasts_reach_all_in_range_once_and_unanswered() {
    let config = AdHocConfig::standing(&[(0.0, 0.0), (200.0, 0.0), (0.0, 200.0), (400.0, 0.0)]);
    let sent = Saturated::new(&config, vec![Some(EVERYBODY), None, None, None]).run(1);
    assert_eq!(sent.arrived, [0, sent.done, sent.done, 0]);
    assert_eq!(sent.channel.counters().frames, sent.done + 1, "one is on the air");
}
