//! Flows beyond the tables: what the paper claims or leaves open.

use paceline_tcp::{CongestionName, DetectionName, ReductionName};
use paceline_wire::{Duration, Rate};

use super::cells::{Setup, SetupLoss, Variant};
use super::experiment::SenderSetup;
use crate::scenario::{Scenario, Transport};
use crate::workload::Reader;

/// One flow beyond the tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeyondFlow {
    /// What it shows.
    pub question: Question,
    /// Who sends: congestion control, rate reduction.
    pub congestion: CongestionName,
    /// Rate reduction.
    pub reduction: ReductionName,
    /// As found or optimized.
    pub variant: Variant,
}

/// What a flow beyond the tables shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// Section VII.D expects 37 % from Vegas with QARR at 0.2 % loss: 20 Mbit/s, 100 ms.
    HigherLoss,
    /// Section IV.A: a receiving application that reads no faster than this share of what the link delivers, at 0.1 %.
    Reader(f64),
    /// The same flow without such a limit.
    EagerReader,
    /// 10 Gbit/s, 50 ms, one packet of 100,000 lost. Left open by the paper.
    LargeBdp,
}

/// Our choice: at 10 Gbit/s some 160 losses in 400 round trips, long after the last of the slow start.
const LARGE_BDP_DURATION: Duration = Duration::from_secs(20);
/// Three times the window of 45,000 segments, with room.
const LARGE_BDP_SEND_BUFFER: u64 = 1 << 30;

impl BeyondFlow {
    /// All of them.
    pub fn all() -> Vec<BeyondFlow> {
        use ReductionName::{Barr, Prr, Qarr};
        let pair = |question, congestion, reduction| {
            [Variant::Original, Variant::Optimized].map(|variant| BeyondFlow {
                question,
                congestion,
                reduction,
                variant,
            })
        };
        let readers =
            [Question::EagerReader, Question::Reader(1.2), Question::Reader(1.0), Question::Reader(0.5)];
        let readers = readers.into_iter().flat_map(|reader| pair(reader, CongestionName::Cubic, Qarr));
        let large = [Prr, Qarr, Barr].into_iter();
        let large = large.flat_map(|reduction| pair(Question::LargeBdp, CongestionName::Cubic, reduction));
        pair(Question::HigherLoss, CongestionName::Vegas, Qarr)
            .into_iter()
            .chain(readers)
            .chain(large)
            .collect()
    }

    /// Its path.
    pub fn setup(&self) -> Setup {
        match self.question {
            Question::HigherLoss => Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(0.2) },
            Question::Reader(_) | Question::EagerReader => {
                Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(0.1) }
            }
            Question::LargeBdp => Setup { mbps: 10_000.0, rtt_ms: 50, loss: SetupLoss::Random(0.001) },
        }
    }

    /// What the receiving application reads at most; `None` for all that comes.
    pub fn reads_mbps(&self) -> Option<f64> {
        match self.question {
            Question::Reader(share) => Some(share * self.setup().payload_mbps()),
            _ => None,
        }
    }

    /// As a scenario.
    pub fn scenario(&self, seed: u64) -> Scenario {
        let detection = DetectionName::Fack;
        let sender = SenderSetup {
            congestion: self.congestion,
            reduction: self.reduction,
            detection,
            variant: self.variant,
        };
        let mut scenario = self.setup().scenario(&sender, seed);
        for flow in &mut scenario.flows {
            let Transport::Tcp(tcp) = &mut flow.transport else { continue };
            if let Some(mbps) = self.reads_mbps() {
                tcp.reader = Reader::Paced(Rate::from_mbps(mbps));
            }
            if self.question == Question::LargeBdp {
                tcp.server.send_buffer_max = LARGE_BDP_SEND_BUFFER;
            }
        }
        if self.question == Question::LargeBdp {
            scenario.duration = LARGE_BDP_DURATION;
        }
        scenario
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run;

    /// Whatever the reader, opportunistic retransmission takes nothing away, and nothing times out.
    #[test]
    fn a_slow_reader_does_not_break_it() {
        let flows = BeyondFlow::all();
        let readers: Vec<&BeyondFlow> = flows.iter().filter(|flow| flow.reads_mbps().is_some()).collect();
        assert_eq!(readers.len(), 6);
        for pair in readers.chunks(2) {
            let [found, optimized] = [0, 1].map(|n| {
                let mut scenario = pair[n].scenario(1);
                (scenario.duration, scenario.checked) = (Duration::from_secs(30), true);
                run(&scenario).unwrap()
            });
            assert_eq!(optimized.findings, Vec::<String>::new());
            let (found, optimized) = (&found.flows[0], &optimized.flows[0]);
            assert!(optimized.goodput_mbps >= 0.98 * found.goodput_mbps, "{pair:?}: {found:?} {optimized:?}");
        }
    }
}
