//! The round trip of one byte over an idle connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration as StdDuration;

use paceline_linux::clock;
use paceline_linux::lab::Lab;

use crate::error::{Error, Result};
use crate::run::lab::system;

/// The median of a thousand round trips in microseconds, a millisecond apart.
pub(super) fn round_trip_us(lab: &Lab) -> Result<f64> {
    let fault = |error: std::io::Error| Error::io("measure the round trip", &error);
    let address = SocketAddr::new(lab.server_address(false), PORT);
    let listener = lab.server.run(|| TcpListener::bind(address)).map_err(system)?.map_err(fault)?;
    thread::scope(|scope| {
        scope.spawn(|| echo(&listener));
        let client = lab.client.run(|| TcpStream::connect_timeout(&address, PATIENCE));
        let times = client.map_err(system)?.and_then(ping);
        let mut times = times.map_err(fault)?;
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    })
}

fn echo(listener: &TcpListener) -> std::io::Result<()> {
    let mut connection = accept(listener)?;
    connection.set_nonblocking(false)?;
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut byte = [0];
    while connection.read(&mut byte)? > 0 {
        connection.write_all(&byte)?;
    }
    Ok(())
}

/// Gives up after a while, so that a client that cannot connect does not leave a thread behind.
fn accept(listener: &TcpListener) -> std::io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let end = clock::now() + paceline_wire::Duration::from_nanos(PATIENCE.as_nanos() as u64);
    loop {
        match listener.accept() {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && clock::now() < end => {
                thread::sleep(StdDuration::from_millis(2));
            }
            outcome => return outcome.map(|(connection, _)| connection),
        }
    }
}

fn ping(mut connection: TcpStream) -> std::io::Result<Vec<f64>> {
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    let mut byte = [1];
    for _ in 0..ROUND_TRIPS {
        let sent = clock::now();
        connection.write_all(&byte)?;
        connection.read_exact(&mut byte)?;
        times.push(clock::now().saturating_since(sent).as_nanos() as f64 / 1e3);
        thread::sleep(StdDuration::from_millis(1));
    }
    Ok(times)
}

const PATIENCE: StdDuration = StdDuration::from_secs(5);
const PORT: u16 = 4999;
const ROUND_TRIPS: usize = 1000;
