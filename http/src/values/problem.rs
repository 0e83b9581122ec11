//! Why bytes are no value of a type, in one line for the client.
//!
//! The text never holds more than 200 bytes of the client's input, and no control characters of it.

use std::fmt;

/// The number of bytes of a client's input that an answer repeats at most.
const SHOWN: usize = 200;

/// Why something cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecodeProblem {
    text: String,
    /// The limit that was hit, by its name in `Limits`.
    limit: Option<&'static str>,
}

impl DecodeProblem {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let (text, limit) = (text.into(), None);
        DecodeProblem { text, limit }
    }

    pub(crate) fn of_limit(limit: &'static str, text: String) -> Self {
        let limit = Some(limit);
        DecodeProblem { text, limit }
    }

    /// Returns the limit that was hit, by its name in `Limits`.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        self.limit
    }

    pub(crate) fn unknown_key(key: &str, name: &str, part: &str) -> Self {
        DecodeProblem::new(format!("unknown key {} in \"{name}\" {part}", shown(key)))
    }

    /// Says of which member the value has this problem.
    pub(crate) fn of_key(self, key: &str) -> Self {
        let text = format!("no conversion for {} ({})", shown(key), self.text);
        DecodeProblem { text, ..self }
    }

    /// Returns the problem of a member of JSON, whose position in the body is not known.
    pub(crate) fn of_member(error: serde_json::Error) -> Self {
        let text = error.to_string();
        let position = format!(" at line {} column {}", error.line(), error.column());
        DecodeProblem::new(cut(text.strip_suffix(&position).unwrap_or(&text)))
    }
}

impl fmt::Display for DecodeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for DecodeProblem {}

impl serde::de::Error for DecodeProblem {
    fn custom<T: fmt::Display>(text: T) -> Self {
        DecodeProblem::new(cut(&text.to_string()))
    }
}

/// Returns input of a client as a quoted string, with escapes as in JSON, cut to its first 200
/// bytes.
pub(crate) fn shown(input: &str) -> String {
    let (head, is_cut) = begin(input);
    let mut quoted = escaped(head);
    if is_cut {
        quoted.insert(quoted.len() - 1, '…');
    }
    quoted
}

/// Escapes and cuts a text that may repeat input of a client. Its quotes are those of the text.
fn cut(text: &str) -> String {
    let (head, is_cut) = begin(text);
    let quoted = escaped(head);
    let cut = quoted[1..quoted.len() - 1].replace("\\\"", "\"");
    cut + if is_cut { "…" } else { "" }
}

/// Returns the first 200 bytes of a text, and whether there are more.
fn begin(text: &str) -> (&str, bool) {
    let mut ends = (0..=text.len().min(SHOWN)).rev();
    let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    (&text[..end], end < text.len())
}

/// Returns a text as JSON, without the control characters that JSON leaves as they are.
fn escaped(text: &str) -> String {
    let mut quoted = serde_json::Value::from(text).to_string();
    quoted.retain(|it| !it.is_control());
    quoted
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn input_is_shown_escaped_and_cut() {
        assert_eq!(shown("a\r\n\u{1}b"), "\"a\\r\\n\\u0001b\"");
        assert_eq!(shown("a\") \\\u{85}"), r#""a\") \\""#);
        let long = shown(&"é".repeat(1000));
        assert_eq!(long, format!("\"{}…\"", "é".repeat(100)));
    }
}
