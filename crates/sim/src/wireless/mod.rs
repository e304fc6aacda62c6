//! Wireless paths by name, on which studies of TCP compare algorithms, and a measurement of flows over them.
//!
//! ```
//! use paceline_sim::wireless::{Measurement, WirelessPath, measure};
//! use paceline_tcp::Config;
//! use paceline_wire::Duration;
//!
//! let path = WirelessPath::named("hops", 0.05).expect("a known path");
//! let times = Measurement { seed: 1, warm_up: Duration::from_secs(5), duration: Duration::from_secs(15) };
//! let flows = measure(&path, &Config::default(), times)?;
//! assert!(flows[0].goodput_mbps > 0.1 && flows[0].reordering.share() > 0.01);
//! # Ok::<(), paceline_sim::ScenarioError>(())
//! ```

mod measure;
mod path;

pub use measure::{FlowMeasure, Measurement, measure, measure_watched};
pub use path::{AdHocPath, Dumbbell, LastHop, VaryingDelay, WirelessHops, WirelessPath};
