//! A client's connection and the one that goes on to the server.

use std::io;
use std::time::Duration;

use paceline_linux::clock;
use socket2::Socket;

use super::super::connection::Ready;
use super::super::tcp_info::TcpSample;
use super::way::Way;

/// Both connections, and what is between them.
#[derive(Debug)]
pub(super) struct Pair {
    /// Client and server.
    ends: [End; 2],
    /// To the server and to the client.
    ways: [Way; 2],
}

/// One connection.
#[derive(Debug)]
pub(super) struct End {
    pub(super) socket: Socket,
    pub(super) ready: Ready,
    /// Until then nothing may be done with it.
    pub(super) is_connected: bool,
}

/// What a turn of work came to.
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

    /// What the poller says of one end.
    pub(super) fn notice(&mut self, side: usize, news: Ready) {
        let ready = &mut self.ends[side].ready;
        ready.readable |= news.readable;
        ready.writable |= news.writable;
    }

    /// Moves what can be moved, within bounds.
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

    /// Closing then resets both connections.
    pub(super) fn reset(&self) {
        self.sockets().into_iter().for_each(reset);
    }

    /// Towards the client.
    pub(super) fn retransmitted_segments(&self) -> u64 {
        let sample = TcpSample::take(&self.ends[0].socket, clock::now());
        sample.map_or(0, |sample| sample.retransmitted_segments.into())
    }
}

/// Lets the connection end with a reset when it is closed.
pub(super) fn reset(socket: &Socket) {
    let _ = socket.set_linger(Some(Duration::ZERO));
}
