//! The identity of one direction of a flow.

use core::net::SocketAddr;

/// The addresses and ports of one direction of a TCP connection, as its packets carry them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
pub struct FlowKey {
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
}

impl FlowKey {
    /// The direction from `src` to `dst`.
    pub const fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        FlowKey { src, dst }
    }

    /// The other direction of the same connection.
    #[must_use]
    pub const fn reversed(self) -> Self {
        FlowKey { src: self.dst, dst: self.src }
    }
}
