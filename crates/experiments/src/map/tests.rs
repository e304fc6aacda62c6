//! Tests of the draws.

use super::point::{Kind, PROFILES, Plan, Point, draw};
use super::work::scenario;
use crate::run::sim;

fn points(kind: Kind, seed: u64, count: u32) -> Vec<Point> {
    let plan = Plan { kind, seed, duration: None, rate_max: f64::INFINITY };
    (0..count).map(|index| draw(plan, index)).collect()
}

#[test]
fn every_point_is_a_scenario_that_the_simulator_can_run() {
    for kind in Kind::ALL {
        for point in points(kind, 1, 500) {
            let file = scenario(&point).unwrap_or_else(|error| panic!("{error}\n{}", point.text));
            let names: Vec<&str> = file.variants.iter().map(|variant| variant.name.as_str()).collect();
            assert_eq!(names, PROFILES);
            // The simulator's checks do not depend on the profile.
            sim::check(&file.variants[1], &file.folder)
                .unwrap_or_else(|error| panic!("{error}\n{}", point.text));
        }
    }
}

#[test]
fn a_point_depends_on_seed_and_index_only() {
    for kind in Kind::ALL {
        let (some, more) = (points(kind, 7, 10), points(kind, 7, 50));
        assert!(some.iter().zip(&more).all(|(a, b)| a.text == b.text && a.columns == b.columns));
        assert!(some.iter().zip(&points(kind, 8, 10)).all(|(a, b)| a.text != b.text));
    }
}

#[test]
fn every_dimension_is_covered() {
    for kind in Kind::ALL {
        let points = points(kind, 3, 512);
        let names: Vec<&String> = points[0].columns.iter().map(|(name, _)| name).collect();
        for (place, name) in names.iter().enumerate() {
            let values: Vec<&str> = points
                .iter()
                .map(|point| {
                    assert_eq!(&point.columns[place].0, *name);
                    point.columns[place].1.as_str()
                })
                .collect();
            let mut different = values.clone();
            different.sort_unstable();
            different.dedup();
            let with = values.iter().filter(|value| !value.is_empty()).count();
            assert!(different.len() > 1 && with >= 8, "{} {name}: {different:?}", kind.name());
        }
        let rates: Vec<f64> = points.iter().map(|point| point.radio_mbps).collect();
        let slow = rates.iter().filter(|mbps| **mbps < 80f64.sqrt()).count();
        assert!((200..=260).contains(&slow), "{slow}");
    }
}

#[test]
fn most_points_have_few_impairments() {
    let impairments = |point: &Point| {
        let places = ["wired ", "wired up ", "radio ", "radio up "];
        let names = [
            "loss", "bursts", "reorder", "jitter", "loose jitter", "duplicates", "lost ACKs", "outage",
            "policer", "codel", "fq-codel", "pie", "red",
        ];
        let is = |name: &str| {
            places.iter().any(|place| name.strip_prefix(place).is_some_and(|rest| names.contains(&rest)))
        };
        point.columns.iter().filter(|(name, value)| is(name) && !value.is_empty()).count()
    };
    let counts: Vec<usize> = points(Kind::Path, 1, 1000).iter().map(impairments).collect();
    let mean = counts.iter().sum::<usize>() as f64 / 1000.0;
    let none = counts.iter().filter(|count| **count == 0).count();
    assert!((1.0..1.6).contains(&mean) && (180..400).contains(&none), "{mean} {none}");
}
