//! Metrics over HTTP on a loopback address. There are few connections at a time, and none lasts long.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::metrics::Metrics;
use super::plain_text;
use crate::error::{Error, Result};

/// Metrics must not be reachable from other machines.
pub(super) fn check(address: SocketAddr) -> Result<()> {
    match address.ip().is_loopback() {
        true => Ok(()),
        false => Err(Error::input(format!(
            "--metrics {address} could be read from outside; give a loopback address such as 127.0.0.1:9100, and a proxy for \
             others"
        ))),
    }
}

/// Binds `address`.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener> {
    check(address)?;
    TcpListener::bind(address)
        .map_err(|error| Error::io(format_args!("listen on {address} for --metrics"), &error))
}

/// Answers requests for the lifetime of the process.
pub(super) fn serve(listener: TcpListener, metrics: Metrics) {
    thread::spawn(move || {
        let mut talks = VecDeque::new();
        loop {
            if let Err(error) = turn(&listener, &mut talks, &metrics) {
                tracing::debug!("a request for metrics failed: {error}");
                // Probably no descriptors are left: do not spin.
                thread::sleep(Duration::from_millis(100));
            }
        }
    });
}

/// Waits until a client connects, sends or can receive, and serves all of these. An idle client delays nobody.
fn turn(listener: &TcpListener, talks: &mut VecDeque<HttpConnection>, metrics: &Metrics) -> io::Result<()> {
    let mut places = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    places.extend(talks.iter().map(|talk| PollFd::new(talk.stream.as_fd(), talk.awaited())));
    let wait = match talks.front() {
        None => PollTimeout::NONE,
        Some(talk) => {
            PollTimeout::try_from(PATIENCE.saturating_sub(talk.since.elapsed())).unwrap_or(PollTimeout::MAX)
        }
    };
    poll(&mut places, wait)?;
    let mut ready = places.iter().map(|place| place.any().unwrap_or(true)).collect::<VecDeque<bool>>();
    let is_asked = ready.pop_front() == Some(true);
    talks.retain_mut(|talk| {
        let goes_on = ready.pop_front() != Some(true) || talk.go_on(metrics).is_ok_and(|is_over| !is_over);
        goes_on && talk.since.elapsed() < PATIENCE
    });
    if is_asked {
        listener.set_nonblocking(true)?;
        let stream = listener.accept()?.0;
        stream.set_nonblocking(true)?;
        if talks.len() == TALKS_MAX {
            talks.pop_front();
        }
        talks.push_back(HttpConnection { stream, since: Instant::now(), request: Vec::new(), answer: None });
    }
    Ok(())
}

/// A connection. The list has the oldest first.
struct HttpConnection {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    /// The part of the answer that is not sent yet.
    answer: Option<Vec<u8>>,
}

impl HttpConnection {
    fn awaited(&self) -> PollFlags {
        if self.answer.is_some() { PollFlags::POLLOUT } else { PollFlags::POLLIN }
    }

    /// Reads or writes what is possible. True when the answer is complete.
    fn go_on(&mut self, metrics: &Metrics) -> io::Result<bool> {
        if self.answer.is_none() {
            let mut bytes = [0; REQUEST_MAX];
            let count = self.stream.read(&mut bytes)?;
            self.request.extend_from_slice(&bytes[..count]);
            self.answer = match read(&self.request) {
                ParseResult::Incomplete if count > 0 && self.request.len() < REQUEST_MAX => return Ok(false),
                ParseResult::Incomplete | ParseResult::Malformed => Some(answer(None, metrics)),
                ParseResult::Complete(wanted) => Some(answer(Some(&wanted), metrics)),
            };
        }
        let Some(answer) = &mut self.answer else { return Ok(true) };
        let count = self.stream.write(answer)?;
        answer.drain(..count);
        Ok(answer.is_empty())
    }
}

/// Returns the answer to a request, or to bytes that are no request.
fn answer(wanted: Option<&HttpRequest>, metrics: &Metrics) -> Vec<u8> {
    let (status, kind, body) = match wanted {
        Some(wanted) if wanted.path == "/metrics" => match (metrics.text(), wanted.openmetrics) {
            (Ok(text), true) => {
                ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", text)
            }
            (Ok(text), false) => {
                ("200 OK", "text/plain; version=0.0.4; charset=utf-8", plain_text::of(&text))
            }
            (Err(_), _) => ("500 Internal Server Error", "text/plain", "no metrics\n".into()),
        },
        Some(_) => ("404 Not Found", "text/plain", "metrics are at /metrics\n".into()),
        None => ("400 Bad Request", "text/plain", "send GET /metrics\n".into()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// The result of parsing a request so far.
#[derive(Debug, PartialEq)]
pub(super) enum ParseResult {
    Incomplete,
    Malformed,
    Complete(HttpRequest),
}

/// The content of a complete request.
#[derive(Debug, PartialEq)]
pub(super) struct HttpRequest {
    pub(super) path: String,
    /// The client accepts OpenMetrics. Otherwise it gets Prometheus' older text format.
    pub(super) openmetrics: bool,
}

pub(super) fn read(bytes: &[u8]) -> ParseResult {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => ParseResult::Incomplete,
        Ok(httparse::Status::Complete(_)) if request.method == Some("GET") => {
            let path = request.path.unwrap_or_default();
            let accepts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
            let openmetrics = accepts
                .filter_map(|header| std::str::from_utf8(header.value).ok())
                .any(|kinds| kinds.contains("application/openmetrics-text"));
            ParseResult::Complete(HttpRequest {
                path: path.split('?').next().unwrap_or(path).to_owned(),
                openmetrics,
            })
        }
        _ => ParseResult::Malformed,
    }
}

/// Prometheus' default timeout is ten seconds.
const PATIENCE: Duration = Duration::from_secs(2);
const REQUEST_MAX: usize = 8192;
/// The largest number of connections. One more closes the oldest. Our choice: several scrapers, and some idle
/// connections.
const TALKS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use std::net::Shutdown;

    use super::super::metrics::tests::metrics;
    use super::*;

    fn ask(request: &[u8]) -> String {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, metrics());
        let mut stream = TcpStream::connect(address).unwrap();
        // The server may close before it has read everything.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn a_scrape_gets_metrics_and_others_a_hint() {
        let answer = ask(b"GET /metrics?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(answer.contains("\npaceline_flows 5\n"));
        assert!(
            answer.contains("\r\nContent-Type: text/plain; version=0.0.4; ") && !answer.contains("# EOF")
        );
        let prometheus =
            ask(b"GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0,*/*\r\n\r\n");
        assert!(prometheus.contains("\r\nContent-Type: application/openmetrics-text; "));
        assert!(prometheus.ends_with("\n# EOF\n"));
        assert!(ask(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400"));
        assert!(ask(b"\x16\x03\x01\x02\x00\x01\xff\n\n").starts_with("HTTP/1.1 400"));
        assert!(ask(&[b'G'; 2 * REQUEST_MAX]).len() < 200);
    }

    #[test]
    fn who_says_nothing_keeps_nobody_waiting() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, metrics());
        let silent: Vec<TcpStream> =
            (0..2 * TALKS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("paceline_flows 5"));
        // The newest connections still exist, so nobody waited for them.
        let last = silent.last().unwrap();
        last.set_nonblocking(true).unwrap();
        let nothing_yet = (&mut &*last).read(&mut [0]).unwrap_err();
        assert_eq!(nothing_yet.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn only_loopback_addresses_are_bound() {
        let error = listen("0.0.0.0:0".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("give a loopback address"));
    }
}
