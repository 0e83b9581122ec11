//! The progress bar, and the lines that are written above it, on stderr.
//!
//! All actors have clones of one bar. If stderr is not a terminal, no bar is drawn, but the lines
//! are still written. A closed stderr is ignored.

use std::fmt;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// A clone of the bar.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    rows: Arc<AtomicU64>,
}

impl Progress {
    /// Starts an empty bar.
    pub fn new() -> Progress {
        // Relaxed: a number for display, which publishes nothing else.
        let rows = Arc::new(AtomicU64::new(0));
        let shown = Arc::clone(&rows);
        let style = ProgressStyle::with_template(
            "{spinner} {wide_bar} {human_pos} of {human_len} files, {rows} rows, {elapsed}",
        )
        .expect("the template is well formed")
        .with_key(
            "rows",
            move |_: &ProgressState, out: &mut dyn fmt::Write| {
                let _ = write!(
                    out,
                    "{}",
                    indicatif::HumanCount(shown.load(Ordering::Relaxed))
                );
            },
        );
        Progress {
            bar: ProgressBar::new(0).with_style(style),
            rows,
        }
    }

    /// Adds files that were found.
    pub fn found(&self, files: u64) {
        self.bar.inc_length(files);
    }

    /// Adds files that need no more work.
    pub fn done(&self, files: u64) {
        self.bar.inc(files);
    }

    /// Adds rows that were written.
    pub fn wrote(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bar.tick();
    }

    /// Writes a line, above the bar if there is one.
    pub fn say(&self, line: &str) {
        // If stderr is closed, the line is lost.
        self.bar
            .suspend(|| writeln!(io::stderr(), "code_search: {line}").unwrap_or_default());
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
