//! The timestamps of both ends (RFC 7323), and which of them can be of this flow.

use paceline_wire::{Duration, Flags, Instant, PortId, Tcp};

use crate::WAN;

/// A timestamp is out of date once its clock may have gone half round (RFC 7323, Section 5.5). A clock of 1 us does so
/// in 2,147 s (Linux TCP_PAWS_WRAP), one of 1 ms in 24 days.
const OUT_OF_DATE: Duration = Duration::from_secs(2_147);

/// One end's clock, as the packets show it.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Clock {
    /// The newest value that has passed.
    newest: Option<u32>,
    /// Distance of the first value from the newest.
    span: u32,
    noted_at: Instant,
    /// The newest value that the other end has sent back: its TS.Recent is that or newer.
    echoed: Option<u32>,
}

impl Clock {
    /// Notes the timestamp of a packet. The other end may echo it whether the packet is believed or not.
    fn note(&mut self, now: Instant, value: u32) {
        if now.saturating_since(self.noted_at) >= OUT_OF_DATE {
            *self = Clock::default();
        }
        let ahead = self.newest.map_or(0, |newest| value.wrapping_sub(newest) as i32);
        if let (None, _) | (Some(_), 1..) = (self.newest, ahead) {
            self.newest = Some(value);
            self.span = self.span.saturating_add_signed(ahead).min(i32::MAX as u32);
            self.noted_at = now;
        }
    }

    /// True if the other end would discard a packet with this value (PAWS, RFC 7323, Section 5.3, R1).
    fn is_old(&self, value: u32) -> bool {
        self.echoed.is_some_and(|echoed| (value.wrapping_sub(echoed) as i32) < 0)
    }

    /// True if the value has passed, or may have.
    fn has_shown(&self, value: u32) -> bool {
        self.newest.is_none_or(|newest| newest.wrapping_sub(value) <= self.span)
    }

    fn on_echo(&mut self, value: u32) {
        if !self.is_old(value) {
            self.echoed = Some(value);
        }
    }
}

/// Both ends' clocks.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Clocks {
    server: Clock,
    client: Clock,
    /// True if the end's SYN offered timestamps. If both did, each packet has them (RFC 7323, Section 3.2).
    server_offers: bool,
    client_offers: bool,
}

impl Clocks {
    /// Takes a SYN that passes. A zero in place of a timestamp shows no clock (Linux tcp_paws_check).
    pub(super) fn on_syn(&mut self, now: Instant, from: PortId, tcp: Tcp<'_>) {
        let stamps = tcp.timestamps();
        *(if from == WAN { &mut self.server_offers } else { &mut self.client_offers }) = stamps.is_some();
        if let Some((value, _)) = stamps.filter(|&(value, _)| value != 0) {
            self.of(from).0.note(now, value);
        }
    }

    /// Takes a SYN of the client that acknowledges the server's number. In a simultaneous open (RFC 9293, Section 3.5)
    /// it echoes a SYN of the server. When that SYN passed, anybody could have sent it. The server echoes its value in
    /// turn.
    pub(super) fn on_client_answer(&mut self, now: Instant, tcp: Tcp<'_>) {
        let Some(((value, echo), newest)) = tcp.timestamps().zip(self.server.newest) else { return };
        self.client.note(now, value);
        let behind = newest.wrapping_sub(echo);
        if behind <= i32::MAX as u32 {
            self.server.span = self.server.span.max(behind);
        }
    }

    /// True if the sender of a packet can have these timestamps. The value must not be older than its receiver's
    /// TS.Recent, and the echo must have passed here. The echo is our choice: RFC 7323 believes any, but nobody who
    /// does not see the flow knows one. A reset needs no timestamp (RFC 7323, Section 3.2).
    pub(super) fn accept(&mut self, now: Instant, from: PortId, tcp: Tcp<'_>) -> bool {
        if !self.server_offers || !self.client_offers || tcp.flags().contains(Flags::RST) {
            return true;
        }
        let Some((value, echo)) = tcp.timestamps() else { return false };
        let (own, other) = self.of(from);
        own.note(now, value);
        !own.is_old(value) && other.has_shown(echo)
    }

    /// True if the client would discard data of the server with this timestamp.
    pub(super) fn client_refuses(&self, value: u32) -> bool {
        self.server.is_old(value)
    }

    /// Takes over the echo of a packet that is believed.
    pub(super) fn on_accepted(&mut self, from: PortId, tcp: Tcp<'_>) {
        if let Some((_, echo)) = tcp.timestamps() {
            self.of(from).1.on_echo(echo);
        }
    }

    /// Returns the clock of the end that sends at this side, and that of the other end.
    fn of(&mut self, from: PortId) -> (&mut Clock, &mut Clock) {
        if from == WAN { (&mut self.server, &mut self.client) } else { (&mut self.client, &mut self.server) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_has_shown_what_lies_between_its_first_and_its_newest_value() {
        let (mut clock, now) = (Clock::default(), Instant::ZERO);
        assert!(clock.has_shown(7));
        for value in [u32::MAX - 4, 3, u32::MAX, 5] {
            clock.note(now, value);
        }
        let shown = |value: u32| clock.has_shown(value);
        assert!([u32::MAX - 4, u32::MAX, 0, 5].into_iter().all(shown));
        assert!(![u32::MAX - 5, 6, 1 << 31].into_iter().any(shown));
    }

    #[test]
    fn what_is_older_than_what_was_sent_back_is_old_unless_that_is_long_ago() {
        let mut clock = Clock::default();
        clock.note(Instant::ZERO, 100);
        clock.on_echo(100);
        clock.on_echo(90);
        assert!(clock.is_old(99) && !clock.is_old(100) && clock.is_old(100 + (1 << 31)));
        clock.note(Instant::ZERO + OUT_OF_DATE, 99);
        assert!(!clock.is_old(99) && clock.has_shown(99));
    }
}
