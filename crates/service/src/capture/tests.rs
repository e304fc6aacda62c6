use std::thread;

use paceline_gateway::GatewayConfig;
use paceline_wire::{Flags, Payload, Seq, TcpRepr};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};

use super::*;

fn wanted() -> CaptureRequest {
    CaptureRequest {
        client: Some("10.0.0.2".parse().unwrap()),
        client_port: None,
        server: None,
        server_port: Some(80),
        seconds: 60,
        bytes: 1 << 20,
        snap: SNAP_MAX,
    }
}

fn packet(from: &str, to: &str, flags: Flags, seq: u32, ack: u32, len: u32) -> Packet {
    let key = FlowKey::new(from.parse().unwrap(), to.parse().unwrap());
    let tcp = TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window: 1_000, ..TcpRepr::default() };
    Packet::build_tcp(key, &tcp, Payload::Length(len))
}

const CLIENT: &str = "10.0.0.2:40000";
const SERVER: &str = "10.0.0.1:80";

#[test]
fn packets_of_the_flow_are_kept_on_both_sides_with_what_was_done() {
    let captures = Arc::new(CaptureService::default());
    let mut node = CapturingGateway::new(Gateway::new(GatewayConfig::default()), captures.clone());
    let (ours, theirs) = UnixStream::pair().unwrap();
    let interfaces = Interfaces { names: ["w0".into(), "r0".into()], raw: true };
    let serving = thread::spawn(move || captures.serve(&ours, wanted(), &interfaces).unwrap().unwrap());
    let now = clock::now();
    while node.capture.is_none() {
        node.turn(now);
    }
    let mut pass = |port, packet| {
        node.handle_packet(now, port, packet);
        while node.poll_transmit(now).is_some() {}
    };
    pass(RADIO, packet(CLIENT, SERVER, Flags::SYN, 100, 0, 0));
    pass(RADIO, packet("10.0.0.3:40000", SERVER, Flags::SYN, 100, 0, 0));
    pass(RADIO, packet(CLIENT, "10.0.0.1:81", Flags::ACK, 100, 0, 0));
    pass(WAN, packet(SERVER, CLIENT, Flags::SYN | Flags::ACK, 900, 101, 0));
    pass(RADIO, packet(CLIENT, SERVER, Flags::ACK, 101, 901, 0));
    for _ in 0..2 {
        pass(WAN, packet(SERVER, CLIENT, Flags::ACK, 901, 101, 1_000));
    }
    node.turn(now + Duration::from_secs(61));
    assert!(node.capture.is_none());
    serving.join().unwrap();

    let (names, packets) = read(theirs);
    assert_eq!(names, ["w0", "r0"]);
    let expected = [
        (1, 1, ""),
        (0, 2, "window scale 7, came as none"),
        (0, 1, "flow accelerated"),
        (1, 2, ""),
        (1, 1, ""),
        (0, 2, "window field"),
        (0, 1, ""),
        (1, 2, ""),
        (0, 1, "passed on"),
        // A repetition of its newest bytes is a tail loss probe, which passes.
        (1, 2, "sent again by the server"),
    ];
    assert_eq!(packets.len(), expected.len(), "{packets:?}");
    for ((interface, direction, comment), (wanted_interface, wanted_direction, words)) in
        packets.iter().zip(expected)
    {
        assert_eq!((*interface, *direction), (wanted_interface, wanted_direction), "{packets:?}");
        assert!(comment.contains(words), "{words}: {packets:?}");
    }
}

/// Returns the names of the interfaces, and the interface, direction and comment of each packet.
fn read(file: UnixStream) -> (Vec<String>, Vec<(u32, u32, String)>) {
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption as Described;
    let (mut names, mut packets) = (Vec::new(), Vec::new());
    let mut reader = PcapNgReader::new(file).unwrap();
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(block) => names.extend(block.options.iter().find_map(|option| {
                let Described::IfName(name) = option else { return None };
                Some(name.to_string())
            })),
            Block::EnhancedPacket(block) => {
                let (mut direction, mut comment) = (0, String::new());
                for option in &block.options {
                    match option {
                        EnhancedPacketOption::Flags(flags) => direction = *flags,
                        EnhancedPacketOption::Comment(text) => comment = text.to_string(),
                        _ => {}
                    }
                }
                packets.push((block.interface_id, direction, comment));
            }
            _ => {}
        }
    }
    (names, packets)
}

#[test]
fn a_second_capture_and_a_boundless_one_are_refused() {
    let captures = CaptureService::default();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let interfaces = Interfaces { names: ["w".into(), "r".into()], raw: false };
    let any = CaptureRequest { client: None, ..wanted() };
    assert!(captures.serve(&ours, any, &interfaces).unwrap().unwrap_err().contains("address"));
    let endless = CaptureRequest { seconds: SECONDS_MAX + 1, ..wanted() };
    assert!(captures.serve(&ours, endless, &interfaces).unwrap().is_err());
    thread::scope(|scope| {
        let first = scope.spawn(|| captures.serve(&ours, wanted(), &interfaces));
        while !captures.busy.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let (other, _end) = UnixStream::pair().unwrap();
        assert!(captures.serve(&other, wanted(), &interfaces).unwrap().unwrap_err().contains("another"));
        // A reader that closes early makes room for another capture.
        drop(theirs);
        assert!(first.join().unwrap().is_ok_and(|told| told.is_ok()));
    });
    assert!(!captures.busy.load(Ordering::Acquire));
}

#[test]
fn nothing_is_kept_beyond_the_bounds() {
    let captures = CaptureService::default();
    let (receiver, shared) = captures.order(wanted());
    let mut capture = Capture::new(captures.take().unwrap(), clock::now());
    let big = packet(SERVER, CLIENT, Flags::ACK, 1, 1, 60_000);
    for _ in 0..QUEUED_PACKETS_MAX + 10 {
        capture.keep(clock::now(), WAN, false, &big, String::new());
    }
    assert!(shared.queued.load(Ordering::Acquire) <= QUEUED_BYTES_MAX);
    assert_eq!(receiver.try_iter().count() + shared.missed.load(Ordering::Acquire), QUEUED_PACKETS_MAX + 10);
    drop(receiver);
    shared.queued.store(0, Ordering::Release);
    capture.keep(clock::now(), WAN, false, &big, String::new());
    assert!(capture.over);
}
