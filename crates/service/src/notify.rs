//! Notifies systemd: ready, reloading, stopping, and that packets still pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sd_notify::NotifyState;

use super::attach::Absence;

/// Notifies the service manager, if there is one.
#[derive(Debug, Default)]
pub(super) struct Supervisor {
    /// Counts turns of the packet thread.
    beats: Arc<AtomicU64>,
    is_ready: bool,
    /// The absence of the gateway that was reported last.
    absence: Option<Absence>,
}

impl Supervisor {
    /// Starts the watchdog's thread. It notifies systemd only while the packet thread makes turns.
    pub(super) fn start(&self) {
        let Some(timeout) = sd_notify::watchdog_enabled() else { return };
        let beats = self.beats.clone();
        thread::spawn(move || {
            let mut seen = 0;
            loop {
                thread::sleep(timeout / 4);
                let heartbeat = beats.load(Ordering::Relaxed);
                if heartbeat != seen {
                    seen = heartbeat;
                    tell(&[NotifyState::Watchdog]);
                }
            }
        });
    }

    /// Notes that packets pass, or that the interfaces keep the gateway from its place, which a restart would not
    /// change. Does only an addition unless something has changed.
    pub(super) fn heartbeat(&mut self, absence: Option<&Absence>) {
        if self.absence.as_ref() != absence {
            self.absence = absence.cloned();
            let status = absence.map_or("in place", |absence| &absence.reason);
            tell(&[NotifyState::Status(status)]);
        }
        if absence.is_some_and(|absence| absence.is_failure) {
            return;
        }
        self.beats.fetch_add(1, Ordering::Relaxed);
        if !self.is_ready {
            self.is_ready = true;
            tell(&[NotifyState::Ready]);
        }
    }

    /// Reports that another process, a child of this one, continues the service.
    pub(super) fn succeeded_by(&self, process: u32) {
        tell(&[NotifyState::MainPid(process)]);
    }

    pub(super) fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }
}

/// Reports the start of a reload. Called on the thread that reloads.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// Reports the end of a reload, whether it was done or refused.
pub(super) fn reloaded(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!("cannot notify systemd: {error}");
    }
}
