//! Configuration of an ad-hoc network. The default is common in studies of TCP over such networks: DSR, 16 stations on
//! a square kilometre, a 2 Mbit/s card (ns-2's defaults).

use std::fmt;

use paceline_wire::{Duration, Instant};

use super::StationId;
use super::mac::Timing;

/// An ad-hoc network.
#[derive(Clone, Debug, PartialEq)]
pub struct AdHocConfig {
    /// Positions of the stations over time.
    pub movement: Movement,
    /// Range and capture.
    pub radio: Radio,
    /// Timing of the medium access.
    pub timing: Timing,
    /// Number of packets that can wait in a station for the medium. Routing packets go first.
    pub queue_packets: usize,
    /// Discovery and maintenance of routes.
    pub routing: Routing,
    /// The stations where servers and clients are attached.
    pub between: (StationId, StationId),
}

/// How stations move.
#[derive(Clone, Debug, PartialEq)]
pub enum Movement {
    /// Random waypoint: a station goes straight to a place at a speed, both drawn evenly. There it rests, and goes on.
    Waypoint {
        /// Number of stations.
        stations: u8,
        /// The side of the square.
        side_m: f64,
        /// The slowest speed, metres per second. Our choice: 1 m/s. With speeds down to zero the mean speed falls for
        /// ever (Yoon, Liu, Noble, "Random Waypoint Considered Harmful", 2003).
        speed_min: f64,
        /// The highest speed.
        speed_max: f64,
        /// The longest rest. Rests are drawn evenly from zero.
        pause_max: Duration,
    },
    /// Places and times in order, for each station. It moves straight and evenly from each place to the next.
    Scripted(Vec<Vec<Place>>),
}

/// A place, and the time at which a station is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The time.
    pub at: Instant,
    /// East, in metres.
    pub x: f64,
    /// North, in metres.
    pub y: f64,
}

/// Reception: disks and capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    /// Frames can be received up to this distance.
    pub range_m: f64,
    /// The medium is sensed busy, and frames are disturbed, up to this distance.
    pub sensing_m: f64,
    /// A frame survives another one whose sender is this many times as far away from the receiver. With two-ray ground,
    /// power falls with the fourth power of the distance. So 10 dB (ns-2, CPThresh_) are a factor of 1.78.
    pub capture: f64,
}

/// Discovery and maintenance of routes (DSR, RFC 4728; values of ns-2's DSR where they differ).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// Routes that a station remembers.
    pub cached_routes: usize,
    /// Packets that wait for a route.
    pub buffered_packets: usize,
    /// The longest time that they wait.
    pub buffered_for: Duration,
    /// Time in which neighbours alone are asked (RFC 4728: NonpropRequestTimeout, 30 ms).
    pub neighbours_first: Duration,
    /// Time from the first request to everybody to the second one. It doubles each time (RequestPeriod, 500 ms).
    pub request_period: Duration,
    /// The longest such time (MaxRequestPeriod, 10 s).
    pub request_period_max: Duration,
    /// The longest delay of broadcasts and of answers from caches (BroadcastJitter, 10 ms).
    pub jitter: Duration,
    /// If true, stations that know a route answer for its end.
    pub answer_from_cache: bool,
    /// Number of times that stations with another route may salvage a packet (MAX_SALVAGE_COUNT, 15).
    pub salvages: u8,
}

/// Reasons why a network is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdHocError {
    /// Fewer than two stations, or more than 64.
    Stations,
    /// A station's script has no place, or is not in order of time.
    Script,
    /// The two ends are one station, or no stations of the network.
    Ends,
    /// There is no area, no speed or no range, or the slowest speed is above the highest.
    Numbers,
}

impl Default for AdHocConfig {
    fn default() -> Self {
        AdHocConfig {
            movement: Movement::Waypoint {
                stations: 16,
                side_m: 1_000.0,
                speed_min: 1.0,
                speed_max: 20.0,
                pause_max: Duration::from_secs(10),
            },
            radio: Radio::default(),
            timing: Timing::default(),
            queue_packets: 50,
            routing: Routing::default(),
            between: (0, 1),
        }
    }
}

impl Default for Radio {
    fn default() -> Self {
        // 10^(1/4).
        Radio { range_m: 250.0, sensing_m: 550.0, capture: 1.778_279_41 }
    }
}

impl Default for Routing {
    fn default() -> Self {
        Routing {
            cached_routes: 32,
            buffered_packets: 64,
            buffered_for: Duration::from_secs(30),
            neighbours_first: Duration::from_millis(30),
            request_period: Duration::from_millis(500),
            request_period_max: Duration::from_secs(10),
            jitter: Duration::from_millis(10),
            answer_from_cache: true,
            salvages: 15,
        }
    }
}

impl AdHocConfig {
    /// Stations that stay where they are.
    pub fn standing(places: &[(f64, f64)]) -> Self {
        let script = |(x, y): &(f64, f64)| vec![Place { at: Instant::ZERO, x: *x, y: *y }];
        AdHocConfig { movement: Movement::Scripted(places.iter().map(script).collect()), ..Self::default() }
    }

    /// The number of stations.
    pub fn stations(&self) -> usize {
        match &self.movement {
            Movement::Waypoint { stations, .. } => usize::from(*stations),
            Movement::Scripted(scripts) => scripts.len(),
        }
    }

    /// Checks whether the network is possible.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub fn check(&self) -> Result<(), AdHocError> {
        let stations = self.stations();
        if !(2..=STATIONS_MAX).contains(&stations) {
            return Err(AdHocError::Stations);
        }
        let (a, b) = self.between;
        if a == b || usize::from(a.max(b)) >= stations {
            return Err(AdHocError::Ends);
        }
        let sound = |value: f64| value.is_finite() && value > 0.0;
        let numbers = match &self.movement {
            Movement::Waypoint { side_m, speed_min, speed_max, .. } => {
                sound(*side_m) && sound(*speed_min) && sound(*speed_max) && speed_min <= speed_max
            }
            Movement::Scripted(scripts) => {
                let in_order =
                    |script: &Vec<Place>| !script.is_empty() && script.is_sorted_by(|a, b| a.at < b.at);
                if !scripts.iter().all(in_order) {
                    return Err(AdHocError::Script);
                }
                scripts.iter().flatten().all(|place| place.x.is_finite() && place.y.is_finite())
            }
        };
        let Radio { range_m, sensing_m, capture } = self.radio;
        let radio = sound(range_m) && sensing_m >= range_m && capture >= 1.0;
        if numbers && radio && self.timing.is_sound() { Ok(()) } else { Err(AdHocError::Numbers) }
    }
}

/// Our choice: four times as many as in any published experiment. Every station looks at every other one.
const STATIONS_MAX: usize = 64;

impl fmt::Display for AdHocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AdHocError::Stations => "an ad-hoc network has 2 to 64 stations",
            AdHocError::Script => "a station's places must be there, in rising order of time",
            AdHocError::Ends => "the two ends must be two stations of the network",
            AdHocError::Numbers => "area, speeds, ranges and rates must be above zero, and ranges in order",
        })
    }
}

impl std::error::Error for AdHocError {}
