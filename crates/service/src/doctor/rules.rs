//! Checks for packet filter rules that conflict with a gateway.

use std::fs;

use paceline_linux::nft::{BaseChain, base_chains};
use paceline_linux::sysctl;

use super::{Findings, Site};

pub(super) fn rules(site: Site<'_>) -> Vec<Findings> {
    let findings = Findings::of("nftables", "machine");
    let chains = match base_chains() {
        Ok(chains) => chains,
        Err(error) => {
            let remedy = "load nf_tables with its netdev family; a bridged gateway does not start without it";
            return vec![match site.tun {
                Some(_) => findings.warn(error.to_string(), remedy),
                None => findings.problem(error.to_string(), remedy),
            }];
        }
    };
    let others: Vec<&BaseChain> =
        chains.iter().filter(|chain| !chain.table.starts_with("paceline-")).collect();
    let mut all: Vec<Findings> = others.iter().filter_map(|chain| judge(chain, site.tun)).collect();
    if site.tun.is_none() {
        all.extend(bridge_calls());
    } else if let Some(found) = old_iptables() {
        all.push(found);
    }
    if all.is_empty() {
        all.push(findings.ok(match others.len() {
            0 => "no other rules".to_owned(),
            count => format!("{count} other chains, none in the way"),
        }));
    }
    all
}

const FORWARD: u32 = 2;
const PREROUTING: u32 = 0;

/// Returns the problem with another program's chain, if there is one.
fn judge(chain: &BaseChain, tun: Option<&str>) -> Option<Findings> {
    let routed = tun.is_some();
    let name = format!("{} {} {}", chain.family, chain.table, chain.chain);
    let findings = Findings::of("rules", &name);
    let is_ip = matches!(chain.family, "ip" | "ip6" | "inet");
    match (chain.family, chain.hook) {
        ("bridge", FORWARD | PREROUTING) if !routed && (chain.rules > 0 || chain.drops) => {
            Some(findings.warn(
                "TCP that the gateway forwards bypasses the bridge and these rules",
                "filter on the machines beside it, or run the gateway routed (--tun)",
            ))
        }
        ("netdev", _) if chain.rules > 0 => Some(findings.warn(
            "rules at an interface's ingress see packets before the gateway's own rule does",
            "make sure that they drop none of the clients' TCP",
        )),
        (_, FORWARD) if routed && is_ip && chain.drops => Some(findings.warn(
            "a rule must allow each forwarded packet, also on its way through the gateway's TUN device",
            format!(
                "nft insert rule {name} iifname {tun} accept; nft insert rule {name} oifname {tun} accept",
                tun = tun.unwrap_or_default()
            ),
        )),
        (_, PREROUTING) if routed && is_ip && chain.rules > 0 => Some(findings.warn(
            "prerouting rules may set marks; the gateway needs bit 0x8000000 of the mark",
            "make sure that they keep it (meta mark set meta mark | ...)",
        )),
        _ => None,
    }
}

fn bridge_calls() -> Option<Findings> {
    let called = ["iptables", "ip6tables"].into_iter().find(|name| {
        sysctl::get(&format!("net/bridge/bridge-nf-call-{name}")).is_ok_and(|value| value == "1")
    })?;
    Some(Findings::of("rules", "br_netfilter").warn(
        format!("bridged packets go through {called}, packets that the gateway forwards do not: rules see half of each connection"),
        format!("sysctl -w net.bridge.bridge-nf-call-{called}=0"),
    ))
}

/// Finds rules of the old iptables, which nftables does not list.
fn old_iptables() -> Option<Findings> {
    let used = ["/proc/thread-self/net/ip_tables_names", "/proc/thread-self/net/ip6_tables_names"]
        .into_iter()
        .any(|path| fs::read_to_string(path).is_ok_and(|names| !names.trim().is_empty()));
    used.then(|| {
        Findings::of("rules", "iptables-legacy").warn(
            "there are rules that this check cannot read",
            "check `iptables-legacy -S`: it must allow forwarding through the TUN device, and keep mark bit 0x8000000",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(family: &'static str, hook: u32, drops: bool, rules: usize) -> BaseChain {
        let (table, chain) = ("t".into(), "c".into());
        BaseChain { family, table, chain, hook, interfaces: Vec::new(), drops, rules }
    }

    #[test]
    fn only_what_is_in_the_way_is_told() {
        for (chain, bridged, routed) in [
            (chain("bridge", FORWARD, false, 1), true, false),
            (chain("bridge", FORWARD, false, 0), false, false),
            (chain("inet", FORWARD, true, 3), false, true),
            (chain("inet", FORWARD, false, 3), false, false),
            (chain("ip", PREROUTING, false, 1), false, true),
            (chain("ip", 4, false, 9), false, false),
            (chain("netdev", 0, false, 1), true, true),
        ] {
            assert_eq!(judge(&chain, None).is_some(), bridged, "{chain:?}");
            assert_eq!(judge(&chain, Some("paceline0")).is_some(), routed, "{chain:?}");
        }
    }
}
