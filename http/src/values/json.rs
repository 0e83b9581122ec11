//! A body of JSON: the value itself, or the envelope of layer_cake around it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::members::from_object;
use super::pairs::PairsValue;
use super::problem::DecodeProblem;
use super::rules::JsonRules;
use super::strict::MapForm;

/// Reads a value of the type of this name.
///
/// The body is the value, `{"value": ..}` around it, or `{"value": ["Type", .., []]}`. An object
/// with the only member `value` is an envelope, unless only the object itself is of the type.
pub(crate) fn from_json<T: DeserializeOwned>(
    name: &str,
    rules: JsonRules,
    body: &[u8],
) -> Result<T, DecodeProblem> {
    rules.check(body)?;
    let body: &RawValue = serde_json::from_slice(body).map_err(DecodeProblem::custom)?;
    let envelope = match Object::of(body)? {
        Some(Object(mut members)) if members.len() == 1 => members.pop(),
        _ => None,
    };
    let Some((_, inner)) = envelope.filter(|(JsonKey(key), _)| key == "value") else {
        return read(name, rules, body);
    };
    // The value may be plain, have a name beside it, or be an object with a member `value`.
    let problem = match read(name, rules, inner) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    type Named<'a> = (JsonKey<'a>, &'a RawValue, Vec<IgnoredAny>);
    let named = serde_json::from_str::<Named<'_>>(inner.get());
    let named = named
        .ok()
        .and_then(|(_, value, _)| read(name, rules, value).ok());
    named
        .or_else(|| read(name, rules, body).ok())
        .ok_or(problem)
}

/// Reads a value of any type, in which maps have this form.
pub(crate) fn from_value<T: DeserializeOwned>(value: &Value, maps: MapForm) -> Result<T, String> {
    match maps {
        MapForm::Object => T::deserialize(value).map_err(|error| error.to_string()),
        MapForm::Pairs => {
            T::deserialize(PairsValue(value.clone())).map_err(|error| error.to_string())
        }
    }
}

fn read<T: DeserializeOwned>(
    name: &str,
    rules: JsonRules,
    json: &RawValue,
) -> Result<T, DecodeProblem> {
    match (Object::of(json)?, rules.maps) {
        (Some(Object(members)), maps) => {
            let members = members.iter().map(|(JsonKey(key), value)| (&**key, *value));
            from_object(name, maps, members)
        }
        (None, MapForm::Object) => serde_json::from_str(json.get()).map_err(DecodeProblem::custom),
        (None, MapForm::Pairs) => {
            let value = PairsValue::of(json.get()).map_err(DecodeProblem::custom)?;
            T::deserialize(value)
        }
    }
}

/// The members of an object, in their order.
struct Object<'a>(Vec<(JsonKey<'a>, &'a RawValue)>);

#[derive(Deserialize)]
struct JsonKey<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Object<'a> {
    /// Returns the members, if it is an object.
    fn of(json: &'a RawValue) -> Result<Option<Self>, DecodeProblem> {
        if !json.get().starts_with('{') {
            return Ok(None);
        }
        let object = serde_json::from_str(json.get());
        object.map(Some).map_err(DecodeProblem::custom)
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                // No map: whether a member may come twice, the type decides.
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Object(members))
            }
        }

        json.deserialize_map(ObjectVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{JsonRules, MapForm, from_json};

    #[derive(Debug, Deserialize, PartialEq)]
    struct Xy {
        #[serde(default)]
        x: u32,
        y: u32,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Setting {
        value: u32,
    }

    const RULES: JsonRules = JsonRules {
        depth: 8,
        list: 8,
        maps: MapForm::Object,
    };

    fn read<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, String> {
        from_json("Xy", RULES, body.as_bytes()).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_value_may_come_plain_or_in_an_envelope() {
        let xy = Ok(Xy { x: 1, y: 2 });
        assert_eq!(read("{\"x\":1,\"y\":2}"), xy);
        assert_eq!(read("{\"value\": {\"x\":1,\"y\":2}}"), xy);
        assert_eq!(
            read("{\"value\": [\"test_api.Xy\", {\"x\":1,\"y\":2}, []]}"),
            xy
        );
        assert_eq!(read("{\"y\":2}"), Ok(Xy { x: 0, y: 2 }));
        assert_eq!(read("{\"value\":7}"), Ok(Setting { value: 7 }));
        assert_eq!(read("{\"value\":{\"value\":7}}"), Ok(Setting { value: 7 }));
        assert_eq!(read("{\"value\":[1,2]}"), Ok(vec![1, 2]));
        assert_eq!(read("[1,2]"), Ok(vec![1, 2]));
        assert_eq!(read("{\"value\":[\"str\",\"a\",[]]}"), Ok("a".to_owned()));
    }

    #[test]
    fn what_is_not_of_the_type_is_refused() {
        let refused = |body| read::<Xy>(body).unwrap_err();
        let unknown = "unknown key \"zz\" in \"Xy\" body";
        assert_eq!(refused("{\"y\":2,\"zz\":1}"), unknown);
        assert_eq!(refused("{\"value\":{\"y\":2,\"zz\":1}}"), unknown);
        assert!(refused("{\"x\":\"a\",\"y\":2}").starts_with("no conversion for \"x\" ("));
        assert_eq!(refused("{}"), "missing field `y`");
        assert!(refused("{\"value\":3}").contains("invalid type"));
        for wrong in [
            "",
            "{",
            "{\"y\":2}}",
            "nul",
            "{'y':2}",
            "[[[[[[[[[1]]]]]]]]]",
        ] {
            assert!(!refused(wrong).is_empty(), "{wrong}");
        }
    }
}
