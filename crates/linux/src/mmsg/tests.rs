use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;

use paceline_wire::Buffer;

use super::*;
use crate::testing::tcp_packet;

fn control(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
    let mut bytes = (size_of::<usize>() + 8 + data.len()).to_ne_bytes().to_vec();
    bytes.extend(level.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(size_of::<usize>()), 0);
    bytes
}

#[test]
fn control_messages_are_found_in_any_order() {
    let mut auxiliary = libc::TP_STATUS_VLAN_VALID.to_ne_bytes().to_vec();
    auxiliary.extend([0; 12]);
    auxiliary.extend(7u16.to_ne_bytes());
    auxiliary.extend(0u16.to_ne_bytes());
    let mut bytes = control(libc::SOL_PACKET, libc::PACKET_AUXDATA, &auxiliary);
    let stamp = [2u64.to_ne_bytes(), 5u64.to_ne_bytes()].concat();
    bytes.extend(control(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &stamp));
    assert_eq!(ControlMessages(&bytes).find_map(stamp_ns), Some(2_000_000_005));
    assert_eq!(ControlMessages(&bytes).find_map(vlan_tag), Some(VlanTag { tpid: 0x8100, tci: 7 }));
    let narrow = [2u32.to_ne_bytes(), 5u32.to_ne_bytes()].concat();
    let bytes = control(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &narrow);
    assert_eq!(ControlMessages(&bytes).find_map(stamp_ns), Some(2_000_000_005));
}

/// A socket pair in place of the packet socket. Each datagram holds the bytes that a packet socket delivers for
/// `packet`.
struct Link {
    near: UnixDatagram,
    far: UnixDatagram,
}

impl Link {
    fn new() -> Link {
        let (near, far) = UnixDatagram::pair().unwrap();
        Link { near, far }
    }

    fn send(&self, packet: &Packet) {
        let mut prefix = [0; PREFIX_MAX];
        let (len, payload) = crate::frame::assemble(packet, &mut prefix);
        self.far.send(&[&prefix[..len], payload].concat()).unwrap();
    }

    fn receive(&self, batch: &mut ReceiveBatch) -> usize {
        batch.receive(self.near.as_fd()).unwrap()
    }
}

fn packet(len: usize) -> Packet {
    let mut packet = tcp_packet(len, Some(1448));
    packet.set_link(&[&[2; 12][..], &[8, 0]].concat());
    packet
}

fn bytes(packet: &Packet) -> &[u8] {
    packet.payload().bytes().unwrap()
}

/// Returns the addresses of the blocks. Checks that the kernel is given the same addresses.
fn posted(batch: &ReceiveBatch) -> Vec<*const u8> {
    let blocks: Vec<_> = batch.blocks.iter().map(|block| block.as_ptr()).collect();
    let told: Vec<_> = batch.iovecs.iter().map(|iovec| iovec.iov_base.cast_const().cast()).collect();
    assert_eq!(blocks, told);
    blocks
}

/// From the virtio header to the end of the TCP header.
const HEADERS: usize = HEADER_LEN + 14 + 40;

#[test]
fn long_payload_stays_where_it_was_received_and_short_payload_is_copied() {
    let (link, mut pool, mut batch) = (Link::new(), BufferPool::new(1 << 20), ReceiveBatch::new(3));
    let before = posted(&batch);
    let sent = [packet(60_000), packet(1_448), packet(40_000)];
    sent.iter().for_each(|packet| link.send(packet));
    assert_eq!(link.receive(&mut batch), 3);
    let received: Vec<_> = (0..3).map(|index| batch.take(index, &mut pool).unwrap()).collect();
    for (sent, received) in sent.iter().zip(&received) {
        assert_eq!(received.to_vec(), sent.to_vec());
        assert_eq!((received.gso_size(), received.link()), (sent.gso_size(), sent.link()));
    }
    let after = posted(&batch);
    for index in [0, 2] {
        assert_eq!(bytes(&received[index]).as_ptr(), before[index].wrapping_add(HEADERS));
        assert!(!before.contains(&after[index]));
    }
    assert_eq!(after[1], before[1]);
    assert_eq!(pool.in_use(), 2 * Block::LEN + 2_048);
    // The next packets are not received into memory that was given away.
    let mut next = packet(60_000);
    next.set_payload(Buffer::from(vec![8; 60_000]));
    (0..3).for_each(|_| link.send(&next));
    assert_eq!(link.receive(&mut batch), 3);
    for index in 0..3 {
        assert_eq!(batch.take(index, &mut pool).unwrap().to_vec(), next.to_vec());
        assert_eq!(received[index].to_vec(), sent[index].to_vec());
    }
}

#[test]
fn padding_neither_counts_nor_keeps_a_block() {
    let (link, mut pool, mut batch) = (Link::new(), BufferPool::new(1 << 20), ReceiveBatch::new(1));
    let mut padded = packet(100);
    let whole = padded.to_vec();
    padded.set_payload(Buffer::from(vec![7; 60_000]));
    let before = posted(&batch);
    link.send(&padded);
    assert_eq!(link.receive(&mut batch), 1);
    assert_eq!(batch.take(0, &mut pool).unwrap().to_vec(), whole);
    assert_eq!((posted(&batch), pool.in_use()), (before, 0));
}

#[test]
fn an_exhausted_pool_costs_the_packet_and_no_block() {
    let (link, mut batch) = (Link::new(), ReceiveBatch::new(2));
    let mut pool = BufferPool::new(Block::LEN);
    (0..2).for_each(|_| link.send(&packet(60_000)));
    assert_eq!(link.receive(&mut batch), 2);
    let first = batch.take(0, &mut pool).unwrap();
    let before = posted(&batch);
    assert_eq!(batch.take(1, &mut pool).unwrap_err(), FrameError::PoolExhausted);
    assert_eq!(posted(&batch), before);
    drop(first);
    link.send(&packet(50_000));
    assert_eq!(link.receive(&mut batch), 1);
    assert_eq!(batch.take(0, &mut pool).unwrap().to_vec(), packet(50_000).to_vec());
}

#[test]
fn a_stream_of_long_packets_needs_no_more_memory_than_its_packets_in_flight() {
    let (link, mut pool, mut batch) = (Link::new(), BufferPool::new(64 << 20), ReceiveBatch::new(4));
    let mut in_flight = VecDeque::new();
    for _ in 0..300 {
        (0..2).for_each(|_| link.send(&packet(60_000)));
        for index in 0..link.receive(&mut batch) {
            in_flight.push_back(batch.take(index, &mut pool).unwrap());
        }
        in_flight.drain(..in_flight.len().saturating_sub(10));
    }
    assert_eq!((pool.in_use(), pool.allocated()), (10 * Block::LEN, 12 * Block::LEN));
}

#[test]
fn what_is_longer_than_a_block_is_refused() {
    let (link, mut pool, mut batch) = (Link::new(), BufferPool::new(1 << 20), ReceiveBatch::new(1));
    link.far.send(&vec![0; Block::LEN + 1]).unwrap();
    assert_eq!(link.receive(&mut batch), 1);
    assert_eq!(batch.take(0, &mut pool).unwrap_err(), FrameError::TooLong);
}

#[test]
fn broken_control_data_ends_the_walk() {
    for len in 0..40 {
        let bytes = vec![0xff; len];
        assert_eq!(ControlMessages(&bytes).count(), 0);
        let bytes = vec![0; len];
        assert!(ControlMessages(&bytes).count() <= 1);
    }
}
