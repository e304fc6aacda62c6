//! How long a queue may be.

use crate::error::ConfigError;

/// How much may wait. The packet that is being sent does not count, and an idle link takes a packet of any size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// Everything.
    #[default]
    Unlimited,
    /// So many IP bytes.
    Bytes(u64),
    /// So many packets.
    Packets(u32),
}

impl QueueLimit {
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        match self {
            QueueLimit::Bytes(0) | QueueLimit::Packets(0) => Err(ConfigError::QueueOfNothing),
            _ => Ok(()),
        }
    }
}
