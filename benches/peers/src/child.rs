//! Child processes: this program again, in its own process, which prints its figures as
//! `name\tnumber` lines.

use std::io;
use std::process::{self, Child, Command, Stdio};
use std::time::Duration;

/// The exit status of `timeout` if the time is over.
const TIMED_OUT: i32 = 124;

/// Starts a child with these arguments; it is ended after `limit`.
pub fn start(arguments: &[&str], limit: Duration) -> io::Result<Child> {
    // This program, even if it is rebuilt meanwhile.
    let program = format!("/proc/{}/exe", process::id());
    Command::new("timeout")
        .args(["--kill-after=5", &limit.as_secs().to_string(), &program])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Returns the figures that the child has printed, or `None` if it hung.
pub fn finish(child: Child) -> io::Result<Option<Vec<(String, f64)>>> {
    let output = child.wait_with_output()?;
    if output.status.code() == Some(TIMED_OUT) {
        return Ok(None);
    }
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("{}\n{text}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let figures = text.lines().filter_map(|line| {
        let (what, value) = line.split_once('\t')?;
        Some((what.to_owned(), value.parse().ok()?))
    });
    Ok(Some(figures.collect()))
}
