//! The lines of one file: its text, and the position of each line that is not empty.
//!
//! Only `\n` ends a line, so a `\r` before it belongs to the line. Lines count from one. Empty
//! lines are counted but not stored: no query finds them.

/// The text of a file, split into lines.
#[derive(Debug)]
pub struct Lines {
    text: String,
    spans: Vec<Span>,
}

/// One line that is not empty; offsets fit, because no text is longer than 16 MiB.
#[derive(Clone, Copy, Debug)]
struct Span {
    number: u32,
    start: u32,
    end: u32,
}

impl Lines {
    /// Splits `text`, which is at most 4 GiB long.
    pub fn split(text: String) -> Lines {
        assert!(
            u32::try_from(text.len()).is_ok(),
            "a text of {} bytes is too long",
            text.len()
        );
        let mut spans = Vec::new();
        let mut start = 0;
        for (number, line) in (1..).zip(text.split('\n')) {
            let end = start + line.len() as u32;
            if start < end {
                spans.push(Span { number, start, end });
            }
            start = end + 1;
        }
        Lines { text, spans }
    }

    /// Returns the number and the text of each line that is not empty.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        let text = |span: &Span| &self.text[span.start as usize..span.end as usize];
        self.spans.iter().map(move |span| (span.number, text(span)))
    }

    /// Returns how many lines are not empty.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the number of the last line that is not empty, or `None` if all are empty.
    pub fn last_number(&self) -> Option<u32> {
        self.spans.last().map(|span| span.number)
    }

    /// Returns the length of the text in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }
}
