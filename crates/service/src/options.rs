//! What a gateway is told when it starts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use paceline_gateway::GatewayConfig;
use paceline_linux::Slice;

use crate::error::{Error, Result};

/// Between which interfaces a gateway stands, how it is configured, and what it tells to whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Interface towards the servers.
    pub wan: Option<String>,
    /// Interface towards the clients.
    pub radio: Option<String>,
    /// The TUN device to which the clients' packets are routed; without one the gateway stands between two ports of a bridge.
    pub tun: Option<String>,
    /// Addresses of the clients, behind a TUN device.
    pub clients: Vec<IpNet>,
    /// Which parts are on, as far as the file leaves them; `None` where no gateway is wanted.
    pub base: Option<GatewayConfig>,
    /// The operator's file, which SIGHUP reads again.
    pub config: Option<PathBuf>,
    /// Gets the counters, once a second and at the end.
    pub stats_json: Option<PathBuf>,
    /// Gets what happens to each flow, one JSON object a line.
    pub events: Option<PathBuf>,
    /// Gets window, rate, RTT and delay of each flow as CSV.
    pub series: Option<PathBuf>,
    /// Where metrics are exported, on a loopback address.
    pub metrics: Option<SocketAddr>,
    /// The control socket, if not the default one.
    pub control: Option<PathBuf>,
    /// Take over from the gateway that runs between these interfaces.
    pub take_over: bool,
    /// Gets a JSON line for each flow that ends.
    pub records: Option<PathBuf>,
    /// No gateway: packets pass as they come.
    pub forward_only: bool,
    /// End when this process is no longer the parent.
    pub parent: Option<i32>,
    /// How many processes serve the subscribers.
    pub workers: u32,
    /// Which of these this process is.
    pub worker: Option<u32>,
    /// The file that keeps the window shifts of rescaled flows, if not the default one.
    pub shift_file: Option<PathBuf>,
}

impl Options {
    /// The interfaces towards servers and clients.
    pub(crate) fn interfaces(&self) -> Result<(&str, &str)> {
        match (&self.wan, &self.radio) {
            (Some(wan), Some(radio)) => Ok((wan, radio)),
            _ => Err(Error::input("no interfaces; name them with --wan IFACE and --radio IFACE")),
        }
    }

    /// What is this gateway's own on this machine is called so.
    pub(crate) fn name(&self) -> Result<String> {
        let (wan, radio) = self.interfaces()?;
        Ok(match self.worker {
            Some(worker) => format!("{wan}-{radio}-{worker}"),
            None => format!("{wan}-{radio}"),
        })
    }

    /// With the files and the port of the worker that it is.
    pub(crate) fn of_worker(&self) -> Options {
        let mut options = self.clone();
        let Some(worker) = self.worker else { return options };
        let files = [
            &mut options.control, &mut options.shift_file, &mut options.records, &mut options.events,
            &mut options.series, &mut options.stats_json,
        ];
        for path in files.into_iter().flatten() {
            *path = beside(path, worker);
        }
        if let Some(address) = &mut options.metrics {
            address.set_port(address.port().saturating_add(worker as u16));
        }
        options
    }

    /// Its part of the subscribers, whose names have so many bits in IPv4 and IPv6.
    pub(crate) fn slice(&self, (prefix_v4, prefix_v6): (u8, u8)) -> Option<Slice> {
        self.worker.map(|index| Slice { index, of: self.workers, prefix_v4, prefix_v6 })
    }
}

/// The file of a worker: `a/b.c` becomes `a/b-0.c`.
pub(super) fn beside(path: &Path, worker: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{worker}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}
