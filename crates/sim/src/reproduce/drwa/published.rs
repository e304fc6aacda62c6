//! Table 3 and Table 1 of the text.

use super::network::Network;

/// A cell of Table 3: DRWA's gain in throughput for a download of 100 MB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The network.
    pub network: Network,
    /// End-to-end latency.
    pub latency_ms: u64,
    /// The published gain.
    pub percent: f64,
}

/// A cell of Table 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RmemMax {
    /// The carrier.
    pub carrier: String,
    /// The kind of network; `Default` for networks that the table does not name.
    pub network: String,
    /// `tcp_rmem_max`.
    pub bytes: u32,
}

impl Gain {
    /// All cells, in the order of the file.
    pub fn all() -> Vec<Gain> {
        let lines = include_str!("../../../../../published/drwa.csv").lines().skip(1);
        lines.filter_map(Gain::parse).collect()
    }

    fn parse(line: &str) -> Option<Gain> {
        let columns: Vec<&str> = line.split(',').collect();
        let [network, latency_ms, percent] = columns[..] else { return None };
        let network = Network::ALL.into_iter().find(|known| known.name() == network)?;
        Some(Gain { network, latency_ms: latency_ms.parse().ok()?, percent: percent.parse().ok()? })
    }
}

impl RmemMax {
    /// All cells, in the order of the file.
    pub fn all() -> Vec<RmemMax> {
        let lines = include_str!("../../../../../published/drwa-rmem-max.csv").lines().skip(1);
        lines.filter_map(RmemMax::parse).collect()
    }

    fn parse(line: &str) -> Option<RmemMax> {
        let columns: Vec<&str> = line.split(',').collect();
        let [_, carrier, network, bytes] = columns[..] else { return None };
        Some(RmemMax { carrier: carrier.into(), network: network.into(), bytes: bytes.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_cell_is_read() {
        let gains = Gain::all();
        assert_eq!((gains.len(), RmemMax::all().len()), (20, 24));
        for network in Network::ALL {
            assert_eq!(gains.iter().filter(|gain| gain.network == network).count(), 5);
        }
    }

    #[test]
    fn clamps_are_those_of_table_1() {
        let of = Network::ALL.map(Network::rmem_max);
        assert_eq!(of, [262_144, 110_208, 110_208, 484_848]);
    }
}
