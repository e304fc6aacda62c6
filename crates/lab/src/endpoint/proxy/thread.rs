//! A proxy on its own thread, in the gateway's place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use paceline_linux::{Context, SystemError};

use super::{Proxy, ProxyConfig, ProxyCounters};
use crate::Lab;

/// A running proxy.
#[derive(Debug)]
pub struct ProxyThread<'scope> {
    thread: thread::ScopedJoinHandle<'scope, Result<ProxyCounters, SystemError>>,
    stop: Arc<AtomicBool>,
}

impl<'scope> ProxyThread<'scope> {
    /// Starts the proxy in the gateway's namespace and waits until it listens.
    ///
    /// # Errors
    /// As for [`Proxy::open`].
    pub fn start<'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        lab: &'env Lab,
        config: ProxyConfig,
    ) -> Result<Self, SystemError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, opened) = mpsc::channel();
        let stopped = stop.clone();
        let thread = scope.spawn(move || {
            lab.gateway.enter()?;
            let proxy = Proxy::open(&config)?;
            // The receiver is gone only when the whole run is given up.
            let _ = ready.send(());
            drop(ready);
            proxy.run(&stopped).context(|| "run the proxy".to_owned())
        });
        let running = ProxyThread { thread, stop };
        match opened.recv() {
            Ok(()) => Ok(running),
            Err(_) => Err(running.finish().err().unwrap_or_else(failed)),
        }
    }

    /// Ends the proxy. Returns its counters.
    ///
    /// # Errors
    /// The proxy ended earlier.
    pub fn finish(self) -> Result<ProxyCounters, SystemError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err(failed()))
    }
}

fn failed() -> SystemError {
    SystemError::new("run the proxy", std::io::Error::other("its thread ended"))
}
