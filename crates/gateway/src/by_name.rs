//! Reads and writes algorithms of the TCP endpoint by name.

use alloc::string::String;
use core::fmt::Display;
use core::str::FromStr;

use paceline_tcp::UnknownName;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(name: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(name)
}

pub(crate) fn deserialize<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = UnknownName>,
{
    let name = String::deserialize(from)?;
    name.parse().map_err(|unknown: UnknownName| D::Error::unknown_variant(&name, unknown.known))
}
