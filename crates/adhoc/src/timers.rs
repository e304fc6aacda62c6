//! A few timers, of which the first one counts.

use paceline_wire::Instant;

/// One time for each of a few purposes. A linear search is quicker than a heap for fifty numbers. A time that is moved
/// leaves nothing behind. Of equal times the one with the lowest number comes first.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    due: Vec<Instant>,
}

const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl Timers {
    pub(super) fn new(count: usize) -> Self {
        Timers { due: vec![NEVER; count] }
    }

    pub(super) fn set(&mut self, which: usize, at: Option<Instant>) {
        self.due[which] = at.unwrap_or(NEVER);
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.due.iter().min().copied().filter(|at| *at != NEVER)
    }

    /// Takes the first timer if it is due at `now`. It is then no longer set.
    pub(super) fn take(&mut self, now: Instant) -> Option<usize> {
        let first = *self.due.iter().min()?;
        if first > now || first == NEVER {
            return None;
        }
        let which = self.due.iter().position(|at| *at == first)?;
        self.due[which] = NEVER;
        Some(which)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_comes_first() {
        let at = Instant::from_nanos;
        let mut timers = Timers::new(4);
        for (which, ns) in [(0, 30), (1, 20), (2, 20), (3, 99)] {
            timers.set(which, Some(at(ns)));
        }
        timers.set(3, None);
        assert_eq!(timers.next(), Some(at(20)));
        assert_eq!([timers.take(at(20)), timers.take(at(20)), timers.take(at(20))], [Some(1), Some(2), None]);
        assert_eq!([timers.take(at(50)), timers.take(at(50))], [Some(0), None]);
        assert_eq!(timers.next(), None);
    }
}
