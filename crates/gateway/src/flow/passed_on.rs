//! What has passed to the client in front of data that waits here, and binds what leaves later: timestamps, acknowledgements, windows.

use core::ops::Range;

use paceline_wire::{Packet, Seq};

/// The newest of each.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct PassedOn {
    /// Acknowledgement and window field of the server's newest packet, as the client is to see them.
    newest: Option<(Seq, u16)>,
    /// Timestamp of the newest packet that passed in front of data that is kept here.
    passed_tsval: Option<u32>,
    /// The newest acknowledgement that has left for the client with data, and its window field.
    #[serde(default)]
    passed_ack: Option<(Seq, u16)>,
}

impl PassedOn {
    /// What the server last told the client of the uplink, as the client reads it, for packets that leave a second time.
    pub(super) fn note_newest(&mut self, packet: &Packet) {
        let Some(told) = told_by(packet) else { return };
        if self.newest.is_none_or(|(ack, _)| told.0.distance(ack) >= 0) {
            self.newest = Some(told);
        }
    }

    /// A packet with an old sequence number, which ends at `end`, will be in front of older ones that wait here, and the client takes
    /// over its timestamp. Not that of one wholly below `una`, what the client has acknowledged: that is outside its window, and TS.Recent stays
    /// (RFC 7323, Section 5.3, R2 before R3; Linux: tcp_sequence). Such a number may be a guess of somebody who does not see the flow.
    pub(super) fn note_passed(&mut self, una: u64, end: u64, stamp: Option<u32>) {
        if let Some(value) = stamp.filter(|_| end >= una)
            && self.passed_tsval.is_none_or(|passed| value.wrapping_sub(passed) as i32 > 0)
        {
            self.passed_tsval = Some(value);
        }
    }

    /// A packet with `data` leaves in front of what waits here, and the client takes over its acknowledgement: not that of one outside its
    /// `window` (RFC 9293, Section 3.10.7.4).
    pub(super) fn note_told(&mut self, window: Range<u64>, data: Range<u64>, packet: &Packet) {
        if let Some(told) = told_by(packet).filter(|_| data.end >= window.start && data.start <= window.end)
            && self.passed_ack.is_none_or(|(ack, _)| told.0.distance(ack) > 0)
        {
            self.passed_ack = Some(told);
        }
    }

    /// A packet with kept `data` leaves. What leaves first may be newer than what follows: the server may have sent a part again, in other
    /// segments.
    pub(super) fn leave(&mut self, window: Range<u64>, data: Range<u64>, packet: &mut Packet) {
        self.refresh(packet);
        self.note_told(window, data, packet);
    }

    /// Data that is older than what has passed is given its timestamp and acknowledgement. By its own timestamp the client would take it for an
    /// old duplicate and never accept it (PAWS, RFC 7323, Section 5.3), by an acknowledgement more than a window behind neither (RFC 5961,
    /// Section 5.2).
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

    /// The timestamp with which data leaves that came with `value`.
    pub(super) fn leaves_with(&self, value: u32) -> u32 {
        self.passed_tsval.filter(|passed| passed.wrapping_sub(value) as i32 > 0).unwrap_or(value)
    }

    /// Acknowledgement and window of a packet that leaves a second time, and before those that wait. As in a server's own retransmission,
    /// what is acknowledged has moved on since it left first; but the older acknowledgements of what waits would then seem reordered.
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
