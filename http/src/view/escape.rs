//! Texts within pages.
//!
//! What is appended has no sign that begins or ends an element, an attribute or a reference.

/// Appends a text to a page of HTML, as the content of an element or within a quoted attribute.
///
/// Signs of HTML become references. Control characters, and those that turn the direction of a text
/// round, become U+FFFD. A page of
/// [`Mount::page`](crate::Mount::page) needs this for each text that comes from elsewhere.
///
/// ```
/// let mut page = String::from("<p>");
/// greenroom_http::escape(&mut page, "1 < 2 & \"3\"");
/// assert_eq!(page, "<p>1 &lt; 2 &amp; &quot;3&quot;");
/// ```
pub fn escape(page: &mut String, text: &str) {
    for sign in text.chars() {
        match sign {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            // A control character may hide what follows it.
            sign if sign.is_control() => page.push('\u{FFFD}'),
            // A text may look like another one.
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => page.push('\u{FFFD}'),
            sign => page.push(sign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn no_text_hides_a_part_or_turns_it_round() {
        let mut page = String::new();
        escape(&mut page, "a\x1bb\u{202E}c\u{2066}d Größe 大");
        assert_eq!(page, "a\u{FFFD}b\u{FFFD}c\u{FFFD}d Größe 大");
    }
}
