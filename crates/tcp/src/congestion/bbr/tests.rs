use super::*;
use crate::rate_sample::RateSample;

/// A path of 100 packets per 100 ms. Each ACK reports the rate that the path can carry.
fn run(bbr: &mut Bbr, rounds: u32, rate_packets: u64) -> (Window, u64) {
    let mut window = Window::new(10, u32::MAX);
    let mut sample =
        AckSample { mss: 1_000, now: Instant::ZERO + Duration::from_secs(1), ..AckSample::default() };
    window = bbr.on_event(CongestionEvent::TransmissionStart, &sample, window);
    let mut in_probe_rtt = 0;
    for _ in 0..rounds {
        let before = sample.delivered_total;
        let acks = u64::from(window.cwnd).min(rate_packets).max(1);
        for _ in 0..acks {
            sample.now += Duration::from_millis(100) / acks;
            sample.delivered = 1;
            sample.delivered_total += 1;
            sample.rtt = Some(Duration::from_millis(100));
            sample.srtt = Duration::from_millis(100);
            // The pacer keeps the packets in flight near the path's capacity.
            sample.in_flight = acks as u32 - 1;
            sample.prior_in_flight = acks as u32;
            sample.rate = RateSample {
                delivered: Some(acks),
                interval: Duration::from_millis(100),
                prior_delivered: before,
                ..RateSample::default()
            };
            window = bbr.on_ack(&sample, window);
        }
        in_probe_rtt += u64::from(bbr.limits_application());
    }
    (window, in_probe_rtt)
}

#[test]
fn startup_ends_when_the_bandwidth_no_longer_grows() {
    let mut bbr = Bbr::new(1);
    run(&mut bbr, 30, 100);
    assert!(bbr.full.full_bw_reached && bbr.mode == Mode::ProbeBw);
    let rate = bbr.bw.get() * 100_000 / BW_UNIT;
    assert!((99..=100).contains(&rate), "{rate}");
}

#[test]
fn the_window_is_about_two_bdp_and_the_pace_the_bandwidth() {
    let mut bbr = Bbr::new(2);
    let (window, _) = run(&mut bbr, 60, 100);
    assert!((200..=330).contains(&window.cwnd), "{}", window.cwnd);
    let rate = bbr.pacing_rate.as_bytes_per_sec();
    assert!((700_000..=1_250_000).contains(&rate), "{rate}");
}

#[test]
fn the_pipe_is_emptied_every_ten_seconds() {
    let (_, in_probe_rtt) = run(&mut Bbr::new(3), 350, 100);
    assert!((3..=20).contains(&in_probe_rtt), "{in_probe_rtt}");
}
