//! Why bytes are no value of a type, in one line for the client.
//!
//! The text never holds more than 200 bytes of the client's input, and no control characters of it.

use std::fmt;

/// The number of bytes of a client's input that an answer repeats at most.
const SHOWN: usize = 200;

/// Why something cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    text: String,
    /// The limit that was hit, by its name in `Limits`.
    limit: Option<&'static str>,
}

impl Problem {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let (text, limit) = (text.into(), None);
        Problem { text, limit }
    }

    pub(crate) fn of_limit(limit: &'static str, text: String) -> Self {
        let limit = Some(limit);
        Problem { text, limit }
    }

    /// Returns the limit that was hit, by its name in `Limits`.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        self.limit
    }

    pub(crate) fn unknown_key(key: &str, name: &str, part: &str) -> Self {
        Problem::new(format!("unknown key {} in \"{name}\" {part}", shown(key)))
    }

    pub(crate) fn no_conversion(key: &str, why: impl fmt::Display) -> Self {
        let why = cut(&why.to_string());
        Problem::new(format!("no conversion for {} ({why})", shown(key)))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Problem {}

impl serde::de::Error for Problem {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Problem::new(cut(&text.to_string()))
    }
}

/// Returns input of a client as a quoted string, with escapes as in JSON, cut to its first 200
/// bytes.
pub(crate) fn shown(input: &str) -> String {
    format!("\"{}\"", cut(input))
}

/// Escapes and cuts a text that may repeat input of a client.
fn cut(text: &str) -> String {
    let mut ends = (0..=text.len().min(SHOWN)).rev();
    let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let quoted = serde_json::Value::from(&text[..end]).to_string();
    let mut cut = quoted[1..quoted.len() - 1].replace("\\\"", "\"");
    cut.retain(|it| !it.is_control());
    if end < text.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn input_is_shown_escaped_and_cut() {
        assert_eq!(shown("a\r\n\u{1}b"), "\"a\\r\\n\\u0001b\"");
        let long = shown(&"é".repeat(1000));
        assert_eq!(long, format!("\"{}…\"", "é".repeat(100)));
    }
}
