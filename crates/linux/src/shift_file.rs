//! Window shifts of rescaled flows, and the list of split flows, outside the process. With them a restarted gateway
//! continues to rescale, and ends the split flows.
//!
//! A file of fixed size, mapped into memory. Stored records survive a `kill -9`. Hashing finds a record within a few
//! places. A record that was half written when the process died fails its checksum, and counts as absent.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use memmap2::MmapMut;
use nix::fcntl::posix_fallocate;
use paceline_gateway::Shifts;
use paceline_wire::FlowKey;

use crate::fallback::Fallback;
use crate::holder;
use crate::system_error::{Context, SystemError};

/// Number of tries for the lock, and the wait between two tries ([`lock_soon`]).
const LOCK_TRIES: u32 = 20;
const LOCK_WAIT: Duration = Duration::from_millis(10);

/// The stored shifts of all rescaled flows of one gateway.
#[derive(Debug)]
pub struct ShiftFile {
    map: MmapMut,
    seed: u64,
    places: usize,
    live: usize,
    capacity: usize,
    generation: u64,
    /// The lock on this file keeps other gateways from it.
    file: File,
}

/// There is no room for another flow. The gateway must not rescale it, because the flow would break when the gateway
/// restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl ShiftFile {
    /// Returns the path of the file of the gateway `name`.
    pub fn default_path(name: &str) -> PathBuf {
        Path::new("/run/paceline").join(format!("{name}.flows"))
    }

    /// Opens the file with room for `capacity` flows, or creates it. Keeps the flows of an earlier process, also if
    /// its capacity was another. Discards records that are no flows.
    pub fn open(path: &Path, capacity: usize) -> Result<ShiftFile, SystemError> {
        let what = || format!("open the flow file {}", path.display());
        let capacity = capacity.clamp(1, CAPACITY_MAX);
        let places = (capacity * 2).next_power_of_two().max(PLACES_MIN);
        if let Some(directory) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).context(what)?;
        }
        let file = open_locked(path).context(what)?;
        let (header, flows) = read_all(&file).context(what)?;
        ShiftFile::over(file, header, flows, capacity, places).context(what)
    }

    /// Takes over the file that another process has open, with its lock. The file keeps its size, so that the other
    /// process can continue as well.
    pub fn adopt(descriptor: OwnedFd, capacity: usize) -> Result<ShiftFile, SystemError> {
        let what = || "take over the flow file".to_owned();
        let mut file = File::from(descriptor);
        lock(&file).context(what)?;
        io::Seek::rewind(&mut file).context(what)?;
        let (header, flows) = read_all(&file).context(what)?;
        let places = header.as_ref().map(|header| header.places);
        let places = places.ok_or_else(|| io::Error::other("it is of another format")).context(what)?;
        ShiftFile::over(file, header, flows, capacity.clamp(1, places / 2), places).context(what)
    }

    /// Returns another descriptor of the file, for [`ShiftFile::adopt`].
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.file.as_fd().try_clone_to_owned()
    }

    fn over(
        file: File,
        header: Option<Header>,
        flows: Flows,
        capacity: usize,
        places: usize,
    ) -> io::Result<ShiftFile> {
        let kept = header.filter(|header| header.places == places);
        let (seed, rebuilt) = match kept {
            Some(header) => (header.seed, false),
            None => (RandomState::new().hash_one(std::process::id()), true),
        };
        if rebuilt {
            lay_out(&file, seed, places)?;
        }
        // SAFETY: the file's size stays for the life of the mapping. No other process shortens it: it is locked, and
        // only root can read and write it. Its pages are allocated. All access is by plain bytes, of which any value
        // is valid.
        let map = unsafe { MmapMut::map_mut(&file) }?;
        let live = if rebuilt { 0 } else { flows.len() };
        let mut this = ShiftFile { map, seed, places, live, capacity, generation: 0, file };
        this.generation = this.newest_generation();
        if rebuilt {
            for (key, fallback) in flows {
                // Flows beyond the present capacity are discarded.
                let _ = this.insert(key, fallback);
            }
        }
        Ok(this)
    }

    /// Stores the treatment of a flow (client to server), in place of an older one. After the return, it survives the
    /// process.
    pub fn insert(&mut self, key: FlowKey, fallback: impl Into<Fallback>) -> Result<(), Full> {
        let found = self.find(&key);
        let place = match found {
            Found::Live(place) => place,
            Found::Free(place) if self.live < self.capacity => {
                self.live += 1;
                place
            }
            Found::Free(_) | Found::Nothing => return Err(Full),
        };
        // A foreign file may contain any number.
        self.generation = self.generation.saturating_add(1);
        let record = encode(&key, fallback.into(), self.generation);
        self.record_mut(place).copy_from_slice(&record);
        Ok(())
    }

    /// Removes a flow. False if it was not stored.
    pub fn remove(&mut self, key: &FlowKey) -> bool {
        let Found::Live(place) = self.find(key) else { return false };
        self.record_mut(place).fill(0);
        self.live -= 1;
        true
    }

    /// Returns all flows, in no particular order.
    pub fn load(&self) -> Vec<(FlowKey, Fallback)> {
        self.map[HEADER_BYTES..].chunks_exact(RECORD_BYTES).filter_map(decode).collect()
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.live
    }

    /// True if no flow is stored.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Searches the few places that the flow may have.
    fn find(&self, key: &FlowKey) -> Found {
        let first = hash(self.seed, key) as usize;
        let wanted = key_bytes(key);
        let mut free = None;
        for step in 0..WINDOW.min(self.places) {
            let place = (first + step) & (self.places - 1);
            let record = self.record(place);
            if record[KEY].eq(&wanted) && is_whole(record) {
                return Found::Live(place);
            }
            if free.is_none() && !is_whole(record) {
                free = Some(place);
            }
        }
        free.map_or(Found::Nothing, Found::Free)
    }

    /// Returns the newest generation of an earlier process, from which this one continues.
    fn newest_generation(&self) -> u64 {
        let whole = self.map[HEADER_BYTES..].chunks_exact(RECORD_BYTES).filter(|record| is_whole(record));
        whole.filter_map(|record| record[56..64].try_into().ok().map(u64::from_le_bytes)).max().unwrap_or(0)
    }

    fn record(&self, place: usize) -> &[u8] {
        let start = HEADER_BYTES + place * RECORD_BYTES;
        &self.map[start..start + RECORD_BYTES]
    }

    fn record_mut(&mut self, place: usize) -> &mut [u8] {
        let start = HEADER_BYTES + place * RECORD_BYTES;
        &mut self.map[start..start + RECORD_BYTES]
    }
}

enum Found {
    Live(usize),
    Free(usize),
    Nothing,
}

type Flows = Vec<(FlowKey, Fallback)>;

struct Header {
    seed: u64,
    places: usize,
}

fn open_locked(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    lock_soon(&file, || thread::sleep(LOCK_WAIT)).map_err(|_| {
        let process = holder::of(&file).map_or(String::new(), |number| format!(" (process {number})"));
        io::Error::other(format!(
            "another gateway with the same name is running{process}; end it, or take over from it with --take-over"
        ))
    })?;
    Ok(file)
}

/// A process forked by a gateway holds all its descriptors, and so its lock, until it executes another program
/// (flock(2)). So the lock may outlast the gateway for a moment. Our choice of the total wait, 200 ms: on a loaded
/// machine such a process waits for its turn.
fn lock_soon(file: &File, mut wait: impl FnMut()) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        if lock(file).is_ok() {
            return Ok(());
        }
        wait();
    }
    lock(file)
}

/// Locks the file until the last descriptor of the open file is closed, in any process. A process that ends does not
/// release the lock of its successor. No process unlocks explicitly.
fn lock(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `file` is borrowed; the call takes no pointers.
    let result = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the header, if it is valid, and the flows behind it.
fn read_all(file: &File) -> io::Result<(Option<Header>, Flows)> {
    let length = file.metadata()?.len();
    if length > (HEADER_BYTES + 2 * PLACES_MAX * RECORD_BYTES) as u64 {
        return Ok((None, Vec::new()));
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut &*file, &mut bytes)?;
    let Some((header, records)) = bytes.split_at_checked(HEADER_BYTES) else { return Ok((None, Vec::new())) };
    let word = |at: usize| header[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    let places = word(16) as usize;
    if header[..8] != MAGIC
        || word(24) != word(8) ^ word(16)
        || records.len() != places.saturating_mul(RECORD_BYTES)
        || !places.is_power_of_two()
        || places < PLACES_MIN
    {
        return Ok((None, Vec::new()));
    }
    let flows = records.chunks_exact(RECORD_BYTES).filter_map(decode).collect();
    Ok((Some(Header { seed: word(8), places }), flows))
}

/// Sets the size of the file, and allocates all of its memory. An error here is better than a signal at a later write.
fn lay_out(file: &File, seed: u64, places: usize) -> io::Result<()> {
    let length = HEADER_BYTES + places * RECORD_BYTES;
    file.set_len(0)?;
    posix_fallocate(file, 0, length as libc::off_t)?;
    let mut header = MAGIC.to_vec();
    for word in [seed, places as u64, seed ^ places as u64] {
        header.extend_from_slice(&word.to_le_bytes());
    }
    io::Seek::rewind(&mut &*file)?;
    (&mut &*file).write_all(&header)
}

/// Checksum (4 bytes), state, shifts of client, shown and server, option added or flow split, padding, ports,
/// addresses, generation.
fn encode(key: &FlowKey, fallback: Fallback, generation: u64) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[4] = STATE_LIVE;
    record[5..9].copy_from_slice(&match fallback {
        Fallback::Rescale(shifts) => [shifts.client, shifts.shown, shifts.server, u8::from(shifts.added)],
        Fallback::Reset => [0, 0, 0, SPLIT],
    });
    record[KEY].copy_from_slice(&key_bytes(key));
    record[56..64].copy_from_slice(&generation.to_le_bytes());
    let sum = checksum(&record[4..]);
    record[..4].copy_from_slice(&sum.to_le_bytes());
    record
}

fn decode(record: &[u8]) -> Option<(FlowKey, Fallback)> {
    if !is_whole(record) {
        return None;
    }
    let [client, shown, server, added] = *record.get(5..9)?.first_chunk::<4>()?;
    let key = &record[KEY];
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = key.get(at..at + 16)?.try_into().ok()?;
        Some(match key[4] {
            4 => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
            _ => Ipv6Addr::from(bytes).into(),
        })
    };
    let port = |at: usize| u16::from_be_bytes([key[at], key[at + 1]]);
    let (src, dst) = (SocketAddr::new(address(8)?, port(0)), SocketAddr::new(address(24)?, port(2)));
    let fallback = match added {
        SPLIT => Fallback::Reset,
        _ => Fallback::Rescale(Shifts { client, shown, server, added: added != 0 }),
    };
    Some((FlowKey { src, dst }, fallback))
}

/// Ports, family, three bytes of padding, addresses.
fn key_bytes(key: &FlowKey) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    bytes[0..2].copy_from_slice(&key.src.port().to_be_bytes());
    bytes[2..4].copy_from_slice(&key.dst.port().to_be_bytes());
    bytes[4] = if key.src.is_ipv4() { 4 } else { 6 };
    for (at, address) in [(8, key.src.ip()), (24, key.dst.ip())] {
        match address {
            IpAddr::V4(address) => bytes[at..at + 4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => bytes[at..at + 16].copy_from_slice(&address.octets()),
        }
    }
    bytes
}

/// Makes the checksums of a file's header and records valid. Random test data would hardly ever have valid ones.
#[cfg(any(test, fuzzing))]
pub(crate) fn seal(bytes: &mut [u8]) {
    let Some((header, records)) = bytes.split_at_mut_checked(HEADER_BYTES) else { return };
    let places = (records.len() / RECORD_BYTES) as u64;
    header[..8].copy_from_slice(&MAGIC);
    header[16..24].copy_from_slice(&places.to_le_bytes());
    for at in 0..8 {
        header[24 + at] = header[8 + at] ^ header[16 + at];
    }
    for record in records.chunks_exact_mut(RECORD_BYTES) {
        let sum = checksum(&record[4..]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
    }
}

fn is_whole(record: &[u8]) -> bool {
    record[4] == STATE_LIVE && record[..4] == checksum(&record[4..]).to_le_bytes()
}

/// FNV-1a. It detects half-written records. It need not resist attackers, who cannot write the file.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Mixes in a secret seed, so that nobody can choose ports that all hash to one place.
fn hash(seed: u64, key: &FlowKey) -> u64 {
    key_bytes(key).chunks_exact(8).fold(seed, |state, word| {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        let product = u128::from(state ^ word) * 0x9e37_79b9_7f4a_7c15;
        (product as u64) ^ ((product >> 64) as u64)
    })
}

const MAGIC: [u8; 8] = *b"PACEFLW1";
const HEADER_BYTES: usize = 64;
const RECORD_BYTES: usize = 64;
const KEY_BYTES: usize = 40;
const KEY: std::ops::Range<usize> = 12..12 + KEY_BYTES;
const STATE_LIVE: u8 = 1;
/// Value of the option byte of a split flow.
const SPLIT: u8 = 2;
/// The number of places that a flow may have. Half of all places are free, but unevenly: with 32, one of about 60
/// files of 30,000 flows had no place for a flow.
const WINDOW: usize = 128;
const PLACES_MIN: usize = 32;
/// More flows than one gateway serves.
const CAPACITY_MAX: usize = 1 << 22;
const PLACES_MAX: usize = 2 * CAPACITY_MAX;

#[cfg(test)]
mod tests;
