//! The paper's network (Section III-A) and the transfers over it.

use paceline_path::random::Probability;
use paceline_path::{Delay, DelayStep, LinkConfig, Loss, QueueLimit, RateProcess, RateStep};
use paceline_tcp::{Config, CongestionName, HystartName, ReceiveBuffer, ReceiveWindowName, TimestampClock};
use paceline_wire::{Duration, Rate};

use crate::result::Direction;
use crate::scenario::{Flow, Load, PathLink, Scenario, TcpFlow, Transport};
use crate::workload::SizeRange;

/// The dumbbell of Fig. 5, whose bottleneck is the radio link.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Downlink rates, each with the time in seconds from which it holds.
    pub down_mbps: Vec<(f64, f64)>,
    /// Uplink rate.
    pub up_mbps: f64,
    /// Propagation delays there and back, each with the time in seconds from which it holds.
    pub rtt_ms: Vec<(f64, f64)>,
    /// Buffer of the downlink.
    pub down_buffer_bytes: u64,
    /// Buffer of the uplink.
    pub up_buffer_bytes: u64,
    /// Random loss on the downlink.
    pub loss_percent: f64,
    /// The clients' timestamp clock.
    pub clock: TimestampClock,
}

/// A transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// The sender's congestion control.
    pub scheme: CongestionName,
    /// Direction of the data.
    pub direction: Direction,
    /// Size; `None` for as long as the run lasts.
    pub bytes: Option<u64>,
    /// Start time, from the start of the run.
    pub start_s: f64,
}

/// Table I and Section III-A.
const DOWN_BUFFER_BYTES: u64 = 2_800_000;
const UP_BUFFER_BYTES: u64 = 1_000_000;
/// Our choice: the receive window never limits a flow, as in ns-2. It is 8 Mbit/s x 32 s, the time that the uplink's
/// buffer takes at 250 kbit/s.
const RECEIVE_WINDOW_BYTES: u32 = 32_000_000;

impl Setup {
    /// A network of constant rates, with the paper's buffers.
    pub fn new(down_mbps: f64, up_mbps: f64, rtt_ms: f64) -> Setup {
        Setup {
            down_mbps: vec![(0.0, down_mbps)],
            up_mbps,
            rtt_ms: vec![(0.0, rtt_ms)],
            down_buffer_bytes: DOWN_BUFFER_BYTES,
            up_buffer_bytes: UP_BUFFER_BYTES,
            loss_percent: 0.0,
            clock: TimestampClock::default(),
        }
    }

    /// The scenario with these transfers. It ends with the last transfer that has a size, at the latest after
    /// `duration_s`.
    pub fn scenario(&self, transfers: &[Transfer], duration_s: f64, seed: u64) -> Scenario {
        let delay = self.delay();
        let down = LinkConfig {
            rate: self.down_rate(),
            queue: QueueLimit::Bytes(self.down_buffer_bytes),
            delay: delay.clone(),
            loss: match self.loss_percent > 0.0 {
                true => Loss::Independent(Probability::from_fraction(self.loss_percent / 100.0)),
                false => Loss::None,
            },
            ..LinkConfig::default()
        };
        let up = LinkConfig {
            rate: RateProcess::Constant(Rate::from_mbps(self.up_mbps)),
            queue: QueueLimit::Bytes(self.up_buffer_bytes),
            delay,
            ..LinkConfig::default()
        };
        Scenario {
            duration: Duration::from_secs_f64(duration_s),
            seed,
            path: vec![PathLink { name: "radio".into(), down, up }],
            flows: transfers.iter().map(|transfer| self.flow(transfer)).collect(),
            patience: Duration::ZERO,
            ends_early: transfers.iter().any(|transfer| transfer.bytes.is_some()),
            ..Scenario::default()
        }
    }

    fn down_rate(&self) -> RateProcess {
        let step = |(at_s, mbps): &(f64, f64)| RateStep {
            at: Duration::from_secs_f64(*at_s),
            rate: Rate::from_mbps(*mbps),
        };
        match &self.down_mbps[..] {
            [(_, mbps)] => RateProcess::Constant(Rate::from_mbps(*mbps)),
            steps => RateProcess::Steps(steps.iter().map(step).collect()),
        }
    }

    fn delay(&self) -> Delay {
        let half = |ms: f64| Duration::from_micros((ms * 500.0) as u64);
        let step =
            |(at_s, ms): &(f64, f64)| DelayStep { at: Duration::from_secs_f64(*at_s), delay: half(*ms) };
        match &self.rtt_ms[..] {
            [(_, ms)] => Delay::Constant(half(*ms)),
            steps => Delay::Steps(steps.iter().map(step).collect()),
        }
    }

    fn flow(&self, transfer: &Transfer) -> Flow {
        let host = Config {
            receive_buffer: ReceiveBuffer::Fixed(RECEIVE_WINDOW_BYTES),
            // As in ns-2, the whole window is offered at once. Linux opens its window as data comes.
            receive_window: ReceiveWindowName::Fixed,
            // Section III-C: CUBIC, Reno and Westwood are hard to tell apart, since slow start is the same. With
            // HyStart it is not. ns-2.35 has the CUBIC of Linux 2.6.22. HyStart came with
            // 2.6.29.
            hystart: HystartName::Off,
            ..Config::default()
        };
        let (mut server, mut client) = (host, Config { timestamp_clock: self.clock, ..host });
        let (sender, name) = match transfer.direction {
            Direction::Down => (&mut server, "download"),
            Direction::Up => (&mut client, "upload"),
        };
        sender.congestion = transfer.scheme;
        let load = transfer.bytes.map_or(Load::Bulk, |bytes| Load::Size(SizeRange::exactly(bytes)));
        Flow {
            name: name.into(),
            direction: transfer.direction,
            transport: Transport::Tcp(Box::new(TcpFlow { server, client, load, ..TcpFlow::default() })),
            start: Duration::from_secs_f64(transfer.start_s),
            ..Flow::default()
        }
    }
}

impl Transfer {
    /// A download from the start of the run.
    pub fn download(scheme: CongestionName, bytes: Option<u64>) -> Transfer {
        Transfer { scheme, direction: Direction::Down, bytes, start_s: 0.0 }
    }

    /// An endless upload by CUBIC (Section III-C).
    pub fn upload() -> Transfer {
        Transfer { scheme: CongestionName::Cubic, direction: Direction::Up, bytes: None, start_s: 0.0 }
    }

    /// The same transfer, with a later start.
    pub fn after(self, start_s: f64) -> Transfer {
        Transfer { start_s, ..self }
    }
}

/// The payload's share of a packet: 1,448 bytes of 1,500.
pub const PAYLOAD_SHARE: f64 = 1_448.0 / 1_500.0;
