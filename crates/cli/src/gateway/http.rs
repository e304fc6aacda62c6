//! Metrics over HTTP on a loopback address: one request at a time, none of them for long.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::metrics::Metrics;
use crate::error::{Error, Result};

/// Metrics are not for other machines.
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

/// Answers for as long as the process lives.
pub(super) fn serve(listener: TcpListener, metrics: Metrics) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            match stream.and_then(|stream| answer(&stream, &metrics)) {
                Ok(()) => {}
                // Out of descriptors, most likely: do not spin.
                Err(error) if error.raw_os_error().is_some() => thread::sleep(Duration::from_millis(100)),
                Err(error) => tracing::debug!("a request for metrics failed: {error}"),
            }
        }
    });
}

fn answer(stream: &TcpStream, metrics: &Metrics) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let (status, kind, body) = match read_path(stream, deadline)? {
        Some(path) if path == "/metrics" => match metrics.text() {
            Ok(text) => ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", text),
            Err(_) => ("500 Internal Server Error", "text/plain", "no metrics\n".into()),
        },
        Some(_) => ("404 Not Found", "text/plain", "metrics are at /metrics\n".into()),
        None => ("400 Bad Request", "text/plain", "send GET /metrics\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = stream;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The path of a GET request; `None` for anything else.
fn read_path(mut stream: &TcpStream, deadline: Instant) -> io::Result<Option<String>> {
    let mut bytes = [0; REQUEST_MAX];
    let mut filled = 0;
    while filled < bytes.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut bytes[filled..])?;
        if count == 0 {
            return Ok(None);
        }
        filled += count;
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes[..filled]) {
            Ok(httparse::Status::Partial) => {}
            Ok(httparse::Status::Complete(_)) if request.method == Some("GET") => {
                let path = request.path.unwrap_or_default();
                return Ok(Some(path.split('?').next().unwrap_or(path).to_owned()));
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Prometheus gives up after ten seconds by default.
const PATIENCE: Duration = Duration::from_secs(2);
const REQUEST_MAX: usize = 8192;

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
        // A server that has had enough may close before all is sent.
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
        assert!(ask(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400"));
        assert!(ask(b"\x16\x03\x01\x02\x00\x01\xff\n\n").starts_with("HTTP/1.1 400"));
        assert!(ask(&[b'G'; 2 * REQUEST_MAX]).len() < 200);
    }

    #[test]
    fn only_loopback_addresses_are_bound() {
        let error = listen("0.0.0.0:0".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("give a loopback address"));
    }
}
