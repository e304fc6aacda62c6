//! Writes events, series and statistics on its own thread: a slow disk must not delay packets.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::files::write_whole;

/// A message to the thread.
enum Job {
    /// Append whole lines to a file.
    Append(Arc<File>, Vec<u8>),
    /// Replace a file's whole content.
    Replace(PathBuf, String),
    /// Confirm that everything before this is written.
    Finished(SyncSender<()>),
}

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
    jobs: Option<SyncSender<Job>>,
    /// The jobs until the thread runs.
    waiting: Option<Receiver<Job>>,
    failures: Arc<Mutex<Failures>>,
    thread: Option<JoinHandle<()>>,
}

impl LogWriter {
    pub(super) fn new() -> LogWriter {
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        LogWriter { jobs: Some(jobs), waiting: Some(waiting), failures: Arc::default(), thread: None }
    }

    /// Starts to write. Earlier jobs have waited until here.
    pub(super) fn start(&mut self) {
        if let Some(jobs) = self.waiting.take() {
            let failures = self.failures.clone();
            self.thread = Some(thread::spawn(move || write_all(&jobs, &failures)));
        }
    }

    /// Appends lines without waiting. Lines that do not fit are lost, which counts as a failure.
    pub(super) fn append(&self, file: &Arc<File>, lines: Vec<u8>) {
        if let Err(TrySendError::Full(_)) = self.tell(Job::Append(file.clone(), lines)) {
            let error = io::Error::new(io::ErrorKind::WouldBlock, "the disk is too slow: lines are lost");
            lock(&self.failures).lines.get_or_insert(error);
        }
    }

    /// Replaces a file without waiting. While the disk is behind, the file keeps its old content.
    pub(super) fn replace(&self, path: &Path, text: String) {
        let _ = self.tell(Job::Replace(path.to_path_buf(), text));
    }

    fn tell(&self, job: Job) -> Result<(), TrySendError<Job>> {
        match &self.jobs {
            Some(jobs) => jobs.try_send(job),
            None => Ok(()),
        }
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
        if let (Some(jobs), Some(_)) = (&self.jobs, &self.thread)
            && jobs.send(Job::Finished(done)).is_ok()
        {
            let _ = finished.recv();
        }
        self.outcome()
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(jobs: &Receiver<Job>, failures: &Mutex<Failures>) {
    for job in jobs {
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
            Job::Finished(done) => {
                let _ = done.send(());
            }
        }
    }
}

fn lock(failures: &Mutex<Failures>) -> std::sync::MutexGuard<'_, Failures> {
    failures.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The largest number of jobs that wait for the disk. Our choice: with pieces of 64 KB some 16 MB.
const WAITING_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_written_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (lines, whole) = (folder.path().join("lines"), folder.path().join("whole"));
        let file = Arc::new(File::create(&lines).unwrap());
        let mut log_writer = LogWriter::new();
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
        let log_writer = LogWriter::new();
        for _ in 0..=WAITING_MAX {
            assert!(log_writer.outcome().is_ok());
            log_writer.append(&file, b"line\n".to_vec());
        }
        assert_eq!(log_writer.outcome().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
