//! The shared medium: which station senses which, and which frames survive.
//!
//! Disks: a signal is sensed, and disturbs, up to one distance. It can be understood up to a shorter one. If two
//! signals overlap at a receiver, one survives if the other one's sender is `capture` times as far away. A station that
//! sends hears nothing. Places are those at the beginning of a frame.
//!
//! Left out of a real radio: fading, noise, the sum of several weak signals. Signals take no time (in reality a
//! microsecond over 300 m). A receiver that follows a weak signal can turn to a stronger one that comes later (ns-2's
//! cannot).

use super::StationId;
use super::config::Radio;
use super::mobility::Point;

/// The signals at all stations.
#[derive(Clone, Debug)]
pub(super) struct Medium {
    range2: f64,
    sensing2: f64,
    capture2: f64,
    ears: Vec<Ear>,
}

/// The signals at one station.
#[derive(Clone, Debug, Default)]
struct Ear {
    sending: bool,
    signals: Vec<Signal>,
}

#[derive(Clone, Copy, Debug)]
struct Signal {
    from: StationId,
    distance2: f64,
    intact: bool,
}

/// The end of a signal at one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) by: StationId,
    /// True if the signal was near enough and nothing disturbed it.
    pub(super) understood: bool,
    /// True if the station hears no other signal.
    pub(super) last: bool,
}

impl Medium {
    pub(super) fn new(stations: usize, radio: &Radio) -> Self {
        Medium {
            range2: radio.range_m * radio.range_m,
            sensing2: radio.sensing_m * radio.sensing_m,
            capture2: radio.capture * radio.capture,
            ears: vec![Ear::default(); stations],
        }
    }

    /// A station begins to send. `first` gets the stations that heard nobody before.
    pub(super) fn begin(&mut self, from: StationId, places: &[Point], first: &mut Vec<StationId>) {
        first.clear();
        let here = places[usize::from(from)];
        for (station, ear) in self.ears.iter_mut().enumerate() {
            if station == usize::from(from) {
                ear.sending = true;
                ear.signals.iter_mut().for_each(|signal| signal.intact = false);
                continue;
            }
            let distance2 = here.distance2(places[station]);
            if distance2 > self.sensing2 {
                continue;
            }
            let mut intact = distance2 <= self.range2 && !ear.sending;
            for other in &mut ear.signals {
                intact &= other.distance2 >= self.capture2 * distance2;
                other.intact &= distance2 >= self.capture2 * other.distance2;
            }
            if ear.signals.is_empty() {
                first.push(station as StationId);
            }
            ear.signals.push(Signal { from, distance2, intact });
        }
    }

    /// A station has stopped sending. `heard` gets the stations that heard it, in order.
    pub(super) fn end(&mut self, from: StationId, heard: &mut Vec<Heard>) {
        heard.clear();
        for (station, ear) in self.ears.iter_mut().enumerate() {
            if station == usize::from(from) {
                ear.sending = false;
                continue;
            }
            let Some(at) = ear.signals.iter().position(|signal| signal.from == from) else { continue };
            let signal = ear.signals.swap_remove(at);
            let by = station as StationId;
            heard.push(Heard { by, understood: signal.intact, last: ear.signals.is_empty() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Air {
        medium: Medium,
        places: Vec<Point>,
    }

    impl Air {
        fn on_a_line(xs: &[f64]) -> Air {
            let places: Vec<Point> = xs.iter().map(|x| Point { x: *x, y: 0.0 }).collect();
            Air { medium: Medium::new(xs.len(), &Radio::default()), places }
        }

        fn begin(&mut self, from: StationId) -> Vec<StationId> {
            let mut first = Vec::new();
            self.medium.begin(from, &self.places, &mut first);
            first
        }

        /// Returns the stations that understood the signal, and those that only heard it.
        fn end(&mut self, from: StationId) -> (Vec<StationId>, Vec<StationId>) {
            let mut heard = Vec::new();
            self.medium.end(from, &mut heard);
            let [yes, no] = [true, false].map(|understood| {
                heard.iter().filter(|heard| heard.understood == understood).map(|heard| heard.by).collect()
            });
            (yes, no)
        }
    }

    #[test]
    fn near_stations_understand_and_far_ones_only_sense() {
        let mut air = Air::on_a_line(&[0.0, 240.0, 500.0, 700.0]);
        assert_eq!(air.begin(0), [1, 2]);
        assert_eq!(air.end(0), (vec![1], vec![2]));
    }

    /// Stations 0 and 2 do not sense each other. Their signals meet at 1.
    #[test]
    fn hidden_stations_collide_between_them() {
        let mut air = Air::on_a_line(&[0.0, 240.0, 480.0]);
        air.medium.sensing2 = 250.0 * 250.0;
        assert_eq!(air.begin(0), [1]);
        assert_eq!(air.begin(2), []);
        assert_eq!(air.end(0), (vec![], vec![1]));
        assert_eq!(air.end(2), (vec![], vec![1]));
    }

    #[test]
    fn much_nearer_is_captured_whoever_comes_first() {
        for order in [[0, 2], [2, 0]] {
            let mut air = Air::on_a_line(&[0.0, 100.0, 290.0]);
            for from in order {
                air.begin(from);
            }
            assert_eq!(air.end(0), (vec![1], vec![2]), "190 m are more than 1.78 times 100 m");
            assert_eq!(air.end(2), (vec![], vec![0, 1]));
        }
    }

    #[test]
    fn who_sends_hears_nothing() {
        let mut air = Air::on_a_line(&[0.0, 100.0]);
        air.begin(0);
        air.begin(1);
        assert_eq!(air.end(0), (vec![], vec![1]));
        assert_eq!(air.end(1), (vec![], vec![0]));
    }
}
