//! Access to a running gateway through a Unix socket. The request is one line of JSON, the answer one JSON object.
//!
//! Only its owner may connect (permissions 0600). Requests are served one at a time, and none of them takes long.

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use paceline_linux::Slice;
use paceline_wire::Instant as WireInstant;
use serde::Deserialize;
use serde_json::json;

use super::capture::{CaptureRequest, CaptureService, Interfaces};
use super::options::beside;
use super::rows::{FlowRow, Prefixes, Report, SCHEMA, SubscriberRow};
use super::status::Status;
use crate::error::{Error, Result};

/// Returns the default socket path of the gateway with this name.
pub(crate) fn default_path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.sock"))
}

/// Properties that do not change while the gateway runs.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) wan: String,
    pub(super) radio: String,
    pub(super) started: WireInstant,
    pub(super) prefixes: Prefixes,
    pub(super) interfaces: Interfaces,
}

/// A socket in the file system. It is removed with this value.
#[derive(Debug)]
pub(super) struct Control {
    path: PathBuf,
    listener: UnixListener,
    /// Another process may still continue to use it.
    is_shared: bool,
}

impl Control {
    /// Replaces the socket of a gateway that is gone, but not of one that answers.
    pub(super) fn bind(path: &Path) -> Result<Control> {
        let failed =
            |error: &io::Error| Error::io(format_args!("make the control socket {}", path.display()), error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        }
        if let Ok(metadata) = fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                return Err(Error::input(format!(
                    "{} exists and is not a socket; name another one with --control",
                    path.display()
                )));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(Error::input(format!(
                    "another gateway uses {}; stop it, take over from it with --take-over, or name another socket with --control",
                    path.display()
                )));
            }
            fs::remove_file(path).map_err(|error| failed(&error))?;
        }
        let listener = bind_private(path).map_err(|error| failed(&error))?;
        Ok(Control { path: path.to_path_buf(), listener, is_shared: false })
    }

    /// Takes over the socket of another process at the same path. The file stays until [`serve`](Self::serve) makes
    /// the socket this process's own.
    pub(super) fn adopt(path: &Path, descriptor: OwnedFd) -> Control {
        Control { path: path.to_path_buf(), listener: UnixListener::from(descriptor), is_shared: true }
    }

    /// Returns the descriptor for [`Control::adopt`].
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers requests for the lifetime of the process.
    pub(super) fn serve(
        &mut self,
        status: Arc<Status>,
        captures: Arc<CaptureService>,
        identity: Identity,
    ) -> io::Result<()> {
        self.is_shared = false;
        let listener = self.listener.try_clone()?;
        thread::spawn(move || {
            for stream in listener.incoming() {
                if let Err(error) = stream.and_then(|stream| answer(stream, &status, &captures, &identity)) {
                    tracing::debug!("a request at the control socket failed: {error}");
                    if error.raw_os_error() == Some(nix::libc::EMFILE) {
                        thread::sleep(Duration::from_millis(100));
                    }
                }
            }
        });
        Ok(())
    }
}

/// Binds a socket to which only its owner may connect, from the first moment. The socket is created in a folder
/// closed to others, and then moved. (The umask would have the same effect, but belongs to all threads.)
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let closed = fs::Permissions::from_mode(0o700);
    let private = tempfile::Builder::new().prefix(".paceline").permissions(closed).tempdir_in(folder)?;
    let socket = private.path().join("s");
    let listener = UnixListener::bind(&socket)?;
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))?;
    fs::rename(&socket, path)?;
    Ok(listener)
}

impl Drop for Control {
    fn drop(&mut self) {
        if !self.is_shared {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, tag = "get")]
pub(super) enum Request {
    Flows,
    /// The whole state, for a process that takes over (`handover.rs`).
    State,
    Capture(CaptureRequest),
}

fn answer(
    stream: UnixStream,
    status: &Status,
    captures: &Arc<CaptureService>,
    identity: &Identity,
) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let line = read_line(&stream, Instant::now() + PATIENCE)?;
    let mut out = DeadlineWriter { stream: &stream, deadline: Instant::now() + PATIENCE };
    let problem = match serde_json::from_slice::<Request>(&line) {
        Ok(Request::State) => {
            status.ask_to_take_over(stream);
            return Ok(());
        }
        Err(error) => format!("cannot understand the request: {error}; send {ASK}"),
        Ok(Request::Capture(wanted)) => {
            let (captures, interfaces) = (captures.clone(), identity.interfaces.clone());
            // A capture takes time, and others may ask meanwhile.
            thread::Builder::new().spawn(move || capture(&stream, &captures, wanted, &interfaces))?;
            return Ok(());
        }
        Ok(Request::Flows) => match report(status, identity) {
            None => "the gateway is too busy to answer; ask again".into(),
            Some(report) => {
                let mut out = BufWriter::with_capacity(64 << 10, out);
                serde_json::to_writer(&mut out, &report)?;
                out.write_all(b"\n")?;
                return out.flush();
            }
        },
    };
    out.write_all(refusal(&problem).as_bytes())
}

fn refusal(problem: &str) -> String {
    format!("{}\n", json!({ "error": problem }))
}

/// Sends a capture as a file. Reports an error in the request as the usual line.
fn capture(
    mut stream: &UnixStream,
    captures: &CaptureService,
    wanted: CaptureRequest,
    interfaces: &Interfaces,
) {
    let told = match captures.serve(stream, wanted, interfaces) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(problem)) => stream.write_all(refusal(&problem).as_bytes()),
        Err(error) => Err(error),
    };
    if let Err(error) = told {
        tracing::debug!("a capture ended: {error}");
    }
}

fn report(status: &Status, identity: &Identity) -> Option<Report> {
    let lists = status.lists(LISTS_PATIENCE)?;
    let prefixes = identity.prefixes;
    Some(Report {
        schema: SCHEMA,
        program: format!("paceline {}", env!("CARGO_PKG_VERSION")),
        wan: identity.wan.clone(),
        radio: identity.radio.clone(),
        uptime_s: (lists.taken.saturating_since(identity.started).as_secs_f64() * 1e3).round() / 1e3,
        absent: status.snapshot().and_then(|snapshot| snapshot.absence.clone()),
        flows: lists.flows.iter().map(|status| FlowRow::new(lists.taken, status, prefixes)).collect(),
        subscribers: lists.subscribers.iter().map(|status| SubscriberRow::new(status, prefixes)).collect(),
    })
}

/// Reads up to the first line feed, or to the end.
fn read_line(mut stream: &UnixStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut bytes = [0; REQUEST_MAX];
    while line.len() < REQUEST_MAX {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut bytes)?;
        let end = bytes[..count].iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&bytes[..end.unwrap_or(count)]);
        if end.is_some() || count == 0 {
            break;
        }
    }
    line.truncate(REQUEST_MAX);
    Ok(line)
}

/// Limits the total time, also for a reader that takes one byte at a time.
struct DeadlineWriter<'a> {
    stream: &'a UnixStream,
    deadline: Instant,
}

impl Write for DeadlineWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if Instant::now() > self.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        (&mut &*self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Asks the gateway at `path`, or the only one that runs. If it has several workers, asks all of them.
pub fn ask(path: Option<&Path>) -> Result<Report> {
    let paths = match path {
        Some(path) => workers_at(path),
        None => the_only_sockets(Path::new(FOLDER))?,
    };
    let mut reports = paths.iter().map(|path| ask_one(path));
    let mut sum = reports.next().unwrap_or_else(|| Err(Error::failed("no gateway runs here")))?;
    for report in reports {
        let report = report?;
        sum.uptime_s = sum.uptime_s.max(report.uptime_s);
        sum.absent = sum.absent.or(report.absent);
        sum.flows.extend(report.flows);
        sum.subscribers.extend(report.subscribers);
    }
    Ok(sum)
}

fn ask_one(path: &Path) -> Result<Report> {
    let exchange = || {
        let stream = request(path, ASK)?;
        stream.set_read_timeout(Some(2 * PATIENCE))?;
        let mut text = String::new();
        stream.take(ANSWER_MAX).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = exchange().map_err(|error| unanswered(path, &error))?;
    serde_json::from_str(&text).map_err(|error| refused(path, &text, &error))
}

/// Asks for a capture. The returned reader gives the file.
pub fn ask_capture(path: Option<&Path>, wanted: &CaptureRequest) -> Result<impl Read + use<>> {
    let path = chosen(path)?;
    let mut ask = serde_json::to_value(wanted).map_err(|error| Error::failed(error.to_string()))?;
    ask["get"] = "capture".into();
    let begin = || {
        let mut stream = request(&path, &ask.to_string())?;
        stream.set_read_timeout(Some(2 * PATIENCE))?;
        let mut first = [0; 1];
        stream.read_exact(&mut first)?;
        // A short timeout, so that a signal ends the capture.
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        Ok((first, stream))
    };
    let (first, mut stream) = begin().map_err(|error| unanswered(&path, &error))?;
    // A capture file begins with 0x0a, the first byte of a section header block.
    if first == *b"{" {
        let mut text = String::from("{");
        let read = stream.read_to_string(&mut text);
        read.map_err(|error| unanswered(&path, &error))?;
        return Err(refused(&path, &text, "the answer has no error text"));
    }
    Ok(io::Cursor::new(first).chain(stream))
}

fn chosen(path: Option<&Path>) -> Result<PathBuf> {
    let found =
        path.map_or_else(|| the_only_sockets(Path::new(FOLDER)), |path| Ok(vec![path.to_path_buf()]))?;
    match <[PathBuf; 1]>::try_from(found) {
        Ok([one]) => Ok(one),
        Err(several) => Err(ambiguous(&several)),
    }
}

/// Returns `path`, or the sockets of its workers.
fn workers_at(path: &Path) -> Vec<PathBuf> {
    let of_workers = (0..Slice::WORKERS_MAX).map(|index| beside(path, index));
    let found: Vec<PathBuf> = of_workers.filter(|path| path.exists()).collect();
    if path.exists() || found.is_empty() { vec![path.to_path_buf()] } else { found }
}

/// True if all paths belong to the workers of one gateway.
fn are_workers(paths: &[PathBuf]) -> bool {
    let gateway = |path: &PathBuf| {
        let (name, index) = path.file_stem()?.to_str()?.rsplit_once('-')?;
        index.parse::<u32>().ok().map(|_| name.to_owned())
    };
    let first = paths.first().and_then(gateway);
    first.is_some() && paths.iter().all(|path| gateway(path) == first)
}

fn ambiguous(paths: &[PathBuf]) -> Error {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    Error::input(format!("several gateways or workers run; give --control with one of {}", names.join(", ")))
}

fn request(path: &Path, line: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(path)?;
    stream.write_all(line.as_bytes())?;
    stream.write_all(b"\n")?;
    Ok(stream)
}

fn unanswered(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Error::failed(format!("no gateway answers at {}; is it running?", path.display()))
        }
        _ => Error::io(format_args!("ask the gateway at {}", path.display()), error),
    }
}

fn refused(path: &Path, text: &str, error: impl std::fmt::Display) -> Error {
    let told = serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    match told["error"].as_str() {
        Some(problem) => Error::failed(format!("{}: {problem}", path.display())),
        None => Error::failed(format!("cannot understand the answer from {}: {error}", path.display())),
    }
}

fn the_only_sockets(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(Error::io(format_args!("look for gateways in {}", folder.display()), &error));
        }
        entries => entries.into_iter().flatten(),
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .filter(|path| !matches!(UnixStream::connect(path), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused))
        .collect();
    found.sort();
    match found.as_slice() {
        [_] => Ok(found),
        [] => Err(Error::failed(format!(
            "no gateway runs here ({} has no gateway's socket); start one, or name its socket with --control",
            folder.display()
        ))),
        several if are_workers(several) => Ok(found),
        several => Err(ambiguous(several)),
    }
}

const FOLDER: &str = "/run/paceline";
const ASK: &str = r#"{"get":"flows"}"#;
const REQUEST_MAX: usize = 1024;
/// More than the answer for a full table of 65,536 flows.
const ANSWER_MAX: u64 = 256 << 20;
const PATIENCE: Duration = Duration::from_secs(10);
/// Copying a full table takes less than five seconds.
const LISTS_PATIENCE: Duration = Duration::from_secs(8);

#[cfg(test)]
mod tests {

    use paceline_gateway::config::SharingConfig;
    use paceline_gateway::{Gateway, GatewayConfig};

    use super::super::status::Collector;
    use super::*;

    fn served(folder: &Path) -> (Control, Arc<Status>) {
        let mut control = Control::bind(&folder.join("g.sock")).unwrap();
        let status = Arc::new(Status::default());
        let prefixes = Prefixes::new(&SharingConfig::default());
        let interfaces = Interfaces { names: ["w".into(), "r".into()], raw: false };
        let identity =
            Identity { wan: "w".into(), radio: "r".into(), started: WireInstant::ZERO, prefixes, interfaces };
        control.serve(status.clone(), Arc::default(), identity).unwrap();
        (control, status)
    }

    fn say(path: &Path, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(path).unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    }

    #[test]
    fn the_flows_are_told_to_who_may_ask() {
        let folder = tempfile::tempdir().unwrap();
        let (control, status) = served(folder.path());
        assert_eq!(fs::metadata(&control.path).unwrap().permissions().mode() & 0o777, 0o600);
        let asking = thread::spawn({
            let path = control.path.clone();
            move || ask(Some(&path))
        });
        let node = Gateway::new(GatewayConfig::default());
        let mut collector = Collector::default();
        while !asking.is_finished() {
            collector.turn(&status, &node, WireInstant::ZERO);
            thread::yield_now();
        }
        let report = asking.join().unwrap().unwrap();
        assert_eq!((report.schema, report.wan.as_str(), report.flows.len()), (SCHEMA, "w", 0));
    }

    #[test]
    fn hostile_requests_get_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let (control, _) = served(folder.path());
        for request in [
            &b""[..],
            b"\n",
            b"{\"get\":\"keys\"}\n",
            b"\xff\xfe\x00\n",
            &[b'['; 100_000],
            b"{\"get\":\"flows\"",
        ] {
            let answer = say(&control.path, request);
            // If a request is too long, the connection is closed.
            assert!(
                answer.is_empty() && request.len() > REQUEST_MAX || answer.contains("\"error\""),
                "{answer}"
            );
            assert!(answer.lines().count() <= 1);
        }
    }

    #[test]
    fn only_the_socket_of_a_gateway_that_is_gone_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.sock");
        let first = Control::bind(&path).unwrap();
        assert!(Control::bind(&path).unwrap_err().to_string().contains("another gateway uses"));
        drop(first);
        assert!(!path.exists());
        drop(UnixListener::bind(&path).unwrap());
        let again = Control::bind(&path).unwrap();
        drop(again);
        fs::write(&path, "x").unwrap();
        assert!(Control::bind(&path).unwrap_err().to_string().contains("is not a socket"));
        assert!(
            ask(Some(&folder.path().join("nosuch"))).unwrap_err().to_string().contains("no gateway answers")
        );
    }
}
