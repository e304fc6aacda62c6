//! Where the packets of a link lie while their turn comes.

use alloc::vec::Vec;

use paceline_wire::{Duration, Instant, Packet};

use crate::delivered::Delivered;
use crate::flight::Flight;

/// Packets, each in a place of its own: they are large, and what queues and flights hold of them moves often. Places are
/// used again, so that nothing is allocated once there are enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parcels {
    places: Vec<Option<Delivered>>,
    free: Vec<u32>,
}

/// A claim to a stored packet, given up by [`Parcels::take`] or [`Parcels::discard`].
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    place: u32,
    /// Length of the IP packet.
    pub(crate) bytes: u32,
}

impl Parcels {
    /// Keeps a packet of `bytes` that was handed over at `sent`.
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

    /// Keeps a copy of a packet.
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

    /// The packet.
    pub(crate) fn packet(&self, parcel: &Parcel) -> Option<&Packet> {
        self.places[parcel.place as usize].as_ref().map(|delivered| &delivered.packet)
    }

    /// The packet, for a change of its headers.
    pub(crate) fn packet_mut(&mut self, parcel: &Parcel) -> Option<&mut Packet> {
        self.places[parcel.place as usize].as_mut().map(|delivered| &mut delivered.packet)
    }

    /// Keeps a copy.
    pub(crate) fn copy(&mut self, parcel: &Parcel) -> Option<Parcel> {
        let delivered = self.places[parcel.place as usize].clone()?;
        Some(self.store(delivered.packet, parcel.bytes, delivered.sent))
    }

    /// Gives a packet back that has arrived.
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
        // Bytes are shared: nobody shall wait for the place to be used again.
        if delivered.packet.payload().bytes().is_some() {
            *slot = None;
        }
    }

    /// Throws a packet away.
    pub(crate) fn discard(&mut self, parcel: Parcel) {
        self.free.push(parcel.place);
        self.places[parcel.place as usize] = None;
    }
}
