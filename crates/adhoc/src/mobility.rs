//! Positions of the stations.
//!
//! The code uses only sums, products, quotients and square roots. IEEE 754 rounds these alike on every machine.

use paceline_path::random::Random;
use paceline_wire::{Duration, Instant};

use super::config::{Movement, Place};

/// A point of the plane, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Point {
    /// The square of the distance.
    #[inline]
    pub(super) fn distance2(self, other: Point) -> f64 {
        let (dx, dy) = (self.x - other.x, self.y - other.y);
        dx * dx + dy * dy
    }
}

/// The movements of all stations.
#[derive(Clone, Debug)]
pub(super) struct Mobility {
    tracks: Vec<Track>,
}

/// The movement of one station: its present leg, and the source of the next one.
#[derive(Clone, Debug)]
struct Track {
    leg: Leg,
    next: Next,
}

/// A leg from one point to another. The station stands before `from_at` and after `to_at`.
#[derive(Clone, Copy, Debug)]
struct Leg {
    from: Point,
    from_at: Instant,
    to: Point,
    to_at: Instant,
    /// When the next leg begins.
    over_at: Instant,
}

#[derive(Clone, Debug)]
enum Next {
    Drawn(Box<Waypoints>),
    /// The remaining places. The next one is last.
    Script(Vec<Place>),
}

#[derive(Clone, Debug)]
struct Waypoints {
    random: Random,
    side_m: f64,
    speed_min: f64,
    speed_max: f64,
    pause_max: Duration,
}

impl Mobility {
    pub(super) fn new(movement: &Movement, seed: u64) -> Self {
        let tracks = match movement {
            Movement::Waypoint { stations, side_m, speed_min, speed_max, pause_max } => (0..*stations)
                .map(|station| {
                    let random = Random::named(seed, &format!("way of station {station}"));
                    let [side_m, speed_min, speed_max] = [*side_m, *speed_min, *speed_max];
                    let way = Waypoints { random, side_m, speed_min, speed_max, pause_max: *pause_max };
                    Track::drawn(way)
                })
                .collect(),
            Movement::Scripted(scripts) => scripts.iter().map(|script| Track::scripted(script)).collect(),
        };
        Mobility { tracks }
    }

    /// The positions of all stations at `now`, which must not go back.
    pub(super) fn positions(&mut self, now: Instant, into: &mut Vec<Point>) {
        into.clear();
        into.extend(self.tracks.iter_mut().map(|track| track.at(now)));
    }

    /// The position of one station at `now`.
    #[cfg(test)]
    pub(super) fn position(&mut self, station: super::StationId, now: Instant) -> Point {
        self.tracks[usize::from(station)].at(now)
    }
}

impl Track {
    /// A station that begins with a rest, at a place drawn evenly.
    fn drawn(mut way: Waypoints) -> Self {
        let start = way.place();
        let over_at = Instant::ZERO + way.pause();
        Track { leg: Leg::standing(start, Instant::ZERO, over_at), next: Next::Drawn(Box::new(way)) }
    }

    fn scripted(script: &[Place]) -> Self {
        let mut rest: Vec<Place> = script.iter().rev().copied().collect();
        let first = rest.pop().unwrap_or(Place { at: Instant::ZERO, x: 0.0, y: 0.0 });
        let point = Point { x: first.x, y: first.y };
        Track { leg: Leg::standing(point, Instant::ZERO, first.at), next: Next::Script(rest) }
    }

    #[inline]
    fn at(&mut self, now: Instant) -> Point {
        while self.leg.over_at <= now {
            let Some(leg) = self.next.leg(&self.leg) else { break };
            self.leg = leg;
        }
        self.leg.at(now)
    }
}

impl Leg {
    fn standing(place: Point, from_at: Instant, over_at: Instant) -> Self {
        Leg { from: place, from_at, to: place, to_at: from_at, over_at }
    }

    fn at(&self, now: Instant) -> Point {
        if now >= self.to_at {
            return self.to;
        }
        let whole = self.to_at.saturating_since(self.from_at).as_nanos() as f64;
        let share = now.saturating_since(self.from_at).as_nanos() as f64 / whole;
        Point {
            x: self.from.x + (self.to.x - self.from.x) * share,
            y: self.from.y + (self.to.y - self.from.y) * share,
        }
    }
}

impl Next {
    fn leg(&mut self, last: &Leg) -> Option<Leg> {
        let (from, from_at) = (last.to, last.over_at);
        match self {
            Next::Drawn(way) => {
                let to = way.place();
                let seconds = from.distance2(to).sqrt() / way.speed();
                // At least a nanosecond, so that time goes on.
                let to_at = from_at + Duration::from_secs_f64(seconds) + Duration::from_nanos(1);
                let over_at = to_at + way.pause();
                Some(Leg { from, from_at, to, to_at, over_at })
            }
            Next::Script(rest) => {
                let Place { at, x, y } = rest.pop()?;
                Some(Leg { from, from_at, to: Point { x, y }, to_at: at, over_at: at })
            }
        }
    }
}

impl Waypoints {
    fn place(&mut self) -> Point {
        Point { x: self.random.unit() * self.side_m, y: self.random.unit() * self.side_m }
    }

    fn speed(&mut self) -> f64 {
        self.speed_min + self.random.unit() * (self.speed_max - self.speed_min)
    }

    fn pause(&mut self) -> Duration {
        self.random.duration_up_to(self.pause_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn waypoints(stations: u8, speed_max: f64) -> Movement {
        let pause_max = Duration::from_secs(10);
        Movement::Waypoint { stations, side_m: 1_000.0, speed_min: 1.0, speed_max, pause_max }
    }

    #[test]
    fn scripts_are_followed_straight_and_evenly() {
        let places = [(0, 0.0, 0.0), (1_000, 0.0, 0.0), (3_000, 200.0, 100.0)];
        let script = places.map(|(ms, x, y)| Place { at: at_ms(ms), x, y }).to_vec();
        let mut mobility = Mobility::new(&Movement::Scripted(vec![script]), 1);
        let at = [
            (0, 0.0, 0.0),
            (1_000, 0.0, 0.0),
            (2_000, 100.0, 50.0),
            (3_000, 200.0, 100.0),
            (9_000, 200.0, 100.0),
        ];
        for (ms, x, y) in at {
            assert_eq!(mobility.position(0, at_ms(ms)), Point { x, y }, "at {ms} ms");
        }
    }

    #[test]
    fn nobody_leaves_the_square_or_goes_too_fast() {
        let mut mobility = Mobility::new(&waypoints(16, 50.0), 3);
        let mut before = Vec::new();
        let mut now = Vec::new();
        for second in 0..2_000 {
            std::mem::swap(&mut before, &mut now);
            mobility.positions(at_ms(second * 1_000), &mut now);
            assert!(now.iter().all(|p| (0.0..=1_000.0).contains(&p.x) && (0.0..=1_000.0).contains(&p.y)));
            assert!(before.iter().zip(&now).all(|(a, b)| a.distance2(*b).sqrt() <= 50.0 + 1e-6));
        }
    }

    /// Places are drawn evenly, but the paths between them crowd the middle. The mean is the middle, and the stationary
    /// density is highest there (Bettstetter and others, 2003).
    #[test]
    fn the_middle_is_where_stations_pass() {
        let mut mobility = Mobility::new(&waypoints(16, 50.0), 5);
        let mut points = Vec::new();
        let (mut sum, mut inner, mut count) = (0.0, 0, 0);
        for second in 500..4_000 {
            mobility.positions(at_ms(second * 1_000), &mut points);
            for point in &points {
                sum += point.x;
                count += 1;
                inner += usize::from((250.0..750.0).contains(&point.x) && (250.0..750.0).contains(&point.y));
            }
        }
        assert!((sum / f64::from(count) - 500.0).abs() < 20.0);
        // An even density would have 25 % there.
        assert!(inner as f64 / f64::from(count) > 0.33, "{inner} of {count}");
    }

    #[test]
    fn a_seed_repeats_and_stations_differ() {
        let place = |seed, station| Mobility::new(&waypoints(4, 20.0), seed).position(station, at_ms(77_777));
        assert_eq!(place(1, 2), place(1, 2));
        assert_ne!(place(1, 2), place(1, 3));
        assert_ne!(place(1, 2), place(2, 2));
    }
}
