//! W. K. Leong et al., "Mitigating Egregious ACK Delays in Cellular Data Networks by Eliminating TCP ACK Clocking":
//! TCP-RRE.

mod downlink;
pub mod experiments;
mod setup;

pub use downlink::{BIN, Bin, Downlink, DownlinkRun};
pub use setup::{PAYLOAD_SHARE, Setup, Transfer};
