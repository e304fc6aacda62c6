//! Writes events, series, statistics and records on its own thread: a slow disk must not delay packets.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use paceline_gateway::FlowStatus;
use paceline_wire::Instant;

use crate::files::write_whole;
use crate::records::Records;

/// A message to the thread.
enum Job {
    /// Append whole lines to a file.
    Append(Arc<File>, Vec<u8>),
    /// Replace a file's whole content.
    Replace(PathBuf, String),
    /// Write the record of a flow that has ended.
    Record(Instant, Box<FlowStatus>),
    /// Open the file of records again, because it was moved away.
    Reopen,
    /// Confirm that everything before this is written.
    Finished(SyncSender<()>),
}

/// A job that waits, and a copy of its kind's `Arc`. So the `Arc` counts the jobs of the kind that wait.
type Queued = (Job, Arc<()>);

/// Failures to write.
#[derive(Debug, Default)]
struct Failures {
    /// The first failure to append. After it no more lines are written, because a file with a gap is worthless.
    lines: Option<io::Error>,
    /// The failure of the last try to replace a file. The next try may succeed.
    whole: Option<io::Error>,
}

/// The packet thread's end of the log writer.
#[derive(Debug)]
pub(super) struct LogWriter {
    jobs: Sender<Queued>,
    /// The jobs and the file of records, until the thread runs.
    waiting: Option<(Receiver<Queued>, Option<Records>)>,
    failures: Arc<Mutex<Failures>>,
    /// Jobs for files other than that of the records.
    files: Arc<()>,
    /// Jobs for the file of records. `None` without such a file.
    records: Option<Arc<()>>,
}

impl LogWriter {
    pub(super) fn new(records: Option<Records>) -> LogWriter {
        let (jobs, waiting) = channel();
        LogWriter {
            jobs,
            records: records.as_ref().map(|_| Arc::default()),
            waiting: Some((waiting, records)),
            failures: Arc::default(),
            files: Arc::default(),
        }
    }

    /// Starts to write. Earlier jobs have waited until here.
    pub(super) fn start(&mut self) {
        if let Some((jobs, records)) = self.waiting.take() {
            let failures = self.failures.clone();
            thread::spawn(move || write_all(&jobs, records, &failures));
        }
    }

    /// Appends lines without waiting. Lines that do not fit are lost, which counts as a failure.
    pub(super) fn append(&self, file: &Arc<File>, lines: Vec<u8>) {
        if !self.tell(&self.files, FILE_JOBS_MAX, Job::Append(file.clone(), lines)) {
            let error = io::Error::new(io::ErrorKind::WouldBlock, "the disk is too slow: lines are lost");
            lock(&self.failures).lines.get_or_insert(error);
        }
    }

    /// Replaces a file without waiting. While the disk is behind, the file keeps its old content.
    pub(super) fn replace(&self, path: &Path, text: String) {
        self.tell(&self.files, FILE_JOBS_MAX, Job::Replace(path.to_path_buf(), text));
    }

    /// Records an ended flow without waiting. A record that does not fit is lost.
    pub(super) fn record(&self, ended: Instant, status: &FlowStatus) {
        if let Some(records) = &self.records {
            self.tell(records, RECORD_JOBS_MAX, Job::Record(ended, Box::new(*status)));
        }
    }

    /// Opens the file of records again.
    pub(super) fn reopen(&self) {
        if let Some(records) = &self.records {
            self.tell(records, RECORD_JOBS_MAX, Job::Reopen);
        }
    }

    /// Returns false if `most` jobs of this kind already wait.
    fn tell(&self, kind: &Arc<()>, most: usize, job: Job) -> bool {
        // One copy is our own.
        let fits = Arc::strong_count(kind) <= most;
        if fits {
            let _ = self.jobs.send((job, kind.clone()));
        }
        fits
    }

    /// Returns the first failure to append, or the last one to replace a file.
    pub(super) fn outcome(&self) -> io::Result<()> {
        let failures = lock(&self.failures);
        match failures.lines.as_ref().or(failures.whole.as_ref()) {
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => Ok(()),
        }
    }

    /// Waits until everything is written, if the thread runs.
    pub(super) fn finish(&self) -> io::Result<()> {
        let (done, finished) = sync_channel(1);
        if self.waiting.is_none() && self.jobs.send((Job::Finished(done), Arc::default())).is_ok() {
            let _ = finished.recv();
        }
        self.outcome()
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

fn write_all(jobs: &Receiver<Queued>, mut records: Option<Records>, failures: &Mutex<Failures>) {
    loop {
        let next = jobs.try_recv().or_else(|_| {
            records.iter_mut().for_each(Records::flush);
            jobs.recv()
        });
        let Ok((job, _counted)) = next else { return };
        match job {
            Job::Append(file, lines) => {
                if lock(failures).lines.is_none()
                    && let Err(error) = (&*file).write_all(&lines)
                {
                    lock(failures).lines = Some(error);
                }
            }
            Job::Replace(path, text) => {
                lock(failures).whole = write_whole(&path, &text).map_err(io::Error::other).err();
            }
            Job::Record(ended, status) => records.iter_mut().for_each(|file| file.write(ended, &status)),
            Job::Reopen => records.iter_mut().for_each(Records::reopen),
            Job::Finished(done) => {
                records.iter_mut().for_each(Records::flush);
                let _ = done.send(());
            }
        }
    }
}

fn lock(failures: &Mutex<Failures>) -> std::sync::MutexGuard<'_, Failures> {
    failures.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The largest number of jobs for files that wait for the disk. Our choice: with pieces of 64 KB some 16 MB.
const FILE_JOBS_MAX: usize = 256;
/// The same for records. Our choice: some seconds of a thousand flows a second, in three megabytes.
const RECORD_JOBS_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use paceline_gateway::config::SharingConfig;

    use super::*;
    use crate::rows::Prefixes;
    use crate::rows::tests::status;

    #[test]
    fn what_is_told_is_written_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (lines, whole) = (folder.path().join("lines"), folder.path().join("whole"));
        let file = Arc::new(File::create(&lines).unwrap());
        let mut log_writer = LogWriter::new(None);
        log_writer.append(&file, b"one\n".to_vec());
        log_writer.start();
        log_writer.append(&file, b"two\n".to_vec());
        log_writer.replace(&whole, "old".to_owned());
        log_writer.replace(&whole, "new".to_owned());
        log_writer.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&lines).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(&whole).unwrap(), "new");
        log_writer.append(&file, b"three\n".to_vec());
        drop(log_writer);
        assert_eq!(std::fs::read_to_string(&lines).unwrap(), "one\ntwo\nthree\n");
    }

    #[test]
    fn a_disk_that_takes_nothing_holds_nobody_up() {
        let file = Arc::new(File::create("/dev/null").unwrap());
        let log_writer = LogWriter::new(None);
        for _ in 0..=FILE_JOBS_MAX {
            assert!(log_writer.outcome().is_ok());
            log_writer.append(&file, b"line\n".to_vec());
        }
        assert_eq!(log_writer.outcome().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn many_records_leave_room_for_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        let records = Records::open(&path, Prefixes::new(&SharingConfig::default())).unwrap();
        let mut log_writer = LogWriter::new(Some(records));
        for _ in 0..=RECORD_JOBS_MAX {
            log_writer.record(Instant::ZERO, &status());
        }
        log_writer.append(&Arc::new(File::create("/dev/null").unwrap()), b"line\n".to_vec());
        log_writer.start();
        log_writer.finish().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), RECORD_JOBS_MAX);
    }
}
