//! The limit of a queue.

use crate::error::ConfigError;

/// The limit of the waiting packets. The packet that is being sent does not count, and an idle link takes a packet of
/// any size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// No limit.
    #[default]
    Unlimited,
    /// This number of IP bytes.
    Bytes(u64),
    /// This number of packets.
    Packets(u32),
}

impl QueueLimit {
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        match self {
            QueueLimit::Bytes(0) | QueueLimit::Packets(0) => Err(ConfigError::ZeroQueueLimit),
            _ => Ok(()),
        }
    }
}
