//! Remembers SYNs that passed unedited because the table was full or a rule said so.
//!
//! A client repeats its SYN if the answer is late, and the receiver may have the first one. If the gateway then edited
//! or split the flow, the receiver would go on with the client's own window scale and options. The gateway would use
//! others. So a flow that began unedited stays unedited.

use alloc::vec::Vec;

use paceline_wire::{Duration, FlowKey, Instant, Seq};

use crate::keyed::Key;

/// Two Bloom filters; the older one is dropped from time to time. A SYN that they mistake for a known one only passes
/// unedited.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct PassedSyns {
    /// Empty if nothing was noted.
    newer: Vec<u64>,
    older: Vec<u64>,
    turned: Instant,
    /// Number of SYNs noted since `turned`.
    #[serde(default)]
    noted: u32,
    /// The key of the hashes in the filters.
    #[serde(default)]
    key: Key,
}

impl PassedSyns {
    /// Continues the filters of another process. If their size differs, it begins with empty ones.
    pub(crate) fn continued(self) -> Self {
        let fits = |words: &Vec<u64>| words.is_empty() || words.len() == WORDS;
        if fits(&self.newer) && fits(&self.older) { self } else { PassedSyns::default() }
    }

    /// Hashes with another key, unless the filters already have hashes of this one.
    pub(crate) fn set_key(&mut self, key: Key) {
        if self.newer.is_empty() && self.older.is_empty() {
            self.key = key;
        }
    }

    /// Notes a SYN with this number that passed.
    pub(crate) fn note(&mut self, now: Instant, key: &FlowKey, seq: Seq) {
        self.turn(now);
        if self.noted >= NOTED_MAX {
            return;
        }
        self.noted += 1;
        if self.newer.is_empty() {
            self.newer.resize(WORDS, 0);
        }
        for bit in self.bits(key, seq) {
            self.newer[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// True if this SYN passed recently.
    pub(crate) fn knows(&mut self, now: Instant, key: &FlowKey, seq: Seq) -> bool {
        if self.newer.is_empty() && self.older.is_empty() {
            return false;
        }
        self.turn(now);
        let has =
            |words: &[u64], bit: usize| words.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1);
        let bits = self.bits(key, seq);
        [&self.newer, &self.older].into_iter().any(|words| bits.iter().all(|&bit| has(words, bit)))
    }

    fn bits(&self, key: &FlowKey, seq: Seq) -> [usize; 2] {
        let (hash, places) = (self.key.hash(&(key, seq.0)), (WORDS * 64) as u64);
        [(hash % places) as usize, ((hash >> 32) % places) as usize]
    }

    fn turn(&mut self, now: Instant) {
        let age = now.saturating_since(self.turned);
        if age < REMEMBERED {
            return;
        }
        (self.turned, self.noted) = (now, 0);
        self.older = core::mem::take(&mut self.newer);
        if age >= REMEMBERED * 2 {
            self.older = Vec::new();
        }
    }
}

/// Our choice: 32 KiB for each filter. With 4,000 SYNs noted, one in a thousand others finds its two places taken.
const WORDS: usize = 1 << 12;

/// Our choice: no more SYNs are noted, because too many others would be mistaken for known ones. In a flood they would
/// all pass unaccelerated. A SYN that is not noted may be edited when it comes again. In a flood it is most often a SYN
/// of the flood.
const NOTED_MAX: u32 = 4_096;

/// Linux doubles its wait before each of its six further SYNs (net.ipv4.tcp_syn_retries), to 64 s at last. Each copy
/// that passes is noted again.
const REMEMBERED: Duration = Duration::from_secs(65);

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> FlowKey {
        FlowKey {
            src: core::net::SocketAddr::new("10.0.0.1".parse().unwrap(), port),
            dst: "10.9.0.1:80".parse().unwrap(),
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_syn_is_known_for_as_long_as_it_may_come_again_and_no_other_is() {
        let mut passed = PassedSyns::default();
        assert!(!passed.knows(at(1), &key(1), Seq(7)));
        passed.note(at(100), &key(1), Seq(7));
        assert!(passed.knows(at(100), &key(1), Seq(7)));
        assert!(passed.knows(at(164), &key(1), Seq(7)));
        assert!(!passed.knows(at(100), &key(1), Seq(8)) && !passed.knows(at(100), &key(2), Seq(7)));
        passed.note(at(164), &key(2), Seq(7));
        assert!(passed.knows(at(228), &key(2), Seq(7)), "noted just before the filters turn");
        assert!(!passed.knows(at(400), &key(1), Seq(7)) && !passed.knows(at(400), &key(2), Seq(7)));
        assert!(passed.newer.is_empty() && passed.older.is_empty());
    }

    #[test]
    fn another_process_knows_them_and_takes_no_filters_of_another_size() {
        let mut passed = PassedSyns::default();
        passed.note(at(100), &key(1), Seq(7));
        let written = rmp_serde::to_vec_named(&passed).unwrap();
        let mut continued = rmp_serde::from_slice::<PassedSyns>(&written).unwrap().continued();
        assert!(continued.knows(at(101), &key(1), Seq(7)));
        let mut other = PassedSyns { newer: alloc::vec![u64::MAX; 3], ..passed }.continued();
        assert!(!other.knows(at(101), &key(1), Seq(7)));
        other.note(at(101), &key(1), Seq(7));
    }

    #[test]
    fn few_are_taken_for_others_whatever_is_noted() {
        let mut passed = PassedSyns::default();
        (0..10_000).for_each(|port| passed.note(at(1), &key(port), Seq(1)));
        let mistaken = (10_000..20_000).filter(|&port| passed.knows(at(2), &key(port), Seq(1))).count();
        assert!(mistaken < 30, "{mistaken} of 10,000");
    }
}
