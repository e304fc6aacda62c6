//! Storage for the packets of a link.

use alloc::vec::Vec;

use paceline_wire::{Duration, Instant, Packet};

use crate::delivered::Delivered;
use crate::flight::Flight;

/// Stored packets, each in its own place. Packets are large, and the entries of queues and flights that refer to them
/// move often. Places are reused, so that nothing is allocated once there are enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parcels {
    places: Vec<Option<Delivered>>,
    free: Vec<u32>,
}

/// A claim to a stored packet, which ends with [`Parcels::take`] or [`Parcels::discard`].
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    place: u32,
    /// Length of the IP packet.
    pub(crate) bytes: u32,
}

impl Parcels {
    /// Stores a packet of `bytes` that was handed over at `sent`.
    #[inline]
    pub(crate) fn store(&mut self, packet: Packet, bytes: u32, sent: Instant) -> Parcel {
        let delivered = Delivered { at: sent, packet, sent, queue_delay: Duration::ZERO };
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(delivered);
            return Parcel { place, bytes };
        }
        self.places.push(Some(delivered));
        Parcel { place: self.places.len() as u32 - 1, bytes }
    }

    /// Stores a copy of a packet.
    #[inline]
    pub(crate) fn store_copy(&mut self, packet: &Packet, bytes: u32, sent: Instant) -> Parcel {
        let Some(&place) = self.free.last() else { return self.store(packet.clone(), bytes, sent) };
        let Some(delivered) = &mut self.places[place as usize] else {
            return self.store(packet.clone(), bytes, sent);
        };
        self.free.pop();
        delivered.packet.clone_from(packet);
        delivered.sent = sent;
        Parcel { place, bytes }
    }

    /// Returns the packet.
    pub(crate) fn packet(&self, parcel: &Parcel) -> Option<&Packet> {
        self.places[parcel.place as usize].as_ref().map(|delivered| &delivered.packet)
    }

    /// Returns the packet, to change its headers.
    pub(crate) fn packet_mut(&mut self, parcel: &Parcel) -> Option<&mut Packet> {
        self.places[parcel.place as usize].as_mut().map(|delivered| &mut delivered.packet)
    }

    /// Stores a copy of a stored packet.
    pub(crate) fn copy(&mut self, parcel: &Parcel) -> Option<Parcel> {
        let delivered = self.places[parcel.place as usize].clone()?;
        Some(self.store(delivered.packet, parcel.bytes, delivered.sent))
    }

    /// Returns a packet that has arrived.
    #[inline]
    pub(crate) fn take(&mut self, flight: Flight) -> Option<Delivered> {
        self.free.push(flight.parcel.place);
        let slot = &mut self.places[flight.parcel.place as usize];
        if let Some(delivered) = slot {
            delivered.at = flight.at;
            delivered.queue_delay = flight.queue_delay;
        }
        slot.take()
    }

    /// Shows a packet that has arrived, and keeps its memory for the next one.
    #[inline]
    pub(crate) fn show(&mut self, flight: Flight, sink: &mut impl FnMut(&Delivered)) {
        self.free.push(flight.parcel.place);
        let slot = &mut self.places[flight.parcel.place as usize];
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
    pub(crate) fn discard(&mut self, parcel: Parcel) {
        self.free.push(parcel.place);
        self.places[parcel.place as usize] = None;
    }
}
