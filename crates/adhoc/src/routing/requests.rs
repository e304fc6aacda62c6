//! Route requests: those of other stations that were seen, and the station's own searches (RFC 4728, Section 4.3).

use paceline_wire::{Duration, Instant};

use super::super::StationId;
use super::super::config::Routing;

#[derive(Clone, Debug)]
pub(super) struct RequestTable {
    /// Number of each station's last request that came by here. The numbers rise.
    seen: Vec<u32>,
    /// Searches by target.
    searches: Vec<Option<Search>>,
    last: u32,
}

/// A search for a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Search {
    /// Time of the next request.
    again_at: Instant,
    /// Time from the next request to the one after it.
    period: Duration,
}

impl RequestTable {
    pub(super) fn new(stations: usize) -> Self {
        RequestTable { seen: vec![0; stations], searches: vec![None; stations], last: 0 }
    }

    /// True if a request is new. It is not new the next time.
    pub(super) fn is_new(&mut self, origin: StationId, number: u32) -> bool {
        let seen = &mut self.seen[usize::from(origin)];
        let is_new = number > *seen;
        *seen = number.max(*seen);
        is_new
    }

    /// Begins a search. Returns the number of the request to the neighbours; `None` if there is a search already.
    pub(super) fn begin(&mut self, now: Instant, target: StationId, config: &Routing) -> Option<u32> {
        let search = &mut self.searches[usize::from(target)];
        if search.is_some() {
            return None;
        }
        *search = Some(Search { again_at: now + config.neighbours_first, period: config.request_period });
        Some(self.number())
    }

    /// Returns a target whose next request is due.
    pub(super) fn due(&self, now: Instant) -> Option<StationId> {
        let due = |search: &Option<Search>| search.is_some_and(|search| search.again_at <= now);
        self.searches.iter().position(due).map(|target| target as StationId)
    }

    /// Goes on with a search, with a longer period each time. Returns the number of the request to everybody.
    pub(super) fn again(&mut self, now: Instant, target: StationId, config: &Routing) -> u32 {
        if let Some(search) = &mut self.searches[usize::from(target)] {
            search.again_at = now + search.period;
            search.period = (search.period * 2).min(config.request_period_max);
        }
        self.number()
    }

    pub(super) fn end(&mut self, target: StationId) {
        self.searches[usize::from(target)] = None;
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.searches.iter().flatten().map(|search| search.again_at).min()
    }

    fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn requests_come_at_growing_distances() {
        let config = Routing::default();
        let mut table = RequestTable::new(4);
        assert_eq!(table.begin(at_ms(0), 2, &config), Some(1));
        assert_eq!(table.begin(at_ms(1), 2, &config), None);
        let mut times = Vec::new();
        for _ in 0..8 {
            let at = table.next().unwrap();
            assert_eq!(table.due(at), Some(2));
            table.again(at, 2, &config);
            times.push(at.as_nanos() / 1_000_000);
        }
        assert_eq!(times, [30, 530, 1_530, 3_530, 7_530, 15_530, 25_530, 35_530]);
        table.end(2);
        assert_eq!((table.next(), table.due(at_ms(99_999))), (None, None));
    }

    #[test]
    fn a_request_is_news_once() {
        let mut table = RequestTable::new(4);
        assert!(table.is_new(1, 1) && !table.is_new(1, 1) && table.is_new(2, 1) && table.is_new(1, 3));
        assert!(!table.is_new(1, 2), "it was overtaken by a later one");
    }
}
