use paceline_lab::netns::check_permitted;
use paceline_lab::{GatewayKind, Lab, LabConfig};

use super::*;

fn of<'a>(findings: &'a [Finding], check: &str) -> Vec<&'a Finding> {
    findings.iter().filter(|one| one.check == check).collect()
}

fn examined(lab: &Lab, tun: bool) -> Vec<Finding> {
    let site = Site { wan: "g0", radio: "g1", tun: tun.then_some("paceline0") };
    lab.gateway.run(|| machine(site)).unwrap()
}

#[test]
fn a_bridge_is_found_well_and_what_is_broken_is_named() {
    if let Err(error) = check_permitted() {
        eprintln!("skipped: {error}");
        return;
    }
    let lab = Lab::build(LabConfig::default()).unwrap();
    let findings = examined(&lab, false);
    assert!(findings.iter().all(|one| one.status != Status::Problem), "{findings:#?}");
    assert_eq!(of(&findings, "bridge")[0].status, Status::Ok);
    assert_eq!(of(&findings, "driver")[0].finding, "veth");

    let netlink = lab.gateway.netlink().unwrap();
    netlink.set_mtu("g1", 1400).unwrap();
    netlink.set_master("g1", None).unwrap();
    netlink.set_up("g0", false).unwrap();
    lab.gateway.set_offloads("g0", &[paceline_linux::offload::Offload::GenericReceive], false).unwrap();
    let findings = examined(&lab, false);
    for check in ["MTU", "bridge"] {
        assert_eq!(of(&findings, check)[0].status, Status::Problem, "{check}");
    }
    assert!(of(&findings, "interface").iter().any(|one| one.remedy.as_deref() == Some("ip link set g0 up")));
    assert!(of(&findings, "receive offload").iter().any(|one| one.status == Status::Warning));
}

#[test]
fn a_router_is_asked_for_forwarding() {
    if let Err(error) = check_permitted() {
        eprintln!("skipped: {error}");
        return;
    }
    let lab = Lab::build(LabConfig { gateway: GatewayKind::Routed, ..LabConfig::default() }).unwrap();
    let findings = examined(&lab, true);
    assert!(of(&findings, "forwarding").iter().all(|one| one.status == Status::Ok), "{findings:#?}");
    lab.gateway.set_sysctls(&[("net.ipv4.ip_forward", "0"), ("net.ipv4.conf.g0.rp_filter", "1")]).unwrap();
    let findings = examined(&lab, true);
    assert_eq!(of(&findings, "forwarding")[0].remedy.as_deref(), Some("sysctl -w net.ipv4.ip_forward=1"));
    assert_eq!(of(&findings, "rp_filter")[0].status, Status::Warning);
}

#[test]
fn what_is_not_there_is_a_problem() {
    let findings = machine(Site { wan: "nosuch0", radio: "nosuch1", tun: None });
    assert_eq!(of(&findings, "interface").iter().filter(|one| one.status == Status::Problem).count(), 2);
    // Every problem and every warning has a remedy.
    assert!(findings.iter().all(|one| one.status == Status::Ok || one.remedy.is_some()));
}
