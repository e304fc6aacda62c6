//! Writes one JSON line for each flow that ends, on its own thread: a slow disk must not delay packets.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration as StdDuration, SystemTime};

use paceline_gateway::FlowStatus;
use paceline_linux::clock;
use paceline_wire::Instant;

use super::files::LOG_MODE;
use super::rows::{FlowRow, Prefixes, Record, SCHEMA};
use crate::error::{Error, Result};

/// A message to the thread.
enum Message {
    Ended(Instant, Box<FlowStatus>),
    /// Open the file again, because it was moved away.
    Reopen,
    Finish,
}

/// The packet thread's handle.
#[derive(Clone, Debug)]
pub(super) struct Recorder(SyncSender<Message>);

/// The file, before its thread runs.
pub(super) struct Records {
    file: Lines,
    sender: SyncSender<Message>,
    messages: Receiver<Message>,
}

/// The running thread.
pub(super) struct Writing {
    sender: SyncSender<Message>,
    thread: JoinHandle<()>,
}

impl Recorder {
    /// Notes an ended flow without waiting. A record that does not fit is lost.
    pub(super) fn note(&self, now: Instant, status: &FlowStatus) {
        let _ = self.0.try_send(Message::Ended(now, Box::new(*status)));
    }

    pub(super) fn reopen(&self) {
        let _ = self.0.try_send(Message::Reopen);
    }
}

impl Records {
    pub(super) fn create(path: &Path, prefixes: Prefixes) -> Result<Records> {
        let file = Lines::open(path, prefixes)
            .map_err(|error| Error::io(format_args!("write {}", path.display()), &error))?;
        let (sender, messages) = sync_channel(WAITING_MAX);
        Ok(Records { file, sender, messages })
    }

    pub(super) fn recorder(&self) -> Recorder {
        Recorder(self.sender.clone())
    }

    pub(super) fn start(self) -> Writing {
        let Records { file, sender, messages } = self;
        let thread = thread::spawn(move || write_all(file, &messages));
        Writing { sender, thread }
    }
}

impl Writing {
    /// Ends the thread. Everything is written when this returns.
    pub(super) fn finish(self) {
        let _ = self.sender.send(Message::Finish);
        let _ = self.thread.join();
    }
}

fn write_all(mut file: Lines, messages: &Receiver<Message>) {
    let mut complained = false;
    loop {
        let written = match messages.recv_timeout(FLUSH_AFTER) {
            Ok(Message::Ended(now, status)) => file.write(now, &status),
            Ok(Message::Reopen) => file.reopen(),
            Err(RecvTimeoutError::Timeout) => file.out.flush(),
            Ok(Message::Finish) | Err(RecvTimeoutError::Disconnected) => {
                if let Err(error) = file.out.flush() {
                    tracing::warn!("cannot write {}: {error}", file.path.display());
                }
                return;
            }
        };
        if let Err(error) = &written
            && !complained
        {
            tracing::warn!(
                "cannot write {}: {error}; records are lost until it can be written",
                file.path.display()
            );
        }
        complained = written.is_err();
    }
}

struct Lines {
    path: PathBuf,
    out: BufWriter<File>,
    prefixes: Prefixes,
}

impl Lines {
    fn open(path: &Path, prefixes: Prefixes) -> io::Result<Lines> {
        let file = File::options().create(true).append(true).mode(LOG_MODE).open(path)?;
        Ok(Lines { path: path.to_path_buf(), out: BufWriter::new(file), prefixes })
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.out.flush()?;
        *self = Lines::open(&self.path, self.prefixes)?;
        Ok(())
    }

    fn write(&mut self, ended: Instant, status: &FlowStatus) -> io::Result<()> {
        let record = record(ended, status, self.prefixes);
        serde_json::to_writer(&mut self.out, &record)?;
        self.out.write_all(b"\n")
    }
}

fn record(ended: Instant, status: &FlowStatus, prefixes: Prefixes) -> Record {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ago = clock::now().saturating_since(ended).as_secs_f64();
    let end_unix_s = ((unix.as_secs_f64() - ago) * 1e3).round() / 1e3;
    let flow = FlowRow::new(ended, status, prefixes);
    let start_unix_s = ((end_unix_s - flow.age_s) * 1e3).round() / 1e3;
    Record { schema: SCHEMA, start_unix_s, end_unix_s, flow }
}

/// The largest number of records that wait for the disk. Our choice: some seconds of a thousand flows a second, in
/// three megabytes.
const WAITING_MAX: usize = 8192;
const FLUSH_AFTER: StdDuration = StdDuration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use paceline_gateway::config::SharingConfig;

    use super::super::rows::tests::status;
    use super::*;

    #[test]
    fn each_flow_is_a_line_and_a_moved_file_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        let records = Records::create(&path, Prefixes::new(&SharingConfig::default())).unwrap();
        let recorder = records.recorder();
        let writing = records.start();
        let now = clock::now();
        recorder.note(now, &status());
        recorder.reopen();
        // When the first record is in the file, the thread has already handled the reopening before it.
        let moved = folder.path().join("records.1");
        while fs::read_to_string(&path).unwrap_or_default().is_empty() {
            thread::yield_now();
        }
        fs::rename(&path, &moved).unwrap();
        recorder.reopen();
        recorder.note(now, &status());
        writing.finish();
        let lines = |path: &Path| -> Vec<Record> {
            let text = fs::read_to_string(path).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        assert_eq!((lines(&moved).len(), lines(&path).len()), (1, 1));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o137, 0, "who talks to whom is not for everybody");
        assert_eq!(lines(&path)[0].flow.totals.downlink_bytes, 1_000_000);
    }
}
