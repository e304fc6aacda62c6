//! One run: long flows, of which the second half of the time counts (Section V).

use paceline_tcp::{Config, NclConfig, ReceiveBuffer, Status};
use paceline_wire::{Duration, Instant};

use super::path::{DelayedPath, Dumbbell, LastHop};
use super::scheme::Scheme;
use crate::run::{Watch, run_watched};
use crate::scenario::{Flow, PathLink, Scenario, ScenarioError, TcpFlow, Transport};

/// Who sends over what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NclScenario {
    /// The sender.
    pub scheme: Scheme,
    /// MRRL, beta and tau_CD, where it is TCP-NCL.
    pub ncl: NclConfig,
    /// The path.
    pub span: Span,
    /// How long, both halves.
    pub seconds: u64,
}

/// A path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// Fig. 8a.
    LastHop(LastHop),
    /// Fig. 8c.
    Delayed(DelayedPath),
    /// Fig. 6.
    Dumbbell(Dumbbell),
}

/// What a run yields, of its second half.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NclRun {
    /// Goodput of each flow, Mbit/s.
    pub goodput_mbps: Vec<f64>,
    /// Segments sent again, of all that were sent.
    pub retransmitted_share: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// How often congestion was answered otherwise.
    pub answers: u64,
    /// Packets that the queues dropped, of all that were sent; of the whole time.
    pub queue_drop_share: f64,
    /// Median of the smoothed RTT, every 100 ms.
    pub srtt_ms: f64,
    /// The sender's smoothed RTT and cwnd on average.
    pub cwnd_mean: f64,
}

/// Payload of a full-sized packet, as ns-2's agents send. Our choice, as the text has no other.
const PAYLOAD_BYTES: u16 = 1_000;
/// IPv4, TCP, timestamps.
const HEADER_BYTES: u16 = 52;
const TIMESTAMP_BYTES: u16 = 12;
/// Our choice: no path here ever fills it.
const RECEIVE_BUFFER_BYTES: u32 = 4 << 20;

impl NclScenario {
    /// The most that a link of that rate carries of payload.
    pub fn payload_mbps(mbps: f64) -> f64 {
        mbps * f64::from(PAYLOAD_BYTES) / f64::from(PAYLOAD_BYTES + HEADER_BYTES)
    }

    fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// As a scenario.
    pub fn scenario(&self, seed: u64) -> Scenario {
        let (path, flows): (Vec<PathLink>, u32) = match &self.span {
            Span::LastHop(path) => (path.links(), 1),
            Span::Delayed(path) => (path.links(seed, self.duration()), 1),
            Span::Dumbbell(path) => (path.links(), path.flows),
        };
        let client = Config {
            receive_buffer: ReceiveBuffer::Fixed(RECEIVE_BUFFER_BYTES),
            mss: PAYLOAD_BYTES + TIMESTAMP_BYTES,
            // ns-2's receiver answers every packet.
            delayed_ack: false,
            sack_compression: false,
            ..Config::default()
        };
        let tcp = TcpFlow { server: self.scheme.config(self.ncl), client, ..TcpFlow::default() };
        let flow = |number: u32| Flow {
            name: format!("flow{number}"),
            transport: Transport::Tcp(Box::new(tcp.clone())),
            // Our choice: one after the other, so that they do not grow in step.
            start: Duration::from_millis(u64::from(number) * START_STEP_MS),
            ..Flow::default()
        };
        Scenario {
            duration: self.duration(),
            seed,
            path,
            flows: (0..flows).map(flow).collect(),
            patience: Duration::ZERO,
            ..Scenario::default()
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// What cannot be simulated; that `watch` gave it up.
    pub fn run(&self, seed: u64, watch: &mut dyn Watch) -> Result<NclRun, ScenarioError> {
        let scenario = self.scenario(seed);
        let half = Instant::ZERO + self.duration() / 2;
        let mut second =
            SecondHalf { half, flows: vec![Marks::default(); scenario.flows.len()], outer: watch };
        let result = run_watched(&scenario, Vec::new(), &mut second)?;
        let counted_s = self.duration().as_secs_f64() / 2.0;
        let flows = second.flows;
        let sum = |of: &dyn Fn(&Marks) -> u64| flows.iter().map(of).sum::<u64>();
        let sent = sum(&|marks| marks.end.sent - marks.start.sent);
        let drops = result.links.values().filter_map(|link| link.drops_by_cause.get("queue")).sum::<u64>();
        let all_sent = sum(&|marks| marks.end.sent);
        let looks = sum(&|marks| marks.looks).max(1) as f64;
        Ok(NclRun {
            goodput_mbps: flows.iter().map(|marks| marks.read() as f64 * 8.0 / 1e6 / counted_s).collect(),
            retransmitted_share: sum(&|marks| marks.end.resent - marks.start.resent) as f64
                / sent.max(1) as f64,
            timeouts: sum(&|marks| marks.end.timeouts - marks.start.timeouts),
            answers: sum(&|marks| marks.end.answers - marks.start.answers),
            queue_drop_share: drops as f64 / all_sent.max(1) as f64,
            srtt_ms: result.flows.first().map_or(f64::NAN, |flow| flow.rtt_ms.p50),
            cwnd_mean: sum(&|marks| marks.cwnd_sum) as f64 / looks,
        })
    }
}

/// Between the starts of flows.
const START_STEP_MS: u64 = 170;

/// Totals of a flow at some time.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    read: u64,
    sent: u64,
    resent: u64,
    timeouts: u64,
    answers: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    start: Totals,
    end: Totals,
    looks: u64,
    cwnd_sum: u64,
}

impl Marks {
    fn read(&self) -> u64 {
        self.end.read - self.start.read
    }
}

/// Takes the totals at half-time and at the end.
struct SecondHalf<'a> {
    half: Instant,
    flows: Vec<Marks>,
    outer: &'a mut dyn Watch,
}

impl Watch for SecondHalf<'_> {
    fn sender(&mut self, now: Instant, transfer: usize, status: &Status, read_bytes: u64) {
        let totals = Totals {
            read: read_bytes,
            sent: status.data_segs_out,
            resent: status.total_retrans,
            timeouts: status.total_rto,
            answers: status.recoveries,
        };
        let Some(marks) = self.flows.get_mut(transfer) else { return };
        marks.end = totals;
        if now <= self.half {
            marks.start = totals;
        } else {
            marks.looks += 1;
            marks.cwnd_sum += u64::from(status.snd_cwnd);
        }
    }

    fn goes_on(&mut self, now: Instant) -> bool {
        self.outer.goes_on(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goodput(scheme: Scheme, error_percent: f64) -> f64 {
        let span = Span::LastHop(LastHop { error_percent, ..LastHop::DRAWN });
        let scenario = NclScenario { scheme, ncl: NclConfig::default(), span, seconds: 200 };
        scenario.run(1, &mut ()).unwrap().goodput_mbps[0]
    }

    /// The claim of the paper in one line: with 5 % of errors TCP-NCL keeps what a loss-based sender loses.
    #[test]
    fn errors_are_not_congestion() {
        let [ncl, reno] = [Scheme::Ncl, Scheme::Reno].map(|scheme| goodput(scheme, 5.0));
        assert!(ncl > 1.5 * reno, "{ncl} {reno}");
    }

    #[test]
    fn without_errors_the_link_is_full() {
        for scheme in Scheme::ALL {
            let share = goodput(scheme, 0.0) / NclScenario::payload_mbps(2.0);
            assert!((0.97..1.001).contains(&share), "{scheme:?}: {share}");
        }
    }
}
