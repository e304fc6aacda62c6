//! Traffic at the gateway's interfaces, and retransmissions of the server's kernel.

use paceline_linux::SystemError;

use crate::Lab;

/// Traffic at the interfaces of the gateway's namespace. A super-packet counts as one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets from the server.
    pub from_server: Count,
    /// Packets sent to the client.
    pub to_client: Count,
    /// Packets from the client.
    pub from_client: Count,
}

/// Packets with their bytes, link headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Lab {
    /// Returns the traffic so far at the interfaces of the gateway's namespace.
    pub fn traffic(&self) -> Result<Traffic, SystemError> {
        let text = self.gateway.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
        Ok(parse_traffic(&text.unwrap_or_default()))
    }

    /// Returns the number of segments that the server's kernel retransmitted.
    pub fn retransmitted(&self) -> Result<u64, SystemError> {
        let text = self.server.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))?;
        Ok(parse_retransmitted(&text.unwrap_or_default()).unwrap_or(0))
    }
}

impl Traffic {
    /// Returns the traffic since an earlier sample.
    pub fn since(self, earlier: Traffic) -> Traffic {
        let since = |now: Count, then: Count| Count {
            packets: now.packets.saturating_sub(then.packets),
            bytes: now.bytes.saturating_sub(then.bytes),
        };
        Traffic {
            from_server: since(self.from_server, earlier.from_server),
            to_client: since(self.to_client, earlier.to_client),
            from_client: since(self.from_client, earlier.from_client),
        }
    }

    /// Returns the number of packets that arrived to be forwarded.
    pub fn packets(self) -> u64 {
        self.from_server.packets + self.from_client.packets
    }
}

impl Count {
    /// Returns the mean bytes of a packet, link header included.
    pub fn mean(self) -> Option<f64> {
        (self.packets > 0).then(|| self.bytes as f64 / self.packets as f64)
    }
}

/// Parses `/proc/net/dev`. Bytes and packets received are the first two of eight numbers. Then come those sent.
fn parse_traffic(text: &str) -> Traffic {
    let mut traffic = Traffic::default();
    for line in text.lines() {
        let Some((name, numbers)) = line.trim().split_once(':') else { continue };
        let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let count = |at: usize| match numbers.get(at..at + 2) {
            Some(&[bytes, packets]) => Count { packets, bytes },
            _ => Count::default(),
        };
        match name {
            "g0" => traffic.from_server = count(0),
            "g1" => (traffic.from_client, traffic.to_client) = (count(0), count(8)),
            _ => {}
        }
    }
    traffic
}

/// Parses the line of names and the line of values.
fn parse_retransmitted(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let place = lines.next()?.split_whitespace().position(|name| name == "RetransSegs")?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let text = " face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs\n\
                    g0: 1000 10 0 0 0 0 0 0 66 1 0 0 0 0 0 0\n   g1: 70 2 0 0 0 0 0 0 999 9 0 0 0 0 0 0\n";
        let traffic = parse_traffic(text);
        assert_eq!(traffic.from_server, Count { packets: 10, bytes: 1000 });
        assert_eq!(traffic.to_client, Count { packets: 9, bytes: 999 });
        assert_eq!((traffic.packets(), traffic.from_server.mean()), (12, Some(100.0)));
        let snmp = "Ip: A B\nIp: 1 2\nTcp: InSegs RetransSegs\nTcp: 5 7\n";
        assert_eq!(parse_retransmitted(snmp), Some(7));
    }
}
