//! TCP-NCL's model of a smart sender (Section III) beside the simulator: Eqs. (3), (12), (13) and (15).

use paceline_path::random::Probability;
use paceline_path::{
    Aqm, Delay, DelayStep, GilbertElliott, Jitter, LinkConfig, Loss, QueueLimit, RateProcess, RedConfig,
};
use paceline_tcp::{Config, CongestionName, NclConfig, ReceiveWindowName, TauCd};
use paceline_theory::ncl::{Sts, goodput_per_throughput, unacknowledged};
use paceline_wire::{Duration, Rate};

use super::scheme::Scheme;
use super::sts_meter::{RetransmittedPacket, StsMeter};
use crate::run::{RunObserver, run_watched};
use crate::scenario::{Flow, Load, PathLink, Scenario, ScenarioError, TcpFlow, Transport};

/// A path on which all assumptions of the model hold, or one of them does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StsPath {
    /// Random errors, and a bottleneck that drops by chance, whatever its queue. All assumptions hold.
    Chance,
    /// Random errors. Datagrams and the flow fill the link before a queue that drops early (RED). So congestion lasts.
    /// All assumptions hold but Eq. (2): a retransmission meets the average queue of its original.
    Steady,
    /// Errors in bursts that are over when a packet is sent again, and jitter. All assumptions hold, without
    /// congestion.
    Bursts,
    /// Other flows that come and go, before the same queue. Losses come in spells. Eq. (2) does not hold.
    Red,
    /// The same flows before a queue that drops when it is full. Retransmissions find it full, too. Eq. (2) does not
    /// hold.
    DropTail,
    /// Errors, and jitter that keeps the order, so RTTs depend on the packets in front. Eq. (41) does not hold: when a
    /// packet is sent again, the window has come to a stop, and no packet is in front of it.
    Errors,
    /// The same, with errors in spells longer than tau_RD. Assumption 3 does not hold: a packet and its retransmission
    /// are lost together.
    Spells,
    /// A delay that jumps, so RTTs are longer than all earlier ones. Eq. (4) does not hold.
    Jumps,
}

/// Counts of packets. They can be added up over runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StsRun {
    /// Packets whose fate is known.
    pub packets: f64,
    /// Transmissions of these packets.
    pub transmissions: f64,
    /// CL: packets lost to congestion.
    pub congestive: f64,
    /// NL: packets lost for other reasons.
    pub other: f64,
    /// Packets sent again although the original arrives.
    pub needless: f64,
    /// Counts at each of the path's times.
    pub at: Vec<StsCounts>,
}

/// Counts at one time after the retransmission.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StsCounts {
    /// Originals whose RTT is no longer than this time.
    pub rtts_within: f64,
    /// PU: packets that are still not acknowledged.
    pub unacknowledged: f64,
    /// PU without packets lost to congestion.
    pub not_congestive: f64,
    /// PU and lost to congestion, and a timeout followed.
    pub timed_out: f64,
    /// CL and acknowledged by this time. Up to tau_u there are none.
    pub congestive_acknowledged: f64,
}

/// A measured probability and the model's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelComparison {
    /// The measured value.
    pub measured: f64,
    /// Number of events behind it.
    pub events: f64,
    /// The model's value.
    pub model: f64,
}

const MBPS: f64 = 10.0;
const WARM_UP: Duration = Duration::from_secs(30);
/// Number of times before tau_u on the paths where the assumptions hold. At these times, at most 2 % of the
/// retransmissions of packets lost to congestion are answered.
pub const TIMES_BEFORE_TAU_U: usize = 3;
/// Our choice: a third of the link, so that the losses are due to others.
const WINDOW: u32 = 30;
const DATAGRAMS_MBPS: f64 = 6.0;
const TAU_CD: Duration = Duration::from_secs(1);
const ERRORS: f64 = 0.02;
/// The share that RED drops beside the datagrams.
const DROPS: f64 = 0.0065;
/// RFC 6298. Every answer to a retransmission comes earlier.
const RTO_MIN: Duration = Duration::from_secs(1);
const QUEUE_PACKETS: u32 = 100;
const OTHERS: u8 = 4;
const OTHERS_ON: Duration = Duration::from_secs(20);

impl StsPath {
    /// All paths.
    pub const ALL: [StsPath; 8] = [
        StsPath::Chance,
        StsPath::Steady,
        StsPath::Bursts,
        StsPath::Red,
        StsPath::DropTail,
        StsPath::Errors,
        StsPath::Spells,
        StsPath::Jumps,
    ];

    /// The path in words.
    pub fn name(self) -> &'static str {
        match self {
            StsPath::Errors => "jitter in order",
            StsPath::Chance => "drops by chance",
            StsPath::Steady => "steady datagrams, RED",
            StsPath::Red => "other flows, RED",
            StsPath::DropTail => "other flows, drop tail",
            StsPath::Bursts => "errors in bursts",
            StsPath::Spells => "errors in spells",
            StsPath::Jumps => "delay that jumps",
        }
    }

    /// Times after a retransmission, in ms: before any answer can come, after some answers, and after nearly all.
    pub fn times_ms(self) -> [u64; 4] {
        match self {
            StsPath::Chance => [0, 20, 40, 60],
            StsPath::Errors | StsPath::Bursts | StsPath::Spells => [0, 85, 105, 120],
            StsPath::Jumps => [0, 60, 80, 110],
            StsPath::Steady => [0, 40, 60, 80],
            StsPath::Red | StsPath::DropTail => [0, 60, 80, 120],
        }
    }

    /// Eq. (4): one RTT in MRRL is longer than all RTTs of the record. This share must be small compared to the losses.
    fn mrrl(self) -> u32 {
        if self == StsPath::Jumps { NclConfig::default().mrrl } else { 20_000 }
    }

    /// True if all assumptions of the model hold, except perhaps Eq. (2).
    pub fn assumptions_hold(self) -> bool {
        matches!(self, StsPath::Chance | StsPath::Steady | StsPath::Bursts)
    }

    /// True if Eq. (2) holds: a retransmission is as likely to be lost as any packet.
    pub fn losses_are_apart(self) -> bool {
        matches!(self, StsPath::Chance | StsPath::Bursts)
    }

    fn has_others(self) -> bool {
        matches!(self, StsPath::Red | StsPath::DropTail)
    }

    fn bottleneck(self) -> LinkConfig {
        let aqm = match self {
            StsPath::Steady | StsPath::Red => Aqm::Red(RedConfig {
                min: Probability::from_fraction(0.2),
                max: Probability::from_fraction(0.8),
                max_p: Probability::from_fraction(0.05),
                ..RedConfig::default()
            }),
            _ => Aqm::DropTail,
        };
        let drops = if self == StsPath::Chance { DROPS } else { 0.0 };
        LinkConfig {
            loss: Loss::Independent(Probability::from_fraction(drops)),
            rate: RateProcess::Constant(Rate::from_mbps(MBPS)),
            queue: QueueLimit::Packets(QUEUE_PACKETS),
            aqm,
            delay: Delay::Constant(Duration::from_millis(20)),
            ..LinkConfig::default()
        }
    }

    fn radio(self, seconds: u64) -> LinkConfig {
        let independent = Loss::Independent(Probability::from_fraction(ERRORS));
        let link = LinkConfig { delay: Delay::Constant(ms(5)), ..LinkConfig::default() };
        // The jitter changes within a round trip. So an original and its retransmission have nothing in common.
        let jitter = Some(Jitter { up_to: ms(75), keep_order: true });
        match self {
            StsPath::Errors => LinkConfig { loss: independent, jitter, ..link },
            StsPath::Bursts => LinkConfig { loss: Loss::GilbertElliott(BURSTS), jitter, ..link },
            StsPath::Spells => LinkConfig { loss: Loss::GilbertElliott(SPELLS), jitter, ..link },
            StsPath::Jumps => LinkConfig { loss: independent, delay: jumps(seconds), ..link },
            _ => LinkConfig { loss: independent, ..link },
        }
    }

    fn scenario(self, seed: u64, seconds: u64) -> Scenario {
        let receiver = Config {
            delayed_ack: false,
            sack_compression: false,
            receive_window: ReceiveWindowName::Fixed,
            ..Config::default()
        };
        // In the model the window stays W, so the sender must not reduce it: every answer to a retransmission comes
        // within tau_CD. Beta is 0.8 of the shortest RTT, as by default: 4 % of tau_CD.
        let ncl = NclConfig { tau_cd: TauCd::Fixed(TAU_CD), beta_percent: 4, mrrl: self.mrrl() };
        let sender = Config { cwnd_clamp: WINDOW, rto_min: RTO_MIN, ..Scheme::Ncl.config(ncl) };
        let flow = |name: &str, server: Config, load: Load| {
            let tcp = TcpFlow { server, client: receiver, load, ..TcpFlow::default() };
            Flow { name: name.into(), transport: Transport::Tcp(Box::new(tcp)), ..Flow::default() }
        };
        let mut flows = vec![flow("ncl", sender, Load::Bulk)];
        if self.has_others() {
            // BBR fills the queue whatever the radio loses.
            let bbr = Config { congestion: CongestionName::Bbr, ..Config::default() };
            let on_off = Load::OnOff { on: OTHERS_ON, off: OTHERS_ON };
            flows.extend((0..OTHERS).map(|n| Flow {
                start: Duration::from_millis(1_000 + 300 * u64::from(n)),
                client: n + 1,
                ..flow("others", bbr, on_off)
            }));
        }
        if self == StsPath::Steady {
            let transport = Transport::Udp { rate: Rate::from_mbps(DATAGRAMS_MBPS), ip_bytes: 1_500 };
            flows.push(Flow { name: "datagrams".into(), client: 1, transport, ..Flow::default() });
        }
        let back =
            |ms| LinkConfig { delay: Delay::Constant(Duration::from_millis(ms)), ..LinkConfig::default() };
        Scenario {
            duration: Duration::from_secs(seconds),
            seed,
            path: vec![
                PathLink { name: "wired".into(), down: self.bottleneck(), up: back(20) },
                PathLink { name: "radio".into(), down: self.radio(seconds), up: back(5) },
            ],
            flows,
            patience: Duration::ZERO,
            ..Scenario::default()
        }
    }

    /// Executes one run.
    ///
    /// # Errors
    /// Fails if the path cannot be simulated, or if `watch` ends the run.
    pub fn run(self, seed: u64, seconds: u64, watch: &mut dyn RunObserver) -> Result<StsRun, ScenarioError> {
        let meter = StsMeter::default();
        let taps = vec![
            ("wired_down", meter.bottleneck()),
            ("radio_down", meter.radio()),
            ("wired_up", meter.acks()),
        ];
        run_watched(&self.scenario(seed, seconds), taps, watch)?;
        let from = paceline_wire::Instant::ZERO + WARM_UP;
        let fates: Vec<RetransmittedPacket> =
            meter.fates().into_iter().filter(|fate| fate.sent >= from).collect();
        Ok(StsRun::of(&fates, &self.times_ms().map(Duration::from_millis)))
    }
}

/// As many errors as on the other paths, in bursts of ten packets on average.
const BURSTS: GilbertElliott = GilbertElliott {
    good_to_bad: Probability::from_ppm(2_040),
    bad_to_good: Probability::from_ppm(100_000),
    loss_in_good: Probability::ZERO,
    loss_in_bad: Probability::ONE,
};
/// As many errors, in spells of 300 packets on average. In a spell every fifth packet is lost.
const SPELLS: GilbertElliott = GilbertElliott {
    good_to_bad: Probability::from_ppm(370),
    bad_to_good: Probability::from_ppm(3_333),
    loss_in_good: Probability::ZERO,
    loss_in_bad: Probability::from_ppm(200_000),
};

/// In every second period of 5 s, the delay is 40 ms longer. Within a period the record of RTTs forgets the one before.
fn jumps(seconds: u64) -> Delay {
    let step = |number: u64| DelayStep { at: ms(5_000) * number, delay: ms(5 + 40 * (number % 2)) };
    Delay::Steps((0..=seconds / 5).map(step).collect())
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

impl StsRun {
    fn of(fates: &[RetransmittedPacket], times: &[Duration]) -> StsRun {
        let count =
            |is: &dyn Fn(&RetransmittedPacket) -> bool| fates.iter().filter(|fate| is(fate)).count() as f64;
        let counts = |&t: &Duration| {
            let open = |fate: &RetransmittedPacket| fate.unacknowledged.is_some_and(|waited| waited > t);
            StsCounts {
                rtts_within: count(&|fate| fate.rtt.is_some_and(|rtt| rtt <= t)),
                unacknowledged: count(&open),
                not_congestive: count(&|fate| open(fate) && !fate.congestive),
                timed_out: count(&|fate| open(fate) && fate.congestive && fate.timed_out),
                congestive_acknowledged: count(&|fate| fate.congestive && !open(fate)),
            }
        };
        StsRun {
            packets: fates.len() as f64,
            transmissions: fates.iter().map(|fate| f64::from(fate.times)).sum(),
            congestive: count(&|fate| fate.congestive),
            other: count(&|fate| fate.other),
            needless: count(&|fate| fate.rtt.is_some() && fate.times > 1),
            at: times.iter().map(counts).collect(),
        }
    }

    /// p_c and p_w.
    pub fn losses(&self) -> (f64, f64) {
        (self.congestive / self.packets, self.other / self.packets)
    }

    /// zeta of Eq. (4): the share of packets sent again among those that are not lost.
    pub fn zeta(&self) -> f64 {
        self.needless / (self.packets - self.congestive - self.other)
    }

    /// F(t).
    pub fn f(&self, at: &StsCounts) -> f64 {
        at.rtts_within / (self.packets - self.congestive - self.other)
    }

    /// The share of packets lost to congestion that are acknowledged by this time. Eq. (6) says none.
    pub fn congestive_acknowledged(&self, at: &StsCounts) -> f64 {
        if self.congestive > 0.0 { at.congestive_acknowledged / self.congestive } else { 0.0 }
    }

    /// Eq. (3).
    pub fn efficiency(&self) -> ModelComparison {
        let (p_c, p_w) = self.losses();
        ModelComparison {
            measured: self.packets / self.transmissions,
            events: self.transmissions - self.packets,
            model: goodput_per_throughput(p_c + p_w, self.zeta()),
        }
    }

    /// Eq. (12).
    pub fn unacknowledged(&self, at: &StsCounts) -> ModelComparison {
        let (p_c, p_w) = self.losses();
        ModelComparison {
            measured: at.unacknowledged / self.packets,
            events: at.unacknowledged,
            model: unacknowledged(p_c, p_w, self.f(at)),
        }
    }

    /// Eq. (13).
    pub fn not_congestive(&self, at: &StsCounts) -> ModelComparison {
        let measured = at.not_congestive / at.unacknowledged;
        let model = self.model().map_or(f64::NAN, |sts| sts.p_not_congestive(self.f(at)));
        ModelComparison { measured, events: at.unacknowledged - at.not_congestive, model }
    }

    /// Eq. (15).
    pub fn timeout(&self, at: &StsCounts) -> ModelComparison {
        let measured = at.timed_out / at.unacknowledged;
        let model = self.model().map_or(f64::NAN, |sts| sts.p_timeout(self.f(at)));
        ModelComparison { measured, events: at.timed_out, model }
    }

    fn model(&self) -> Option<Sts> {
        let (p_c, p_w) = self.losses();
        Sts::new(p_c, p_w, WINDOW).ok()
    }
}

impl ModelComparison {
    /// Deviation of the measured value, as a share of the model's value.
    pub fn error(&self) -> f64 {
        (self.measured / self.model - 1.0).abs()
    }

    /// Half of the 95 % interval of the measured value, for independent events.
    pub fn half_width(&self) -> f64 {
        if self.events > 0.0 { 1.96 * self.measured / self.events.sqrt() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer runs, and Eq. (15), are in docs/evidence/reproduction.md.
    #[test]
    fn the_model_is_right_where_its_assumptions_hold() {
        let run = StsPath::Steady.run(1, 300, &mut ()).unwrap();
        assert!(run.efficiency().error() < 0.005, "{:?}", run.efficiency());
        for at in &run.at[..TIMES_BEFORE_TAU_U] {
            for beside in [run.unacknowledged(at), run.not_congestive(at)] {
                assert!(beside.error() < 0.05, "{beside:?}");
            }
        }
    }

    /// Eq. (2): a timeout follows if the retransmission is lost. The model takes this to be as likely as for any
    /// packet.
    #[test]
    fn in_spells_of_congestion_a_timeout_is_likelier_than_the_model_says() {
        let run = StsPath::DropTail.run(1, 300, &mut ()).unwrap();
        let beside = run.timeout(&run.at[0]);
        assert!(beside.measured > 3.0 * beside.model, "{beside:?}");
    }
}
