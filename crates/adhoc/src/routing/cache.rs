//! The routes that a station remembers: a path cache that drops the oldest route first (RFC 4728, Section 4.1; ns-2's
//! mobicache).
//!
//! Routes do not age. A route is forgotten when one of its links is found broken, or when there is no room.

use super::super::StationId;
use super::route::Route;

#[derive(Clone, Debug)]
pub(super) struct RouteCache {
    /// Each route begins at the station itself.
    routes: Vec<Route>,
    limit: usize,
    /// Index of the route that makes room next.
    oldest: usize,
}

impl RouteCache {
    pub(super) fn new(limit: usize) -> Self {
        RouteCache { routes: Vec::with_capacity(limit), limit: limit.max(1), oldest: 0 }
    }

    /// Learns a route that begins at this station.
    pub(super) fn learn(&mut self, route: Route) {
        if route.len() < 2 {
            return;
        }
        for known in &mut self.routes {
            let common = known.len().min(route.len());
            if known.stations()[..common] == route.stations()[..common] {
                // One route is the beginning of the other.
                if route.len() > known.len() {
                    *known = route;
                }
                return;
            }
        }
        if self.routes.len() < self.limit {
            self.routes.push(route);
            return;
        }
        self.oldest %= self.limit;
        self.routes[self.oldest] = route;
        self.oldest += 1;
    }

    /// Returns the shortest route to a station. Among equals it is the first one.
    pub(super) fn find(&self, to: StationId) -> Option<Route> {
        let ends = self.routes.iter().filter_map(|route| Some((route.position(to)?, route)));
        let (end, route) = ends.filter(|(end, _)| *end > 0).min_by_key(|(end, _)| *end)?;
        Some(route.until(end + 1))
    }

    /// Forgets the stations behind a link, in either direction.
    pub(super) fn forget_link(&mut self, a: StationId, b: StationId) {
        self.routes.retain_mut(|route| {
            if let Some(end) = route.over(a, b) {
                *route = route.until(end + 1);
            }
            route.len() >= 2
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(routes: &[&[StationId]]) -> RouteCache {
        let mut cache = RouteCache::new(3);
        routes.iter().for_each(|route| cache.learn(Route::of(route)));
        cache
    }

    #[test]
    fn the_shortest_way_is_taken_also_to_stations_on_the_way() {
        let cache = cache(&[&[0, 1, 2, 3], &[0, 4, 3, 5]]);
        assert_eq!(cache.find(3), Some(Route::of(&[0, 4, 3])));
        assert_eq!(cache.find(2), Some(Route::of(&[0, 1, 2])));
        assert_eq!((cache.find(0), cache.find(9)), (None, None));
    }

    #[test]
    fn a_broken_link_shortens_what_leads_over_it() {
        let mut cache = cache(&[&[0, 1, 2, 3], &[0, 4, 3, 5]]);
        cache.forget_link(2, 1);
        assert_eq!((cache.find(2), cache.find(1)), (None, Some(Route::of(&[0, 1]))));
        cache.forget_link(0, 4);
        assert_eq!((cache.find(3), cache.routes.len()), (None, 1));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let mut cache = cache(&[&[0, 1], &[0, 2], &[0, 3], &[0, 4]]);
        assert_eq!((cache.find(1), cache.find(2).is_some(), cache.routes.len()), (None, true, 3));
        cache.learn(Route::of(&[0, 2, 7]));
        assert_eq!(cache.routes.len(), 3, "a longer route takes the place of its beginning");
    }
}
