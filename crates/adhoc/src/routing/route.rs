//! A route from station to station.

use super::super::StationId;

/// Stations in order, each once.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Route {
    stations: [StationId; STATIONS_MAX],
    len: u8,
}

/// As ns-2 (MAX_SR_LEN): both ends and 14 between.
pub(crate) const STATIONS_MAX: usize = 16;

impl Route {
    pub(crate) fn of(stations: &[StationId]) -> Self {
        let mut route = Route::default();
        let len = stations.len().min(STATIONS_MAX);
        route.stations[..len].copy_from_slice(&stations[..len]);
        route.len = len as u8;
        route
    }

    pub(crate) fn stations(&self) -> &[StationId] {
        &self.stations[..usize::from(self.len)]
    }

    pub(crate) fn first(&self) -> Option<StationId> {
        self.stations().first().copied()
    }

    pub(crate) fn last(&self) -> Option<StationId> {
        self.stations().last().copied()
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(crate) fn position(&self, station: StationId) -> Option<usize> {
        self.stations().iter().position(|other| *other == station)
    }

    /// Adds a station; `None` if the route has it already or is full.
    pub(crate) fn and(mut self, station: StationId) -> Option<Self> {
        if self.len() == STATIONS_MAX || self.position(station).is_some() {
            return None;
        }
        self.stations[self.len()] = station;
        self.len += 1;
        Some(self)
    }

    /// Joins two routes; `None` unless `rest` begins where this one ends, and no station comes twice.
    pub(crate) fn joined(self, rest: &Route) -> Option<Self> {
        if self.last() != rest.first() {
            return None;
        }
        rest.stations().iter().skip(1).try_fold(self, |route, station| route.and(*station))
    }

    /// The stations before index `end`.
    pub(crate) fn until(&self, end: usize) -> Self {
        Route::of(&self.stations()[..end.min(self.len())])
    }

    /// The stations from index `start` on.
    pub(crate) fn from(&self, start: usize) -> Self {
        Route::of(&self.stations()[start.min(self.len())..])
    }

    pub(crate) fn reversed(&self) -> Self {
        let mut route = *self;
        route.stations[..usize::from(self.len)].reverse();
        route
    }

    /// Index of the station from which the route crosses the link between `a` and `b`, in either direction.
    pub(crate) fn over(&self, a: StationId, b: StationId) -> Option<usize> {
        self.stations().windows(2).position(|pair| pair == [a, b] || pair == [b, a])
    }
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.stations().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_cut_turned_and_joined() {
        let route = Route::of(&[1, 2, 3]);
        assert_eq!(route.reversed(), Route::of(&[3, 2, 1]));
        assert_eq!((route.until(2), route.from(1)), (Route::of(&[1, 2]), Route::of(&[2, 3])));
        assert_eq!(route.joined(&Route::of(&[3, 7])), Some(Route::of(&[1, 2, 3, 7])));
        assert_eq!((route.joined(&Route::of(&[3, 1])), route.joined(&Route::of(&[7]))), (None, None));
        assert_eq!((route.over(3, 2), route.over(2, 3), route.over(1, 3)), (Some(1), Some(1), None));
    }

    #[test]
    fn no_route_is_too_long() {
        let long = Route::of(&(0..16).collect::<Vec<_>>());
        assert_eq!((long.len(), long.and(77)), (16, None));
    }
}
