//! A key that takes one value or several: `"10.0.0.0/8"`, `443`, `["af41", 46]`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// The values as text.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Several)
    }
}

struct Several;

impl<'de> Visitor<'de> for Several {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
        Ok(Words(vec![text.to_owned()]))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Words, E> {
        Ok(Words(vec![number.to_string()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Words, A::Error> {
        let mut words = Vec::new();
        while let Some(Words(more)) = items.next_element()? {
            words.extend(more);
        }
        if words.is_empty() {
            return Err(A::Error::custom(
                "an empty list matches nothing; leave the key out to match everything",
            ));
        }
        Ok(Words(words))
    }
}
