//! The window that the server is shown.

use crate::supply::Supply;
use crate::virtual_window::VirtualWindow;

/// The window that the server sees, and whether the server keeps up with it.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct ServerWindow {
    pub(super) virtual_window: VirtualWindow,
    pub(super) supply: Supply,
}

impl ServerWindow {
    pub(super) fn new() -> Self {
        ServerWindow { virtual_window: VirtualWindow::new(0), supply: Supply::default() }
    }

    /// Starts the stream at `position`, where it begins or is first seen.
    pub(super) fn start(&mut self, position: u64) {
        self.virtual_window = VirtualWindow::new(position);
    }

    /// The furthest position that the server may send.
    pub(super) fn edge(&self) -> u64 {
        self.virtual_window.edge()
    }
}
