//! The file of records: one JSON line for each flow that ends.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use paceline_gateway::FlowStatus;
use paceline_linux::clock;
use paceline_wire::Instant;

use super::files::LOG_MODE;
use super::rows::{FlowRow, Prefixes, Record, SCHEMA};
use crate::error::{Error, Result};

/// The open file.
#[derive(Debug)]
pub(super) struct Records {
    path: PathBuf,
    out: BufWriter<File>,
    prefixes: Prefixes,
    /// The last write to the disk failed.
    has_failed: bool,
}

impl Records {
    pub(super) fn open(path: &Path, prefixes: Prefixes) -> Result<Records> {
        let out =
            append_to(path).map_err(|error| Error::io(format_args!("write {}", path.display()), &error))?;
        Ok(Records { path: path.to_path_buf(), out, prefixes, has_failed: false })
    }

    /// Opens the file again, because it was moved away.
    pub(super) fn reopen(&mut self) {
        let opened = self.out.flush().and_then(|()| append_to(&self.path));
        let opened = opened.map(|out| self.out = out);
        self.report(opened);
    }

    /// Adds a line, which may stay in memory until the next flush.
    pub(super) fn write(&mut self, ended: Instant, status: &FlowStatus) {
        let line = serde_json::to_string(&record(ended, status, self.prefixes)).map_err(io::Error::from);
        // In one piece: a line that does not fit must not leave its first half.
        let written = line.and_then(|line| self.out.write_all(format!("{line}\n").as_bytes()));
        if written.is_err() {
            self.report(written);
        }
    }

    pub(super) fn flush(&mut self) {
        let written = self.out.flush();
        self.report(written);
    }

    /// Logs a failure after a success.
    fn report(&mut self, written: io::Result<()>) {
        if let Err(error) = &written
            && !self.has_failed
        {
            tracing::warn!(
                "cannot write {}: {error}; records are lost until it can be written",
                self.path.display()
            );
        }
        self.has_failed = written.is_err();
    }
}

fn append_to(path: &Path) -> io::Result<BufWriter<File>> {
    File::options().create(true).append(true).mode(LOG_MODE).open(path).map(BufWriter::new)
}

fn record(ended: Instant, status: &FlowStatus, prefixes: Prefixes) -> Record {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ago = clock::now().saturating_since(ended).as_secs_f64();
    let end_unix_s = ((unix.as_secs_f64() - ago) * 1e3).round() / 1e3;
    let flow = FlowRow::new(ended, status, prefixes);
    let start_unix_s = ((end_unix_s - flow.age_s) * 1e3).round() / 1e3;
    Record { schema: SCHEMA, start_unix_s, end_unix_s, flow }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use paceline_gateway::config::SharingConfig;

    use super::super::log_writer::LogWriter;
    use super::super::rows::tests::status;
    use super::*;

    #[test]
    fn each_flow_is_a_line_and_a_moved_file_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        let records = Records::open(&path, Prefixes::new(&SharingConfig::default())).unwrap();
        let mut log_writer = LogWriter::new(Some(records));
        log_writer.start();
        let now = clock::now();
        log_writer.record(now, &status());
        log_writer.reopen();
        log_writer.finish().unwrap();
        let moved = folder.path().join("records.1");
        fs::rename(&path, &moved).unwrap();
        log_writer.reopen();
        log_writer.record(now, &status());
        log_writer.finish().unwrap();
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
