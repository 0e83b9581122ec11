//! The fields of a query or a form, `a=1&b=two`.
//!
//! `+` is a space, and `%XX` a byte of UTF-8. An empty field is skipped.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::problem::{DecodeProblem, shown};

/// A field: its key and its value.
pub(crate) type Field<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The fields of a text that are not empty.
pub(crate) struct FieldList<'a> {
    /// Those before the first part that is no field.
    pub(super) right: Vec<Field<'a>>,
    /// What is wrong with that part. Problems of the fields before it come first.
    pub(super) problem: Option<DecodeProblem>,
}

pub(crate) fn fields(text: &str) -> FieldList<'_> {
    let (mut right, mut problem) = (Vec::new(), None);
    for part in text.split('&').filter(|part| !part.is_empty()) {
        match field(part) {
            Ok(Some(field)) => right.push(field),
            Ok(None) => {}
            Err(found) => {
                problem = Some(found);
                break;
            }
        }
    }
    FieldList { right, problem }
}

/// Reads a field. Returns `None` if it is empty.
fn field(part: &str) -> Result<Option<Field<'_>>, DecodeProblem> {
    let Some((key, value)) = part.split_once('=') else {
        let key = decode(part)?;
        let hint = match part.starts_with('{') {
            true => ": JSON needs the content type application/json",
            false => "",
        };
        let text = format!("unexpected field {} query{hint}", shown(&key));
        return Err(DecodeProblem::new(text));
    };
    if value.is_empty() {
        return Ok(None);
    }
    Ok(Some((decode(key)?, decode(value)?)))
}

fn decode(text: &str) -> Result<Cow<'_, str>, DecodeProblem> {
    if !text.contains('+') {
        return decode_part(text);
    }
    // A plus sign that is meant is written as `%2B`.
    let spaced = text.replace('+', " ");
    Ok(Cow::Owned(decode_part(&spaced)?.into_owned()))
}

/// Decodes `%XX` in a part of a URI.
pub(crate) fn decode_part(text: &str) -> Result<Cow<'_, str>, DecodeProblem> {
    let bytes = text.as_bytes();
    if !bytes.contains(&b'%') {
        return Ok(Cow::Borrowed(text));
    }
    for (at, _) in text.match_indices('%') {
        let digits = bytes.get(at + 1..at + 3).unwrap_or_default();
        if digits.len() < 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(DecodeProblem::new(format!(
                "incomplete escape in {}",
                shown(text)
            )));
        }
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map_err(|_| DecodeProblem::new(format!("{} is not UTF-8", shown(text))))
}

#[cfg(test)]
mod tests {
    use super::fields;

    fn read(text: &str) -> Result<Vec<(String, String)>, String> {
        let fields = fields(text);
        if let Some(problem) = fields.problem {
            return Err(problem.to_string());
        }
        let right = fields.right.into_iter();
        let owned = right.map(|(key, value)| (key.into(), value.into()));
        Ok(owned.collect())
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn plus_signs_and_escapes_are_decoded() {
        let read = read("a+b=c+d&%C3%A9=%2B&x=1=2").unwrap();
        assert_eq!(read, [pair("a b", "c d"), pair("é", "+"), pair("x", "1=2")]);
    }

    #[test]
    fn empty_fields_are_skipped() {
        assert_eq!(read("&&a=&b=1&").unwrap(), [pair("b", "1")]);
        assert_eq!(read(""), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_field_is_refused() {
        assert_eq!(
            read("a=1&flag").unwrap_err(),
            "unexpected field \"flag\" query"
        );
        assert_eq!(
            read("{\"a\":1}").unwrap_err(),
            "unexpected field \"{\\\"a\\\":1}\" query: JSON needs the content type application/json"
        );
        for wrong in ["a=%", "a=%4", "a=%zz", "%+1=a", "a=%ff"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
