//! Standard loss recovery: RFC 6675, which halves at once. Theorems 1 and 6.

use super::episode::{Episode, Recovery, scaled_up};

/// Theorem 1, Eq. (5): either the lost packets or half of the window limit the packets sent before the first ACK.
pub fn theorem_1(episode: &Episode) -> Recovery {
    let half = half_packets(episode);
    episode.rounds(1, episode.n_packets().min(half))
}

/// Theorem 6, Eq. (13): with opportunistic retransmission half of the window remains as the limit.
pub fn theorem_6(episode: &Episode) -> Recovery {
    episode.rounds(1, half_packets(episode))
}

fn half_packets(episode: &Episode) -> u32 {
    scaled_up(0.5, episode.aw_packets())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cases_of_eq_5() {
        let idle_s = |n| theorem_1(&Episode::new(1_000.0, 0.2, 181, n, 0.5).unwrap()).i_min_s;
        assert!((idle_s(30) - (0.2 - 0.029)).abs() < 1e-12);
        assert!((idle_s(91) - (0.2 - 0.090)).abs() < 1e-12);
        assert!((idle_s(150) - (0.2 - 0.090)).abs() < 1e-12);
    }

    #[test]
    fn eq_13_does_not_depend_on_the_burst() {
        let idle_s = |n| theorem_6(&Episode::new(1_000.0, 0.2, 181, n, 0.5).unwrap()).i_min_s;
        assert_eq!(idle_s(1), idle_s(150));
        let short = Episode::new(1_000.0, 0.05, 181, 1, 0.5).unwrap();
        assert_eq!(theorem_6(&short).i_min_s, 0.0);
    }
}
