//! Checks of the interfaces, and of the kernel's handling of packets between them.

use paceline_linux::netlink::{LinkInfo, Netlink};
use paceline_linux::offload::{self, Offload};
use paceline_linux::sysctl;

use super::{Findings, Site};

pub(super) fn ports(site: Site<'_>) -> Vec<Findings> {
    let names = [site.wan, site.radio];
    let distinct = if site.wan == site.radio { 1 } else { 2 };
    let netlink = match Netlink::open() {
        Ok(netlink) => netlink,
        Err(error) => {
            let findings = Findings::of("interface", "machine");
            return vec![findings.problem(error.to_string(), "use a kernel with netlink")];
        }
    };
    let links = names.map(|name| netlink.link(name).ok());
    let mut all = Vec::new();
    for (name, link) in names.iter().zip(&links).take(distinct) {
        let Some(link) = link else {
            let findings = Findings::of("interface", name);
            all.push(findings.problem("no such interface", "`ip link` lists the interfaces"));
            continue;
        };
        all.push(state(name, link));
        all.push(driver(name));
        all.extend(offloads(name));
    }
    if let ([Some(wan), Some(radio)], 2) = (&links, distinct) {
        all.push(mtu(site, wan, radio));
        if site.tun.is_none() {
            all.push(bridge(site, wan, radio));
        }
    }
    all
}

fn state(name: &str, link: &LinkInfo) -> Findings {
    let findings = Findings::of("interface", name);
    match (link.up, link.ready) {
        (true, true) => findings.ok("up"),
        (true, false) => findings.warn(
            "up, but passes no packets: no carrier, or its bridge port is not forwarding",
            format!("look at `ip -d link show {name}`"),
        ),
        (false, _) => findings.problem("down", format!("ip link set {name} up")),
    }
}

fn driver(name: &str) -> Findings {
    let findings = Findings::of("driver", name);
    match offload::driver(name) {
        Ok(driver) => findings.ok(driver),
        Err(error) => findings.ok(format!("the driver is not known ({error}); any driver works")),
    }
}

fn offloads(name: &str) -> Vec<Findings> {
    let joined = Findings::of("receive offload", name);
    let joined = match offload::get(name, Offload::GenericReceive) {
        Ok(true) => joined.ok("GRO on: segments arrive joined, which costs the least CPU"),
        Ok(false) => joined.warn(
            "GRO off: each segment costs as much CPU as a joined packet of 33 KB",
            format!("ethtool -K {name} gro on, unless you want to see packets as they are on the wire"),
        ),
        Err(error) => joined.ok(format!("not known ({error})")),
    };
    let cut = Findings::of("send offload", name);
    let cut = match (
        offload::get(name, Offload::TransmitChecksum),
        offload::get(name, Offload::GenericSegmentation),
    ) {
        (Ok(false), _) => {
            cut.warn("the CPU computes checksums", format!("ethtool -K {name} tx on, if the driver can"))
        }
        (_, Ok(false)) => {
            cut.warn("GSO off: the CPU cuts joined packets", format!("ethtool -K {name} gso on"))
        }
        _ => cut.ok("checksums and GSO on"),
    };
    let mut all = vec![joined, cut];
    if let Ok(true) = offload::has_lro(name) {
        all.push(Findings::of("large receive offload", name).problem(
            "LRO on: it joins segments in a way that cannot be undone when they are forwarded",
            format!("ethtool -K {name} lro off"),
        ));
    }
    all
}

fn mtu(site: Site<'_>, wan: &LinkInfo, radio: &LinkInfo) -> Findings {
    let findings = Findings::of("MTU", "both");
    if wan.mtu == radio.mtu {
        return findings.ok(format!("{} bytes on both", wan.mtu));
    }
    let (smaller, larger) = if wan.mtu < radio.mtu { (site.wan, radio) } else { (site.radio, wan) };
    let told = format!("{} bytes on {}, {} on {}", wan.mtu, site.wan, radio.mtu, site.radio);
    if site.tun.is_some() {
        // A router informs the ends by ICMP.
        return findings.warn(
            format!("{told}: a larger packet is answered with ICMP, which no filter may drop"),
            format!("ip link set {smaller} mtu {}, if the link can", larger.mtu),
        );
    }
    findings.problem(
        format!("{told}: a bridge drops larger packets silently"),
        format!("ip link set {smaller} mtu {}, or lower the other", larger.mtu),
    )
}

fn bridge(site: Site<'_>, wan: &LinkInfo, radio: &LinkInfo) -> Findings {
    let findings = Findings::of("bridge", "both");
    let (w, r) = (site.wan, site.radio);
    match (wan.master, radio.master) {
        (Some(one), Some(other)) if one == other => findings.ok("ports of the same bridge: fails open"),
        (None, None) => findings.warn(
            "not in a bridge: when the gateway ends, nothing forwards between them",
            format!("ip link add br0 type bridge; ip link set {w} master br0; ip link set {r} master br0; ip link set br0 up"),
        ),
        _ => findings.problem(
            "not ports of the same bridge",
            format!("ip link set {w} master br0; ip link set {r} master br0"),
        ),
    }
}

/// Checks for a gateway behind a TUN device.
pub(super) fn routing(site: Site<'_>) -> Vec<Findings> {
    let mut all = vec![
        tun_device(),
        forwarding("net.ipv4.ip_forward", "IPv4", true),
        forwarding("net.ipv6.conf.all.forwarding", "IPv6", false),
        reverse_path(site.wan),
    ];
    if site.radio != site.wan {
        all.push(reverse_path(site.radio));
    }
    all.push(conntrack());
    all
}

fn tun_device() -> Findings {
    let findings = Findings::of("TUN", "machine");
    match std::fs::File::options().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => findings.ok("/dev/net/tun opens"),
        Err(error) => findings
            .problem(format!("/dev/net/tun: {error}"), "modprobe tun; in a container, allow the device"),
    }
}

fn forwarding(key: &str, family: &str, needed: bool) -> Findings {
    let findings = Findings::of("forwarding", family);
    match sysctl::get(key).as_deref() {
        Ok("1") => findings.ok(format!("{key}=1")),
        Ok(other) if needed => findings
            .problem(format!("{key}={other}: this machine does not route"), format!("sysctl -w {key}=1")),
        Ok(other) => {
            findings.warn(format!("{key}={other}"), format!("sysctl -w {key}=1, if clients have {family}"))
        }
        Err(_) => findings.ok(format!("this machine has no {family}")),
    }
}

/// The kernel applies the larger of both values (Documentation/networking/ip-sysctl.rst, rp_filter).
fn reverse_path(name: &str) -> Findings {
    let findings = Findings::of("rp_filter", name);
    let read = |of: &str| {
        sysctl::get(&format!("net/ipv4/conf/{of}/rp_filter")).ok().and_then(|value| value.parse::<u8>().ok())
    };
    match read("all").into_iter().chain(read(name)).max() {
        Some(1) => findings.warn(
            "strict: drops packets that arrive by another path than the one back, as with two uplinks",
            format!("sysctl -w net.ipv4.conf.{name}.rp_filter=2 (loose), unless routes are symmetric"),
        ),
        Some(2) => findings.ok("loose"),
        Some(_) => findings.ok("off"),
        None => findings.ok("not there"),
    }
}

/// Packets pass connection tracking before and after the gateway, with different windows.
fn conntrack() -> Findings {
    let findings = Findings::of("connection tracking", "machine");
    let key = "net.netfilter.nf_conntrack_tcp_be_liberal";
    match sysctl::get(key).as_deref() {
        Err(_) => findings.ok("not loaded"),
        Ok("0") => findings.warn(
            "strict about TCP windows, which the gateway changes: rules that drop invalid packets would stop flows",
            format!("sysctl -w {key}=1"),
        ),
        Ok(_) => findings.ok("liberal with windows"),
    }
}
