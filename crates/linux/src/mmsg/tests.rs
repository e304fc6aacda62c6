use super::*;

fn control(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
    let mut bytes = (16 + data.len()).to_ne_bytes().to_vec();
    bytes.extend(level.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

#[test]
fn control_messages_are_found_in_any_order() {
    let mut auxiliary = libc::TP_STATUS_VLAN_VALID.to_ne_bytes().to_vec();
    auxiliary.extend([0; 12]);
    auxiliary.extend(7u16.to_ne_bytes());
    auxiliary.extend(0u16.to_ne_bytes());
    let mut bytes = control(libc::SOL_PACKET, libc::PACKET_AUXDATA, &auxiliary);
    let stamp = [2u64.to_ne_bytes(), 5u64.to_ne_bytes()].concat();
    bytes.extend(control(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &stamp));
    assert_eq!(ControlMessages(&bytes).find_map(stamp_ns), Some(2_000_000_005));
    assert_eq!(ControlMessages(&bytes).find_map(vlan_tag), Some(VlanTag { tpid: 0x8100, tci: 7 }));
}

#[test]
fn broken_control_data_ends_the_walk() {
    for len in 0..40 {
        let bytes = vec![0xff; len];
        assert_eq!(ControlMessages(&bytes).count(), 0);
        let bytes = vec![0; len];
        assert!(ControlMessages(&bytes).count() <= 1);
    }
}
