//! Texts within pages.
//!
//! What is appended has no sign that begins or ends an element, an attribute or a reference.

/// Appends a text to a page of HTML, as the content of an element or within a quoted attribute.
///
/// Signs of HTML become references, and control characters U+FFFD. A page of
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
            sign => page.push(sign),
        }
    }
}
