//! The kernel's messages about links and rules. Needs root.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::Ipv4Addr;

use paceline_lab::netns::Netns;
use paceline_linux::netlink::{LinkWatch, Prefix, Rule};

use common::permitted;

#[test]
fn only_what_matters_is_told() {
    if !permitted() {
        return;
    }
    let namespace = Netns::create("watch").unwrap();
    let netlink = namespace.netlink().unwrap();
    let mut watch = namespace.run(|| LinkWatch::open(&["w0"], Some(7700))).unwrap().unwrap();
    let mut changes = |what: &dyn Fn()| {
        what();
        // The kernel sends the message before it answers the request.
        watch.has_changed()
    };
    assert!(!changes(&|| netlink.add_bridge("other").unwrap()));
    assert!(changes(&|| netlink.add_bridge("w0").unwrap()));
    assert!(!changes(&|| netlink.set_up("other", true).unwrap()));
    assert!(changes(&|| netlink.set_mtu("w0", 1400).unwrap()));
    assert!(changes(&|| netlink.rename("w0", "w1").unwrap()));
    assert!(changes(&|| netlink.delete_link("w1").unwrap()));
    let rule = |priority| Rule {
        ipv6: false,
        priority,
        input_interface: "other".to_owned(),
        protocol: None,
        source: Some(Prefix::new(Ipv4Addr::LOCALHOST, 32)),
        destination: None,
        mark: None,
        table: 77,
    };
    for priority in [7700, 7701] {
        assert!(!changes(&|| netlink.add_rule(&rule(priority)).unwrap()));
        let told = changes(&|| assert_eq!(netlink.delete_rules(false, priority, "other").unwrap(), 1));
        assert_eq!(told, priority == 7700);
    }
}
