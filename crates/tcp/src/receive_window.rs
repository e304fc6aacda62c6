//! The receive window that the receiver advertises.

mod adaptive;
mod base_rtt;
mod drs;
mod drs_linux;
mod drwa;
mod fixed;
mod interface;
mod window_rtt;

use crate::config::Config;
use crate::snapshot::snapshot;
use alloc::boxed::Box;

pub use drs::Drs;
pub use drs_linux::DrsLinux;
pub use drwa::Drwa;
pub use fixed::Fixed;
pub use interface::{Arrival, PathView, ReceiveWindow, ReceiveWindowName};

snapshot!(ReceiveWindowState of AnyReceiveWindow, ReceiveWindow: DrsLinux, Fixed, Drs, Drwa,);

impl ReceiveWindowName {
    /// A new instance, in bytes of payload.
    pub fn build(self, config: &Config) -> Box<dyn AnyReceiveWindow> {
        match self {
            ReceiveWindowName::DrsLinux => Box::new(DrsLinux::new(config.receive_buffer, config.mss)),
            ReceiveWindowName::Fixed => Box::new(Fixed::new(config.receive_buffer)),
            ReceiveWindowName::Drs => Box::new(Drs::new(config.receive_buffer)),
            ReceiveWindowName::DrsClamped => Box::new(Drs::clamped(config.receive_buffer)),
            ReceiveWindowName::Drwa => Box::new(Drwa::new(config)),
            ReceiveWindowName::DrwaText => Box::new(Drwa::text(config)),
            ReceiveWindowName::DrwaWindow => Box::new(Drwa::without_timestamps(config)),
            ReceiveWindowName::DrwaAdaptive => Box::new(Drwa::adaptive(config)),
        }
    }
}

#[cfg(test)]
mod tests;
