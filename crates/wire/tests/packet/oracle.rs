//! Packets and checksums of an independent implementation: `etherparse`.

use etherparse::{
    IpNumber, Ipv4Header, Ipv4Options, Ipv6FlowLabel, Ipv6Header, NetSlice, SlicedPacket, TcpHeader,
    TransportSlice,
};
use paceline_wire::{BufferPool, Checksum, Packet};
use proptest::collection::vec;
use proptest::prelude::*;

/// The fields of a generated packet.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) v6: bool,
    /// Words of IPv4 options, or of an IPv6 destination options header.
    pub(crate) ip_options: Vec<[u8; 4]>,
    pub(crate) id: u16,
    pub(crate) tos: u8,
    pub(crate) addresses: [[u8; 16]; 2],
    pub(crate) tcp: TcpHeader,
    pub(crate) payload: Vec<u8>,
    /// The error of its checksum.
    pub(crate) damage: u16,
}

impl Sample {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut tcp = self.tcp.clone();
        let mut bytes = Vec::new();
        if self.v6 {
            let ip = self.ipv6();
            tcp.checksum = tcp.calc_checksum_ipv6(&ip, &self.payload).unwrap();
            ip.write(&mut bytes).unwrap();
            bytes.extend(self.ipv6_extension());
        } else {
            let ip = self.ipv4();
            tcp.checksum = tcp.calc_checksum_ipv4(&ip, &self.payload).unwrap();
            ip.write(&mut bytes).unwrap();
        }
        tcp.checksum = damaged(tcp.checksum, self.damage);
        tcp.write(&mut bytes).unwrap();
        bytes.extend(&self.payload);
        bytes
    }

    pub(crate) fn packet(&self) -> Packet {
        Packet::parse(&[], &self.bytes(), &mut pool()).unwrap()
    }

    fn ipv4(&self) -> Ipv4Header {
        let [src, dst] = self.addresses.map(|a| [a[0], a[1], a[2], a[3]]);
        let len = (self.tcp.header_len() + self.payload.len()) as u16;
        let mut ip = Ipv4Header::new(len, 64, IpNumber::TCP, src, dst).unwrap();
        ip.options = Ipv4Options::try_from(self.ip_options.as_flattened()).unwrap();
        ip.set_payload_len(usize::from(len)).unwrap();
        ip.identification = self.id;
        ip.dscp = (self.tos >> 2).try_into().unwrap();
        ip.ecn = (self.tos & 3).try_into().unwrap();
        ip.header_checksum = ip.calc_header_checksum();
        ip
    }

    fn ipv6(&self) -> Ipv6Header {
        let extension = self.ipv6_extension();
        Ipv6Header {
            traffic_class: self.tos,
            flow_label: Ipv6FlowLabel::try_new(u32::from(self.id)).unwrap(),
            payload_length: (extension.len() + self.tcp.header_len() + self.payload.len()) as u16,
            next_header: if extension.is_empty() {
                IpNumber::TCP
            } else {
                IpNumber::IPV6_DESTINATION_OPTIONS
            },
            hop_limit: 64,
            source: self.addresses[0],
            destination: self.addresses[1],
        }
    }

    /// A destination options header with one padding option, if there are words for it.
    fn ipv6_extension(&self) -> Vec<u8> {
        let units = self.ip_options.len() / 2;
        if units == 0 {
            return Vec::new();
        }
        let len = 8 * units;
        let mut bytes = vec![0; len];
        bytes[..4].copy_from_slice(&[6, (units - 1) as u8, 1, (len - 4) as u8]);
        bytes
    }
}

/// Any valid TCP packet, except for a checksum error of `damage`.
pub(crate) fn sample() -> impl Strategy<Value = Sample> {
    let damage = prop_oneof![3 => Just(0), 1 => 1..0xffffu16];
    let ip = (any::<bool>(), vec(any::<[u8; 4]>(), 0..=10), any::<u16>(), any::<u8>());
    (ip, any::<[[u8; 16]; 2]>(), tcp_header(), vec(any::<u8>(), 0..3000), damage).prop_map(
        |((v6, ip_options, id, tos), addresses, tcp, payload, damage)| Sample {
            v6,
            ip_options,
            id,
            tos,
            addresses,
            tcp,
            payload,
            damage,
        },
    )
}

fn tcp_header() -> impl Strategy<Value = TcpHeader> {
    let numbers = any::<(u16, u16, u32, u32, u16, u16)>();
    (numbers, any::<[bool; 9]>(), options()).prop_map(
        |((src, dst, seq, ack, window, urgent), bits, options)| {
            let mut tcp = TcpHeader::new(src, dst, seq, window);
            tcp.acknowledgment_number = ack;
            tcp.urgent_pointer = urgent;
            [tcp.ns, tcp.fin, tcp.syn, tcp.rst, tcp.psh, tcp.ack, tcp.urg, tcp.ece, tcp.cwr] = bits;
            tcp.set_options_raw(&options).unwrap();
            tcp
        },
    )
}

/// Typical options in any order and number, as far as they fit 40 bytes. Sometimes arbitrary bytes.
fn options() -> impl Strategy<Value = Vec<u8>> {
    let option = prop_oneof![
        Just(vec![1]),
        Just(vec![1, 1]),
        any::<[u8; 2]>().prop_map(|mss| [&[2, 4], &mss[..]].concat()),
        any::<u8>().prop_map(|shift| vec![3, 3, shift]),
        Just(vec![4, 2]),
        (1usize..=4, vec(any::<u8>(), 32)).prop_map(|(blocks, bytes)| [
            &[5, 2 + 8 * blocks as u8],
            &bytes[..8 * blocks]
        ]
        .concat()),
        any::<[u8; 8]>().prop_map(|times| [&[8, 10], &times[..]].concat()),
        (9u8.., vec(any::<u8>(), 0..16))
            .prop_map(|(kind, data)| [&[kind, 2 + data.len() as u8], &data[..]].concat()),
        Just(vec![0]),
    ];
    let in_order = vec(option, 0..8).prop_map(|options| {
        options.into_iter().fold(Vec::new(), |mut all, option| {
            if all.len() + option.len() <= 40 {
                all.extend(option);
            }
            all
        })
    });
    prop_oneof![8 => in_order, 1 => vec(any::<u8>(), 0..=40)]
}

/// The error of a TCP packet's checksum, zero if it is right.
pub(crate) fn damage_of(bytes: &[u8]) -> u16 {
    let sliced = SlicedPacket::from_ip(bytes).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("no TCP") };
    let right = match sliced.net.unwrap() {
        NetSlice::Ipv4(ip) => tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination()),
        NetSlice::Ipv6(ip) => tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination()),
        NetSlice::Arp(_) => panic!("no IP"),
    };
    difference(tcp.checksum(), right.unwrap())
}

/// True if the packet's lengths are consistent and, in IPv4, the header checksum is right.
pub(crate) fn ip_header_is_right(bytes: &[u8]) -> bool {
    let sliced = SlicedPacket::from_ip(bytes).unwrap();
    match sliced.net.unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            header.calc_header_checksum() == header.header_checksum
                && usize::from(ip.header().total_len()) == bytes.len()
        }
        NetSlice::Ipv6(ip) => usize::from(ip.header().payload_length()) + 40 == bytes.len(),
        NetSlice::Arp(_) => false,
    }
}

pub(crate) fn tcp_header_of(bytes: &[u8]) -> TcpHeader {
    let Some(TransportSlice::Tcp(tcp)) = SlicedPacket::from_ip(bytes).unwrap().transport else {
        panic!("no TCP")
    };
    tcp.to_header()
}

/// The right partial checksum of a packet: RFC 9293's pseudo header, summed separately.
pub(crate) fn pseudo_sum(bytes: &[u8]) -> u16 {
    let SlicedPacket { net: Some(net), transport: Some(TransportSlice::Tcp(tcp)), .. } =
        SlicedPacket::from_ip(bytes).unwrap()
    else {
        panic!("no TCP")
    };
    let addresses = match &net {
        NetSlice::Ipv4(ip) => [&ip.header().source()[..], &ip.header().destination()].concat(),
        NetSlice::Ipv6(ip) => [&ip.header().source()[..], &ip.header().destination()].concat(),
        NetSlice::Arp(_) => panic!("no IP"),
    };
    let words = addresses.chunks(2).map(|w| u64::from(w[0]) << 8 | u64::from(w[1]));
    let sum = words.sum::<u64>() + 6 + (tcp.slice().len()) as u64;
    ((sum - 1) % 0xffff + 1) as u16
}

/// The same packet with a right partial checksum.
pub(crate) fn to_partial(packet: &Packet) -> Packet {
    let mut bytes = packet.to_vec();
    let at = packet.tcp_offset().unwrap() + 16;
    let sum = pseudo_sum(&bytes);
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    let mut packet = Packet::parse(packet.link(), &bytes, &mut pool()).unwrap();
    packet.set_checksum(Checksum::Partial);
    packet
}

pub(crate) fn pool() -> BufferPool {
    BufferPool::new(1 << 20)
}

fn damaged(checksum: u16, damage: u16) -> u16 {
    let sum = u32::from(checksum) + u32::from(damage);
    (sum % 0xffff) as u16
}

fn difference(a: u16, b: u16) -> u16 {
    ((u32::from(a) + 0xffff - u32::from(b)) % 0xffff) as u16
}
