//! A body of JSON: the value itself, or the envelope of layer_cake around it.

use serde::de::{DeserializeOwned, Error};
use serde_json::Value;

use super::limits::JsonLimits;
use super::members::from_object;
use super::problem::Problem;

/// Reads a value of the type of this name.
///
/// The body is the value, `{"value": ..}` around it, or `{"value": ["Type", .., []]}`. An object
/// with the only member `value` is an envelope, unless only the object itself is of the type.
pub(crate) fn from_json<T: DeserializeOwned>(
    name: &str,
    limits: JsonLimits,
    body: &[u8],
) -> Result<T, Problem> {
    limits.check(body)?;
    let body: Value = serde_json::from_slice(body).map_err(Problem::custom)?;
    let inner = match &body {
        Value::Object(object) if object.len() == 1 => object.get("value"),
        _ => None,
    };
    let Some(inner) = inner else {
        return read(name, &body);
    };
    let named = match inner.as_array().map(Vec::as_slice) {
        Some([Value::String(_), value, Value::Array(_)]) => Some(value),
        _ => None,
    };
    let problem = match read(name, inner) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    let others = named.into_iter().chain([&body]);
    let mut others = others.filter_map(|other| read(name, other).ok());
    others.next().ok_or(problem)
}

fn read<T: DeserializeOwned>(name: &str, value: &Value) -> Result<T, Problem> {
    match value {
        Value::Object(object) => from_object(name, object),
        value => T::deserialize(value).map_err(Problem::custom),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{JsonLimits, from_json};

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

    const LIMITS: JsonLimits = JsonLimits { depth: 8, list: 8 };

    fn read<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, String> {
        from_json("Xy", LIMITS, body.as_bytes()).map_err(|problem| problem.to_string())
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
