//! Whether there is a route at all. No protocol can do better.

use std::collections::VecDeque;

use paceline_wire::Instant;

use super::config::AdHocConfig;
use super::mobility::{Mobility, Point};

/// The stations' places over time, and the shortest routes between the two ends. All places are known here.
#[derive(Debug)]
pub struct Connectivity {
    mobility: Mobility,
    range2: f64,
    ends: (usize, usize),
    places: Vec<Point>,
    hops: Vec<Option<u32>>,
    next: VecDeque<usize>,
}

impl Connectivity {
    /// The network that [`AdHoc::new`](super::AdHoc::new) makes of the same arguments.
    pub fn new(config: &AdHocConfig, seed: u64) -> Self {
        let (a, b) = config.between;
        Connectivity {
            mobility: Mobility::new(&config.movement, seed),
            range2: config.radio.range_m * config.radio.range_m,
            ends: (usize::from(a), usize::from(b)),
            places: Vec::new(),
            hops: Vec::new(),
            next: VecDeque::new(),
        }
    }

    /// The number of hops between the ends at `now`; `None` if there is no route. `now` must not go back.
    pub fn hops(&mut self, now: Instant) -> Option<u32> {
        self.mobility.positions(now, &mut self.places);
        let (from, to) = self.ends;
        self.hops.clear();
        self.hops.resize(self.places.len(), None);
        *self.hops.get_mut(from)? = Some(0);
        self.next.clear();
        self.next.push_back(from);
        while let Some(station) = self.next.pop_front() {
            let farther = self.hops[station].map(|hops| hops + 1);
            for other in 0..self.places.len() {
                let near = self.places[station].distance2(self.places[other]) <= self.range2;
                if near && self.hops[other].is_none() {
                    self.hops[other] = farther;
                    self.next.push_back(other);
                }
            }
        }
        self.hops.get(to).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_counts() {
        let hops =
            |places: &[(f64, f64)]| Connectivity::new(&AdHocConfig::standing(places), 1).hops(Instant::ZERO);
        assert_eq!(hops(&[(0.0, 0.0), (240.0, 0.0)]), Some(1));
        assert_eq!(hops(&[(0.0, 0.0), (600.0, 0.0), (200.0, 0.0), (400.0, 0.0), (300.0, 0.0)]), Some(3));
        assert_eq!(hops(&[(0.0, 0.0), (600.0, 0.0), (200.0, 0.0)]), None);
    }
}
