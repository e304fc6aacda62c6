//! Ctrl-C and SIGTERM set a flag, so that a run ends in order and cleans up.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{Error, Result};

/// From here on the first signal sets the flag. A second one ends the program at once. The next start removes what it
/// left.
pub fn watch() -> Result<()> {
    let requested = REQUESTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, 130, requested.clone())
            .and_then(|_| flag::register(signal, requested.clone()))
            .map_err(|error| Error::io("watch for signals", &error))?;
    }
    Ok(())
}

/// True if a signal has arrived.
pub fn requested() -> bool {
    REQUESTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

static REQUESTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
