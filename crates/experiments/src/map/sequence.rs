//! Points that cover every dimension evenly, for any number of points.
//!
//! Each dimension is the van der Corput sequence with Owen's scrambling. The order of its points is scrambled in the
//! same way, so that dimensions do not depend on each other. (Burley, Practical Hash-based Owen Scrambling, JCGT 2020,
//! section 5.) In each dimension any aligned 2^k points have one in each of 2^k equal parts. This is like a Latin
//! hypercube, but needs no number of points in advance. All arithmetic is in integers: a point depends only on seed,
//! index and name of the dimension.

/// The coordinate of point `index` in the dimension `name`, from 0 to below 1.
pub(super) fn coordinate(seed: u64, name: &str, index: u32) -> f64 {
    let dimension = mix(seed ^ mix(fnv1a(name)));
    let place = scramble(index, dimension);
    let digits = scramble(place.reverse_bits(), mix(dimension));
    f64::from(digits) / 2f64.powi(32)
}

/// Flips each bit depending on the bits above it. Intervals of halves, quarters and so on change places, but stay
/// whole.
fn scramble(value: u32, seed: u64) -> u32 {
    let flip = |bit: u32| {
        let above = u64::from(value) >> (bit + 1);
        // The leading 1 tells 01 from 001.
        let node = above | (1 << (31 - bit));
        ((mix(seed ^ mix(node)) & 1) as u32) << bit
    };
    (0..32).fold(value, |flipped, bit| flipped ^ flip(bit))
}

/// A whole number below `bound`, for values that are no dimension, such as seeds of traces.
pub(super) fn below(seed: u64, name: &str, index: u32, bound: u64) -> u64 {
    mix(mix(seed ^ fnv1a(name)) ^ u64::from(index)) % bound.max(1)
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fnv1a(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(seed: u64, name: &str, indices: std::ops::Range<u32>, parts: usize) -> Vec<u32> {
        let mut counts = vec![0; parts];
        for index in indices {
            counts[(coordinate(seed, name, index) * parts as f64) as usize] += 1;
        }
        counts
    }

    #[test]
    fn each_dimension_is_covered_evenly() {
        for (seed, name) in [(1, "a"), (2, "a"), (1, "b"), (77, "radio rate")] {
            for (from, to) in [(0, 64), (64, 128), (192, 256)] {
                assert_eq!(counts(seed, name, from..to, 64), [1; 64], "{seed} {name} {from}");
            }
            // Other numbers of points are even, too, within the logarithm of the number.
            for count in [37, 100, 1000] {
                let even = f64::from(count) / 10.0;
                let found = counts(seed, name, 0..count, 10);
                assert!(found.iter().all(|n| (f64::from(*n) - even).abs() <= 4.0), "{found:?} {even}");
            }
        }
    }

    #[test]
    fn dimensions_do_not_depend_on_each_other() {
        let mut cells = [[0u32; 4]; 4];
        for index in 0..4096 {
            let at = |name| (coordinate(5, name, index) * 4.0) as usize;
            cells[at("x")][at("y")] += 1;
        }
        assert!(cells.iter().flatten().all(|n| (200..312).contains(n)), "{cells:?}");
    }

    #[test]
    fn other_seeds_are_other_points_and_the_same_seed_the_same() {
        let row = |seed| (0..8).map(|index| coordinate(seed, "x", index)).collect::<Vec<f64>>();
        assert_eq!(row(1), row(1));
        assert_ne!(row(1), row(2));
        assert_eq!((below(3, "t", 9, 10_000), below(3, "t", 9, 1)), (below(3, "t", 9, 10_000), 0));
        // The value is the same on every machine.
        assert_eq!(format!("{:.9} {:.9}", coordinate(1, "x", 0), coordinate(1, "x", 1)), PINNED);
    }

    const PINNED: &str = "0.853454189 0.050642702";
}
