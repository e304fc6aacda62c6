//! The thread of the kernel-socket proxy that stands in the gateway's place, of the profile `kernel-split`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use paceline_linux::endpoint::{Proxy, ProxyConfig, ProxyCounters};
use paceline_linux::lab::Lab;
use serde_json::{Value, json};

use super::hosts::Plan;
use crate::error::{Error, Result};
use crate::profile::Profile;
use crate::scenario::Scenario;

/// A running proxy, if the scenario has one.
#[derive(Debug)]
pub(super) struct KernelProxy<'scope>(Option<Running<'scope>>);

#[derive(Debug)]
struct Running<'scope> {
    thread: thread::ScopedJoinHandle<'scope, Result<ProxyCounters>>,
    stop: Arc<AtomicBool>,
}

impl<'scope> KernelProxy<'scope> {
    /// Starts it in the gateway's namespace and waits until it listens.
    pub(super) fn start<'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        lab: &'env Lab,
        scenario: &Scenario,
        plan: &Plan,
    ) -> Result<Self> {
        let Some(congestion_control) = congestion_control(scenario) else { return Ok(KernelProxy(None)) };
        let config = ProxyConfig {
            interfaces: vec!["g0".into(), "g1".into()],
            ports: plan.planned.iter().map(|planned| planned.port).collect(),
            congestion_control,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, opened) = mpsc::channel();
        let stopped = stop.clone();
        let thread = scope.spawn(move || {
            lab.gateway.enter().map_err(Error::system)?;
            let proxy = Proxy::open(&config).map_err(Error::system)?;
            // The receiver is gone only when the whole run is being given up.
            let _ = ready.send(());
            drop(ready);
            proxy.run(&stopped).map_err(|error| Error::io("run the proxy", &error))
        });
        let running = KernelProxy(Some(Running { thread, stop }));
        match opened.recv() {
            Ok(()) => Ok(running),
            Err(_) => running.finish().map(|_| KernelProxy(None)),
        }
    }

    /// Ends it; what it counted, as a gateway tells it.
    pub(super) fn finish(self) -> Result<Option<Value>> {
        let Some(Running { thread, stop }) = self.0 else { return Ok(None) };
        stop.store(true, Ordering::Relaxed);
        let counters =
            thread.join().unwrap_or_else(|_| Err(Error::failed("the proxy of kernel sockets failed")))?;
        let ProxyCounters { flows, failed, retransmitted_segments } = counters;
        Ok(Some(json!({ "counters": {
            "flows_proxied": flows,
            "flows_failed": failed,
            "retransmitted_segments": retransmitted_segments,
        } })))
    }
}

/// What the proxy sends with, by the kernel's name; `None` without one.
pub(super) fn congestion_control(scenario: &Scenario) -> Option<String> {
    let gateway = &scenario.gateway;
    let config = (gateway.profile == Profile::KernelSplit).then(|| gateway.resolve().ok()).flatten()?;
    config.map(|config| config.split.sender.congestion().to_string())
}
