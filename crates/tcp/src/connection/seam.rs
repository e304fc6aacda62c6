//! Memory shared by two connections, where a relay reads from one and writes to the other. The unread data lies
//! directly behind the written data. When it is written, too, it joins that data without a copy. In a handover each
//! connection is written with its own copy. The next process lays the copies side by side again, so the number of
//! pieces stays the same.

use alloc::vec::Vec;

use paceline_wire::{Buffer, Payload};

use super::Connection;

impl Connection {
    /// True if the unread data lies in memory directly behind the data last written to `other`.
    pub fn lies_behind(&self, other: &Connection) -> bool {
        let pair = other.queue.last().zip(self.receiver.unread());
        pair.is_some_and(|(written, unread)| written.bytes().is_some() && written.join(unread).is_some())
    }

    /// Restores this layout after both connections were read from another process.
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
