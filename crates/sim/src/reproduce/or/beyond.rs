//! Flows beyond the tables: claims of the paper, and what it leaves open.

use paceline_path::QueueLimit;
use paceline_tcp::{CongestionName, DetectionName, HystartName, ReductionName};
use paceline_wire::{Duration, Rate};

use super::cells::{Setup, SetupLoss, Variant};
use super::experiment::SenderSetup;
use crate::scenario::{Scenario, Transport};
use crate::workload::Reader;

/// One flow beyond the tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeyondFlow {
    /// The question that it answers.
    pub question: Question,
    /// Congestion control of the sender.
    pub congestion: CongestionName,
    /// Rate reduction.
    pub reduction: ReductionName,
    /// As found or optimized.
    pub variant: Variant,
}

/// The question that a flow beyond the tables answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// Section VII.D expects 37 % from Vegas with QARR at 0.2 % loss: 20 Mbit/s, 100 ms.
    HigherLoss,
    /// Section IV.A: the application reads at most this share of the rate that the link delivers. The loss is 0.1 %.
    Reader(f64),
    /// The same flow with an application that reads all at once.
    EagerReader,
    /// 10 Gbit/s, 50 ms, one packet of 100,000 lost. The paper leaves this open.
    LargeBdp(SlowStart),
}

/// The start of the flow of 10 Gbit/s. It decides most of the result, unless the flow lasts many minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// HyStart and a queue of 3,000 packets, as in the tables. It is 3.6 ms here. Slow start overflows it at an eighth
    /// of the window.
    AsInTables,
    /// Without HyStart, and with a queue of one bandwidth-delay product. Slow start ends at the receive window. From
    /// then on, only recovery costs goodput.
    Full,
}

/// Our choice: 20 s at 10 Gbit/s have 400 round trips and some 160 losses.
const LARGE_BDP_DURATION: Duration = Duration::from_secs(20);
/// Three times the window of 45,000 segments, with room.
const LARGE_BDP_SEND_BUFFER: u64 = 1 << 30;
/// One bandwidth-delay product.
const LARGE_BDP_QUEUE: u32 = 41_667;
/// Our choice of a fast reader: a tenth of a processor that copes with 950 Mbit/s, as in the paper's testbed.
pub const FAST_READER: f64 = 4.75;

impl BeyondFlow {
    /// All flows beyond the tables.
    pub fn all() -> Vec<BeyondFlow> {
        use ReductionName::{Prr, Qarr};
        let flows = |question, congestion, reduction, variants: &[Variant]| -> Vec<BeyondFlow> {
            let flow = |variant: &Variant| BeyondFlow { question, congestion, reduction, variant: *variant };
            variants.iter().map(flow).collect()
        };
        let both = &[Variant::Original, Variant::Optimized];
        let all_three = &[Variant::Original, Variant::Optimized, Variant::OptimizedHack1];
        let readers = [1.2, 1.0, 0.5].map(Question::Reader);
        let readers = [Question::EagerReader, Question::Reader(FAST_READER)].into_iter().chain(readers);
        let readers = readers.flat_map(|reader| flows(reader, CongestionName::Cubic, Qarr, all_three));
        let large = [(SlowStart::AsInTables, Qarr), (SlowStart::Full, Prr), (SlowStart::Full, Qarr)];
        let large = large.into_iter().flat_map(|(start, reduction)| {
            flows(Question::LargeBdp(start), CongestionName::Cubic, reduction, both)
        });
        let higher = flows(Question::HigherLoss, CongestionName::Vegas, Qarr, both);
        higher.into_iter().chain(readers).chain(large).collect()
    }

    /// The path.
    pub fn setup(&self) -> Setup {
        match self.question {
            Question::HigherLoss => Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(0.2) },
            Question::Reader(_) | Question::EagerReader => {
                Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(0.1) }
            }
            Question::LargeBdp(_) => Setup { mbps: 10_000.0, rtt_ms: 50, loss: SetupLoss::Random(0.001) },
        }
    }

    /// The highest rate at which the application reads; `None` without a limit.
    pub fn reads_mbps(&self) -> Option<f64> {
        match self.question {
            Question::Reader(share) => Some(share * self.setup().payload_mbps()),
            _ => None,
        }
    }

    /// The flow as a scenario.
    pub fn scenario(&self, seed: u64) -> Scenario {
        let detection = DetectionName::Fack;
        let sender = SenderSetup {
            congestion: self.congestion,
            reduction: self.reduction,
            detection,
            variant: self.variant,
        };
        let mut scenario = self.setup().scenario(&sender, seed);
        let reads = self.reads_mbps().map(Rate::from_mbps);
        for flow in &mut scenario.flows {
            let Transport::Tcp(tcp) = &mut flow.transport else { continue };
            tcp.reader = reads.map_or(Reader::Eager, Reader::Paced);
            if let Question::LargeBdp(start) = self.question {
                tcp.server.send_buffer_max = LARGE_BDP_SEND_BUFFER;
                if start == SlowStart::Full {
                    tcp.server.hystart = HystartName::Off;
                }
            }
        }
        if let Question::LargeBdp(start) = self.question {
            scenario.duration = LARGE_BDP_DURATION;
            for link in scenario.path.iter_mut().filter(|_| start == SlowStart::Full) {
                link.down.queue = QueueLimit::Packets(LARGE_BDP_QUEUE);
            }
        }
        scenario
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run;

    /// With every reader, no rule is broken, and opportunistic retransmission with Hack 1 costs no goodput.
    #[test]
    fn a_slow_reader_does_not_break_it() {
        let flows = BeyondFlow::all();
        let readers: Vec<&BeyondFlow> = flows.iter().filter(|flow| flow.reads_mbps().is_some()).collect();
        assert_eq!(readers.len(), 12);
        for reader in readers.chunks(3) {
            let results = [0, 1, 2].map(|n| {
                let mut scenario = reader[n].scenario(1);
                (scenario.duration, scenario.checked) = (Duration::from_secs(30), true);
                run(&scenario).unwrap()
            });
            assert!(results.iter().all(|result| result.findings.is_empty()), "{results:?}");
            let [found, _, hacked] = results.map(|result| result.flows[0].goodput_mbps);
            assert!(hacked >= 0.97 * found, "{:?}: {found} as found, {hacked} with Hack 1", reader[2]);
        }
    }
}
