//! `paceline capture`: a flow of a running gateway as pcapng, for Wireshark, tshark and tcpdump.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use crate::args::CaptureArgs;
use crate::error::{Error, Result};
use crate::gateway::capture::Wanted;
use crate::gateway::control;
use crate::interrupt;
use crate::output::say;

pub(crate) fn command(args: &CaptureArgs) -> Result<()> {
    let ((client, client_port), (server, server_port)) = (args.flow.client, args.flow.server);
    let seconds = args.duration.to_std().as_secs_f64().ceil() as u64;
    let wanted = Wanted {
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
    // What subscribers say.
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&args.out).map_err(|error| failed(&error))?;
    let mut written = 0;
    let mut buffer = vec![0; 64 << 10];
    while !interrupt::requested() {
        match capture.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                file.write_all(&buffer[..count]).map_err(|error| failed(&error))?;
                written += count as u64;
            }
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(Error::io("read the capture from the gateway", &error)),
        }
    }
    say!("{}: {written} bytes", args.out.display());
    Ok(())
}
