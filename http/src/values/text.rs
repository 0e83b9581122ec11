//! One field of a query or a form: numbers, lists and maps as JSON, strings without quotes.

use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::pairs::PairsValue;
use super::problem::DecodeProblem;
use super::rules::JsonRules;
use super::strict::MapForm;

/// The text of a field, as a value of the type that the field has.
#[derive(Clone, Copy)]
pub(super) struct FieldText<'a> {
    text: &'a str,
    rules: JsonRules,
    /// Where a type takes any value, JSON is one. Otherwise each text is a string.
    is_json: bool,
}

/// Calls a method of the deserializer of JSON.
macro_rules! as_json {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
            match self.rules.maps {
                MapForm::Object => self.json(|json| json.$method(visitor)),
                MapForm::Pairs => self.pairs()?.$method(visitor),
            }
        }
    )*};
}

impl<'a> FieldText<'a> {
    pub(super) fn new(text: &'a str, rules: JsonRules, is_json: bool) -> Self {
        FieldText {
            text,
            rules,
            is_json,
        }
    }

    fn json<R>(
        self,
        read: impl FnOnce(
            &mut serde_json::Deserializer<serde_json::de::StrRead<'a>>,
        ) -> serde_json::Result<R>,
    ) -> Result<R, DecodeProblem> {
        self.rules.check(self.text.as_bytes())?;
        let mut json = serde_json::Deserializer::from_str(self.text);
        let value = read(&mut json).map_err(DecodeProblem::custom)?;
        json.end().map_err(DecodeProblem::custom)?;
        Ok(value)
    }

    /// Returns the value of JSON in which maps may be lists of pairs.
    fn pairs(self) -> Result<PairsValue, DecodeProblem> {
        self.rules.check(self.text.as_bytes())?;
        PairsValue::of(self.text).map_err(DecodeProblem::custom)
    }
}

impl<'de> Deserializer<'de> for FieldText<'de> {
    type Error = DecodeProblem;

    as_json! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_u128 deserialize_f32 deserialize_f64 deserialize_seq deserialize_map
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        let value = match self.is_json {
            true => serde_json::from_str(self.text).ok(),
            false => None,
        };
        match value.filter(|value: &Value| !value.is_string()) {
            Some(_) => self.json(|json| json.deserialize_any(visitor)),
            None => visitor.visit_borrowed_str(self.text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        match self.rules.maps {
            MapForm::Object => self.json(|json| json.deserialize_struct(name, fields, visitor)),
            MapForm::Pairs => self.pairs()?.deserialize_struct(name, fields, visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        match (self.text.starts_with(['{', '"']), self.rules.maps) {
            (true, MapForm::Object) => {
                self.json(|json| json.deserialize_enum(name, variants, visitor))
            }
            (true, MapForm::Pairs) => self.pairs()?.deserialize_enum(name, variants, visitor),
            (false, _) => {
                let text: serde::de::value::StrDeserializer<'_, DecodeProblem> =
                    self.text.into_deserializer();
                text.deserialize_enum(name, variants, visitor)
            }
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        visitor.visit_borrowed_str(self.text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        visitor.visit_borrowed_str(self.text)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        visitor.visit_borrowed_str(self.text)
    }

    fn deserialize_identifier<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        visitor.visit_borrowed_str(self.text)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        visitor.visit_borrowed_bytes(self.text.as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        visitor.visit_borrowed_bytes(self.text.as_bytes())
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        <()>::deserialize(as_null(self.text)?)?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        self.deserialize_unit(visitor)
    }

    forward_to_deserialize_any! { ignored_any }
}

/// The key of a member: a string, unless its type takes no string.
pub(super) struct MemberKey<'a>(pub(super) &'a str);

/// Calls a method of the deserializer of a text.
macro_rules! as_text {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
            const NONE: JsonRules = JsonRules {
                depth: 1,
                list: 1,
                maps: MapForm::Object,
            };
            FieldText::new(self.0, NONE, false).$method(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for MemberKey<'de> {
    type Error = DecodeProblem;

    as_text! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        visitor.visit_some(self)
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
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// Returns the only value of a unit, if the text is `null`.
fn as_null(text: &str) -> Result<serde::de::value::UnitDeserializer<DecodeProblem>, DecodeProblem> {
    match text {
        "null" => Ok(().into_deserializer()),
        _ => Err(DecodeProblem::new("expected null")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::IpAddr;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::{FieldText, JsonRules, MapForm};

    fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
        read_with(MapForm::Object, text)
    }

    fn read_with<T: DeserializeOwned>(maps: MapForm, text: &str) -> Result<T, String> {
        let (depth, list) = (4, 4);
        let rules = JsonRules { depth, list, maps };
        T::deserialize(FieldText::new(text, rules, true)).map_err(|problem| problem.to_string())
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Color {
        Red,
        Mixed(u8, u8),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        map: BTreeMap<String, u8>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Nested {
        Of(BTreeMap<String, u8>),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Meters(f64);

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(untagged)]
    enum Either {
        Number(u32),
        Word(String),
    }

    #[test]
    fn numbers_bools_lists_and_maps_are_json() {
        assert_eq!(read("-7"), Ok(-7_i64));
        assert_eq!(
            read("340282366920938463463374607431768211455"),
            Ok(u128::MAX)
        );
        assert_eq!(read("2.5e3"), Ok(2500.0));
        assert_eq!(read("true"), Ok(true));
        assert_eq!(read("[1,2]"), Ok(vec![1, 2]));
        assert_eq!(read("[1,\"a\"]"), Ok((1, "a".to_owned())));
        assert_eq!(read("{\"a\":1}"), Ok(BTreeMap::from([("a".to_owned(), 1)])));
        assert_eq!(read("7"), Ok(Meters(7.0)));
        assert_eq!(read("7"), Ok(Some(7)));
        assert_eq!(read("null"), Ok(()));
    }

    #[test]
    fn maps_may_be_lists_of_pairs() {
        let map = Ok(BTreeMap::from([("a".to_owned(), 1)]));
        assert_eq!(read_with(MapForm::Pairs, r#"[["a",1]]"#), map);
        assert_eq!(read_with(MapForm::Pairs, r#"{"a":1}"#), map);
        assert_eq!(read_with(MapForm::Pairs, "2.5e3"), Ok(2500.0));
        // Also within a struct, and in an enum.
        let nested = r#"{"map":[["a",1]]}"#;
        let map = BTreeMap::from([("a".to_owned(), 1)]);
        let inner = Ok(Inner { map: map.clone() });
        assert_eq!(read_with(MapForm::Pairs, nested), inner);
        let of = r#"{"of":[["a",1]]}"#;
        assert_eq!(read_with(MapForm::Pairs, of), Ok(Nested::Of(map)));
        assert!(read::<BTreeMap<String, u8>>(r#"[["a",1]]"#).is_err());
    }

    #[test]
    fn strings_enums_and_what_is_read_from_strings_have_no_quotes() {
        assert_eq!(read("\"quoted\""), Ok("\"quoted\"".to_owned()));
        assert_eq!(read("17"), Ok("17".to_owned()));
        assert_eq!(read("x"), Ok('x'));
        assert_eq!(read("red"), Ok(Color::Red));
        assert_eq!(read("{\"mixed\":[1,2]}"), Ok(Color::Mixed(1, 2)));
        assert_eq!(
            read("127.0.0.1"),
            Ok("127.0.0.1".parse::<IpAddr>().unwrap())
        );
        assert_eq!(read("5"), Ok(Either::Number(5)));
        assert_eq!(read("five"), Ok(Either::Word("five".to_owned())));
    }

    #[test]
    fn only_what_is_read_as_json_has_its_limits() {
        assert_eq!(read("[[[[[["), Ok("[[[[[[".to_owned()));
        assert_eq!(
            read("[a,b,c,d,e"),
            Ok(Either::Word("[a,b,c,d,e".to_owned()))
        );
        let deep = read::<Vec<Vec<Vec<Vec<Vec<u8>>>>>>("[[[[[]]]]]");
        assert_eq!(deep.unwrap_err(), "JSON is deeper than 4");
        let long = read::<Vec<u8>>("[1,2,3,4,5]");
        assert_eq!(long.unwrap_err(), "a list is longer than 4");
    }

    #[test]
    fn a_text_of_another_type_is_refused() {
        for wrong in ["", "1 2", "256", "-1", "1.5", "\"1\"", "0x1", "NaN"] {
            assert!(read::<u8>(wrong).is_err(), "{wrong}");
        }
        assert!(read::<Color>("blue").unwrap_err().contains("blue"));
        assert!(read::<bool>("1").is_err());
        assert!(read::<()>("").is_err());
        assert!(read::<Either>("[1]").is_err());
    }
}
