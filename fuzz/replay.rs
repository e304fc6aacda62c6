//! The replay of a fuzz target in `cargo test`. Runs its committed corpus, and inputs made from it, through the same
//! function.

// Crates without std use it in their tests.
extern crate std;
use self::std::path::Path;
use self::std::prelude::v1::*;
use self::std::{format, fs, println, thread};

/// Runs `exercise` on every file of the corpus of `target`, and on `made` further inputs. A seed draws these inputs:
/// random bytes, files with a few changes, and the start of one file before the end of another.
pub(crate) fn replay(target: &str, made: u32, exercise: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(files.len() >= 5, "the corpus of {target} is gone: {} files", files.len());
    for (path, bytes) in paths.iter().zip(&files) {
        println!("{}", path.display());
        exercise(bytes);
    }
    let seed =
        target.bytes().fold(1, |seed: u64, byte| (seed << 8 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut random = Random(seed);
    for _ in 0..made {
        let input = Shown(random.input(&files));
        exercise(&input.0);
    }
}

/// Prints the input when the test fails.
struct Shown(Vec<u8>);

impl Drop for Shown {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("the input: {}", self.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn input(&mut self, files: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = files[self.below(files.len())].clone();
        match self.below(8) {
            0 => {
                let len = self.below(512);
                bytes = (0..len).map(|_| self.next() as u8).collect();
            }
            1 => {
                let other = &files[self.below(files.len())];
                bytes.truncate(self.below(bytes.len() + 1));
                bytes.extend_from_slice(&other[self.below(other.len() + 1)..]);
            }
            _ => {}
        }
        for _ in 0..self.below(5) {
            self.change(&mut bytes);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        match self.below(5) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
            1 if !bytes.is_empty() => bytes[at] = self.next() as u8,
            2 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            3 => bytes.truncate(at),
            _ => bytes.insert(at, self.next() as u8),
        }
    }
}
