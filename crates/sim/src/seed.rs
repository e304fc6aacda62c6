//! One seed per purpose.

use paceline_path::random::Random;

/// Returns the seed for `name` within `seed`. Names are independent. So a new flow does not change the losses of
/// another one.
pub fn seed_of(seed: u64, name: &str) -> u64 {
    Random::named(seed, name).below(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_by_name_and_by_seed() {
        assert_eq!(seed_of(1, "radio_down"), seed_of(1, "radio_down"));
        assert_ne!(seed_of(1, "radio_down"), seed_of(1, "radio_up"));
        assert_ne!(seed_of(1, "radio_down"), seed_of(2, "radio_down"));
    }
}
