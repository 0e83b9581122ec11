//! A query: one literal string, and how the full-text index is asked for it.
//!
//! The text is never empty and never holds a newline. What the index finds is a superset of the
//! lines that contain the text, never less, so that looking at each line decides.

/// The number of characters in each of the index's terms.
const GRAM: usize = 3;

/// How many terms are put to the index at most. More would narrow the answer hardly further, and
/// every hit is looked at anyhow.
const TERMS_MAX: usize = 64;

/// One literal string to look for.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
}

impl Query {
    /// Takes `text` as a query.
    ///
    /// # Errors
    /// Says so if it is empty or more than a line.
    pub fn new(text: String) -> Result<Query, String> {
        if text.is_empty() {
            Err("QUERY is empty".to_owned())
        } else if text.contains('\n') {
            Err("QUERY contains a newline, but lines are searched one by one".to_owned())
        } else {
            Ok(Query { text })
        }
    }

    /// The string itself.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What to ask the full-text index: every three neighbouring characters, each as a quoted
    /// string, all of them in one line. `None` for a query too short for it.
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

/// A term as FTS5 reads a string: between quotes, a quote inside doubled.
fn quoted(gram: &[char]) -> String {
    let text: String = gram.iter().collect();
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Whether a line is long enough to have a term in the index at all.
pub fn has_terms(line: &str) -> bool {
    line.chars().nth(GRAM - 1).is_some()
}
