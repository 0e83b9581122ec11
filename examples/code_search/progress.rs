//! The progress bar, and the lines that are written around it, on stderr.
//!
//! Every actor has a clone of the one bar. On a stderr that is no terminal no bar is drawn, and the
//! lines are written all the same; that stderr may be closed troubles nobody.

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
    /// Starts a bar at nothing.
    pub fn new() -> Progress {
        // Relaxed: a number to be looked at, which publishes nothing else.
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

    /// Files were found.
    pub fn found(&self, files: u64) {
        self.bar.inc_length(files);
    }

    /// Files need no more work.
    pub fn done(&self, files: u64) {
        self.bar.inc(files);
    }

    /// Rows were written.
    pub fn wrote(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bar.tick();
    }

    /// Writes a line, above the bar if there is one.
    pub fn say(&self, line: &str) {
        // There is nobody to tell if stderr is closed.
        self.bar
            .suspend(|| writeln!(io::stderr(), "code_search: {line}").unwrap_or_default());
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
