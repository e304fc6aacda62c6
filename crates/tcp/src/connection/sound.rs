//! Checks the state of a connection that was read from another process. Later arithmetic relies on its numbers without
//! further checks.

use super::Connection;
use crate::segment::SHIFT_MAX;

/// No stream position and no count reaches this. At 100 Gbit/s it takes eleven years.
const POSITION_MAX: u64 = 1 << 62;

impl Connection {
    /// True if positions are in order, counts match the stored data, and no number exceeds its maximum.
    pub fn is_sound(&self) -> bool {
        let (sender, queue) = (&self.sender, &self.queue);
        let shifts = [self.agreed.snd_shift, self.agreed.rcv_shift];
        sender.is_sound(POSITION_MAX)
            && self.receiver.is_sound(POSITION_MAX)
            && queue.is_sound()
            && queue.end().max(self.iss) < POSITION_MAX
            && sender.board.nxt() <= queue.end() + u64::from(queue.is_closed())
            && shifts.into_iter().all(|shift| shift <= SHIFT_MAX)
    }
}
