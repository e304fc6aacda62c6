//! Tests of the window shown to servers.

use super::*;

fn input() -> WindowInput {
    WindowInput {
        ack: 1_000_000,
        client_window: 17_000,
        received: 1_100_000,
        waiting: 0,
        rate: Some(Rate::from_mbps(8.0)),
        round_trip: Duration::from_millis(140),
        server_rtt: Duration::from_millis(40),
        server_jitter: Duration::ZERO,
        shortest: Duration::from_millis(140),
        sample: None,
        segment: 1_448,
        weight: 1,
        max_bytes: 8_000_000,
        target: Duration::from_millis(20),
        pool_share: u64::MAX,
        first: FIRST_WINDOW,
        full: false,
        alone: true,
        link: Rate::ZERO,
        passes: false,
        late_acks: false,
        gap: 0,
        repairs: 0,
    }
}

fn config() -> VirtualWindowConfig {
    VirtualWindowConfig::default()
}

/// 100,000 bytes below the gateway fit into a window of 400,000, and 50,000 wait. They wait for a pace, unless they
/// wait for room or the link's rate is known.
#[test]
fn what_waits_for_a_pace_alone_does_not_end_slow_start() {
    let ramps = |full: bool, link: Rate, client_window: u64| {
        let mut window = VirtualWindow::new(1_000_000);
        let waits = WindowInput { waiting: 50_000, full, link, client_window, ..input() };
        window.field(&config(), &waits, 3, Instant::ZERO);
        window.ramping
    };
    assert!(ramps(false, Rate::ZERO, 400_000));
    assert!(!ramps(true, Rate::ZERO, 400_000));
    assert!(!ramps(false, Rate::from_mbps(8.0), 400_000));
    assert!(!ramps(false, Rate::ZERO, 17_000), "it waits for the client");
}

/// At 8 Mbit/s 20 ms are 20,000 bytes. A unit of the field is 8 bytes.
#[test]
fn jitter_before_the_gateway_beyond_the_target_widens_the_window_by_up_to_a_target() {
    let shown = |jitter_ms: u64| {
        let mut window = VirtualWindow::new(1_000_000);
        let waits = WindowInput { waiting: 30_000, link: Rate::from_mbps(8.0), ..input() };
        window.field(&config(), &waits, 3, Instant::ZERO);
        let late = WindowInput { server_jitter: Duration::from_millis(jitter_ms), waiting: 1_448, ..waits };
        u64::from(window.field(&config(), &late, 3, Instant::ZERO)) << 3
    };
    assert_eq!(shown(10), shown(0));
    assert!((9_992..=10_008).contains(&(shown(15) - shown(0))));
    assert!((19_992..=20_008).contains(&(shown(100) - shown(0))));
}

/// 140,000 bytes are in flight, and the path holds as many. A client's own window of 120,000 is nearly as much.
#[test]
fn a_server_that_lost_data_beyond_a_window_that_suffices_is_shown_that_window() {
    let shown = |client_window: u64, gap: u64| {
        let mut window = VirtualWindow::new(1_000_000);
        let own = WindowInput { client_window, ..input() };
        window.field(&config(), &own, 3, Instant::ZERO);
        window.field(&config(), &WindowInput { gap, ..own }, 3, Instant::ZERO);
        // All that the window allowed has arrived.
        let (ack, received) = (window.edge(), window.edge() + 100_000);
        let later = WindowInput { ack, received, ..own };
        u64::from(window.field(&config(), &later, 3, Instant::ZERO)) << 3
    };
    assert_eq!(shown(120_000, 12_000), 120_000);
    assert!(shown(120_000, 0) > 200_000);
    assert!(shown(120_000, 3_000) > 200_000, "a loss by chance");
    assert!(shown(150_000, 12_000) > 200_000, "what it lost was within the client's window");
    assert!(shown(17_000, 12_000) > 200_000, "the path holds much more");
}

/// The path holds 140,000 bytes. Unless `change` says otherwise, nothing waits and no packet was retransmitted.
#[test]
fn until_the_radio_is_the_limit_the_client_s_own_window_is_shown_unless_it_holds_back() {
    let shown = |client_window: u64, change: &dyn Fn(&mut WindowInput)| {
        let mut input = WindowInput { client_window, ..input() };
        change(&mut input);
        let mut window = VirtualWindow::new(input.ack);
        u64::from(window.field(&config(), &input, 3, Instant::ZERO)) << 3
    };
    assert_eq!(shown(250_000, &|_| ()), 250_000);
    assert_eq!(shown(400_000, &|_| ()), 300_000, "twice what slow start needs");
    assert!(shown(17_000, &|_| ()) >= 200_000);
    assert!(shown(250_000, &|input| input.repairs = 1) < 250_000);
    assert!(shown(250_000, &|input| input.waiting = 50_000) < 250_000);
    assert!(shown(250_000, &|input| input.link = Rate::from_mbps(8.0)) < 250_000);
}

#[test]
fn a_ramping_server_may_double() {
    let mut window = VirtualWindow::new(1_000_000);
    // 100,000 bytes are in flight below the gateway, and no more was shown: the window is twice that. The rate needs
    // less, 160,000.
    assert_eq!(window.field(&config(), &input(), 3, Instant::ZERO), 25_000);
    // 40 of 140 ms lie above the gateway, so 140,000 bytes are on the whole path: the window is twice that.
    assert_eq!(window.field(&config(), &input(), 3, Instant::ZERO), 35_000);
}

/// The answers to flights of 10, 20 and 40 segments come after the whole flight is acknowledged. Nothing is in flight
/// below the gateway when the last ACK of a flight passes, and yet the next flight is twice as long.
#[test]
fn slow_start_doubles_when_all_of_a_flight_is_above_the_gateway() {
    let (mut window, mut ack, mut now) = (VirtualWindow::new(0), 0, Instant::ZERO);
    for flight in [10, 20, 40, 80] {
        let received = ack + flight * 1_448;
        now += Duration::from_millis(140);
        for _ in 0..flight / 2 {
            ack += 2 * 1_448;
            now += Duration::from_micros(300);
            let rate = Some(Rate::from_mbps(1.0));
            let acked = WindowInput { ack, received, rate, ..input() };
            window.field(&config(), &acked, 7, now);
        }
        assert!(window.edge() >= ack + 2 * flight * 1_448, "{flight}: {} beyond {ack}", window.edge());
    }
}

#[test]
fn before_there_is_a_rate_a_large_window_is_not_advertised() {
    let first = |client_window| {
        let input = WindowInput { client_window, rate: None, received: 1_000_000, ..input() };
        u64::from(VirtualWindow::new(1_000_000).field(&config(), &input, 7, Instant::ZERO)) << 7
    };
    // Twenty segments, or what the client offers, up to a limit.
    assert_eq!([17_000, 40_000, 4_000_000].map(first), [28_928, 39_936, FIRST_WINDOW]);
}

#[test]
fn a_flow_that_begins_on_a_link_of_known_rate_is_shown_half_more_than_fills_it() {
    let link = Rate::from_mbps(4.0);
    let mut window = VirtualWindow::new(1_000_000);
    let mut edge = |ack, received, rate| {
        let begun = WindowInput { link, ack, received, rate, client_window: 4_000_000, ..input() };
        ack + (u64::from(window.field(&config(), &begun, 7, Instant::ZERO)) << 7)
    };
    // 70,000 bytes fill the link; half of that and 20 ms come on top. The field counts 128 bytes.
    let most = |ack: u64| ack + 105_000 + 10_000;
    assert_eq!(edge(1_000_000, 1_014_480, None), 1_114_944);
    // Slow start would go on to twice the bytes in flight.
    let rate = Some(link);
    assert!(edge(1_100_000, 1_150_000, rate) <= most(1_100_000));
    // Its own rate has shown what it needs.
    assert!(edge(2_100_000, 2_200_000, rate) > most(2_100_000));
}

#[test]
fn on_a_slow_link_as_little_waits_as_two_turns_need() {
    let waits = |mbps| {
        let mut window = VirtualWindow::new(1_000_000);
        window.ramping = false;
        let slow = WindowInput { rate: Some(Rate::from_mbps(mbps)), server_rtt: Duration::ZERO, ..input() };
        window.sized(&slow, Instant::ZERO) - slow.received
    };
    // 40 ms, at least three packets, at most five.
    assert_eq!([0.5, 1.2, 2.0].map(waits), [3 * 1_448, 6_000, 5 * 1_448]);
}

#[test]
fn after_a_break_the_window_is_what_the_rate_needed_before() {
    let mut window = VirtualWindow::new(1_000_000);
    window.field(&config(), &input(), 3, Instant::ZERO);
    let (mut ack, mut field) = (1_100_000, 0);
    for n in 1..=200u64 {
        let after = WindowInput { ack, received: ack + 4_000, rate: Some(Rate::from_mbps(1.0)), ..input() };
        field = window.field(&config(), &after, 3, Instant::ZERO + Duration::from_millis(20 * n));
        ack += 1_448;
    }
    // 160,000 bytes at 1 MB/s.
    assert_eq!(field, 20_000);
}

#[test]
fn a_fast_server_is_held_to_its_rtt_plus_the_target() {
    let mut window = VirtualWindow::new(1_000_000);
    let input = WindowInput { waiting: 30_000, ..input() };
    // 1 MB/s: 40,000 on the wired path, target 20,000, 30,000 wait already.
    let expected = (100_000 + 40_000 + 20_000 - 30_000) / 8;
    assert_eq!(window.field(&config(), &input, 3, Instant::ZERO), expected as u16);
    assert!(!window.ramping);
}

#[test]
fn what_should_have_come_is_lost_and_acks_open_the_window() {
    let mut window = VirtualWindow::new(1_000_000);
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut beyond = |ack, waiting, ms| {
        window.field(&config(), &WindowInput { ack, waiting, ..input() }, 3, at(ms));
        window.edge() - 1_100_000
    };
    // 40,000 on the wired path, and the target of 20,000.
    assert_eq!(beyond(1_000_000, 60_000, 1_000), 0);
    assert_eq!(beyond(1_040_000, 0, 1_050), 60_000);
    // After 60 ms without data the edge is 160,000 bytes (1 MB/s) beyond what is acknowledged, and no further.
    assert_eq!(beyond(1_080_000, 0, 1_061), 140_000);
    assert_eq!(beyond(1_100_000, 0, 1_081), 160_000);
}

#[test]
fn the_right_edge_stays_even_in_coarse_units_but_a_closed_window_is_shown() {
    let mut window = VirtualWindow::new(1_000_000);
    let edge = 1_000_000 + (u64::from(window.field(&config(), &input(), 7, Instant::ZERO)) << 7);
    for ack in (1_000_000..1_100_000).step_by(1_448) {
        let later = WindowInput { ack, waiting: 90_000, ..input() };
        assert!(ack + (u64::from(window.field(&config(), &later, 7, Instant::ZERO)) << 7) >= edge);
    }
    assert_eq!(window.field(&config(), &WindowInput { client_window: 0, ..input() }, 7, Instant::ZERO), 0);
}

#[test]
fn scarce_memory_bounds_the_window_but_lets_the_flow_go_on() {
    let field = |pool_share| {
        let input = WindowInput { pool_share, ..input() };
        VirtualWindow::new(1_000_000).field(&config(), &input, 3, Instant::ZERO)
    };
    assert_eq!((field(150_000), field(0)), (18_750, 1_810));
}

#[test]
fn a_fixed_window_is_the_constant_and_none_is_the_clients_own() {
    let fixed = VirtualWindowConfig { mode: VirtualWindowMode::Fixed, max_bytes: 8_000_000, ..config() };
    assert_eq!(VirtualWindow::new(1_000_000).field(&fixed, &input(), 7, Instant::ZERO), 62_500);
    let none = VirtualWindowConfig { mode: VirtualWindowMode::None, ..config() };
    assert_eq!(VirtualWindow::new(1_000_000).field(&none, &input(), 0, Instant::ZERO), 17_000);
}

/// 100,000 bytes are in flight below the gateway.
#[test]
fn while_acks_are_late_a_server_is_shown_twice_what_slow_start_needs_at_most() {
    let shown = |client_window: u64, late_acks: bool| {
        let input = WindowInput { client_window, passes: true, late_acks, ..input() };
        let field = VirtualWindow::new(1_000_000).field(&config(), &input, 6, Instant::ZERO);
        u64::from(field) << 6
    };
    assert_eq!(shown(3_200_000, false), 3_200_000);
    // Slow start needs 100,000 bytes beyond what has arrived.
    assert!((300_000 - 64..=300_000).contains(&shown(3_200_000, true)));
    assert_eq!(shown(64_000, true), 64_000);
}

/// Rounded up, each of these windows would have moved the edge, until the client's own window was shown again.
#[test]
fn a_window_passed_on_in_coarser_units_never_exceeds_the_client_s_own() {
    let none = VirtualWindowConfig { mode: VirtualWindowMode::None, ..config() };
    let mut window = VirtualWindow::new(1_000_000);
    let own_edge = 1_017_000;
    for ack in (1_000_000..1_017_000).step_by(1_001) {
        let passed_on = WindowInput { ack, client_window: own_edge - ack, ..input() };
        let edge = ack + (u64::from(window.field(&none, &passed_on, 4, Instant::ZERO)) << 4);
        assert!(edge <= own_edge && edge + 16 > own_edge, "{edge} beyond {ack}");
    }
}
