use super::*;

/// A separate path for each test, removed with the value.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        Place(std::env::temp_dir().join(format!("paceline-shift-{}-{name}/x.flows", std::process::id())))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.parent().unwrap());
    }
}

fn key(n: u16) -> FlowKey {
    let ip = |last: u16| -> IpAddr {
        match n % 2 {
            0 => Ipv4Addr::new(10, 0, 0, last as u8).into(),
            _ => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).into(),
        }
    };
    FlowKey { src: SocketAddr::new(ip(1), n), dst: SocketAddr::new(ip(2), 443) }
}

fn shifts(n: u16) -> Fallback {
    match n % 4 {
        0 => Fallback::Reset,
        _ => Shifts { client: (n % 15) as u8, shown: 7, server: 3, added: n.is_multiple_of(3) }.into(),
    }
}

fn sorted(file: &ShiftFile) -> Vec<(FlowKey, Fallback)> {
    let mut flows = file.load();
    flows.sort_by_key(|(key, _)| key.src.port());
    flows
}

#[test]
fn flows_survive_and_can_be_removed() {
    let place = Place::new("survive");
    let mut file = ShiftFile::open(&place.0, 100).unwrap();
    for n in 0..100 {
        file.insert(key(n), shifts(n)).unwrap();
    }
    file.insert(key(5), shifts(6)).unwrap();
    file.remove(&key(7));
    file.remove(&key(7));
    assert_eq!(file.len(), 99);
    let before = sorted(&file);
    drop(file);
    let file = ShiftFile::open(&place.0, 100).unwrap();
    assert_eq!(sorted(&file), before);
    assert_eq!(before[5], (key(5), shifts(6)));
    assert!(before.iter().all(|(key, _)| key.src.port() != 7));
}

#[test]
fn a_full_file_says_so_and_has_room_again() {
    let place = Place::new("full");
    let mut file = ShiftFile::open(&place.0, 10).unwrap();
    for n in 0..10 {
        file.insert(key(n), shifts(n)).unwrap();
    }
    assert_eq!(file.insert(key(10), shifts(10)), Err(Full));
    file.insert(key(3), shifts(9)).unwrap();
    file.remove(&key(0));
    file.insert(key(10), shifts(10)).unwrap();
    assert_eq!(file.len(), 10);
}

#[test]
fn another_capacity_keeps_the_flows() {
    let place = Place::new("capacity");
    let mut file = ShiftFile::open(&place.0, 10).unwrap();
    (0..10).for_each(|n| file.insert(key(n), shifts(n)).unwrap());
    drop(file);
    let file = ShiftFile::open(&place.0, 5000).unwrap();
    assert_eq!(file.len(), 10);
    drop(file);
    let mut file = ShiftFile::open(&place.0, 4).unwrap();
    assert!(file.len() <= 10);
    assert_eq!(file.insert(key(11), shifts(11)), Err(Full));
}

#[test]
fn what_is_torn_or_foreign_is_ignored() {
    let place = Place::new("torn");
    let mut file = ShiftFile::open(&place.0, 10).unwrap();
    (0..4).for_each(|n| file.insert(key(n), shifts(n)).unwrap());
    let Found::Live(torn) = file.find(&key(2)) else { unreachable!() };
    drop(file);
    let mut bytes = fs::read(&place.0).unwrap();
    bytes[HEADER_BYTES + torn * RECORD_BYTES + 20] ^= 1;
    fs::write(&place.0, &bytes).unwrap();
    let file = ShiftFile::open(&place.0, 10).unwrap();
    assert_eq!(sorted(&file).iter().map(|(key, _)| key.src.port()).collect::<Vec<_>>(), [0, 1, 3]);
    drop(file);
    for contents in [&b"no such file at all"[..], &[0xff; 5000], b""] {
        fs::write(&place.0, contents).unwrap();
        assert!(ShiftFile::open(&place.0, 10).unwrap().is_empty());
    }
}

#[test]
fn one_gateway_has_it() {
    let place = Place::new("one");
    let _first = ShiftFile::open(&place.0, 10).unwrap();
    let error = ShiftFile::open(&place.0, 10).unwrap_err();
    let this = format!("is running (process {}); ", std::process::id());
    assert!(error.to_string().contains(&this), "{error}");
}

/// Simulates a process that the gateway had forked, and that has not yet executed another program.
#[test]
fn who_lets_go_of_it_soon_is_waited_for() {
    let place = Place::new("soon");
    let mut held = Some(ShiftFile::open(&place.0, 10).unwrap().descriptor().unwrap());
    let file = fs::File::open(&place.0).unwrap();
    let mut waits = 0;
    let locked = lock_soon(&file, || {
        waits += 1;
        held.take_if(|_| waits == 3);
    });
    assert!(locked.is_ok() && waits == 3, "{locked:?} after {waits}");
}

#[test]
fn half_full_there_is_always_a_place() {
    let place = Place::new("window");
    let mut file = ShiftFile::open(&place.0, 30_000).unwrap();
    (0..30_000).for_each(|n| file.insert(key(n), shifts(n)).unwrap());
    assert_eq!(file.load().len(), 30_000);
}
