//! The segments that one ACK acknowledges, gathered one by one (Linux tcp_sacktag_one and tcp_clean_rtx_queue).

use paceline_wire::{Duration, Instant};

use crate::detection::Newest;
use crate::rate_sample::RateGather;
use crate::scoreboard::{Mark, Scoreboard, Segment};

/// The account of one ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accounting {
    now: Instant,
    min_rtt: Duration,
    high_seq: u64,
    /// The highest position known to have arrived before this ACK.
    pub(super) prior_fack: u64,
    /// Number of segments marked lost since the start, before this ACK.
    pub(super) prior_lost: u64,
    /// Some segment in flight was already reported by SACK before this ACK.
    pub(super) had_sacked: bool,
    pub(super) rate: RateGather,
    pub(super) newest: Option<Newest>,
    pub(super) first_acked_sent: Option<Instant>,
    pub(super) last_acked_sent: Option<Instant>,
    pub(super) first_sacked_sent: Option<Instant>,
    pub(super) last_sacked_sent: Option<Instant>,
    /// Start of the lowest newly reported segment that was never retransmitted and arrived after a later one.
    pub(super) reord_sack: u64,
    pub(super) reord_ack: u64,
    /// Data sent only once, before the episode began, has arrived (F-RTO).
    pub(super) original_delivered: bool,
    pub(super) retransmission_acked: bool,
    pub(super) acked_were_sacked: bool,
    pub(super) newly_sacked: u32,
    pub(super) newly_acked: u32,
    pub(super) delivered_bytes: u64,
}

impl Accounting {
    pub(super) fn new(now: Instant, min_rtt: Duration, high_seq: u64, board: &Scoreboard) -> Self {
        Accounting {
            now,
            min_rtt,
            high_seq,
            prior_fack: board.highest_sack(),
            prior_lost: board.lost_total(),
            had_sacked: board.sacked_out() > 0,
            rate: RateGather::default(),
            newest: None,
            first_acked_sent: None,
            last_acked_sent: None,
            first_sacked_sent: None,
            last_sacked_sent: None,
            reord_sack: u64::MAX,
            reord_ack: u64::MAX,
            original_delivered: false,
            retransmission_acked: false,
            acked_were_sacked: false,
            newly_sacked: 0,
            newly_acked: 0,
            delivered_bytes: 0,
        }
    }

    /// Counts a segment reported by SACK.
    pub(super) fn on_sacked(&mut self, segment: &Segment) {
        self.deliver(segment);
        self.newly_sacked += 1;
        if !segment.mark.contains(Mark::EVER_RETRANSMITTED) {
            if segment.start < self.prior_fack {
                self.reord_sack = self.reord_sack.min(segment.start);
            }
            self.original_delivered |= segment.end <= self.high_seq;
            self.first_sacked_sent.get_or_insert(segment.sent_at);
            self.last_sacked_sent = Some(segment.sent_at);
        }
    }

    /// Counts a segment acknowledged cumulatively.
    pub(super) fn on_acked(&mut self, segment: &Segment) {
        if segment.mark.contains(Mark::EVER_RETRANSMITTED) {
            self.retransmission_acked = true;
        } else if !segment.mark.contains(Mark::SACKED) {
            self.first_acked_sent.get_or_insert(segment.sent_at);
            self.last_acked_sent = Some(segment.sent_at);
            self.reord_ack = self.reord_ack.min(segment.start);
            self.original_delivered |= segment.end <= self.high_seq;
        }
        if segment.mark.contains(Mark::SACKED) {
            self.acked_were_sacked = true;
        } else {
            self.deliver(segment);
            self.newly_acked += 1;
        }
    }

    fn deliver(&mut self, segment: &Segment) {
        self.delivered_bytes += segment.end - segment.start;
        self.rate.on_delivered(segment);
        let rtt = self.now.saturating_since(segment.sent_at);
        // An ACK within the shortest RTT is for the original, not for the retransmission (RFC 8985, Section 6.2, step
        // 2).
        if rtt < self.min_rtt && segment.mark.contains(Mark::EVER_RETRANSMITTED) {
            return;
        }
        let later = self.newest.is_none_or(|n| (segment.sent_at, segment.end) > (n.sent_at, n.end));
        self.newest = Some(match self.newest {
            Some(newest) if !later => Newest { rtt, ..newest },
            _ => Newest { sent_at: segment.sent_at, end: segment.end, rtt },
        });
    }

    /// Departure time of the newest segment that is newly delivered and was never retransmitted.
    pub(super) fn newest_sent(&self) -> Option<Instant> {
        self.last_acked_sent.max(self.last_sacked_sent)
    }

    /// Returns the RTTs, by Karn's rule never of retransmitted segments. The oldest delivered segment gives the RTT for
    /// the timeout, the newest the RTT for congestion control (tcp_clean_rtx_queue).
    pub(super) fn rtts(&self) -> Rtts {
        let since = |sent: Option<Instant>| sent.map(|sent| self.now.saturating_since(sent));
        let acked = !self.retransmission_acked;
        let seq = since(self.first_acked_sent).filter(|_| acked);
        let sack = since(self.first_sacked_sent);
        let latest = since(self.last_sacked_sent).or(since(self.last_acked_sent).filter(|_| acked));
        Rtts { seq: seq.or(sack), sack, latest }
    }
}

/// Round-trip times that one ACK shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtts {
    pub(super) seq: Option<Duration>,
    pub(super) sack: Option<Duration>,
    pub(super) latest: Option<Duration>,
}
