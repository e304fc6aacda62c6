//! The calls of the application (RFC 9293, Section 3.9.1).

use paceline_wire::{Duration, Instant, Payload};

use super::{CloseReason, Connection, State};

impl Connection {
    /// Accepts data to send and returns the number of bytes taken. If it is less than offered, write again when
    /// [`is_writable`](Self::is_writable) is true, which needs a third of the send buffer free.
    pub fn write(&mut self, payload: &Payload) -> usize {
        if !self.may_send() {
            return 0;
        }
        self.queue.wake();
        let written = self.queue.write(payload);
        self.sender.wake();
        written
    }

    /// As [`write`](Self::write), for `bytes` bytes whose content nobody reads.
    pub fn write_length(&mut self, bytes: u32) -> usize {
        self.write(&Payload::Length(bytes))
    }

    /// True if the application should write. After a refused write, a third of the send buffer must be free.
    pub fn is_writable(&self) -> bool {
        self.may_send() && self.queue.is_writable()
    }

    /// Fixes the send buffer at `bytes` bytes of payload, so that it no longer grows (SO_SNDBUF).
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.queue.set_buffer(self.config.send_buffer.build(bytes, bytes));
    }

    /// How long sent data may stay unacknowledged before the connection is given up. `None` means the number of
    /// retransmissions in [`Config::retries`](crate::Config::retries) (RFC 9293, Section 3.8.3; Linux
    /// TCP_USER_TIMEOUT).
    pub fn set_user_timeout(&mut self, limit: Option<Duration>) {
        self.sender.timer.user_timeout = limit;
    }

    /// Bytes that can be written now. For callers that write as soon as there is room and do not wait for
    /// [`is_writable`](Self::is_writable).
    pub fn room(&self) -> u64 {
        if self.may_send() { self.queue.room() } else { 0 }
    }

    /// Takes up to `max` bytes of in-order data, or `None` if there are none. One call returns data of one received
    /// piece, so call it until it returns `None`.
    pub fn read(&mut self, now: Instant, max: usize) -> Option<Payload> {
        self.receiver.read(now, max)
    }

    /// Discards all in-order data and returns its number of bytes.
    pub fn read_all(&mut self, now: Instant) -> u64 {
        self.receiver.read_all(now)
    }

    /// Bytes that can be read.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// True if the peer has closed and all its data was read.
    pub fn is_read_finished(&self) -> bool {
        self.receiver.is_finished() && self.receiver.readable() == 0
    }

    /// Bytes written and not yet acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.queue.end().saturating_sub(self.sender.board.una())
    }

    /// Sends all written data, then a FIN. Reading remains possible.
    pub fn close(&mut self) {
        if self.queue.is_closed() {
            return;
        }
        self.queue.close();
        self.sender.wake();
        self.state = match self.state {
            State::SynSent => return self.give_up(),
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            state => state,
        };
    }

    /// Closes before the peer has answered. Written data is never sent (RFC 9293, Section 3.10.4).
    fn give_up(&mut self) {
        self.finish(CloseReason::Aborted);
    }

    /// Ends the connection at once with a reset (RFC 9293, Section 3.10.5).
    pub fn abort(&mut self) {
        let synchronised = !matches!(self.state, State::SynSent | State::Closed | State::TimeWait);
        if synchronised {
            self.output.abort();
        }
        self.finish(CloseReason::Aborted);
    }

    fn may_send(&self) -> bool {
        !self.queue.is_closed()
            && matches!(
                self.state,
                State::SynSent | State::SynReceived | State::Established | State::CloseWait
            )
    }
}
