//! Properties that must hold for any operator's file, request, answer, and state of another process. Fuzz targets use
//! them, and the replay of their corpora.
#![allow(clippy::unwrap_used, reason = "a check that fails ends the test")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use paceline_gateway::config::Rules;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Node, Packet, Payload, TcpRepr};

pub use super::handover::exercise::state;

use super::control::Request;
use super::http::{self, ParseResult};
use super::policy;
use super::rows::Report;

/// `data`: the operator's file. An accepted file is valid and serves flows. Its keys can be written and read again.
pub fn policy(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let path = Path::new("p.toml");
    let read = |text: &str| policy::parse(path, text, &GatewayConfig::default(), &["eth1", "eth2"]);
    let config = match read(text) {
        Ok(config) => config,
        Err(error) => return assert!(error.to_string().starts_with("p.toml:"), "{error}"),
    };
    assert_eq!(config.check(), Ok(()));
    let written = toml::to_string(&config).unwrap();
    let keys = GatewayConfig { rules: Rules::default(), ..config.clone() };
    assert_eq!(read(&written).map_err(|error| error.to_string()), Ok(keys));
    assert!(policy::needs_restart(&config, &config).is_empty());
    assert!(!policy::summary(&config).is_empty());
    let mut gateway = Gateway::new(config);
    let now = Instant::ZERO + Duration::from_secs(1);
    let end = |net: u8, port: u16| SocketAddr::from((Ipv4Addr::new(10, net, 0, 1), port));
    let key = FlowKey::new(end(1, 40_000), end(2, 443));
    let syn = TcpRepr { flags: Flags::SYN, window: 60_000, ..TcpRepr::default() };
    gateway.handle_packet(now, RADIO, Packet::build_tcp(key, &syn, Payload::Length(0)));
    let (port, sent) = gateway.poll_transmit(now).unwrap();
    assert_eq!((port, sent.flow_key()), (WAN, Some(key)), "a SYN passes under every policy");
    assert!(gateway.poll_transmit(now).is_none());
}

/// `data`: bytes sent to the metrics address. They arrive in pieces. The decision on a part must not change when more
/// arrives.
pub fn http(data: &[u8]) {
    let whole = http::read(data);
    if let ParseResult::Complete(wanted) = &whole {
        assert!(data.starts_with(b"GET ") || data[0].is_ascii_control(), "only GET is answered");
        assert!(!wanted.path.contains('?'));
    }
    for cut in [data.len() / 2, data.len().saturating_sub(1)] {
        match http::read(&data[..cut]) {
            ParseResult::Incomplete => {}
            part => assert_eq!(part, whole, "cut at {cut}"),
        }
    }
}

/// `data`: a line sent to the control socket.
pub fn request(data: &[u8]) {
    let Ok(request) = serde_json::from_slice::<Request>(data) else { return };
    if let Request::Capture(wanted) = request {
        let written = serde_json::to_vec(&wanted).unwrap();
        assert_eq!(serde_json::from_slice::<super::capture::CaptureRequest>(&written).unwrap(), wanted);
        if wanted.problem().is_none() {
            assert!(wanted.client.is_some() || wanted.server.is_some());
            assert!(wanted.bytes <= 1 << 30 && wanted.seconds <= 3_600 && wanted.snap >= 64);
        }
    }
}

/// `data`: a gateway's answer, as `paceline flows` and `paceline top` read it.
pub fn report(data: &[u8]) {
    let Ok(report) = serde_json::from_slice::<Report>(data) else { return };
    let written = serde_json::to_string(&report).unwrap();
    let again: Report = serde_json::from_str(&written).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), written);
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replayed;

#[cfg(test)]
mod tests {
    use super::replayed::replay;

    #[test]
    fn policies_replayed() {
        replay("policy", 2_000, super::policy);
    }

    #[test]
    fn metrics_requests_replayed() {
        replay("http", 20_000, super::http);
    }

    #[test]
    fn control_requests_replayed() {
        replay("request", 20_000, super::request);
    }

    #[test]
    fn reports_replayed() {
        replay("report", 5_000, super::report);
    }

    #[test]
    fn states_replayed() {
        replay("state", 500, super::state);
    }
}
