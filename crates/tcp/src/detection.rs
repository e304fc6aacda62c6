//! Loss detection: which segment is lost, and when the sender responds to congestion.
//!
//! TCP-DCR, TCP-DOOR, TCP-PR and RR-TCP follow descriptions of their papers, because the papers were not at hand. The
//! sections and constants that they name still have to be checked against the papers.

mod fack;
mod interface;
mod ncl;
mod rack;
mod rfc6675;
mod rr_tcp;
mod rtt_record;
mod rtt_sketch;
mod sts;
mod tcp_dcr;
mod tcp_door;
mod tcp_pr;
mod tracked;

use alloc::boxed::Box;

use crate::snapshot::snapshot;

pub use fack::Fack;
pub(crate) use interface::mark_below;
pub use interface::{
    CongestionResponse, DUP_THRESH, DetectionName, LossDetection, LossOutcome, LossSample, Newest, Sent,
};
pub use ncl::{Ncl, NclConfig, TauCd};
pub use rack::Rack;
pub use rfc6675::Rfc6675;
pub use rr_tcp::RrTcp;
pub use tcp_dcr::TcpDcr;
pub use tcp_door::TcpDoor;
pub use tcp_pr::TcpPr;

snapshot!(DetectionState of AnyDetection, LossDetection: Rfc6675, Fack, Rack, Ncl, TcpDcr, TcpDoor, TcpPr, RrTcp,);

impl DetectionName {
    /// A new instance. `ncl` is for TCP-NCL and its variants.
    pub fn build(self, ncl: NclConfig) -> Box<dyn AnyDetection> {
        match self {
            DetectionName::Rfc6675 => Box::new(Rfc6675::default()),
            DetectionName::Fack => Box::new(Fack::default()),
            DetectionName::RackTlp => Box::new(Rack::default()),
            DetectionName::Ncl | DetectionName::NclSecondRd | DetectionName::NclAdaptive => {
                Box::new(Ncl::new(self, ncl))
            }
            DetectionName::TcpDcr => Box::new(TcpDcr::default()),
            DetectionName::TcpDoor => Box::new(TcpDoor::default()),
            DetectionName::TcpPr => Box::new(TcpPr::default()),
            DetectionName::RrTcp => Box::new(RrTcp::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rack::tests::{board_from, sample_at};
    use super::*;

    /// Segments are judged again after an undo, whatever number the first segment has then.
    #[test]
    fn an_undo_late_in_a_long_connection_does_not_end_detection() {
        let names =
            [DetectionName::Rfc6675, DetectionName::Fack, DetectionName::RrTcp, DetectionName::TcpDcr];
        for first in [5, (1 << 31) + 5, u32::MAX - 1] {
            for name in names {
                let (mut detection, mut board) = (name.build(NclConfig::default()), board_from(first, 10));
                detection.on_recovery_end(true);
                board.sack(1_300, 2_000, |_| {});
                detection.on_ack(&mut board, &LossSample { sacked_news: true, ..sample_at(50) });
                detection.on_timeout(&mut board, &sample_at(90));
                assert_eq!(board.lost_out(), 3, "{name:?} from {first}");
            }
        }
    }
}
