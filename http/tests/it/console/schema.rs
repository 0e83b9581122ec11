//! The part of JSON Schema that the schema of the console uses. Another keyword is a panic.

use std::fs;
use std::sync::OnceLock;

use serde_json::Value;

fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/console-v1.json");
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    })
}

/// Returns what is wrong with a line.
pub fn check(line: &Value) -> Result<(), String> {
    check_by(line, schema())
}

fn check_by(value: &Value, schema: &Value) -> Result<(), String> {
    for (keyword, rule) in schema.as_object().unwrap() {
        let is_right = match &**keyword {
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let path = rule.as_str().unwrap().strip_prefix('#').unwrap();
                check_by(value, self::schema().pointer(path).unwrap())?;
                true
            }
            "oneOf" => {
                let choices = rule.as_array().unwrap();
                let of_all = choices.iter().map(|choice| check_by(value, choice));
                let (right, wrong): (Vec<_>, Vec<_>) = of_all.partition(Result::is_ok);
                if right.len() != 1 {
                    return Err(format!("{value} has {} forms: {wrong:?}", right.len()));
                }
                true
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|it| has_type(value, it)),
                one => has_type(value, one),
            },
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_i64() >= rule.as_i64() || value.is_u64(),
            "required" => {
                let mut keys = rule.as_array().unwrap().iter();
                keys.all(|key| value.get(key.as_str().unwrap()).is_some())
            }
            "properties" => {
                for (key, rule) in rule.as_object().unwrap() {
                    let Some(value) = value.get(key) else {
                        continue;
                    };
                    check_by(value, rule)?;
                }
                true
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    check_by(item, rule)?;
                }
                true
            }
            other => panic!("the keyword {other} is not known here"),
        };
        if !is_right {
            return Err(format!("{value} is against {keyword}: {rule}"));
        }
    }
    Ok(())
}

fn has_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("the type {other} is not known here"),
    }
}

#[test]
fn a_line_that_is_against_the_schema_is_found() {
    let check = |text: &str| check(&serde_json::from_str(text).unwrap());
    let actor = r#"{"seq":1,"event":"actor","id":1,"name":"a","state":"waiting","new":[]}"#;
    assert_eq!(check(actor), Ok(()), "unknown fields are ignored");
    for (right, wrong) in [
        ("waiting", "gone"),
        ("\"id\":1", "\"id\":-1"),
        ("\"id\":1", "\"id\":\"1\""),
        ("\"name\":\"a\",", ""),
        ("actor", "unheard"),
    ] {
        assert!(check(&actor.replace(right, wrong)).is_err(), "{wrong}");
    }
}
