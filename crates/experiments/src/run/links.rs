//! The links of the lab, from a scenario's paths.

use std::path::Path;

use paceline_lab::emulator::{DuplexConfig, EmulatorConfig};
use paceline_path::LinkConfig;
use paceline_wire::PortId;

use crate::error::{Error, Result};
use crate::scenario::Scenario;

/// Returns the emulator's configuration.
pub(super) fn config(scenario: &Scenario, folder: &Path, seed: u64) -> Result<EmulatorConfig> {
    let mut links = Vec::new();
    for (number, (name, path)) in
        [("wired", &scenario.wired), ("radio", &scenario.radio)].into_iter().enumerate()
    {
        let [downlink, uplink] =
            path.resolve(folder).map_err(|why| Error::input(format!("{name}: {why}")))?;
        let number = number as u8;
        links.push(DuplexConfig {
            name: name.into(),
            ports: [PortId(2 * number), PortId(2 * number + 1)],
            // Splitting costs time, and changes nothing on a link that treats every packet alike.
            split: !(is_plain(&downlink) && is_plain(&uplink)),
            downlink,
            uplink,
            seeds: link_seeds(seed, number),
            spare_neighbour_discovery: true,
        });
    }
    Ok(EmulatorConfig { links, path: Some((0, 1)), delivery: 1 })
}

/// The seeds of a link's directions. They are the same in the lab and in the simulator, so that the same packets are
/// lost.
pub(super) fn link_seeds(seed: u64, number: u8) -> [u64; 2] {
    [0, 1].map(|direction| seed.wrapping_mul(4).wrapping_add(u64::from(2 * number) + direction))
}

fn is_plain(link: &LinkConfig) -> bool {
    *link == LinkConfig { delay: link.delay.clone(), ..LinkConfig::default() }
}
