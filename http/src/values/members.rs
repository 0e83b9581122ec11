//! A value whose members have names: of a query, of a form, or of an object of JSON.
//!
//! A member that its type does not have is refused, if the type tells its members.

use std::vec;

use serde::Deserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::fields::Field;
use super::problem::Problem;
use super::text::Text;

/// Reads a value from the fields of a query or a form, for the type of this name.
pub(crate) fn from_fields<T: DeserializeOwned>(
    name: &str,
    fields: &[Field<'_>],
) -> Result<T, Problem> {
    let members = fields.iter();
    let members = members.map(|(key, value)| (&**key, Member::Text(value)));
    read(name, "query", members.collect())
}

/// Reads a value from an object of JSON.
pub(super) fn from_object<T: DeserializeOwned>(
    name: &str,
    object: &serde_json::Map<String, Value>,
) -> Result<T, Problem> {
    let members = object.iter();
    let members = members.map(|(key, value)| (&**key, Member::Json(value)));
    read(name, "body", members.collect())
}

fn read<'a, T: DeserializeOwned>(
    name: &'a str,
    part: &'static str,
    members: Vec<(&'a str, Member<'a>)>,
) -> Result<T, Problem> {
    T::deserialize(Members {
        name,
        part,
        members,
    })
}

#[derive(Clone, Copy)]
enum Member<'a> {
    Text(&'a str),
    Json(&'a Value),
}

struct Members<'a> {
    name: &'a str,
    /// The part of the request in which they are.
    part: &'static str,
    members: Vec<(&'a str, Member<'a>)>,
}

impl<'de> Members<'de> {
    fn check(&self, known: &[&str]) -> Result<(), Problem> {
        let unknown = self.members.iter().find(|(key, _)| !known.contains(key));
        match unknown {
            Some((key, _)) => Err(Problem::unknown_key(key, self.name, self.part)),
            None => Ok(()),
        }
    }

    /// Reads an object of JSON as JSON, for types that are neither structs nor maps.
    fn into_object(self) -> Value {
        let members = self.members.into_iter().map(|(key, member)| {
            let value = match member {
                Member::Text(text) => Value::from(text),
                Member::Json(value) => value.clone(),
            };
            (key.to_owned(), value)
        });
        Value::Object(members.collect())
    }
}

impl<'de> Deserializer<'de> for Members<'de> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_map(Access {
            members: self.members.into_iter(),
            next: None,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.check(fields)?;
        self.deserialize_any(visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.check(&[])?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let object = self.into_object();
        object
            .deserialize_enum(name, variants, visitor)
            .map_err(Problem::custom)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        seq tuple tuple_struct map identifier ignored_any
    }
}

struct Access<'de> {
    members: vec::IntoIter<(&'de str, Member<'de>)>,
    /// The member whose key was read.
    next: Option<(&'de str, Member<'de>)>,
}

impl<'de> MapAccess<'de> for Access<'de> {
    type Error = Problem;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Problem> {
        self.next = self.members.next();
        let Some((key, _)) = self.next else {
            return Ok(None);
        };
        seed.deserialize(serde::de::value::BorrowedStrDeserializer::new(key))
            .map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Problem> {
        let Some((key, member)) = self.next.take() else {
            return Err(Problem::new("a member has no key"));
        };
        match member {
            Member::Text(text) => seed
                .deserialize(Text(text))
                .map_err(|why| Problem::no_conversion(key, why)),
            Member::Json(value) => seed
                .deserialize(value)
                .map_err(|why| Problem::no_conversion(key, why)),
        }
    }
}
