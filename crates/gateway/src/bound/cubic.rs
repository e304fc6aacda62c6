//! The curve of CUBIC (RFC 9438, Section 4.2), in bytes and whole milliseconds: W(t) = C (t - K)^3 + W_max.

use paceline_wire::Duration;

/// Segment size in which RFC 9438 counts, in bytes.
pub(super) const SEGMENT: u64 = 1_500;
/// Growth of W_est in a round trip: alpha = 3 (1 - beta) / (1 + beta) segments with beta = 0.7 (Section 4.3).
pub(super) const W_EST_STEP: u64 = SEGMENT * 53 / 100;
/// The largest time from K, in milliseconds: beyond it the cube overflows, and no connection goes that long without a
/// loss.
const DAY_MS: i64 = 86_400_000;

/// Returns the window after a reduction from `w_max` bytes, with beta = 0.7.
pub(super) fn reduced(w_max: u64) -> u64 {
    w_max / 10 * 7
}

/// Returns W_max after a loss with `window`; `last` is the previous W_max. Fast convergence (Section 4.7): a flow that
/// has lost ground gives way a little more, so that shares become even.
pub(super) fn w_max(window: u64, last: u64) -> u64 {
    if window < last { window / 20 * 17 } else { window }
}

/// K = cbrt((W_max - cwnd) / C) with C = 0.4 segments per cubed second: the time to `w_max` from `missing` bytes below.
pub(super) fn k(missing: u64) -> Duration {
    Duration::from_millis(cube_root((missing / SEGMENT).saturating_mul(2_500_000_000)))
}

/// The window in bytes at `t` after the reduction; zero where the curve is negative.
pub(super) fn window(w_max: u64, k: Duration, t: Duration) -> u64 {
    let d = (t.as_millis() as i64).saturating_sub(k.as_millis() as i64).clamp(-DAY_MS, DAY_MS);
    let cubic = i128::from(w_max) + i128::from(d).pow(3) * 4 * i128::from(SEGMENT) / 10_000_000_000;
    u64::try_from(cubic.max(0)).unwrap_or(u64::MAX)
}

/// W_est of Section 4.3, at `t` after a reduction to `reduced`: where round trips are short, Reno is back sooner.
pub(super) fn w_est(reduced: u64, t: Duration, rtt: Duration) -> u64 {
    let rounds = t.as_nanos() / rtt.as_nanos().max(1);
    reduced.saturating_add(rounds.saturating_mul(W_EST_STEP))
}

/// The largest integer whose cube is at most `x`.
fn cube_root(x: u64) -> u64 {
    let (mut low, mut high) = (0u64, 2_642_245);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle * middle * middle <= x { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_exact() {
        for x in [0, 1, 7, 8, 26, 27, 999_999_999, 1_000_000_000, u64::MAX] {
            let root = cube_root(x);
            assert!(u128::from(root).pow(3) <= u128::from(x));
            assert!(u128::from(root + 1).pow(3) > u128::from(x));
        }
    }

    #[test]
    fn the_curve_begins_at_the_reduced_window_and_is_back_after_k() {
        let w_max = 300_000;
        let k = k(w_max - reduced(w_max));
        // cbrt(60 segments / 0.4) = 5.313 s.
        assert_eq!(k, Duration::from_millis(5_313));
        assert!(window(w_max, k, Duration::ZERO).abs_diff(reduced(w_max)) < SEGMENT);
        assert_eq!(window(w_max, k, k), w_max);
        assert!(window(w_max, k, k * 2).abs_diff(w_max + w_max - reduced(w_max)) < SEGMENT);
    }
}
