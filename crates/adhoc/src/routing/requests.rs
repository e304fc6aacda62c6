//! Route requests: which of others were seen, and which of one's own are out (RFC 4728, Section 4.3).

use paceline_wire::{Duration, Instant};

use super::super::StationId;
use super::super::config::Routing;

#[derive(Clone, Debug)]
pub(super) struct RequestTable {
    /// Of each station, the number of its last request that came by here. They rise.
    seen: Vec<u32>,
    /// By station that is looked for.
    searches: Vec<Option<Search>>,
    last: u32,
}

/// Somebody is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Search {
    /// When it is asked for again.
    again_at: Instant,
    /// And how much later then.
    period: Duration,
}

impl RequestTable {
    pub(super) fn new(stations: usize) -> Self {
        RequestTable { seen: vec![0; stations], searches: vec![None; stations], last: 0 }
    }

    /// Whether a request is news. It is none the next time.
    pub(super) fn is_new(&mut self, origin: StationId, number: u32) -> bool {
        let seen = &mut self.seen[usize::from(origin)];
        let is_new = number > *seen;
        *seen = number.max(*seen);
        is_new
    }

    /// Begins to look for a station: the number of the request to its neighbours, unless it is looked for already.
    pub(super) fn begin(&mut self, now: Instant, target: StationId, config: &Routing) -> Option<u32> {
        let search = &mut self.searches[usize::from(target)];
        if search.is_some() {
            return None;
        }
        *search = Some(Search { again_at: now + config.neighbours_first, period: config.request_period });
        Some(self.number())
    }

    /// One of those that are to be asked for again.
    pub(super) fn due(&self, now: Instant) -> Option<StationId> {
        let due = |search: &Option<Search>| search.is_some_and(|search| search.again_at <= now);
        self.searches.iter().position(due).map(|target| target as StationId)
    }

    /// Goes on looking, with ever more patience: the number of the request to everybody.
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
