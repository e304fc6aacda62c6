//! The datagrams in the stations' queues and on the air. They are large, so each has its own place here.

use super::routing::Datagram;

/// The place of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatagramId(u32);

/// Places are reused, so nothing is allocated once there are enough.
#[derive(Debug, Default)]
pub(super) struct Store {
    places: Vec<Datagram>,
    free: Vec<u32>,
}

#[cfg(test)]
impl DatagramId {
    pub(super) fn numbered(number: u32) -> Self {
        DatagramId(number)
    }
}

impl Store {
    pub(super) fn keep(&mut self, datagram: Datagram) -> DatagramId {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = datagram;
            return DatagramId(place);
        }
        self.places.push(datagram);
        DatagramId(self.places.len() as u32 - 1)
    }

    pub(super) fn get(&self, id: DatagramId) -> &Datagram {
        &self.places[id.0 as usize]
    }

    /// Takes a datagram out of its place.
    pub(super) fn take(&mut self, id: DatagramId) -> Datagram {
        self.free.push(id.0);
        std::mem::take(&mut self.places[id.0 as usize])
    }

    pub(super) fn free(&mut self, id: DatagramId) {
        self.free.push(id.0);
    }

    /// The number of datagrams kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
