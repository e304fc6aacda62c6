//! The reader agrees with rmp-serde, and resists hostile bytes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Unit,
    New(u16),
    Pair(i8, String),
    Named { a: Option<u64>, b: [f64; 2] },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Nothing;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Whole {
    kinds: Vec<Kind>,
    map: BTreeMap<u32, Option<i64>>,
    addresses: (IpAddr, SocketAddr),
    nothing: (Nothing, ()),
    small: (bool, char, f32, i32),
    bytes: serde_bytes::ByteBuf,
    #[serde(default)]
    absent: u8,
}

fn whole() -> Whole {
    Whole {
        kinds: vec![
            Kind::Unit,
            Kind::New(60_000),
            Kind::Pair(-100, "text".repeat(100)),
            Kind::Named { a: None, b: [0.1, -1e300] },
            Kind::Named { a: Some(u64::MAX), b: [0.0; 2] },
        ],
        map: [(0, None), (70_000, Some(i64::MIN)), (u32::MAX, Some(3))].into(),
        addresses: (IpAddr::from([10, 0, 0, 1]), SocketAddr::from(([7; 16], 443))),
        nothing: (Nothing, ()),
        small: (true, 'x', 0.5, -70_000),
        bytes: vec![7; 300].into(),
        absent: 0,
    }
}

#[test]
fn what_rmp_serde_writes_with_names_is_read() {
    let written = rmp_serde::to_vec_named(&whole()).unwrap();
    assert_eq!(from_slice::<Whole>(&written).unwrap(), whole());
}

#[test]
fn unknown_fields_are_passed_and_absent_ones_have_their_default() {
    #[derive(Deserialize)]
    struct Newer {
        #[serde(default)]
        added: u8,
        bytes: serde_bytes::ByteBuf,
    }
    let written = rmp_serde::to_vec_named(&whole()).unwrap();
    let newer: Newer = from_slice(&written).unwrap();
    assert_eq!((newer.added, newer.bytes), (0, whole().bytes));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Part {
    kinds: Vec<Kind>,
    nothing: (Nothing, ()),
    small: (bool, char, f32, i32),
    bytes: serde_bytes::ByteBuf,
    map: BTreeMap<String, Option<i64>>,
    #[serde(default)]
    absent: u8,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    addresses: (IpAddr, SocketAddr),
    #[serde(flatten)]
    part: Part,
}

#[test]
fn a_part_that_is_written_flat_is_read() {
    let Whole { kinds, addresses, nothing, small, bytes, absent, .. } = whole();
    let map = [("a".to_owned(), None), ("b".to_owned(), Some(i64::MIN))].into();
    let flat = Flat { addresses, part: Part { kinds, nothing, small, bytes, map, absent } };
    let written = rmp_serde::to_vec_named(&flat).unwrap();
    assert_eq!(from_slice::<Flat>(&written).unwrap(), flat);
}

/// A list in a list in a list, and so on: without a limit it would exhaust the stack.
#[test]
fn what_is_kept_for_parts_is_not_as_deep_as_somebody_likes() {
    let mut written = vec![0x81, 0xa1, b'x'];
    written.resize(1 << 20, 0x91);
    assert!(from_slice::<Flat>(&written).is_err());
}

#[test]
fn cut_bytes_are_an_error_and_changed_ones_what_rmp_serde_reads() {
    let written = rmp_serde::to_vec_named(&whole()).unwrap();
    for len in 0..written.len() {
        assert!(from_slice::<Whole>(&written[..len]).is_err());
    }
    for at in 0..written.len() {
        for value in [0, 0x90, 0xc0, 0xc1, 0xd9, 0xdd, 0xdf, 0xff] {
            let mut changed = written.clone();
            changed[at] = value;
            let read = (from_slice::<Whole>(&changed), rmp_serde::from_slice::<Whole>(&changed));
            if let (Ok(ours), Ok(theirs)) = read {
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            }
        }
    }
}
