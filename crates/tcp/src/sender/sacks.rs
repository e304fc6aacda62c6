//! SACK blocks (RFC 2018), with D-SACK (RFC 2883; Linux tcp_sacktag_write_queue).

use super::Sender;
use super::accounting::Accounting;
use super::messages::{AckInput, Flags};
use crate::congestion::CaState;
use crate::scoreboard::Mark;

impl Sender {
    /// Takes the SACK blocks, lowest first, and handles a D-SACK apart. Returns the number of retransmissions that a
    /// D-SACK reports as delivered.
    #[inline(never)]
    pub(super) fn take_sacks(
        &mut self,
        input: &AckInput<'_>,
        prior_una: u64,
        account: &mut Accounting,
        flags: &mut Flags,
    ) -> u32 {
        let [first, rest @ ..] = input.sacks else { return 0 };
        if !self.sack_ok {
            return 0;
        }
        // RFC 2883, Section 4: a D-SACK begins below the ACK or lies within the second block.
        let within = rest.first().is_some_and(|second| first.0 >= second.0 && first.1 <= second.1);
        let duplicate = first.1 <= input.ack || first.0 < input.ack || within;
        let dups = if duplicate { self.take_dsack(*first, prior_una, flags) } else { 0 };
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        for &block in input.sacks.iter().skip(usize::from(duplicate)).take(blocks.len()) {
            // Data that was never sent cannot have arrived.
            if block.0 < block.1 && block.1 <= self.board.nxt() && block.1 > input.ack {
                blocks[count] = block;
                count += 1;
            }
        }
        blocks[..count].sort_unstable();
        for &(start, end) in &blocks[..count] {
            let Sender { board, detection, owns_response, .. } = self;
            let newly = board.sack(start, end, |segment| {
                account.on_sacked(segment);
                if *owns_response {
                    detection.on_delivered(input.now, segment);
                }
            });
            flags.data_sacked |= newly > 0;
        }
        if self.episode.state != CaState::Loss || self.episode.undo.marker.is_some() {
            self.reordering.note(account.reord_sack, self.board.highest_sack(), self.mss);
        }
        dups
    }

    /// Takes a D-SACK (RFC 2883): a retransmission was unnecessary (tcp_dsack_seen).
    fn take_dsack(&mut self, block: (u64, u64), prior_una: u64, flags: &mut Flags) -> u32 {
        let len = block.1.saturating_sub(block.0);
        // A block that is empty, longer than any window, or beyond SND.NXT is a peer's mistake.
        if len == 0 || len > self.peer.max_window || block.1 > self.board.nxt() {
            return 0;
        }
        let dups = u32::try_from(len.div_ceil(u64::from(self.mss))).unwrap_or(1).max(1);
        self.totals.dsack_dups += u64::from(dups);
        if self.totals.dsack_dups > self.totals.segments_retransmitted {
            // More duplicates than retransmissions: the network duplicated a packet.
            return 0;
        }
        flags.dsack = true;
        flags.dsack_of_probe = self.tail_probe.retransmitted && self.tail_probe.high_seq == Some(block.1);
        flags.dsack_of_reordering = self.reordering.seen > 0 && !flags.dsack_of_probe;
        self.answer_retransmissions(block, prior_una, dups);
        dups
    }

    /// Counts the retransmissions of the episode that a D-SACK reports. Below SND.UNA the block's length counts
    /// (tcp_check_dsack), above it the segments within the block (tcp_sacktag_one).
    fn answer_retransmissions(&mut self, block: (u64, u64), prior_una: u64, dups: u32) {
        let Some(marker) = self.episode.undo.marker.filter(|&marker| block.1 > marker) else { return };
        let answered = match block.1 <= prior_una {
            true => dups,
            false => self.retransmitted_within(block, marker),
        };
        if let Some(retrans) = &mut self.episode.undo.retrans {
            *retrans = retrans.saturating_sub(answered);
        }
    }

    fn retransmitted_within(&self, block: (u64, u64), marker: u64) -> u32 {
        let (mut number, end) = (self.board.number_at(block.0), self.board.numbers().1);
        let mut count = 0;
        while number != end {
            let Some(segment) = self.board.get(number).filter(|segment| segment.end <= block.1) else {
                break;
            };
            let again = segment.mark.contains(Mark::EVER_RETRANSMITTED);
            count += u32::from(again && segment.start >= block.0 && segment.end > marker);
            number = number.wrapping_add(1);
        }
        count
    }
}
