//! `paceline capture`: captures a flow of a running gateway as pcapng, for Wireshark, tshark and tcpdump.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use crate::args::CaptureArgs;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::output::say;
use crate::units::counted;
use paceline_service::capture::CaptureRequest;
use paceline_service::control;

pub(crate) fn command(args: &CaptureArgs) -> Result<()> {
    let ((client, client_port), (server, server_port)) = (args.flow.client, args.flow.server);
    let seconds = args.duration.to_std().as_secs_f64().ceil() as u64;
    let wanted = CaptureRequest {
        client,
        client_port,
        server,
        server_port,
        seconds,
        bytes: args.size.bytes(),
        snap: args.snap,
    };
    if let Some(problem) = wanted.problem() {
        return Err(Error::input(problem));
    }
    interrupt::watch()?;
    let mut capture = control::ask_capture(args.control.as_deref(), &wanted)?;
    let failed =
        |error: &io::Error| Error::io(format_args!("write the capture to {}", args.out.display()), error);
    // Readable by the owner only, because it holds the subscribers' data.
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&args.out).map_err(|error| failed(&error))?;
    let (mut written, mut blocks) = (0, Blocks::default());
    let mut buffer = vec![0; 64 << 10];
    while !interrupt::requested() {
        match capture.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                file.write_all(&buffer[..count]).map_err(|error| failed(&error))?;
                written += count as u64;
                blocks.take(&buffer[..count]);
            }
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(Error::io("read the capture from the gateway", &error)),
        }
    }
    say!("{}: {}, {written} bytes", args.out.display(), counted(blocks.packets, "packet"));
    if blocks.packets == 0 {
        say!(
            "No packet of this flow passed the gateway meanwhile. `paceline flows` shows those that do; the client comes first \
             in --flow CLIENT,SERVER."
        );
    }
    Ok(())
}

/// Counts the packets of a pcapng file that arrives in pieces of any size.
#[derive(Debug, Default)]
struct Blocks {
    packets: usize,
    /// The bytes of a block's head that have arrived.
    head: Vec<u8>,
    /// Bytes of the present block to skip.
    left: usize,
}

impl Blocks {
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes = &bytes[skipped..];
            let wanted = (HEAD_BYTES - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..wanted]);
            bytes = &bytes[wanted..];
            // Type and length (pcapng, Section 3.1), in this machine's byte order, in which the gateway wrote them.
            let Some((kind, length)) = self.head.split_first_chunk::<4>() else { continue };
            let Some(length) = length.first_chunk::<4>() else { continue };
            self.packets += usize::from(u32::from_ne_bytes(*kind) == ENHANCED_PACKET);
            self.left = (u32::from_ne_bytes(*length) as usize).saturating_sub(HEAD_BYTES);
            self.head.clear();
        }
    }
}

const HEAD_BYTES: usize = 8;
const ENHANCED_PACKET: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_in_pieces_of_any_size() {
        let block = |kind: u32, body: usize| {
            let length = (body + 12) as u32;
            [&kind.to_ne_bytes()[..], &length.to_ne_bytes(), &vec![6; body], &length.to_ne_bytes()].concat()
        };
        let file = [block(0x0A0D_0D0A, 16), block(1, 8), block(6, 60), block(6, 1500), block(5, 12)].concat();
        for size in [1, 3, 7, 8, 100, file.len()] {
            let mut blocks = Blocks::default();
            file.chunks(size).for_each(|piece| blocks.take(piece));
            assert_eq!((blocks.packets, blocks.left), (2, 0), "{size}");
        }
    }
}
