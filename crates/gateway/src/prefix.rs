//! Address prefixes for rules: one address, or all that begin alike.

use alloc::string::String;
use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use ipnet::IpNet;

/// An address prefix, written as `10.0.0.0/8`, or as one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix(IpNet);

impl Prefix {
    /// True if the prefix holds this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// Returns its first address.
    pub fn address(&self) -> IpAddr {
        self.0.network()
    }
}

impl From<IpAddr> for Prefix {
    fn from(address: IpAddr) -> Self {
        Prefix(address.into())
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(address.into());
        }
        match text.parse::<IpNet>() {
            Err(_) => {
                Err(alloc::format!("`{text}` is no address or prefix; write 10.0.0.0/8 or 2001:db8::/32"))
            }
            // With bits beyond its length, most often the length is mistyped.
            Ok(net) if net.trunc() != net => Err(alloc::format!(
                "`{text}` has bits beyond its length; write {} or {}",
                net.trunc(),
                net.addr()
            )),
            Ok(net) => Ok(Prefix(net)),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() { self.0.addr().fmt(f) } else { self.0.fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn prefixes_are_read_as_they_are_written() {
        for text in ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "2001:db8::1", "0.0.0.0/0"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        let prefix: Prefix = "10.0.0.0/8".parse().unwrap();
        assert!(prefix.contains("10.255.0.1".parse().unwrap()));
        assert!(!prefix.contains("11.0.0.1".parse().unwrap()));
        assert!(!prefix.contains("::10.0.0.1".parse().unwrap()));
        assert!("10.0.0.1/8".parse::<Prefix>().unwrap_err().contains("write 10.0.0.0/8 or 10.0.0.1"));
        assert!("ten".parse::<Prefix>().unwrap_err().contains("no address"));
    }
}
