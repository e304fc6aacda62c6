//! Links, addresses, routes, rules and neighbours through netlink. No other program is called.

mod address;
mod connection;
mod link;
mod neighbour;
mod request;
mod route;
mod rule;
mod watch;

pub(crate) use connection::Connection;
#[cfg(any(test, fuzzing))]
pub(crate) use connection::{error_of, next_message, number_messages};
pub use link::LinkInfo;
pub use route::{Route, RouteTarget};
pub use rule::{Protocol, Rule};
pub use watch::LinkWatch;
#[cfg(any(test, fuzzing))]
pub(crate) use watch::{INDICES_MAX, Interest};

use crate::system_error::SystemError;

/// A connection to the kernel's routing tables, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Netlink {
    connection: Connection,
}

impl Netlink {
    /// Connects in the calling thread's network namespace.
    pub fn open() -> Result<Netlink, SystemError> {
        Ok(Netlink { connection: Connection::open(netlink_sys::protocols::NETLINK_ROUTE)? })
    }
}

/// An IP address with the length of its network prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address. Host bits may be set, as in an interface's address.
    pub address: std::net::IpAddr,
    /// The number of network bits.
    pub length: u8,
}

impl Prefix {
    /// `address/length`.
    pub fn new(address: impl Into<std::net::IpAddr>, length: u8) -> Self {
        Prefix { address: address.into(), length }
    }

    /// Returns the same network with all host bits zero.
    pub fn network(self) -> Self {
        let address = match self.address {
            std::net::IpAddr::V4(a) => {
                let shift = 32u32.saturating_sub(u32::from(self.length));
                let bits = u32::from(a).checked_shr(shift).and_then(|b| b.checked_shl(shift)).unwrap_or(0);
                std::net::Ipv4Addr::from(bits).into()
            }
            std::net::IpAddr::V6(a) => {
                let shift = 128u32.saturating_sub(u32::from(self.length));
                let bits = u128::from(a).checked_shr(shift).and_then(|b| b.checked_shl(shift)).unwrap_or(0);
                std::net::Ipv6Addr::from(bits).into()
            }
        };
        Prefix { address, length: self.length }
    }
}

impl From<ipnet::IpNet> for Prefix {
    fn from(net: ipnet::IpNet) -> Self {
        Prefix::new(net.addr(), net.prefix_len())
    }
}

impl std::str::FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not an address with prefix length, such as 10.0.0.0/24 or fd00::/64");
        let (address, length) = text.split_once('/').ok_or_else(wrong)?;
        let address: std::net::IpAddr = address.parse().map_err(|_| wrong())?;
        let length: u8 = length.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        if length > longest { Err(wrong()) } else { Ok(Prefix { address, length }) }
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}
