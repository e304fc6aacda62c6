//! Checks a flow that was read from another process. Later computations use its numbers unchecked.

use super::Flow;

/// No stream position is as large: 100 Gbit/s take eleven years from the second wrap of the sequence numbers on.
const POSITION_MAX: u64 = 1 << 62;
/// RFC 7323, Section 2.3: a field of 16 bits, shifted by 14.
const WINDOW_MAX: u64 = 1 << 30;
const SHIFT_MAX: u8 = 14;

impl Flow {
    /// True if positions are in order, and windows and shifts not too large.
    pub(crate) fn is_sound(&self) -> bool {
        let positions = [self.stream.received(), self.stream.passed(), self.shown.edge()];
        let una = self.board.una();
        let streams = positions.into_iter().all(|position| position < POSITION_MAX)
            && una <= self.board.sent()
            && self.board.sent() <= self.stream.received().max(una)
            && self.upstream.uplink.is_none_or(|uplink| uplink.is_sound(POSITION_MAX));
        let windows = self.client.is_sound(POSITION_MAX, WINDOW_MAX);
        let shifts = [self.shifts.client, self.shifts.shown, self.shifts.server];
        streams && windows && shifts.into_iter().all(|shift| shift <= SHIFT_MAX)
    }
}
