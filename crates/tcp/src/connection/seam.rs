//! What two connections keep in one piece of memory, where bytes are read from one and written to the other: the unread rest lies right
//! behind what was written, and joins it without copying when it is written, too. Written down, each has a copy of its own; joined
//! again, they keep as many pieces as before.

use alloc::vec::Vec;

use paceline_wire::{Buffer, Payload};

use super::Connection;

impl Connection {
    /// What nobody has read lies in memory right behind what was written to `other` last.
    pub fn lies_behind(&self, other: &Connection) -> bool {
        let pair = other.queue.last().zip(self.receiver.unread());
        pair.is_some_and(|(written, unread)| written.bytes().is_some() && written.join(unread).is_some())
    }

    /// After both were read from what another process wrote: it does so again.
    pub fn lay_behind(&mut self, other: &mut Connection) {
        if let (Some(written), Some(unread)) = (other.queue.last_mut(), self.receiver.unread_mut()) {
            lay(written, unread);
        }
    }
}

fn lay(written: &mut Payload, unread: &mut Payload) {
    let (Payload::Bytes(first), Payload::Bytes(second)) = (&mut *written, &mut *unread) else { return };
    let whole: Vec<u8> = [&first[..], &second[..]].concat();
    let (seam, end) = (first.len(), whole.len());
    let whole = Buffer::from(whole);
    (*first, *second) = (whole.slice(0..seam), whole.slice(seam..end));
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn copies_are_laid_side_by_side() {
        let (mut written, mut unread) = (Payload::from(vec![1, 2, 3]), Payload::from(vec![4, 5]));
        assert!(written.join(&unread).is_none(), "two pieces of memory");
        lay(&mut written, &mut unread);
        assert_eq!((written.bytes(), unread.bytes()), (Some(&[1, 2, 3][..]), Some(&[4, 5][..])));
        assert_eq!(written.join(&unread).unwrap().bytes(), Some(&[1, 2, 3, 4, 5][..]));
    }
}
