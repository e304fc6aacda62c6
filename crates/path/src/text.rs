//! Configuration values with a short form, such as `rate = "7.2mbit"` for a constant rate.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::aqm::{AbcConfig, Aqm, CodelConfig, FqCodelConfig, PieConfig, RedConfig};
use crate::delay::{Delay, DelayStep};
use crate::generate::TraceModel;
use crate::queue_limit::QueueLimit;
use crate::rate::RateStep;
use crate::source::{RateSource, TraceFile};
use crate::units::{UnitError, parse_aqm, parse_duration, parse_queue, parse_rate};

/// The long form of a rate, with one of these keys.
#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RateTable {
    Steps(Vec<RateStep>),
    Trace(TraceFile),
    Generate(TraceModel),
}

/// The long form of a delay.
#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DelayTable {
    Steps(Vec<DelayStep>),
}

/// The long form of a queue discipline: its name, and changes to its defaults.
#[derive(serde::Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
enum AqmTable {
    DropTail,
    Codel(CodelConfig),
    FqCodel(FqCodelConfig),
    Pie(PieConfig),
    Red(RedConfig),
    Abc(AbcConfig),
}

impl<'de> Deserialize<'de> for RateSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrTable {
            expected: "a rate such as \"7.2mbit\", \"unlimited\", or a table with `steps`, `trace` or `generate`",
            parse: |text| match text {
                "unlimited" => Ok(RateSource::Unlimited),
                text => parse_rate(text).map(RateSource::Constant),
            },
            table: PhantomData::<RateTable>,
        })
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrTable {
            expected: "a time such as \"100ms\", or a table with `steps`",
            parse: |text| parse_duration(text).map(Delay::Constant),
            table: PhantomData::<DelayTable>,
        })
    }
}

impl<'de> Deserialize<'de> for Aqm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrTable {
            expected: "\"codel\", \"fq-codel\", \"pie\", \"red\", \"abc\", \"drop-tail\", or a table with one of them as its `name`",
            parse: parse_aqm,
            table: PhantomData::<AqmTable>,
        })
    }
}

impl<'de> Deserialize<'de> for QueueLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse_queue(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl From<AqmTable> for Aqm {
    fn from(table: AqmTable) -> Self {
        match table {
            AqmTable::DropTail => Aqm::DropTail,
            AqmTable::Codel(config) => Aqm::Codel(config),
            AqmTable::FqCodel(config) => Aqm::FqCodel(config),
            AqmTable::Pie(config) => Aqm::Pie(config),
            AqmTable::Red(config) => Aqm::Red(config),
            AqmTable::Abc(config) => Aqm::Abc(config),
        }
    }
}

impl From<RateTable> for RateSource {
    fn from(table: RateTable) -> Self {
        match table {
            RateTable::Steps(steps) => RateSource::Steps(steps),
            RateTable::Trace(file) => RateSource::Trace(file),
            RateTable::Generate(model) => RateSource::Generate(model),
        }
    }
}

impl From<DelayTable> for Delay {
    fn from(DelayTable::Steps(steps): DelayTable) -> Self {
        Delay::Steps(steps)
    }
}

struct TextOrTable<Value, Table> {
    expected: &'static str,
    parse: fn(&str) -> Result<Value, UnitError>,
    table: PhantomData<Table>,
}

impl<'de, Value: From<Table>, Table: Deserialize<'de>> Visitor<'de> for TextOrTable<Value, Table> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        (self.parse)(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
        Table::deserialize(MapAccessDeserializer::new(map)).map(Value::from)
    }
}
