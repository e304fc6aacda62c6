//! What the application may do.

use paceline_wire::{Duration, Instant, Payload};

use super::{CloseReason, Connection, State};

impl Connection {
    /// Gives data to be sent; returns how many bytes were taken. If not all were, [`is_writable`](Self::is_writable) tells
    /// when to go on: once a third of the send buffer is free.
    pub fn write(&mut self, payload: &Payload) -> usize {
        if !self.may_send() {
            return 0;
        }
        self.queue.wake();
        let written = self.queue.write(payload);
        self.sender.wake();
        written
    }

    /// As [`write`](Self::write), of so many bytes that nobody reads.
    pub fn write_length(&mut self, bytes: u32) -> usize {
        self.write(&Payload::Length(bytes))
    }

    /// Whether the application should write: there is room, and if it was turned away, a third is free.
    pub fn is_writable(&self) -> bool {
        self.may_send() && self.queue.is_writable()
    }

    /// Fixes the send buffer at so many bytes of payload: it grows no more (SO_SNDBUF).
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.queue.set_buffer(self.config.send_buffer.build(bytes, bytes));
    }

    /// How long what was sent may stay unacknowledged before the connection is given up; none: as many retransmissions as
    /// [`Config::retries`](crate::Config::retries) says (RFC 9293, Section 3.8.3; Linux TCP_USER_TIMEOUT).
    pub fn set_user_timeout(&mut self, limit: Option<Duration>) {
        self.sender.timer.user_timeout = limit;
    }

    /// Bytes that can be written now. For one who moves data on as soon as there is room, and does not wait for
    /// [`is_writable`](Self::is_writable).
    pub fn room(&self) -> u64 {
        if self.may_send() { self.queue.room() } else { 0 }
    }

    /// Takes up to `max` bytes that came in order; `None` when there are none. Cuts at the borders of what was received
    /// as one, so call it again until it returns `None`.
    pub fn read(&mut self, now: Instant, max: usize) -> Option<Payload> {
        self.receiver.read(now, max)
    }

    /// Takes everything that came in order, and does not look at it; returns how many bytes.
    pub fn read_all(&mut self, now: Instant) -> u64 {
        self.receiver.read_all(now)
    }

    /// Bytes that can be read.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// True when the peer has closed and everything before was read.
    pub fn is_read_finished(&self) -> bool {
        self.receiver.is_finished() && self.receiver.readable() == 0
    }

    /// Bytes written and not yet acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.queue.end().saturating_sub(self.sender.board.una())
    }

    /// Sends what was written, then a FIN. Reading goes on.
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

    /// Closed before the peer has answered: what was written is never sent (RFC 9293, Section 3.10.4).
    fn give_up(&mut self) {
        self.finish(CloseReason::Aborted);
    }

    /// Ends it at once with a reset (RFC 9293, Section 3.10.5).
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
