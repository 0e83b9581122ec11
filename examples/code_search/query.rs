//! A query: one literal string, and its translation for the full-text index.
//!
//! The text is never empty and never contains a newline. The index returns a superset of the lines
//! that contain the text, so a check of each line decides.

/// The number of characters in each term of the index.
const GRAM: usize = 3;

/// The maximum number of terms of one query. More terms would hardly narrow the result further, and
/// every hit is checked anyway.
const TERMS_MAX: usize = 64;

/// One literal string to find.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
}

impl Query {
    /// Creates a query for `text`.
    ///
    /// # Errors
    /// If the text is empty or has more than one line.
    pub fn new(text: String) -> Result<Query, String> {
        if text.is_empty() {
            Err("QUERY is empty".to_owned())
        } else if text.contains('\n') {
            Err("QUERY contains a newline, but lines are searched one by one".to_owned())
        } else {
            Ok(Query { text })
        }
    }

    /// Returns the string itself.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the expression for the full-text index, or `None` if the query is too short for it.
    /// The expression requires every three adjacent characters, each as a quoted string, in one
    /// line.
    pub fn expression(&self) -> Option<String> {
        let characters: Vec<char> = self.text.chars().collect();
        let windows = characters
            .len()
            .checked_sub(GRAM - 1)
            .filter(|&windows| windows > 0)?;
        let step = windows.div_ceil(TERMS_MAX);
        let mut terms: Vec<String> = characters.windows(GRAM).step_by(step).map(quoted).collect();
        terms.sort_unstable();
        terms.dedup();
        Some(terms.join(" AND "))
    }
}

/// Quotes a term as an FTS5 string, with inner quotes doubled.
fn quoted(gram: &[char]) -> String {
    let text: String = gram.iter().collect();
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Returns whether a line is long enough to have a term in the index at all.
pub fn has_terms(line: &str) -> bool {
    line.chars().nth(GRAM - 1).is_some()
}
