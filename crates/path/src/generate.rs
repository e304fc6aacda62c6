//! Synthetic traces of a phone in a moving car or train, with the wanted mean and variation.
//!
//! The model is our choice and has four layers. The doubly stochastic idea is that of Sprout (Winstein et al., NSDI
//! 2013), whose rate is a random walk with sticky outages.
//! 1. The logarithm of the rate is a first-order autoregressive process with normal steps of 100 ms. It is normalised
//!    over the trace. Its spread is computed so that the trace itself, and not only its expectation, has the wanted
//!    mean and variation.
//! 2. The times between hand-overs are exponentially distributed. Each hand-over stops the link for a pause, whose
//!    logarithm is uniform between two bounds. In recorded traces many pauses are short and few are long.
//! 3. With a second technology, hand-overs alternate between the two. The rate of one is a share of the other's.
//! 4. The base station serves this user in a random share of its scheduling intervals. It then delivers all data that
//!    is due. This gives the bursts of recorded traces within a few milliseconds.
//!
//! The defaults are close to recordings; see each model.

use alloc::vec::Vec;

use paceline_wire::{Duration, Rate};

use crate::error::ConfigError;
use crate::random::{Probability, Random};
use crate::trace::{NANOS_PER_MS, Trace, Work, close_period};

/// A synthetic trace: the same values always give the same trace.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(from = "ModelText")]
pub struct TraceModel {
    /// Mean rate over the whole trace.
    pub mean: Rate,
    /// Standard deviation of the rate over windows of 100 ms, divided by the mean.
    pub variation: f64,
    /// Time after which the trace repeats, in whole tenths of a second.
    pub duration: Duration,
    /// Selects one of the traces of this model.
    pub seed: u64,
    /// Time after which the autocorrelation of the rate's logarithm has fallen to 1/e.
    pub correlation: Duration,
    /// The scheduling interval of the base station in milliseconds.
    pub interval_ms: u32,
    /// Share of the intervals in which this user is served.
    pub served: Probability,
    /// Hand-overs between cells.
    pub handover: Option<Handover>,
}

/// Hand-overs between cells.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Handover {
    /// Mean time between two hand-overs.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub every: Duration,
    /// The shortest pause.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub pause_min: Duration,
    /// The longest pause.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub pause_max: Duration,
    /// Rate of every other cell relative to the first one, for another technology. The same rate if absent.
    #[serde(default = "all")]
    pub other_cell: Probability,
}

fn all() -> Probability {
    Probability::ONE
}

/// Step of the rate process, and the windows over which the variation is that asked for.
const STEP_MS: usize = 100;

/// A larger spread would give a single spike in an otherwise empty trace.
const SPREAD_MAX: f64 = 6.0;

impl TraceModel {
    /// 3G on the move: 3 Mbit/s. Recordings of UMTS and HSDPA in cars, buses and trains have means of 1.6 to 2.5
    /// Mbit/s. Their variations are 50 to 83 %, and their correlation times 7 to 55 s. Pauses above 100 ms occur every
    /// 4 s, a third of them above 500 ms.
    pub fn hspa() -> Self {
        TraceModel {
            mean: Rate::from_bits_per_sec(3_000_000),
            variation: 0.6,
            duration: Duration::from_secs(120),
            seed: 1,
            correlation: Duration::from_secs(7),
            interval_ms: 2,
            served: Probability::from_ppm(250_000),
            handover: Some(Handover {
                every: Duration::from_secs(5),
                pause_min: Duration::from_millis(100),
                pause_max: Duration::from_millis(2_000),
                other_cell: Probability::ONE,
            }),
        }
    }

    /// LTE in a car: 8 Mbit/s. Recordings of LTE on the move have means of 5 to 17 Mbit/s and variations of 60 to 78 %.
    /// Their correlation times are 2 to 20 s. Pauses above 100 ms occur every 4 to 6 s, at most a quarter of them above
    /// 500 ms.
    pub fn lte_driving() -> Self {
        TraceModel {
            mean: Rate::from_bits_per_sec(8_000_000),
            variation: 0.7,
            correlation: Duration::from_secs(5),
            interval_ms: 1,
            served: Probability::from_ppm(400_000),
            handover: Some(Handover {
                every: Duration::from_secs(5),
                pause_min: Duration::from_millis(50),
                pause_max: Duration::from_millis(1_000),
                other_cell: Probability::ONE,
            }),
            ..TraceModel::hspa()
        }
    }

    /// 5G with hand-overs to 4G and back: 300 Mbit/s. A recorded walk changes technology every 27 s. The rates are 523
    /// and 159 Mbit/s. Recorded drives and walks have variations of 40 to 170 %.
    pub fn five_g() -> Self {
        TraceModel {
            mean: Rate::from_bits_per_sec(300_000_000),
            variation: 0.8,
            correlation: Duration::from_secs(10),
            interval_ms: 1,
            served: Probability::from_ppm(800_000),
            handover: Some(Handover {
                every: Duration::from_secs(20),
                pause_min: Duration::from_millis(30),
                pause_max: Duration::from_millis(300),
                other_cell: Probability::from_ppm(300_000),
            }),
            ..TraceModel::hspa()
        }
    }

    /// Generates the trace.
    pub fn generate(&self) -> Result<Trace, ConfigError> {
        self.check()?;
        let steps = (self.duration.as_nanos() / NANOS_PER_MS) as usize / STEP_MS;
        let cells = self.cells(steps * STEP_MS);
        let levels = self.levels(&cells, steps)?;
        let mut random = Random::named(self.seed, "trace schedule");
        let (mut counts, mut work, mut due) = (Vec::new(), Work::default(), 0u32);
        for (ms, cell) in cells.iter().enumerate() {
            due += work.add(Rate::from_bytes_per_sec((cell * levels[ms / STEP_MS]) as u64), NANOS_PER_MS);
            let scheduled = (ms as u32).is_multiple_of(self.interval_ms) && random.chance(self.served);
            if due > 0 && scheduled && *cell > 0.0 {
                counts.push((ms as u32 + 1, core::mem::take(&mut due)));
            }
        }
        let end_ms = cells.len() as u32;
        if due > 0 {
            counts.push((end_ms, due));
        }
        close_period(&mut counts, end_ms);
        // Counts are in order and not empty. The checks of duration and mean bound their sum.
        Trace::from_counts(counts).map_err(|_| ConfigError::TraceMean)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let ordered = |handover: Handover| {
            let pause_above_zero = !handover.pause_min.is_zero() && handover.pause_min <= handover.pause_max;
            !handover.every.is_zero() && pause_above_zero
        };
        if !(Duration::from_secs(10)..=Duration::from_secs(3_600)).contains(&self.duration) {
            Err(ConfigError::TraceDuration)
        } else if !(1_250..=1_250_000_000).contains(&self.mean.as_bytes_per_sec()) {
            Err(ConfigError::TraceMean)
        } else if self.interval_ms == 0 || self.served.is_zero() || self.correlation.is_zero() {
            Err(ConfigError::TraceSchedule)
        } else if !self.handover.is_none_or(ordered) {
            Err(ConfigError::TraceHandover)
        } else {
            Ok(())
        }
    }

    /// Rate of the serving cell in each millisecond, relative to the first cell; 0 during a hand-over.
    fn cells(&self, millis: usize) -> Vec<f64> {
        let mut cells = Vec::with_capacity(millis);
        let Some(handover) = self.handover else {
            cells.resize(millis, 1.0);
            return cells;
        };
        let mut random = Random::named(self.seed, "trace hand-over");
        let mut shares = [1.0, handover.other_cell.as_fraction()].into_iter().cycle();
        while cells.len() < millis {
            let stay = random.exponential(handover.every).as_millis() as usize;
            let pause = handover.pause(&mut random).as_millis() as usize;
            let (share, from) = (shares.next().unwrap_or(1.0), cells.len());
            cells.resize((from + stay).min(millis), share);
            cells.resize((from + stay + pause).min(millis), 0.0);
        }
        cells
    }

    /// Bytes per second of the first cell in each step.
    fn levels(&self, cells: &[f64], steps: usize) -> Result<Vec<f64>, ConfigError> {
        let carried: Vec<f64> =
            cells.chunks(STEP_MS).map(|cells| cells.iter().sum::<f64>() / STEP_MS as f64).collect();
        let logs = self.normalised_logs(steps);
        let rates =
            |spread: f64| carried.iter().zip(&logs).map(move |(share, log)| share * libm::exp(spread * log));
        let variation_at = |spread| mean_and_variation(rates(spread)).1;
        let (lowest, highest) = (variation_at(0.0), variation_at(SPREAD_MAX));
        if !(lowest..=highest).contains(&self.variation) {
            return Err(ConfigError::TraceVariation { wanted: self.variation, lowest, highest });
        }
        let (mut low, mut high) = (0.0, SPREAD_MAX);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if variation_at(middle) < self.variation { low = middle } else { high = middle }
        }
        let scale = self.mean.as_bytes_per_sec() as f64 / mean_and_variation(rates(low)).0;
        Ok(logs.iter().map(|log| scale * libm::exp(low * log)).collect())
    }

    /// A first-order autoregressive process. Its mean over these steps is exactly 0, and its variance exactly 1.
    fn normalised_logs(&self, steps: usize) -> Vec<f64> {
        let mut random = Random::named(self.seed, "trace rate");
        let step_s = STEP_MS as f64 / 1_000.0;
        let memory = libm::exp(-step_s / self.correlation.as_secs_f64());
        let news = libm::sqrt(1.0 - memory * memory);
        let mut log = random.normal();
        let logs: Vec<f64> = (0..steps)
            .map(|_| {
                log = memory * log + news * random.normal();
                log
            })
            .collect();
        let n = steps as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let deviation = libm::sqrt(logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / n);
        logs.into_iter().map(|log| (log - mean) / deviation).collect()
    }
}

impl Handover {
    fn pause(&self, random: &mut Random) -> Duration {
        let (min, max) = (self.pause_min.as_secs_f64(), self.pause_max.as_secs_f64());
        Duration::from_secs_f64(min * libm::pow(max / min, random.unit()))
    }
}

fn mean_and_variation(rates: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = rates.clone().count() as f64;
    let mean = rates.clone().sum::<f64>() / n;
    let variance = rates.map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / n;
    (mean, libm::sqrt(variance) / mean)
}

/// A model as written in a scenario file: a name, and changes to its defaults.
#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ModelText {
    model: ModelName,
    #[serde(default)]
    mean: Option<text::AsRate>,
    #[serde(default)]
    variation: Option<text::AsShare>,
    #[serde(default)]
    duration: Option<text::AsDuration>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    correlation: Option<text::AsDuration>,
    #[serde(default)]
    interval_ms: Option<u32>,
    #[serde(default)]
    served: Option<Probability>,
    #[serde(default)]
    handover: Option<Handover>,
}

/// A model by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelName {
    /// [`TraceModel::hspa`].
    Hspa,
    /// [`TraceModel::lte_driving`].
    LteDriving,
    /// [`TraceModel::five_g`].
    #[serde(rename = "5g")]
    FiveG,
}

impl From<ModelName> for TraceModel {
    fn from(name: ModelName) -> Self {
        match name {
            ModelName::Hspa => TraceModel::hspa(),
            ModelName::LteDriving => TraceModel::lte_driving(),
            ModelName::FiveG => TraceModel::five_g(),
        }
    }
}

impl From<ModelText> for TraceModel {
    fn from(text: ModelText) -> Self {
        let default = TraceModel::from(text.model);
        TraceModel {
            mean: text.mean.map_or(default.mean, |mean| mean.0),
            variation: text.variation.map_or(default.variation, |variation| variation.0),
            duration: text.duration.map_or(default.duration, |duration| duration.0),
            seed: text.seed.unwrap_or(default.seed),
            correlation: text.correlation.map_or(default.correlation, |correlation| correlation.0),
            interval_ms: text.interval_ms.unwrap_or(default.interval_ms),
            served: text.served.unwrap_or(default.served),
            handover: text.handover.or(default.handover),
        }
    }
}

mod text {
    use paceline_wire::{Duration, Rate};

    use crate::units::de;

    #[derive(serde::Deserialize)]
    #[serde(transparent)]
    pub(super) struct AsRate(#[serde(deserialize_with = "de::rate")] pub(super) Rate);

    #[derive(serde::Deserialize)]
    #[serde(transparent)]
    pub(super) struct AsShare(#[serde(deserialize_with = "de::share")] pub(super) f64);

    #[derive(serde::Deserialize)]
    #[serde(transparent)]
    pub(super) struct AsDuration(#[serde(deserialize_with = "de::duration")] pub(super) Duration);
}

#[cfg(test)]
mod tests;
