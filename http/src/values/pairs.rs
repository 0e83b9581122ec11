//! JSON in which a map may be a list of pairs, as layer_cake writes it: `[["a",1]]`.
//!
//! A struct is an object, and so is a map with names for keys. What the type asks for decides what a
//! list is.

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::problem::DecodeProblem;

pub(super) struct PairsValue(pub(super) Value);

impl PairsValue {
    /// Reads the value of some JSON.
    pub(super) fn of(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json).map(PairsValue)
    }
}

impl<'de> Deserializer<'de> for PairsValue {
    type Error = DecodeProblem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        match self.0 {
            Value::Array(list) => {
                let mut list = SeqDeserializer::new(list.into_iter().map(PairsValue));
                let value = visitor.visit_seq(&mut list)?;
                list.end()?;
                Ok(value)
            }
            Value::Object(object) => {
                let members = object.into_iter();
                let members = members.map(|(key, value)| (key, PairsValue(value)));
                let mut members = MapDeserializer::new(members);
                let value = visitor.visit_map(&mut members)?;
                members.end()?;
                Ok(value)
            }
            other => other
                .deserialize_any(visitor)
                .map_err(DecodeProblem::of_member),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        let Value::Array(list) = self.0 else {
            return self.deserialize_any(visitor);
        };
        let pair = |pair: Value| match pair {
            Value::Array(pair) => <[Value; 2]>::try_from(pair).ok(),
            _ => None,
        };
        let pairs: Option<Vec<_>> = list.into_iter().map(pair).collect();
        let pairs = pairs.ok_or(DecodeProblem::new("a map is no list of pairs"))?;
        let pairs = pairs.into_iter();
        let pairs = pairs.map(|[key, value]| (PairsValue(key), PairsValue(value)));
        visitor.visit_map(MapDeserializer::new(pairs))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        match self.0 {
            Value::Object(object) if object.len() == 1 => {
                let members = object.into_iter();
                let members = members.map(|(key, value)| (key, PairsValue(value)));
                let variant = MapAccessDeserializer::new(MapDeserializer::new(members));
                variant.deserialize_enum(name, variants, visitor)
            }
            other => other
                .deserialize_enum(name, variants, visitor)
                .map_err(DecodeProblem::of_member),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, DecodeProblem> for PairsValue {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::PairsValue;

    fn read<T: DeserializeOwned>(json: &str) -> Result<T, String> {
        let value = PairsValue::of(json).unwrap();
        T::deserialize(value).map_err(|problem| problem.to_string())
    }

    #[derive(Debug, Deserialize, PartialEq)]
    enum Shape {
        Point,
        Circle(u32),
        Named { names: BTreeMap<u8, Option<String>> },
    }

    #[test]
    fn a_map_is_a_list_of_pairs_or_an_object() {
        let map = BTreeMap::from([(1, "a".to_owned()), (2, "b".to_owned())]);
        assert_eq!(read(r#"[[1,"a"],[2,"b"]]"#), Ok(map));
        let named = BTreeMap::from([("a".to_owned(), 1)]);
        assert_eq!(read(r#"{"a":1}"#), Ok(named));
        type Deep = HashMap<String, Vec<HashMap<(u8, u8), f64>>>;
        let deep: Deep = read(r#"[["a",[[[[1,2],0.5]]]]]"#).unwrap();
        assert_eq!(deep["a"][0][&(1, 2)], 0.5);
        assert_eq!(read("[]"), Ok(BTreeMap::<u8, u8>::new()));
        for wrong in ["[1]", "[[1]]", "[[1,2,3]]", "1", r#"[["a","b"]]"#] {
            assert!(read::<BTreeMap<String, u8>>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_values_are_as_they_are_in_json() {
        assert_eq!(read(r#""Point""#), Ok(Shape::Point));
        assert_eq!(read(r#"{"Circle":3}"#), Ok(Shape::Circle(3)));
        let names = BTreeMap::from([(7, None)]);
        assert_eq!(
            read(r#"{"Named":{"names":[[7,null]]}}"#),
            Ok(Shape::Named { names })
        );
        assert_eq!(read("[1,2]"), Ok(vec![1, 2]));
        assert_eq!(read(r#"[1,"a"]"#), Ok((1, "a".to_owned())));
        assert!(read::<(u8, u8)>("[1,2,3]").is_err());
        assert!(read::<u8>("256").is_err());
    }
}
