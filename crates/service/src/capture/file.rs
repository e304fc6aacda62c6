//! The capture as pcapng: two named interfaces, direction and comment of each packet, and the number of missing
//! packets at the end.

use std::borrow::Cow;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::PcapError;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};

use super::{CapturedPacket, QUEUED_BYTES_MAX, Shared};

/// Names of the gateway's two sides in the file.
#[derive(Clone, Debug)]
pub(crate) struct Interfaces {
    /// The interface towards servers, and the one towards clients.
    pub(crate) names: [String; 2],
    /// Packets have no link header, because they come by a TUN device.
    pub(crate) raw: bool,
}

/// Writes until the packet thread ends the capture, `bytes` are written, or the reader closes.
pub(super) fn write(
    stream: &UnixStream,
    taken: &Receiver<CapturedPacket>,
    shared: &Shared,
    interfaces: &Interfaces,
    bytes: u64,
    snap: u32,
) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(Duration::from_millis(1)))?;
    let out = BufWriter::with_capacity(64 << 10, stream);
    let mut writer = PcapNgWriter::new(out).map_err(problem)?;
    for name in &interfaces.names {
        let linktype = if interfaces.raw { DataLink::RAW } else { DataLink::ETHERNET };
        let options = vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            // The writer counts in nanoseconds.
            InterfaceDescriptionOption::IfTsResol(9),
        ];
        let block = InterfaceDescriptionBlock { linktype, snaplen: snap, options };
        writer.write_block(&block.into_block()).map_err(problem)?;
    }
    writer.get_mut().flush()?;
    let (mut written, mut last) = (0, Duration::ZERO);
    loop {
        match taken.recv_timeout(LOOK_AROUND) {
            Ok(packet) => {
                shared.queued.fetch_sub(packet.data.len() + packet.comment.len(), Ordering::AcqRel);
                last = packet.at;
                written += writer.write_block(&block(packet).into_block()).map_err(problem)? as u64;
                if written >= bytes {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) if has_gone(stream) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => writer.get_mut().flush()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let missed = shared.missed.load(Ordering::Relaxed) as u64;
    let options = vec![InterfaceStatisticsOption::IsbIfDrop(missed)];
    let end = InterfaceStatisticsBlock { interface_id: 0, timestamp: last.as_nanos() as u64, options };
    writer.write_block(&end.into_block()).map_err(problem)?;
    writer.get_mut().flush()
}

fn block(packet: CapturedPacket) -> EnhancedPacketBlock<'static> {
    // Section 4.3.1 of the pcapng draft: the two lowest bits are the direction, 1 for inbound, 2 for outbound.
    let mut options = vec![EnhancedPacketOption::Flags(if packet.outbound { 2 } else { 1 })];
    if !packet.comment.is_empty() {
        options.push(EnhancedPacketOption::Comment(Cow::Owned(packet.comment)));
    }
    EnhancedPacketBlock {
        interface_id: u32::from(packet.port.0),
        timestamp: packet.at,
        original_len: packet.original_len,
        data: Cow::Owned(packet.data),
        options,
    }
}

/// True if the reader has closed. It sends nothing after its request.
fn has_gone(mut stream: &UnixStream) -> bool {
    matches!(stream.read(&mut [0]), Ok(0))
}

fn problem(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// After this time, a reader that reads nothing is dropped.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AROUND: Duration = Duration::from_millis(200);
const _: () = assert!(QUEUED_BYTES_MAX > super::SNAP_MAX as usize);
