//! MessagePack for types that know the kind of each value.
//!
//! rmp-serde asks each value for its kind, and offers each type every kind of value. For all types of the state this
//! made 2 MB of machine code. Here each type asks for the kind it expects, and another kind is an error. The reader
//! accepts all that rmp-serde writes with names, except numbers of 128 bits. Only flattened types (`serde(flatten)`)
//! take any value: the fields of their parts are buffered until each part is read.

use std::fmt;

use rmp::Marker;
use rmp::decode;
use serde::Deserialize;
use serde::de::{
    self, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// Reads a value at the start of `bytes`.
pub(super) fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Error> {
    T::deserialize(&mut Reader { rest: bytes, depth: 0 })
}

/// Why a value is not as expected.
#[derive(Debug)]
pub(super) struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error(message.to_string())
    }
}

type Result<T, E = Error> = std::result::Result<T, E>;

/// Largest nesting of buffered values. Each level takes stack. The state has six levels.
const DEPTH_MAX: u32 = 64;

struct Reader<'de> {
    rest: &'de [u8],
    /// Nesting of the value that is being buffered.
    depth: u32,
}

impl<'de> Reader<'de> {
    fn peek(&self) -> Result<Marker> {
        self.rest.first().map(|byte| Marker::from_u8(*byte)).ok_or_else(|| expected("more"))
    }

    fn unsigned(&mut self) -> Result<u64> {
        decode::read_int(&mut self.rest).map_err(|_| expected("a number"))
    }

    fn signed(&mut self) -> Result<i64> {
        decode::read_int(&mut self.rest).map_err(|_| expected("a number with a sign"))
    }

    fn array_len(&mut self) -> Result<u32> {
        decode::read_array_len(&mut self.rest).map_err(|_| expected("a list"))
    }

    fn map_len(&mut self) -> Result<u32> {
        decode::read_map_len(&mut self.rest).map_err(|_| expected("a map"))
    }

    fn text(&mut self) -> Result<&'de str> {
        let (text, rest) = decode::read_str_from_slice(self.rest).map_err(|_| expected("a text"))?;
        self.rest = rest;
        Ok(text)
    }

    fn bytes(&mut self) -> Result<&'de [u8]> {
        let len = decode::read_bin_len(&mut self.rest).map_err(|_| expected("bytes"))?;
        self.take(len as usize)
    }

    fn take(&mut self, len: usize) -> Result<&'de [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(|| expected("more"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn nothing(&mut self) -> Result<()> {
        // A unit struct is an empty list.
        match self.peek()? {
            Marker::Null | Marker::FixArray(0) => self.take(1).map(drop),
            _ => Err(expected("nothing")),
        }
    }

    /// Skips an unknown value, without recursion.
    fn skip(&mut self) -> Result<()> {
        let mut values = 1_u64;
        while values > 0 {
            values = values - 1 + self.skip_one()?;
        }
        Ok(())
    }

    /// Skips one value. Returns the number of values that belong to it and follow.
    fn skip_one(&mut self) -> Result<u64> {
        let marker = self.peek()?;
        let len = match marker {
            Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
                return self.array_len().map(u64::from);
            }
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
                return self.map_len().map(|len| 2 * u64::from(len));
            }
            Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
                decode::read_str_len(&mut self.rest).map_err(|_| expected("a text"))? as usize
            }
            Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => return self.bytes().map(|_| 0),
            Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::True | Marker::False => 1,
            Marker::U8 | Marker::I8 => 2,
            Marker::U16 | Marker::I16 => 3,
            Marker::U32 | Marker::I32 | Marker::F32 => 5,
            Marker::U64 | Marker::I64 | Marker::F64 => 9,
            _ => return Err(expected("a known kind of value")),
        };
        self.take(len).map(|_| 0)
    }

    fn list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let mut items = Items { left: self.array_len()?, reader: self };
        let value = visitor.visit_seq(&mut items)?;
        items.end().map(|()| value)
    }

    fn map<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let mut items = Items { left: self.map_len()?, reader: self };
        let value = visitor.visit_map(&mut items)?;
        items.end().map(|()| value)
    }
}

fn expected(what: &str) -> Error {
    Error(format!("{what} should be there"))
}

macro_rules! read {
    ($($method:ident $visit:ident $read:expr,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            #[allow(clippy::redundant_closure_call)]
            visitor.$visit(($read)(&mut *self)?)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    read! {
        deserialize_u8 visit_u64 Reader::unsigned,
        deserialize_u16 visit_u64 Reader::unsigned,
        deserialize_u32 visit_u64 Reader::unsigned,
        deserialize_u64 visit_u64 Reader::unsigned,
        deserialize_i8 visit_i64 Reader::signed,
        deserialize_i16 visit_i64 Reader::signed,
        deserialize_i32 visit_i64 Reader::signed,
        deserialize_i64 visit_i64 Reader::signed,
        deserialize_str visit_borrowed_str Reader::text,
        deserialize_string visit_borrowed_str Reader::text,
        deserialize_char visit_borrowed_str Reader::text,
        deserialize_identifier visit_borrowed_str Reader::text,
        deserialize_bytes visit_borrowed_bytes Reader::bytes,
        deserialize_byte_buf visit_borrowed_bytes Reader::bytes,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(expected("fewer values within each other"));
        }
        let value = match self.peek()? {
            Marker::Null => self.take(1).and_then(|_| visitor.visit_unit()),
            Marker::True | Marker::False => self.deserialize_bool(visitor),
            Marker::FixPos(_) | Marker::U8 | Marker::U16 | Marker::U32 | Marker::U64 => {
                visitor.visit_u64(self.unsigned()?)
            }
            Marker::FixNeg(_) | Marker::I8 | Marker::I16 | Marker::I32 | Marker::I64 => {
                visitor.visit_i64(self.signed()?)
            }
            Marker::F32 => self.deserialize_f32(visitor),
            Marker::F64 => self.deserialize_f64(visitor),
            Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => self.deserialize_str(visitor),
            Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => self.deserialize_bytes(visitor),
            Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => self.list(visitor),
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => self.map(visitor),
            _ => Err(expected("a known kind of value")),
        };
        self.depth -= 1;
        value
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_bool(decode::read_bool(&mut self.rest).map_err(|_| expected("true or false"))?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_f32(decode::read_f32(&mut self.rest).map_err(|_| expected("a short fraction"))?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_f64(decode::read_f64(&mut self.rest).map_err(|_| expected("a fraction"))?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.peek()? {
            Marker::Null => self.take(1).and_then(|_| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.nothing().and_then(|()| visitor.visit_unit())
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.list(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.list(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let has_content = matches!(self.peek()?, Marker::FixMap(_) | Marker::Map16 | Marker::Map32);
        if has_content && self.map_len()? != 1 {
            return Err(expected("one variant"));
        }
        visitor.visit_enum(Variant { reader: self, has_content })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.skip().and_then(|()| visitor.visit_unit())
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The remaining items of a list or a map.
struct Items<'a, 'de> {
    left: u32,
    reader: &'a mut Reader<'de>,
}

impl Items<'_, '_> {
    fn next(&mut self) -> bool {
        let more = self.left > 0;
        self.left = self.left.saturating_sub(1);
        more
    }

    /// Bounds the promised length: each item takes at least one byte.
    fn hint(&self) -> Option<usize> {
        Some((self.left as usize).min(self.reader.rest.len()))
    }

    fn end(&self) -> Result<()> {
        if self.left == 0 { Ok(()) } else { Err(expected("fewer items")) }
    }
}

impl<'de> SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if self.next() { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }

    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

impl<'de> MapAccess<'de> for &mut Items<'_, 'de> {
    type Error = Error;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if self.next() { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

/// The name of a variant, and its content, if there is any.
struct Variant<'a, 'de> {
    reader: &'a mut Reader<'de>,
    has_content: bool,
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self)> {
        // IpAddr and SocketAddr have their variants by number or by name.
        let name: de::value::BorrowedStrDeserializer<'de, Error> = match self.reader.peek()? {
            Marker::FixPos(number) => {
                self.reader.take(1)?;
                return Ok((seed.deserialize(u32::from(number).into_deserializer())?, self));
            }
            _ => de::value::BorrowedStrDeserializer::new(self.reader.text()?),
        };
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<()> {
        if self.has_content { self.reader.nothing() } else { Ok(()) }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        self.content()?;
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.content()?;
        self.reader.list(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value> {
        self.content()?;
        self.reader.map(visitor)
    }
}

impl Variant<'_, '_> {
    fn content(&self) -> Result<()> {
        if self.has_content { Ok(()) } else { Err(expected("the content of a variant")) }
    }
}

#[cfg(test)]
mod tests;
