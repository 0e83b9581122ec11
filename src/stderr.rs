//! The lines of the crate on stderr. A broken stderr loses them, which harms nothing.

use std::fmt;
use std::io::Write as _;

/// Prints a line as `eprintln!` does, so that a test captures it, also on a thread that the test
/// started.
pub(crate) fn print_line(line: fmt::Arguments<'_>) {
    eprint!("{}", Lossy(&format!("greenroom: {line}\n")));
}

/// Prints a line past the capture of a test, of which nothing is seen if the test hangs or the
/// process aborts.
pub(crate) fn print_line_at_once(line: fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_fmt(format_args!("greenroom: {line}\n"));
}

/// A text that always counts as written. `eprint!` would panic if it could not write: even if the
/// panic were caught, the panic hook of the program would run, and may end the process.
struct Lossy<'a>(&'a str);

impl fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = f.write_str(self.0);
        Ok(())
    }
}
