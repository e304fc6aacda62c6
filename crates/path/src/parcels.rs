//! Where the packets of a link lie while their turn comes.

use alloc::vec::Vec;

use paceline_wire::Packet;

/// Packets, each in a place of its own: they are large, and what queues and flights hold of them moves often. Places are
/// used again, so that nothing is allocated once there are enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parcels {
    places: Vec<Option<Packet>>,
    free: Vec<u32>,
}

/// A claim to a stored packet, given up by [`Parcels::take`].
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    place: u32,
    /// Length of the IP packet.
    pub(crate) bytes: u32,
}

impl Parcels {
    /// Keeps a packet of `bytes`.
    pub(crate) fn store(&mut self, packet: Packet, bytes: u32) -> Parcel {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(packet);
            return Parcel { place, bytes };
        }
        self.places.push(Some(packet));
        Parcel { place: self.places.len() as u32 - 1, bytes }
    }

    /// Keeps a copy.
    pub(crate) fn copy(&mut self, parcel: &Parcel) -> Option<Parcel> {
        let packet = self.places[parcel.place as usize].clone()?;
        Some(self.store(packet, parcel.bytes))
    }

    /// Gives a packet back.
    #[inline]
    pub(crate) fn take(&mut self, parcel: Parcel) -> Option<Packet> {
        self.free.push(parcel.place);
        self.places[parcel.place as usize].take()
    }
}
