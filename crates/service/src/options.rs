//! Start options of a gateway.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use paceline_gateway::GatewayConfig;
use paceline_linux::Slice;

use crate::error::{Error, Result};

/// The gateway's interfaces, configuration and outputs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Interface towards the servers.
    pub wan: Option<String>,
    /// Interface towards the clients.
    pub radio: Option<String>,
    /// The TUN device to which the clients' packets are routed. `None`: the gateway is between two ports of a bridge.
    pub tun: Option<String>,
    /// Addresses of the clients, behind a TUN device.
    pub clients: Vec<IpNet>,
    /// The profile, which the operator's file may change. `None` means no gateway.
    pub base: Option<GatewayConfig>,
    /// The operator's file. SIGHUP reads it again.
    pub config: Option<PathBuf>,
    /// File for the counters, written once a second and at the end.
    pub stats_json: Option<PathBuf>,
    /// File for the events of each flow, one JSON object a line.
    pub events: Option<PathBuf>,
    /// CSV file for window, rate, RTT and delay of each flow.
    pub series: Option<PathBuf>,
    /// Loopback address at which metrics are exported.
    pub metrics: Option<SocketAddr>,
    /// The control socket. `None` means the default.
    pub control: Option<PathBuf>,
    /// Take over from the gateway that runs between these interfaces.
    pub take_over: bool,
    /// File for flow records: a JSON line for each flow that ends.
    pub records: Option<PathBuf>,
    /// No gateway: packets pass unchanged.
    pub forward_only: bool,
    /// Process to watch: end when it is no longer the parent.
    pub parent: Option<i32>,
    /// The number of processes that serve the subscribers.
    pub workers: u32,
    /// The index of this process among the workers.
    pub worker: Option<u32>,
    /// The file that keeps the window shifts of rescaled flows. `None` means the default.
    pub shift_file: Option<PathBuf>,
}

impl Options {
    /// Returns the interfaces towards servers and clients.
    pub(crate) fn interfaces(&self) -> Result<(&str, &str)> {
        match (&self.wan, &self.radio) {
            (Some(wan), Some(radio)) => Ok((wan, radio)),
            _ => Err(Error::input("no interfaces; name them with --wan IFACE and --radio IFACE")),
        }
    }

    /// Returns the name by which this machine distinguishes the gateway's files and tables.
    pub(crate) fn name(&self) -> Result<String> {
        let (wan, radio) = self.interfaces()?;
        Ok(match self.worker {
            Some(worker) => format!("{wan}-{radio}-{worker}"),
            None => format!("{wan}-{radio}"),
        })
    }

    /// Returns the options with the files and the metrics port of this worker.
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

    /// Returns the worker's part of the subscribers, whose prefixes have these lengths in IPv4 and IPv6.
    pub(crate) fn slice(&self, (prefix_v4, prefix_v6): (u8, u8)) -> Option<Slice> {
        self.worker.map(|index| Slice { index, of: self.workers, prefix_v4, prefix_v6 })
    }
}

/// Returns the worker's file: `a/b.c` becomes `a/b-0.c`.
pub(super) fn beside(path: &Path, worker: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{worker}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}
