//! 200 points of the map, in short: what must hold at each of them, whatever is drawn.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::process::Command;

/// A row of the table: a point with one profile.
type Row = HashMap<String, String>;

/// Kinds and their points: 200 together.
const POINTS: [(&str, u32); 4] = [("path", 100), ("mixed", 35), ("mixed-down", 30), ("clients", 35)];
/// Storms: more than that times what is kept is sent into the radio,
const SENT_OF_KEPT: f64 = 1.1;
/// and so many packets more: what one buffer drops when slow start ends.
const SENT_MORE: f64 = 100.0;
/// Points of each mode with a storm, of all kinds together. None is wanted.
const STORMS: [(&str, usize); 3] = [("full", 0), ("auto", 0), ("split", 0)];
/// Points whose throughput is below 0.9 of that without gateway. Of runs this short many are so by chance.
const BELOW: [(&str, usize); 3] = [("full", 0), ("auto", 0), ("split", 0)];

fn rows(kind: &str, count: u32, folder: &std::path::Path) -> Vec<Row> {
    let output = Command::new(env!("CARGO_BIN_EXE_paceline"))
        .args([
            "map",
            "--kind",
            kind,
            "--count",
            &count.to_string(),
            "--duration",
            "4s",
            "--rate-max",
            "8mbit",
        ])
        .args(["--recheck", "0", "--json", "--out"])
        .arg(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut table = csv::Reader::from_path(folder.join(format!("{kind}.csv"))).unwrap();
    table.deserialize().map(|row| row.unwrap()).collect()
}

fn number(row: &Row, name: &str) -> f64 {
    row[name].parse().unwrap_or_else(|_| panic!("{name} of {row:?}"))
}

fn is_storm(row: &Row) -> bool {
    number(row, "sent") > SENT_OF_KEPT * (number(row, "delivered") + number(row, "losses")) + SENT_MORE
}

#[test]
fn two_hundred_points() {
    let folder = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    for (kind, count) in POINTS {
        let rows = rows(kind, count, folder.path());
        assert_eq!(rows.len(), 4 * count as usize, "{kind}");
        for point in rows.chunks(4) {
            let off = &point[0];
            assert_eq!(off["profile"], "off");
            for row in &point[1..] {
                let name = format!("{kind} {} {}", row["point"], row["profile"]);
                assert!(number(row, "bytes") > 0.0, "{name}: nothing came");
                assert!(number(row, "silent") <= number(off, "silent"), "{name}: a flow got nothing");
                found.push((name, row["profile"].clone(), is_storm(row), number(row, "ratio")));
            }
        }
    }
    let mut too_many = Vec::new();
    for ((mode, storms), (_, below)) in STORMS.iter().zip(&BELOW) {
        let of_mode = || found.iter().filter(|(_, profile, _, _)| profile == mode);
        let stormy: Vec<&str> = of_mode().filter(|row| row.2).map(|row| row.0.as_str()).collect();
        let slow: Vec<&str> = of_mode().filter(|row| row.3 < 0.9).map(|row| row.0.as_str()).collect();
        println!("{mode}: {} storms {stormy:?}\n{} below 0.9 {slow:?}", stormy.len(), slow.len());
        too_many.extend((stormy.len() > *storms).then_some((mode, stormy)));
        too_many.extend((slow.len() > *below).then_some((mode, slow)));
    }
    assert!(too_many.is_empty(), "{too_many:?}");
}
