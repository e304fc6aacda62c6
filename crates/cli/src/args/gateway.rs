//! Options of the gateway and of the commands that inspect it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use ipnet::IpNet;
use paceline_linux::Slice;
use tracing_subscriber::filter::LevelFilter;

use crate::profile::{Named, Profile};
use crate::units::{Size, Time};
use paceline_service::Options;
use paceline_service::capture::SNAP_MAX;

#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct GatewayCommand {
    #[command(subcommand)]
    pub(crate) action: Option<GatewayAction>,
    #[command(flatten)]
    pub(crate) args: GatewayArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct GatewayArgs {
    /// Interface towards the servers
    #[arg(long, value_name = "IFACE", required_unless_present = "check")]
    pub(crate) wan: Option<String>,
    /// Interface towards the clients
    #[arg(long, value_name = "IFACE", required_unless_present = "check")]
    pub(crate) radio: Option<String>,
    /// Route the clients' packets through a TUN device of this name, instead of bridging
    #[arg(long, value_name = "NAME", requires = "clients")]
    pub(crate) tun: Option<String>,
    /// Addresses of the clients, such as 10.0.0.0/8 (comma-separated)
    #[arg(long, value_name = "PREFIX", value_delimiter = ',', requires = "tun")]
    pub(crate) clients: Vec<IpNet>,
    /// Configuration and policy as TOML (docs/reference/policy.md). Its keys override the profile. SIGHUP reloads it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Check this configuration file, and run nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) check: Option<PathBuf>,
    /// Parts of the gateway to switch on
    #[arg(long, value_enum, default_value_t = Profile::Gateway(Named::Auto))]
    pub(crate) profile: Profile,
    /// Write counters to this file, once a second and at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) stats_json: Option<PathBuf>,
    /// Write events of each flow to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Write window, rate, RTT and delay of each flow to this CSV file, twenty times a second
    #[arg(long, value_name = "FILE")]
    pub(crate) series: Option<PathBuf>,
    /// Export metrics for Prometheus at http://ADDRESS/metrics, on a loopback address such as 127.0.0.1:9100
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Socket for `paceline flows` and `paceline top` [default: /run/paceline/WAN-RADIO.sock]
    #[arg(long, value_name = "FILE")]
    pub(crate) control: Option<PathBuf>,
    /// Take over all flows from the gateway that runs between these interfaces, and stop it. Give the same options as
    /// for that gateway
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Append a JSON line to this file for each flow that ends (docs/reference/metrics.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) records: Option<PathBuf>,
    /// Lowest level of log lines on stderr
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log: LogLevel,
    /// Only forward packets, to measure packet I/O without a gateway
    #[arg(long, hide = true)]
    pub(crate) forward_only: bool,
    /// Exit when this process is no longer the parent
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) parent: Option<i32>,
    /// Number of worker processes. Each serves a part of the subscribers. Their files are FILE-0, FILE-1 and so on.
    /// Their ports are PORT, PORT+1 and so on
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "forward_only",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(Slice::WORKERS_MAX)))]
    pub(crate) workers: u32,
    /// Index of this worker
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) worker: Option<u32>,
    /// File that keeps the window shifts of rescaled flows across a restart
    /// [default: in /run, named after the interfaces]
    #[arg(long, value_name = "FILE")]
    pub(crate) shift_file: Option<PathBuf>,
}

/// An action in place of running the gateway.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum GatewayAction {
    /// Check whether this machine is ready for a gateway, and say what to change
    Doctor(Box<DoctorArgs>),
}

/// Options of `doctor`. It takes the gateway's options, too, so that a gateway's command line can be checked unchanged.
#[derive(Clone, Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten, next_help_heading = "Options of the gateway")]
    pub(crate) gateway: GatewayArgs,
}

impl GatewayArgs {
    /// Returns the options of the gateway service.
    pub(crate) fn options(&self) -> Options {
        Options {
            wan: self.wan.clone(),
            radio: self.radio.clone(),
            tun: self.tun.clone(),
            clients: self.clients.clone(),
            base: self.profile.config(),
            config: self.config.clone(),
            stats_json: self.stats_json.clone(),
            events: self.events.clone(),
            series: self.series.clone(),
            metrics: self.metrics,
            control: self.control.clone(),
            take_over: self.take_over,
            records: self.records.clone(),
            forward_only: self.forward_only,
            parent: self.parent,
            workers: self.workers,
            worker: self.worker,
            shift_file: self.shift_file.clone(),
        }
    }
}

/// The lowest level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    /// Start and end of each flow
    Debug,
    /// Each packet (slow)
    Trace,
}

impl LogLevel {
    pub(crate) fn filter(self) -> LevelFilter {
        match self {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct FlowsArgs {
    /// Control socket of the gateway [default: that of the only running gateway]
    #[arg(long, value_name = "FILE")]
    pub(crate) control: Option<PathBuf>,
    /// Print one JSON object instead of tables (docs/reference/metrics.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(feature = "top")]
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Control socket of the gateway [default: that of the only running gateway]
    #[arg(long, value_name = "FILE")]
    pub(crate) control: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {
    /// Client and server of the flow. Each is an address, an address with a port (`[2001:db8::1]:443` in IPv6), or `any`
    #[arg(long, value_name = "CLIENT,SERVER")]
    pub(crate) flow: FlowArg,
    /// File to write (pcapng)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Maximum duration, up to an hour. Ctrl-C ends the capture, too
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) duration: Time,
    /// Maximum size of the file, up to 1gb
    #[arg(long, value_name = "SIZE", default_value = "64mb")]
    pub(crate) size: Size,
    /// Maximum number of bytes to keep of each packet
    #[arg(long, value_name = "BYTES", default_value_t = SNAP_MAX)]
    pub(crate) snap: u32,
    /// Control socket of the gateway [default: that of the only running gateway]
    #[arg(long, value_name = "FILE")]
    pub(crate) control: Option<PathBuf>,
}

/// Addresses and ports of client and server. `None` matches any address or port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowArg {
    pub(crate) client: (Option<IpAddr>, Option<u16>),
    pub(crate) server: (Option<IpAddr>, Option<u16>),
}

impl FromStr for FlowArg {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let end = |text: &str| match text.trim() {
            "any" => Ok((None, None)),
            text => match text.parse::<SocketAddr>() {
                Ok(address) => Ok((Some(address.ip()), Some(address.port()))),
                Err(_) => text.parse().map(|address| (Some(address), None)).map_err(|_| {
                    format!("{text:?} is not an address; write, for example, 10.0.0.2:40000, 10.0.0.2 or any")
                }),
            },
        };
        let (client, server) = text
            .split_once(',')
            .ok_or("write client and server with a comma between them, such as 10.0.0.2,192.0.2.1:443")?;
        let flow = FlowArg { client: end(client)?, server: end(server)? };
        match (flow.client.0, flow.server.0) {
            (None, None) => Err("name the client's or the server's address".into()),
            _ => Ok(flow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_named_by_its_ends() {
        let flow: FlowArg = "10.0.0.2, [2001:db8::1]:443".parse().unwrap();
        assert_eq!(flow.client, (Some("10.0.0.2".parse().unwrap()), None));
        assert_eq!(flow.server, (Some("2001:db8::1".parse().unwrap()), Some(443)));
        assert_eq!("any,10.0.0.1".parse::<FlowArg>().unwrap().client, (None, None));
        for wrong in ["", "10.0.0.2", "any,any", "10.0.0.2,host", "10.0.0.2:x,any"] {
            assert!(wrong.parse::<FlowArg>().is_err(), "{wrong}");
        }
    }
}
