//! The field `traceparent` of W3C Trace Context: the span from which a request comes.
//!
//! A field that is not exactly as the recommendation has it counts as none, so the request begins a new
//! trace. Of a later version only the parts of version 00 are used.

use hyper::header::HeaderMap;

pub(crate) const TRACEPARENT: &str = "traceparent";

/// The bytes of version 00.
const LEN: usize = 55;

/// Returns the context of a request as a text of version 00, if it has one that is well-formed.
pub(crate) fn context_of(headers: &HeaderMap) -> Option<String> {
    let mut fields = headers.get_all(TRACEPARENT).iter();
    let field = fields.next()?;
    if fields.next().is_some() {
        return None;
    }
    parse(field.to_str().ok()?)
}

/// Returns the text of version 00 that this text stands for, if it is well-formed.
pub(crate) fn parse(text: &str) -> Option<String> {
    let (known, more) = text.split_at_checked(LEN)?;
    let mut parts = known.split('-');
    let mut next = |len| {
        let part = parts.next()?;
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (part.len() == len && part.bytes().all(is_hex)).then_some(part)
    };
    let (version, trace, parent, flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
    let is_known = match version {
        "00" => more.is_empty(),
        "ff" => false,
        _ => more.is_empty() || more.starts_with('-'),
    };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    if !is_known || is_zero(trace) || is_zero(parent) {
        return None;
    }
    Some(format!("00-{trace}-{parent}-{flags}"))
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderValue};

    use super::{TRACEPARENT, context_of, parse};

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const PARENT: &str = "b7ad6b7169203331";

    #[test]
    fn a_text_of_version_00_is_taken_as_it_is() {
        for flags in ["00", "01", "ff"] {
            let text = format!("00-{TRACE}-{PARENT}-{flags}");
            assert_eq!(parse(&text), Some(text));
        }
    }

    #[test]
    fn of_a_later_version_the_parts_of_version_00_are_taken() {
        let known = format!("00-{TRACE}-{PARENT}-01");
        for more in ["", "-", "-what-the-future-brings"] {
            let text = format!("cc-{TRACE}-{PARENT}-01{more}");
            assert_eq!(parse(&text), Some(known.clone()));
        }
        assert_eq!(parse(&format!("cc-{TRACE}-{PARENT}-01.x")), None);
    }

    #[test]
    fn a_malformed_text_counts_as_none() {
        let zeros = "0".repeat(32);
        for text in [
            String::new(),
            format!("00-{TRACE}-{PARENT}"),
            format!("00-{TRACE}-{PARENT}-0"),
            format!("00-{TRACE}-{PARENT}-01-"),
            format!("00-{TRACE}-{PARENT}-01-more"),
            format!(" 00-{TRACE}-{PARENT}-01"),
            format!("ff-{TRACE}-{PARENT}-01"),
            format!("0g-{TRACE}-{PARENT}-01"),
            format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
            format!("00-{zeros}-{PARENT}-01"),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00_{TRACE}-{PARENT}-01"),
            format!("00-{TRACE}{PARENT}--01"),
            format!("00-{TRACE}-{PARENT}-é"),
            "é".repeat(28),
        ] {
            assert_eq!(parse(&text), None, "{text:?}");
        }
    }

    #[test]
    fn two_fields_count_as_none() {
        let value = HeaderValue::from_str(&format!("00-{TRACE}-{PARENT}-01")).unwrap();
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, value.clone());
        assert!(context_of(&headers).is_some());
        headers.append(TRACEPARENT, value);
        assert_eq!(context_of(&headers), None);
    }
}
