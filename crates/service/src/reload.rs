//! SIGHUP: another thread reads and checks the file. From the next turn on, it applies to new flows.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use paceline_gateway::{Gateway, GatewayConfig};

use super::status::Reloads;
use super::{configuration, notify, policy};
use crate::Options;
use crate::error::Result;

/// The configuration in force, and a possible new one that is being read.
#[derive(Debug)]
pub(super) struct Reload {
    running: GatewayConfig,
    reading: Option<Receiver<Result<GatewayConfig>>>,
    pub(super) counts: Reloads,
}

impl Reload {
    pub(super) fn new(running: GatewayConfig) -> Self {
        Reload { running, reading: None, counts: Reloads::default() }
    }

    /// Reads the file. Discards the result of an earlier call that is still reading.
    pub(super) fn start(&mut self, options: &Options) {
        let (sender, reading) = channel();
        let options = options.clone();
        self.reading = Some(reading);
        thread::spawn(move || {
            notify::reloading();
            let read = configuration::load(&options, options.config.as_deref());
            let status = match &read {
                Ok(config) => policy::summary(config),
                Err(error) => format!("the old configuration stays in force: {error}"),
            };
            let _ = sender.send(read);
            notify::reloaded(&status);
        });
    }

    /// Applies a configuration that has been read. Existing flows keep theirs.
    pub(super) fn finish(&mut self, node: &mut Gateway) {
        let Some(reading) = &self.reading else { return };
        let read = match reading.try_recv() {
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => None,
            Ok(read) => Some(read),
        };
        self.reading = None;
        match read {
            Some(Ok(config)) => {
                let left = policy::needs_restart(&self.running, &config);
                if !left.is_empty() {
                    tracing::warn!(
                        "{} changed in the file; restart the gateway to apply it",
                        left.join(", ")
                    );
                }
                tracing::info!("the new file applies to new flows: {}", policy::summary(&config));
                node.set_policy(&config);
                self.counts.done += 1;
            }
            Some(Err(error)) => {
                tracing::error!("the old configuration stays in force: {error}");
                self.counts.refused += 1;
            }
            None => {}
        }
    }
}
