//! Storage for the packets of a link.

use alloc::vec::Vec;

use paceline_wire::{Duration, Instant, Packet};

use crate::delivered::Delivered;
use crate::flight::Flight;

/// Stored packets, each in its own place. Packets are large, and the entries of queues and flights that refer to them
/// move often. Places are reused, so that nothing is allocated once there are enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketStore {
    places: Vec<Option<Delivered>>,
    free: Vec<u32>,
}

/// A claim to a stored packet, which ends with [`PacketStore::take`] or [`PacketStore::discard`].
#[derive(Clone, Debug)]
pub(crate) struct PacketHandle {
    place: u32,
    /// Length of the IP packet.
    pub(crate) bytes: u32,
}

impl PacketStore {
    /// Stores a packet of `bytes` that was handed over at `sent`.
    #[inline]
    pub(crate) fn store(&mut self, packet: Packet, bytes: u32, sent: Instant) -> PacketHandle {
        let delivered = Delivered { at: sent, packet, sent, queue_delay: Duration::ZERO };
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(delivered);
            return PacketHandle { place, bytes };
        }
        self.places.push(Some(delivered));
        PacketHandle { place: self.places.len() as u32 - 1, bytes }
    }

    /// Stores a copy of a packet.
    #[inline]
    pub(crate) fn store_copy(&mut self, packet: &Packet, bytes: u32, sent: Instant) -> PacketHandle {
        let Some(&place) = self.free.last() else { return self.store(packet.clone(), bytes, sent) };
        let Some(delivered) = &mut self.places[place as usize] else {
            return self.store(packet.clone(), bytes, sent);
        };
        self.free.pop();
        delivered.packet.clone_from(packet);
        delivered.sent = sent;
        PacketHandle { place, bytes }
    }

    /// Returns the packet.
    pub(crate) fn packet(&self, handle: &PacketHandle) -> Option<&Packet> {
        self.places[handle.place as usize].as_ref().map(|delivered| &delivered.packet)
    }

    /// Returns the packet, to change its headers.
    pub(crate) fn packet_mut(&mut self, handle: &PacketHandle) -> Option<&mut Packet> {
        self.places[handle.place as usize].as_mut().map(|delivered| &mut delivered.packet)
    }

    /// Stores a copy of a stored packet.
    pub(crate) fn copy(&mut self, handle: &PacketHandle) -> Option<PacketHandle> {
        let delivered = self.places[handle.place as usize].clone()?;
        Some(self.store(delivered.packet, handle.bytes, delivered.sent))
    }

    /// Returns a packet that has arrived.
    #[inline]
    pub(crate) fn take(&mut self, flight: Flight) -> Option<Delivered> {
        self.free.push(flight.handle.place);
        let slot = &mut self.places[flight.handle.place as usize];
        if let Some(delivered) = slot {
            delivered.at = flight.at;
            delivered.queue_delay = flight.queue_delay;
        }
        slot.take()
    }

    /// Shows a packet that has arrived, and keeps its memory for the next one.
    #[inline]
    pub(crate) fn show(&mut self, flight: Flight, sink: &mut impl FnMut(&Delivered)) {
        self.free.push(flight.handle.place);
        let slot = &mut self.places[flight.handle.place as usize];
        let Some(delivered) = slot else { return };
        delivered.at = flight.at;
        delivered.queue_delay = flight.queue_delay;
        sink(delivered);
        // The payload's bytes are shared, so they are released at once and not when the place is reused.
        if delivered.packet.payload().bytes().is_some() {
            *slot = None;
        }
    }

    /// Discards a packet.
    pub(crate) fn discard(&mut self, handle: PacketHandle) {
        self.free.push(handle.place);
        self.places[handle.place as usize] = None;
    }
}
