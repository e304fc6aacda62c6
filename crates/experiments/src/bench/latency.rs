//! The round trip of one byte over a connection that is otherwise idle.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use paceline_lab::Lab;
use paceline_linux::{Quantiles, clock};

use crate::error::{Error, Result};
use crate::percentiles::Percentiles;

/// Measures a few hundred round trips, in milliseconds. Pauses between them let both ends go to sleep.
pub(super) fn round_trips(lab: &Lab) -> Result<Percentiles> {
    let fault = |error: io::Error| Error::io("measure the round trip", &error);
    let listen = || TcpListener::bind((lab.server_address(false), 0));
    let listener = lab.server.run(listen).map_err(Error::system)?.map_err(fault)?;
    let address = listener.local_addr().map_err(fault)?;
    thread::scope(|scope| {
        scope.spawn(|| echo(&listener));
        let client = lab.client.run(|| TcpStream::connect_timeout(&address, PATIENCE));
        client.map_err(Error::system)?.and_then(ping).map_err(fault)
    })
}

fn echo(listener: &TcpListener) -> io::Result<()> {
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

/// Gives up after [`PATIENCE`], so that a client that cannot connect does not leave a thread behind.
fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let begin = Instant::now();
    loop {
        match listener.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock && begin.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(1));
            }
            outcome => return outcome.map(|(connection, _): (TcpStream, SocketAddr)| connection),
        }
    }
}

fn ping(mut connection: TcpStream) -> io::Result<Percentiles> {
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut times = Quantiles::new();
    let mut byte = [1];
    for _ in 0..ROUND_TRIPS {
        let sent = clock::now();
        connection.write_all(&byte)?;
        connection.read_exact(&mut byte)?;
        times.record(clock::now().saturating_since(sent));
        thread::sleep(PAUSE);
    }
    Ok(Percentiles::of(&times))
}

const ROUND_TRIPS: usize = 500;
const PAUSE: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(5);
