//! Timestamps, acknowledgements and windows that passed to the client before waiting data, and bind what leaves later.

use core::ops::Range;

use paceline_wire::{Packet, Seq};

/// The newest of each.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ForwardedHeaders {
    /// Acknowledgement and window field of the server's newest packet, as the client is to see them.
    newest: Option<(Seq, u16)>,
    /// Timestamp of the newest packet that passed in front of data that is kept here.
    passed_tsval: Option<u32>,
    /// The newest acknowledgement that has left for the client with data, and its window field.
    #[serde(default)]
    passed_ack: Option<(Seq, u16)>,
}

impl ForwardedHeaders {
    /// Notes the server's newest acknowledgement and window, as the client reads them. Retransmissions carry them.
    pub(super) fn note_newest(&mut self, packet: &Packet) {
        let Some(told) = told_by(packet) else { return };
        if self.newest.is_none_or(|(ack, _)| told.0.distance(ack) >= 0) {
            self.newest = Some(told);
        }
    }

    /// Notes the timestamp of a packet that passes in front of older ones, which wait here. Its data is old and ends at
    /// `end`. The client takes over the timestamp, unless all data lies below `una`, outside its window. Then TS.Recent
    /// stays (RFC 7323, Section 5.3, R2 before R3; Linux: tcp_sequence). Whoever does not see the flow may guess such a
    /// number.
    pub(super) fn note_passed(&mut self, una: u64, end: u64, stamp: Option<u32>) {
        if let Some(value) = stamp.filter(|_| end >= una)
            && self.passed_tsval.is_none_or(|passed| value.wrapping_sub(passed) as i32 > 0)
        {
            self.passed_tsval = Some(value);
        }
    }

    /// Notes the acknowledgement of a packet with `data` that leaves in front of waiting ones. The client takes it
    /// over, unless the packet lies outside its `window` (RFC 9293, Section 3.10.7.4).
    pub(super) fn note_told(&mut self, window: Range<u64>, data: Range<u64>, packet: &Packet) {
        if let Some(told) = told_by(packet).filter(|_| data.end >= window.start && data.start <= window.end)
            && self.passed_ack.is_none_or(|(ack, _)| told.0.distance(ack) > 0)
        {
            self.passed_ack = Some(told);
        }
    }

    /// Prepares a packet with kept `data` to leave. It may be newer than what follows, if the server sent a part again
    /// in other segments.
    pub(super) fn leave(&mut self, window: Range<u64>, data: Range<u64>, packet: &mut Packet) {
        self.refresh(packet);
        self.note_told(window, data, packet);
    }

    /// Gives data that is older than what has passed the passed timestamp and acknowledgement. By its own timestamp the
    /// client would never accept it (PAWS, RFC 7323, Section 5.3). Nor would it by an acknowledgement more than a
    /// window behind (RFC 5961, Section 5.2).
    pub(super) fn refresh(&self, packet: &mut Packet) {
        if let Some((ack, window)) = self.passed_ack
            && packet.tcp().is_some_and(|tcp| ack.distance(tcp.ack()) > 0)
            && let Some(mut tcp) = packet.tcp_mut()
        {
            tcp.set_ack(ack);
            tcp.set_window(window);
        }
        if let Some((value, echo)) = packet.tcp().and_then(|tcp| tcp.timestamps())
            && self.leaves_with(value) != value
            && let Some(mut tcp) = packet.tcp_mut()
        {
            tcp.set_timestamps(self.leaves_with(value), echo);
        }
    }

    /// Returns the timestamp with which data leaves that came with `value`.
    pub(super) fn leaves_with(&self, value: u32) -> u32 {
        self.passed_tsval.filter(|passed| passed.wrapping_sub(value) as i32 > 0).unwrap_or(value)
    }

    /// Returns acknowledgement and window for a packet that leaves before those `waiting`: the newest, as in a server's
    /// own retransmission. They are no newer than those of a waiting packet, which would then seem reordered.
    pub(super) fn told_before<'a>(
        &self,
        waiting: impl IntoIterator<Item = Option<&'a Packet>>,
    ) -> Option<(Seq, u16)> {
        let told = waiting.into_iter().flatten().filter_map(told_by);
        told.fold(self.newest, |newest, waiting| {
            newest.map(|newest| if waiting.0.distance(newest.0) < 0 { waiting } else { newest })
        })
    }
}

fn told_by(packet: &Packet) -> Option<(Seq, u16)> {
    packet.tcp().map(|tcp| (tcp.ack(), tcp.window()))
}

pub(super) fn timestamp_of(packet: &Packet) -> Option<u32> {
    packet.tcp()?.timestamps().map(|(value, _)| value)
}
