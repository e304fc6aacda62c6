//! Whether a connection that was read from another process can be one: of its numbers others are computed, without a look at each.

use super::Connection;
use crate::segment::SHIFT_MAX;

/// No position of a stream and no count comes as far: at 100 Gbit/s after eleven years.
const POSITION_MAX: u64 = 1 << 62;

impl Connection {
    /// Positions are in their order, what is kept is what is counted, and no number is larger than it can be.
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
