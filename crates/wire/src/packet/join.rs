//! Joining segments to a super-packet: the reverse of a split.

use super::{Checksum, Flags, Packet, Payload, u16_at};

impl Packet {
    /// Appends the segment `next` to this packet, which becomes or stays a super-packet. False if that is impossible.
    ///
    /// The payloads must be adjacent in one buffer, and the headers may differ only where a split makes them differ.
    /// Splitting the result gives the two packets again. A full, unverified checksum is not replaced by a partial one,
    /// so such packets stay apart.
    #[must_use = "a segment that does not join has to be sent by itself"]
    pub fn join(&mut self, next: &Packet) -> bool {
        let payload = self.joined_payload(next);
        let joins = payload.is_some();
        if let Some(payload) = payload {
            self.append(payload, next);
        }
        joins
    }

    fn joined_payload(&self, next: &Packet) -> Option<Payload> {
        let (this, that) = (self.tcp()?, next.tcp()?);
        let size = self.segment_size();
        let known_good = self.checksum != Checksum::Full && next.checksum != Checksum::Full;
        let fits = this.payload_len() > 0
            && this.payload_len() % size == 0
            && next.segment_size() <= size
            && (next.gso_size.is_none() || next.segment_size() == size)
            && self.ip_len() + that.payload_len() <= usize::from(u16::MAX);
        // Other flags end a super-packet or stand alone, as in Linux's tcp_gro_receive().
        let inner = Flags::ACK | Flags::ECE | Flags::AE;
        let flags_fit = (inner | Flags::CWR).contains(this.flags())
            && (inner | Flags::PSH | Flags::FIN).contains(that.flags())
            && (this.flags() ^ that.flags()).intersection(inner).is_empty();
        let in_order = this.end_seq() == that.seq() && that.payload_len() > 0;
        let joins = known_good && fits && flags_fit && in_order && self.same_headers(next, size);
        if joins { self.payload.join(&next.payload) } else { None }
    }

    /// True if the headers differ only where those of segments do.
    fn same_headers(&self, next: &Packet, size: usize) -> bool {
        let (this, that) = (self.header(), next.header());
        let tcp_at = usize::from(self.tcp_at);
        if self.link() != next.link() || self.tcp_at != next.tcp_at || this.len() != that.len() {
            return false;
        }
        let same = |range: core::ops::Range<usize>| this[range.clone()] == that[range];
        let same_ip = if this[0] >> 4 == 4 {
            // All but total length, identification and header checksum.
            let id = u16_at(this, 4).wrapping_add((self.payload.len() / size) as u16);
            same(0..2) && u16_at(that, 4) == id && same(6..10) && same(12..tcp_at)
        } else {
            same(0..4) && same(6..tcp_at)
        };
        // All but sequence number, flags and checksum.
        let same_tcp = same(tcp_at..tcp_at + 4)
            && same(tcp_at + 8..tcp_at + 12)
            && same(tcp_at + 14..tcp_at + 16)
            && same(tcp_at + 18..this.len());
        let same_offset = (this[tcp_at + 12] ^ that[tcp_at + 12]) & 0xfe == 0;
        same_ip && same_tcp && same_offset
    }

    fn append(&mut self, payload: Payload, next: &Packet) {
        let size = self.segment_size() as u16;
        let last = next.tcp_view().flags() & (Flags::PSH | Flags::FIN);
        self.payload = payload;
        self.gso_size = Some(size);
        self.update_ip_len();
        if let Some(mut tcp) = self.tcp_mut() {
            let flags = tcp.as_tcp().flags();
            tcp.set_flags(flags | last);
        }
        self.make_partial();
    }

    /// The payload size of all segments but the last.
    fn segment_size(&self) -> usize {
        self.gso_size.map_or(self.payload.len(), usize::from).max(1)
    }
}
