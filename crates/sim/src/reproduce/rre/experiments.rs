//! The runs of each figure.

use paceline_path::random::Random;
use paceline_tcp::CongestionName;

use super::setup::{Setup, Transfer};

/// The paper's senders, RRE first (Section III).
pub const SCHEMES: [CongestionName; 5] = [
    CongestionName::Rre,
    CongestionName::Cubic,
    CongestionName::Reno,
    CongestionName::Westwood,
    CongestionName::Vegas,
];

/// The RTT of all figures but 13 (Sections III-C, III-D). Our choice for Figs. 7 and 8, too.
pub const RTT_MS: f64 = 100.0;
/// Figs. 7 to 9, 14 to 16.
pub const SHORT_BYTES: u64 = 1_000_000;
/// Figs. 10 to 12.
pub const LONG_BYTES: u64 = 10_000_000;
/// Our choice of an uplink above every threshold of Fig. 7 (Section III-D).
pub const GOOD_UP_MBPS: f64 = 1.0;
/// Our choice: a longer run is given up, and the data that has arrived counts.
pub const RUN_MAX_S: f64 = 600.0;
/// Our choice: at 250 kbit/s two round trips through a full uplink.
pub const LONG_DOWNLOAD_S: f64 = 60.0;

/// Figs. 7 and 8: a short download over a slow uplink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Downlink rate.
    pub down_mbps: f64,
    /// Uplink rate.
    pub up_kbps: f64,
}

/// Fig. 9: a download beside an upload that began before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Downlink rate.
    pub down_mbps: f64,
    /// Uplink rate.
    pub up_mbps: f64,
    /// Delay of the download after the upload's start.
    pub delay_s: f64,
}

/// Figs. 14 to 16: a phone and its network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phone {
    /// The figure.
    pub figure: u8,
    /// Network, place and phone.
    pub name: &'static str,
    /// Median downlink rate.
    pub down_mbps: f64,
    /// Median uplink rate.
    pub up_mbps: f64,
    /// Uplink buffer of the phone (Table I).
    pub up_buffer_bytes: u64,
}

/// Downlink rates of Figs. 7 and 8, every 0.25 Mbit/s (Section III-B).
pub fn slow_uplink_down_mbps() -> impl Iterator<Item = f64> {
    (1..=32).map(|n| f64::from(n) * 0.25)
}

/// Uplink rates of Figs. 7 and 8, every 5 kbit/s. Our choice of the last one: well above the highest threshold.
pub fn slow_uplink_up_kbps() -> impl Iterator<Item = f64> {
    (1..=60).map(|n| f64::from(n) * 5.0)
}

/// Downlink rates of Figs. 9, 10 and 12.
pub fn down_mbps() -> impl Iterator<Item = f64> {
    (1..=16).map(|n| f64::from(n) * 0.5)
}

/// Uplink rates of Fig. 9.
pub fn up_mbps() -> impl Iterator<Item = f64> {
    (1..=12).map(|n| f64::from(n) * 0.25)
}

/// Delay of the download in Fig. 9, and of the second flow in Fig. 12.
pub fn delays_s() -> impl Iterator<Item = f64> {
    (1..=10).map(f64::from)
}

impl Pair {
    /// The network.
    pub fn setup(&self) -> Setup {
        Setup::new(self.down_mbps, self.up_kbps / 1e3, RTT_MS)
    }
}

impl Point {
    /// The network.
    pub fn setup(&self) -> Setup {
        Setup::new(self.down_mbps, self.up_mbps, RTT_MS)
    }

    /// The download, and the upload that begins before it.
    pub fn transfers(&self, scheme: CongestionName, bytes: Option<u64>) -> [Transfer; 2] {
        [Transfer::download(scheme, bytes).after(self.delay_s), Transfer::upload()]
    }
}

/// Fig. 13: 3 Mbit/s and 100 ms, then what Section III-E changes.
pub fn steps() -> Setup {
    Setup {
        down_mbps: vec![(0.0, 3.0), (15.0, 2.0), (24.0, 5.0), (30.0, 3.0)],
        rtt_ms: vec![(0.0, 100.0), (4.0, 150.0), (8.0, 200.0), (20.0, 100.0)],
        ..Setup::new(3.0, GOOD_UP_MBPS, RTT_MS)
    }
}

/// Times of these changes, and the end of the run.
pub const STEPS_S: [f64; 7] = [4.0, 8.0, 15.0, 20.0, 24.0, 30.0, 40.0];

/// Figs. 14 to 16. The text has uplink rates and buffers. Our choice of downlinks: 2 Mbit/s where the uplink was fast
/// compared to the downlink, 5 Mbit/s where the downlink was much faster.
pub const PHONES: [Phone; 3] = [
    Phone {
        figure: 14,
        name: "ISP A, laboratory, HTC Desire",
        down_mbps: 2.0,
        up_mbps: 0.8,
        up_buffer_bytes: 200_000,
    },
    Phone {
        figure: 15,
        name: "ISP B, laboratory, Galaxy Nexus",
        down_mbps: 5.0,
        up_mbps: 0.5,
        up_buffer_bytes: 1_000_000,
    },
    Phone {
        figure: 16,
        name: "ISP B, residence, Galaxy Nexus",
        down_mbps: 5.0,
        up_mbps: 0.18,
        up_buffer_bytes: 1_000_000,
    },
];

impl Phone {
    /// The network at one time. Our choice: rates are within 30 % of the median, and 0.04 % is lost (Section III-A).
    /// The phone's timestamp clock has a tick of 10 ms, as at the time of the paper.
    pub fn setup(&self, seed: u64) -> Setup {
        let mut random = Random::named(seed, self.name);
        let mut near = |mbps: f64| mbps * (0.7 + 0.6 * random.below(1_000) as f64 / 1_000.0);
        let (down, up) = (near(self.down_mbps), near(self.up_mbps));
        let mut setup = Setup::new(down, up, RTT_MS);
        setup.up_buffer_bytes = self.up_buffer_bytes;
        setup.loss_percent = LOSS_PERCENT;
        setup.clock.tick = paceline_wire::Duration::from_millis(10);
        setup
    }

    /// A download, ten seconds after the start of an upload or alone (Section IV).
    pub fn transfers(&self, scheme: CongestionName, upload: bool) -> Vec<Transfer> {
        let download = Transfer::download(scheme, Some(SHORT_BYTES));
        if upload { vec![download.after(10.0), Transfer::upload()] } else { vec![download] }
    }
}

/// The loss that the paper measured and simulated (Section III-A).
pub const LOSS_PERCENT: f64 = 0.04;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::rre::DownlinkRun;
    use crate::run::run;

    fn short(point: &Point, scheme: CongestionName) -> DownlinkRun {
        let transfers = point.transfers(scheme, Some(SHORT_BYTES));
        point.setup().run(&transfers, RUN_MAX_S, 1, &mut ()).unwrap()
    }

    /// Fig. 8: 8 Mbit/s over 50 kbit/s.
    #[test]
    fn a_slow_uplink_does_not_slow_it_down() {
        let used = |scheme| {
            let pair = Pair { down_mbps: 8.0, up_kbps: 50.0 };
            let transfers = [Transfer::download(scheme, Some(SHORT_BYTES))];
            pair.setup().run(&transfers, RUN_MAX_S, 1, &mut ()).unwrap().downlink.utilization(8.0)
        };
        let [rre, cubic] = [CongestionName::Rre, CongestionName::Cubic].map(used);
        assert!(rre >= 0.75 && cubic < 0.7, "{rre} of the link, CUBIC {cubic}");
    }

    /// Fig. 9: the paper reports a factor of 2 to 4.
    #[test]
    fn beside_an_upload_it_is_twice_as_fast() {
        let point = Point { down_mbps: 4.0, up_mbps: 1.0, delay_s: 3.0 };
        let [rre, cubic] = [CongestionName::Rre, CongestionName::Cubic].map(|scheme| short(&point, scheme));
        let ratio = rre.goodput_mbps(0) / cubic.goodput_mbps(0);
        assert!(ratio >= 2.0 && rre.overflow() == 0, "{ratio}");
    }

    /// Fig. 12: CUBIC floods the buffer. RRE takes the rate that CUBIC leaves for the whole rate. Beside another RRE
    /// flow it gets its share.
    #[test]
    fn a_later_cubic_starves_it_and_a_later_rre_does_not() {
        let shared = |second| {
            let first = Transfer::download(CongestionName::Rre, Some(LONG_BYTES));
            let second = Transfer::download(second, Some(LONG_BYTES)).after(4.0);
            Setup::new(3.0, GOOD_UP_MBPS, RTT_MS)
                .run(&[first, second], RUN_MAX_S, 1, &mut ())
                .unwrap()
                .downlink
        };
        let [cubic, rre] = [CongestionName::Cubic, CongestionName::Rre].map(shared);
        assert!(cubic.share_of_first() < 0.25, "{}", cubic.share_of_first());
        let (share, wait_s) = (rre.share_of_first(), rre.mean_wait_s());
        assert!((0.3..0.7).contains(&share) && wait_s < 1.0, "{share}, {wait_s} s of queue");
    }

    /// A sender that does not wait for ACKs breaks no rule of TCP.
    #[test]
    fn the_checker_finds_nothing() {
        let point = Point { down_mbps: 4.0, up_mbps: 0.5, delay_s: 5.0 };
        let transfers = point.transfers(CongestionName::Rre, Some(SHORT_BYTES));
        let mut setup = point.setup();
        setup.loss_percent = 1.0;
        let mut scenario = setup.scenario(&transfers, RUN_MAX_S, 1);
        scenario.checked = true;
        let result = run(&scenario).unwrap();
        assert!(result.findings.is_empty() && result.flows[0].completed, "{:?}", result.findings);
    }
}
