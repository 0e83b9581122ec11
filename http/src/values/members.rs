//! A value whose members have names: of a query, of a form, or of an object of JSON.
//!
//! A member that its type does not have is refused, if the type lists its members.

use std::vec;

use serde::Deserializer;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use super::fields::FieldList;
use super::pairs::PairsValue;
use super::problem::DecodeProblem;
use super::rules::JsonRules;
use super::strict::MapForm;
use super::text::{FieldText, MemberKey};

/// Reads a value from the fields of a query or a form, for the type of this name.
pub(crate) fn from_fields<T: DeserializeOwned>(
    name: &str,
    rules: JsonRules,
    fields: &FieldList<'_>,
) -> Result<T, DecodeProblem> {
    let read = |is_json| {
        let text = |text| MemberValue::FieldText(FieldText::new(text, rules, is_json));
        let members = fields.right.iter();
        let members = members.map(|(key, value)| (&**key, text(&**value)));
        read(name, "query", members.collect(), fields.problem.clone())
    };
    let problem = match read(true) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    // A type that takes any value, such as a flattened one, may want `17` as a string.
    read(false).map_err(|_| problem)
}

/// Reads a value from the members of an object of JSON.
pub(super) fn from_object<'a, T: DeserializeOwned>(
    name: &'a str,
    maps: MapForm,
    members: impl Iterator<Item = (&'a str, &'a RawValue)>,
) -> Result<T, DecodeProblem> {
    let members = members.map(|(key, value)| (key, MemberValue::Json(value, maps)));
    read(name, "body", members.collect(), None)
}

fn read<'a, T: DeserializeOwned>(
    name: &'a str,
    part: &'static str,
    members: Vec<(&'a str, MemberValue<'a>)>,
    problem: Option<DecodeProblem>,
) -> Result<T, DecodeProblem> {
    T::deserialize(NamedMembers {
        name,
        part,
        known: None,
        members: members.into_iter(),
        next: None,
        problem,
    })
}

#[derive(Clone, Copy)]
enum MemberValue<'a> {
    FieldText(FieldText<'a>),
    Json(&'a RawValue, MapForm),
}

/// The members of a value of the type of this name.
struct NamedMembers<'a> {
    name: &'a str,
    /// The part of the request in which they are.
    part: &'static str,
    /// The members that the type has, if it lists them.
    known: Option<&'static [&'static str]>,
    members: vec::IntoIter<(&'a str, MemberValue<'a>)>,
    /// The member whose key was read.
    next: Option<(&'a str, MemberValue<'a>)>,
    /// What is wrong behind the last member.
    problem: Option<DecodeProblem>,
}

impl<'a> NamedMembers<'a> {
    /// Takes the next member, unless it, or what is in its place, is wrong.
    fn take(&mut self) -> Result<Option<(&'a str, MemberValue<'a>)>, DecodeProblem> {
        let Some(next) = self.members.next() else {
            return self.problem.take().map_or(Ok(None), Err);
        };
        match self.known {
            Some(known) if !known.contains(&next.0) => {
                Err(DecodeProblem::unknown_key(next.0, self.name, self.part))
            }
            _ => Ok(Some(next)),
        }
    }
}

impl<'de> Deserializer<'de> for NamedMembers<'de> {
    type Error = DecodeProblem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        visitor.visit_map(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        self.known = Some(fields);
        self.deserialize_any(visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, DecodeProblem> {
        self.known = Some(&[]);
        self.take()?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeProblem> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeProblem> {
        self.known = Some(variants);
        if self.members.len() > 1 {
            return Err(DecodeProblem::new("more than one variant"));
        }
        MapAccessDeserializer::new(self).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        seq tuple tuple_struct map identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for NamedMembers<'de> {
    type Error = DecodeProblem;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DecodeProblem> {
        self.next = self.take()?;
        let Some((key, _)) = self.next else {
            return Ok(None);
        };
        seed.deserialize(MemberKey(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, DecodeProblem> {
        let Some((key, member)) = self.next.take() else {
            return Err(DecodeProblem::new("a member has no key"));
        };
        let read = match member {
            MemberValue::FieldText(text) => seed.deserialize(text),
            MemberValue::Json(value, MapForm::Pairs) => {
                let value = PairsValue::of(value.get()).map_err(DecodeProblem::of_member);
                value.and_then(|value| seed.deserialize(value))
            }
            MemberValue::Json(value, MapForm::Object) => {
                let mut json = serde_json::Deserializer::from_str(value.get());
                seed.deserialize(&mut json)
                    .map_err(DecodeProblem::of_member)
            }
        };
        read.map_err(|problem| problem.of_key(key))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::super::{JsonRules, MapForm, fields, from_json};
    use super::from_fields;

    const RULES: JsonRules = JsonRules {
        depth: 8,
        list: 8,
        maps: MapForm::Object,
    };

    fn of_query<T: DeserializeOwned>(query: &str) -> Result<T, String> {
        from_fields("T", RULES, &fields(query)).map_err(|problem| problem.to_string())
    }

    /// Reads the same value from a query and from an object.
    fn both<T: DeserializeOwned + PartialEq + std::fmt::Debug>(query: &str, json: &str) -> T {
        let value = of_query(query).unwrap();
        let of_json = from_json("T", RULES, json.as_bytes());
        assert_eq!(of_json.as_ref(), Ok(&value));
        value
    }

    #[derive(Debug, Deserialize, PartialEq, Eq, Hash)]
    struct Id(String);

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Strict {
        large_number: u128,
        least: i128,
        sign: char,
        id: Option<Id>,
        #[serde(rename = "type", default)]
        kind: String,
        pair: (u8, Id),
        inner: Option<Box<Strict>>,
    }

    #[test]
    fn members_of_any_type_are_read() {
        let strict: Strict = both(
            "largeNumber=340282366920938463463374607431768211455&id=7&sign=1&pair=[1,\"a\"]\
             &least=-170141183460469231731687303715884105728&type=null",
            r#"{"largeNumber":340282366920938463463374607431768211455,"id":"7","sign":"1",
                "pair":[1,"a"],"least":-170141183460469231731687303715884105728,"type":"null"}"#,
        );
        assert_eq!((strict.large_number, strict.least), (u128::MAX, i128::MIN));
        assert_eq!(strict.id, Some(Id("7".to_owned())));
        assert_eq!((&*strict.kind, strict.inner), ("null", None));
        let unknown = of_query::<Strict>("large_number=1").unwrap_err();
        assert_eq!(unknown, "unknown key \"large_number\" in \"T\" query");
    }

    #[derive(Debug, Deserialize, PartialEq)]
    enum Shape {
        Point,
        Circle(u32),
        Named(String),
        Line(u8, u8),
        Rectangle { width: u32 },
    }

    #[test]
    fn a_message_may_be_an_enum_a_map_or_nothing() {
        let circle: Shape = both("Circle=3", r#"{"Circle":3}"#);
        assert_eq!(circle, Shape::Circle(3));
        let named: Shape = both("Named=3", r#"{"Named":"3"}"#);
        assert_eq!(named, Shape::Named("3".to_owned()));
        let line: Shape = both("Line=[1,2]", r#"{"Line":[1,2]}"#);
        assert_eq!(line, Shape::Line(1, 2));
        let rectangle: Shape = both(r#"Rectangle={"width":2}"#, r#"{"Rectangle":{"width":2}}"#);
        assert_eq!(rectangle, Shape::Rectangle { width: 2 });
        assert_eq!(
            both::<Shape>("Point=null", r#"{"Point":null}"#),
            Shape::Point
        );
        // The form in which serde itself writes a variant without a value.
        assert_eq!(from_json("T", RULES, b"\"Point\""), Ok(Shape::Point));
        for (wrong, why) in [
            ("Cube=1", "unknown key \"Cube\" in \"T\" query"),
            ("Circle=1&Line=[1,2]", "more than one variant"),
            (
                "Circle=a",
                "no conversion for \"Circle\" (expected value at line 1 column 1)",
            ),
        ] {
            assert_eq!(of_query::<Shape>(wrong).unwrap_err(), why);
        }
        assert!(of_query::<Shape>("").is_err());
        let numbers: HashMap<u8, Id> = both("7=a&8=9", r#"{"7":"a","8":"9"}"#);
        assert_eq!(
            numbers,
            HashMap::from([(7, Id("a".into())), (8, Id("9".into()))])
        );
        let ids: HashMap<Id, bool> = both("1=true", r#"{"1":true}"#);
        assert!(ids[&Id("1".to_owned())]);
        both::<()>("", "{}");
        assert!(
            of_query::<()>("a=1")
                .unwrap_err()
                .starts_with("unknown key")
        );
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Page {
        #[serde(default)]
        offset: u32,
        #[serde(default)]
        word: String,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Search {
        text: String,
        #[serde(flatten)]
        page: Page,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    enum Tagged {
        Text { text: String },
        Number { number: u64 },
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(untagged)]
    enum Either {
        Numbers { values: Vec<u8> },
        Word { word: String },
    }

    #[test]
    fn flattened_tagged_and_untagged_values_are_read() {
        let search: Search = both("offset=3&text=1", r#"{"offset":3,"text":"1"}"#);
        assert_eq!((search.page.offset, &*search.text), (3, "1"));
        // A flattened member is read without its type: `17` as a number, and then as text.
        let search: Search = both("word=17&text=1", r#"{"word":"17","text":"1"}"#);
        assert_eq!(search.page.word, "17");
        let tagged: Tagged = both("kind=number&number=3", r#"{"kind":"number","number":3}"#);
        assert_eq!(tagged, Tagged::Number { number: 3 });
        let tagged: Tagged = both("kind=text&text=true", r#"{"kind":"text","text":"true"}"#);
        assert_eq!(
            tagged,
            Tagged::Text {
                text: "true".to_owned()
            }
        );
        let either: Either = both("values=[1]", r#"{"values":[1]}"#);
        assert_eq!(either, Either::Numbers { values: vec![1] });
        let either: Either = both("word=[1]", r#"{"word":"[1]"}"#);
        assert_eq!(
            either,
            Either::Word {
                word: "[1]".to_owned()
            }
        );
        let any: BTreeMap<String, serde_json::Value> = both("a=1&b=x", r#"{"a":1,"b":"x"}"#);
        assert_eq!(any["b"], "x");
    }

    #[test]
    fn the_first_wrong_member_is_named_and_none_may_come_twice() {
        let of_json = |json: &str| {
            let read = from_json::<Page>("T", RULES, json.as_bytes());
            read.unwrap_err().to_string()
        };
        let why = "no conversion for \"word\" (invalid type: integer `1`, expected a string)";
        assert_eq!(of_json(r#"{"word":1,"offset":"a"}"#), why);
        assert_eq!(
            of_json(r#"{"word":"a","word":"b"}"#),
            "duplicate field `word`"
        );
        let twice = of_query::<Page>("word=a&word=b").unwrap_err();
        assert_eq!(twice, "duplicate field `word`");
        let forged = of_query::<Page>("a\") (\u{7f}=1").unwrap_err();
        assert_eq!(forged, "unknown key \"a\\\") (\" in \"T\" query");
    }
}
