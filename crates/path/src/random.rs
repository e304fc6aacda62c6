//! Repeatable random choices. Every purpose has its own generator, named within one seed.

use core::fmt;

use paceline_wire::Duration;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// A generator for one purpose.
///
/// It is ChaCha with 8 rounds. The seed is the key and the name selects the stream. So generators of one seed are
/// independent, and a further one does not change the others.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// Returns the generator called `name` within `seed`.
    pub fn named(seed: u64, name: &str) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(fnv1a(name.as_bytes()));
        Random(rng)
    }

    /// Returns an integer below `bound`; zero for a bound of zero.
    ///
    /// It is the product of a 64-bit draw and the bound, without rejection. The bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with the given probability. Takes one draw, whatever the probability.
    pub fn chance(&mut self, probability: Probability) -> bool {
        self.below(Probability::ONE_PPB) < u64::from(probability.as_ppb())
    }

    /// Returns a duration between zero and `longest`, both included.
    pub fn duration_up_to(&mut self, longest: Duration) -> Duration {
        Duration::from_nanos(self.below(longest.as_nanos().saturating_add(1)))
    }

    /// Returns a number above 0 and at most 1, with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns a normal deviate with mean 0 and variance 1 (Box-Muller; the second deviate is discarded).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        radius * libm::cos(2.0 * core::f64::consts::PI * self.unit())
    }

    /// Returns an exponentially distributed waiting time with the given mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        Duration::from_secs_f64(-libm::log(self.unit()) * mean.as_secs_f64())
    }
}

/// A probability in parts per billion. It is an integer, so that comparisons repeat on every machine.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u32);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);
    /// Always.
    pub const ONE: Probability = Probability(Self::ONE_PPB as u32);

    const ONE_PPB: u64 = 1_000_000_000;

    /// `ppb` parts per billion, limited to one.
    pub const fn from_ppb(ppb: u64) -> Self {
        Probability(if ppb > Self::ONE_PPB { Self::ONE_PPB } else { ppb } as u32)
    }

    /// `ppm` parts per million, limited to one. 6,000 ppm are 0.6 %.
    pub const fn from_ppm(ppm: u64) -> Self {
        Self::from_ppb(ppm.saturating_mul(1_000))
    }

    /// A fraction between 0 and 1, to the nearest part per billion.
    pub fn from_fraction(fraction: f64) -> Self {
        Self::from_ppb((fraction * 1e9 + 0.5) as u64)
    }

    /// Parts per billion.
    pub const fn as_ppb(self) -> u32 {
        self.0
    }

    /// A fraction between 0 and 1, for output only.
    pub fn as_fraction(self) -> f64 {
        f64::from(self.0) / 1e9
    }

    /// True for an event that never happens.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 1e7)
    }
}

/// FNV-1a, 64 bits. It is short, fixed, and good enough to tell a few names apart.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_within_a_seed_always_gives_the_same_numbers() {
        // Fixed values, because a change of algorithm would silently change every published run.
        let draws = |seed, name| {
            let mut random = Random::named(seed, name);
            [random.below(1_000_000), random.below(1_000_000), random.below(1_000_000)]
        };
        assert_eq!(draws(1, "loss"), draws(1, "loss"));
        assert_ne!(draws(1, "loss"), draws(1, "jitter"));
        assert_ne!(draws(1, "loss"), draws(2, "loss"));
        assert_eq!(draws(1, "loss"), [229_483, 45_276, 804_998]);
    }

    #[test]
    fn chance_meets_its_probability() {
        let mut random = Random::named(7, "test");
        let hits = (0..100_000).filter(|_| random.chance(Probability::from_ppm(6_000))).count();
        assert!((540..660).contains(&hits), "{hits} of 100,000 at 0.6 %");
        assert!((0..1_000).all(|_| random.chance(Probability::ONE)));
        assert!(!(0..1_000).any(|_| random.chance(Probability::ZERO)));
    }

    #[test]
    fn deviates_have_the_stated_moments() {
        let mut random = Random::named(7, "test");
        let n = 50_000;
        let (sum, squares) = (0..n).map(|_| random.normal()).fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        let mean = sum / f64::from(n);
        assert!(mean.abs() < 0.02 && (squares / f64::from(n) - 1.0).abs() < 0.03);
        let waits: f64 = (0..n).map(|_| random.exponential(Duration::from_secs(4)).as_secs_f64()).sum();
        assert!((waits / f64::from(n) - 4.0).abs() < 0.1);
    }

    #[test]
    fn spans_stay_within_their_bound() {
        let mut random = Random::named(7, "test");
        assert!((0..100).all(|_| random.duration_up_to(Duration::ZERO).is_zero()));
        assert!(
            (0..1_000).all(|_| random.duration_up_to(Duration::from_nanos(3)) <= Duration::from_nanos(3))
        );
        assert_eq!(random.below(0), 0);
    }
}
