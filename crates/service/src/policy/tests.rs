use super::*;
use paceline_gateway::config::{FlowAction, Prefer, Profile};

fn parsed(text: &str) -> std::result::Result<GatewayConfig, String> {
    let base = Profile::Auto.config();
    parse(Path::new("p.toml"), text, &base, &["eth1", "eth2"]).map_err(|error| error.to_string())
}

#[test]
fn an_empty_file_is_the_profile() {
    assert_eq!(parsed("").unwrap(), GatewayConfig::default());
}

#[test]
fn combinations_are_counted_before_they_are_made() {
    let prefixes =
        |first| (0..2000).map(|n| format!("\"{first}.{}.{}.0/24\"", n / 250, n % 250)).collect::<Vec<_>>();
    let (clients, servers) = (prefixes(10).join(","), prefixes(11).join(","));
    let ports = (1..2000).map(|port| port.to_string()).collect::<Vec<_>>().join(",");
    let text =
        format!("[[rule]]\nclient = [{clients}]\nserver = [{servers}]\nport = [{ports}]\nmode = \"pass\"\n");
    // Eight billion combinations, none of which is built.
    assert!(parsed(&text).unwrap_err().contains("more than 10000 combinations"));
}

#[test]
fn rules_become_those_of_the_gateway_in_their_order() {
    let text = r#"
        [[rule]]
        name = "ssh"
        port = 22
        mode = "pass"

        [[rule]]
        client = ["10.1.0.0/16", "2001:db8::/32"]
        port = [443, "8000-8999"]
        dscp = "af41"
        mode = "split"
        profile = "web"

        [[rule]]
        interface = "eth9"
        mode = "pass"

        [[rule]]
        vlan = 7
        weight = 3
        virtual-window = "2mb"

        [[subscriber]]
        client = "10.9.0.0/16"
        weight = 2

        [profile.web]
        congestion-control = "bbr"

        [limits]
        max-flows = 1000
    "#;
    let config = parsed(text).unwrap();
    let flows = &config.rules.flows;
    assert_eq!(flows.len(), 6);
    assert_eq!(flows[0].action, FlowAction::Pass);
    assert_eq!(flows[2].matches.server_ports, Some(8000..=8999));
    assert_eq!((flows[2].matches.dscp, flows[2].action), (Some(34), FlowAction::Split));
    assert_eq!(flows[4].sender.unwrap().congestion().to_string(), "bbr");
    assert_eq!((flows[5].share.weight, flows[5].virtual_window_max_bytes), (3, Some(2_000_000)));
    assert_eq!(config.rules.subscribers[0].address.to_string(), "10.9.0.0/16");
    assert_eq!(config.limits.max_flows, 1000);
}

#[test]
fn mistakes_are_told_with_line_and_remedy() {
    for (text, expected) in [
        ("[[rule]]\nclents = \"10.0.0.0/8\"\n", "p.toml:2: unknown key `clents`; did you mean `client`?"),
        ("[[rule]]\nmode = \"spilt\"\n", "p.toml:2: unknown value `spilt`; did you mean `split`?"),
        ("[[rule]]\nclient = \"10.0.0.1/8\"\n", "p.toml:2: `10.0.0.1/8` has bits beyond its length; write"),
        ("[[rule]]\nport = 70000\n", "p.toml:2: `70000` is not a port; write 443"),
        ("[[rule]]\nport = [\"9-1\"]\n", "p.toml:2: `9-1` is not a port"),
        ("[[rule]]\ndscp = \"af49\"\n", "p.toml:2: `af49` is not a DSCP"),
        ("[[rule]]\nvlan = 4095\n", "p.toml:2: `4095` is not a VLAN"),
        ("[[rule]]\nclient = []\n", "p.toml:2: an empty list matches nothing"),
        ("[[rule]]\nport = 80\nweight = 0\n", "p.toml:1: `weight` is 1 to 1000"),
        ("[[rule]]\nport = 80\npriority = 8\n", "p.toml:1: `priority` is 0 to 7"),
        ("[[rule]]\nport = 80\nceiling = \"5\"\n", "p.toml:3: "),
        (
            "[[rule]]\nguaranteed = \"5mbit\"\nceiling = \"1mbit\"\n",
            "p.toml:1: the guaranteed rate is above the ceiling",
        ),
        (
            "[[rule]]\nport = 80\nrtt = \"50ms\"\n",
            "p.toml:3: `50ms` is not a round-trip time; write \">200ms\"",
        ),
        ("[[rule]]\nrtt = \"90ms-50ms\"\n", "p.toml:2: `90ms-50ms` is not a round-trip time"),
        ("[[subscriber]]\nclient = \"10.0.0.2\"\n", "p.toml:1: it says nothing about the subscriber"),
        ("[[rule]]\nport = 80\nmode = \"pass\"\nweight = 2\n", "p.toml:1: weight, priority"),
        ("[[rule]]\nport = 80\nprofile = \"x\"\n", "p.toml:1: `profile` works on split flows only"),
        (
            "[[rule]]\nmode = \"split\"\nprofile = \"wep\"\n[profile.web]\n",
            "p.toml:3: there is no profile `wep`; did you mean `web`?",
        ),
        ("[[rule]]\nmode = \"pass\"\n[[rule]]\nport = 80\n", "p.toml:3: rule 2 is never reached"),
        ("[limits]\nmax-flow = 1\n", "p.toml:2: unknown key `max-flow`; did you mean `max-flows`?"),
        ("[rtt-modulation]\nbeta = 9\n", "p.toml: rtt-modulation.beta: give 1, 2 or 3"),
        (
            "[[rule]]\nport = 80\nvirtual-window = \"16383b\"\n",
            "p.toml:3: `virtual-window` must be \"16kib\" to \"1gib\"",
        ),
        (
            "# old\n[[sharing.flows]]\nmatch = { server-port = 22 }\naction = \"pass\"\n",
            "p.toml:2: `sharing.flows` is no longer a key; write each rule as [[rule]]",
        ),
        (
            "[sharing]\nother = \"passed\"\nsubscribers = []\n",
            "p.toml:3: `sharing.subscribers` is no longer a key; write each rule as [[subscriber]]",
        ),
        ("rules = []\n", "p.toml:1: unknown key `rules`; did you mean `rule`?"),
    ] {
        let error = parsed(text).unwrap_err();
        assert!(error.starts_with(expected), "{text:?} gave {error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn the_dial_can_be_set_for_all_and_for_a_subscriber() {
    let text = "[queue-bound]\nprefer = \"throughput\"\n[[subscriber]]\nclient = \"10.0.0.1\"\nprefer = \"latency\"\n";
    let config = parsed(text).unwrap();
    assert_eq!(config.queue_bound.prefer, Prefer::Throughput);
    assert_eq!(config.rules.subscribers[0].prefer, Some(Prefer::Latency));
    let error = parsed("[queue-bound]\nprefer = \"speed\"\n").unwrap_err();
    assert!(
        error.starts_with("p.toml:2: ") && error.ends_with("known here: latency, balanced, throughput"),
        "{error}"
    );
}

#[test]
fn a_reload_says_what_it_leaves() {
    let running = GatewayConfig::default();
    let new = parsed("mode = \"split\"\n[limits]\nmax-flows = 7\n[[rule]]\nport = 1\n").unwrap();
    assert_eq!(needs_restart(&running, &new), ["limits"]);
    let split = "[split]\nreceive-window = \"drwa\"\ndrwa-lambda-percent = 200\nreceive-window-bytes = 100000\nsender = { hack1 = true }\n";
    let left = needs_restart(&running, &parsed(split).unwrap());
    assert_eq!(left, ["split.receive-window-bytes", "split.receive-window", "split.drwa-lambda-percent"]);
}

#[test]
fn the_documented_policy_is_right() {
    let document =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/policy.md")).unwrap();
    let block = document.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let config = parsed(block).unwrap();
    assert_eq!((config.rules.flows.len(), config.rules.subscribers.len()), (8, 1));
    let shipped =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/gateway.toml")).unwrap();
    assert_eq!(parsed(&shipped).unwrap(), GatewayConfig::default());
}

/// serde lists every key of a rule in its message about an unknown key.
#[test]
fn every_key_of_a_rule_is_documented() {
    let told = toml::from_str::<rule::Rule>("nosuch = 1\n").err().unwrap().message().to_owned();
    let keys: Vec<&str> =
        told.split_once("expected one of").unwrap().1.split('`').skip(1).step_by(2).collect();
    assert!(keys.len() > 10 && keys.contains(&"virtual-window"), "{told}");
    let guide = include_str!("../../../../docs/reference/policy.md");
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| `")).collect();
    for key in keys {
        let quoted = format!("`{key}`");
        let named = |row: &&str| row.split('|').nth(1).is_some_and(|cell| cell.contains(&quoted));
        assert!(rows.iter().any(named), "{key} has no row in docs/reference/policy.md");
    }
}
