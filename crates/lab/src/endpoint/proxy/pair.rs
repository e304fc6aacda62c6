//! A client's connection and its continuation to the server.

use std::io;
use std::time::Duration;

use paceline_linux::clock;
use socket2::Socket;

use super::super::connection::Ready;
use super::super::tcp_info::TcpSample;
use super::way::Way;

/// Both connections, and the pipes between them.
#[derive(Debug)]
pub(super) struct Pair {
    /// Client and server.
    ends: [End; 2],
    /// The way to the server, and the way to the client.
    ways: [Way; 2],
}

/// One connection.
#[derive(Debug)]
pub(super) struct End {
    pub(super) socket: Socket,
    pub(super) ready: Ready,
    /// Before this is true, the connection must not be used.
    pub(super) is_connected: bool,
}

/// Result of a turn of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Again,
    Wait,
    Finished,
}

impl End {
    pub(super) fn connected(socket: Socket) -> End {
        End { socket, ready: Ready::default(), is_connected: true }
    }

    pub(super) fn connecting(socket: Socket) -> End {
        End { socket, ready: Ready::default(), is_connected: false }
    }
}

impl Pair {
    pub(super) fn new(client: End, server: End) -> io::Result<Pair> {
        Ok(Pair { ends: [client, server], ways: [Way::new()?, Way::new()?] })
    }

    pub(super) fn sockets(&self) -> [&Socket; 2] {
        [&self.ends[0].socket, &self.ends[1].socket]
    }

    /// Notes the poller's report about one end.
    pub(super) fn notice(&mut self, side: usize, news: Ready) {
        let ready = &mut self.ends[side].ready;
        ready.readable |= news.readable;
        ready.writable |= news.writable;
    }

    /// Moves as many bytes as possible, within bounds.
    pub(super) fn work(&mut self) -> io::Result<Turn> {
        for end in &mut self.ends {
            if !end.is_connected && end.ready.writable {
                if let Some(error) = end.socket.take_error()? {
                    return Err(error);
                }
                end.is_connected = true;
            }
        }
        let [client, server] = &mut self.ends;
        if !server.is_connected {
            return Ok(Turn::Wait);
        }
        let [up, down] = &mut self.ways;
        let turns = [up.work(client, server)?, down.work(server, client)?];
        Ok(match turns {
            [Turn::Finished, Turn::Finished] => Turn::Finished,
            _ if turns.contains(&Turn::Again) => Turn::Again,
            _ => Turn::Wait,
        })
    }

    /// Sets both sockets so that closing them sends a reset.
    pub(super) fn reset(&self) {
        self.sockets().into_iter().for_each(reset);
    }

    /// Returns the number of segments retransmitted to the client.
    pub(super) fn retransmitted_segments(&self) -> u64 {
        let sample = TcpSample::take(&self.ends[0].socket, clock::now());
        sample.map_or(0, |sample| sample.retransmitted_segments.into())
    }
}

/// Sets the socket so that closing it sends a reset.
pub(super) fn reset(socket: &Socket) {
    let _ = socket.set_linger(Some(Duration::ZERO));
}
