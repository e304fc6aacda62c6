//! Every name that a scenario may use must be on its reference page.

use paceline_path::Aqm;
use paceline_tcp::CongestionName;

const SCENARIO: &str = include_str!("../../../docs/reference/scenario.md");

/// The row of a key in the tables of docs/reference/scenario.md.
fn row(key: &str) -> &'static str {
    let start = format!("| `{key}` |");
    SCENARIO.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{key} has no row"))
}

#[test]
fn every_congestion_control_is_documented() {
    for name in CongestionName::ALL {
        assert!(row("server.congestion-control").contains(&format!("`{name}`")), "{name} is not documented");
    }
}

#[test]
fn every_queue_discipline_is_documented() {
    for name in Aqm::NAMES {
        assert!(Aqm::named(name).is_some(), "{name} is no queue discipline");
        assert!(row("radio.down.aqm").contains(&format!("`\"{name}\"`")), "{name} is not documented");
    }
}

/// A table with only the name means the discipline with the parameters that its source recommends.
#[test]
fn every_queue_discipline_can_be_written_as_a_table() {
    #[derive(serde::Deserialize)]
    struct Path {
        aqm: Aqm,
    }
    for name in Aqm::NAMES {
        let path: Path = toml::from_str(&format!("aqm = {{ name = \"{name}\" }}")).unwrap();
        assert_eq!(Some(path.aqm), Aqm::named(name), "{name}");
    }
}
