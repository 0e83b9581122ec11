//! The readable trace: its lines, its levels, its writers, and tracers of the user.

#[cfg(target_os = "linux")]
mod environment;
mod events;
mod faults;
mod levels;
mod names;
mod notes;
mod senders;
mod services;
mod sources;
mod tracers;
mod writers;

use std::future::Future;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use greenroom::policy::Simulated;
use greenroom::trace::{Level, Lines};
use greenroom::{Builder, Runtime};

use crate::support::{WATCH, within};

/// A writer to memory.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Returns the lines, with process and time masked, and with actors numbered in the order of
    /// their first line.
    pub fn lines(&self) -> Vec<String> {
        let own = |line: &str| assert_eq!(line[1..9].parse(), Ok(std::process::id()));
        let text = self.text();
        renumber(
            text.lines()
                .inspect(|line| own(line))
                .map(masked)
                .map(str::to_owned),
        )
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks process and time of a line, and returns what follows.
pub fn masked(line: &str) -> &str {
    let pattern = "[########] ####-##-##T##:##:##.### ";
    let head = line.get(..pattern.len());
    let matches = |head: &str| {
        (head.chars().zip(pattern.chars()))
            .all(|(c, p)| if p == '#' { c.is_ascii_digit() } else { c == p })
    };
    assert!(head.is_some_and(matches), "{line:?}");
    &line[pattern.len()..]
}

/// Replaces the ids of actors by 1, 2, 3 and so on, in the order of the lines about them.
fn renumber(lines: impl Iterator<Item = String>) -> Vec<String> {
    let lines: Vec<String> = lines.collect();
    let mut ids: Vec<String> = Vec::new();
    for line in &lines {
        let id = line[3..11].to_owned();
        if id != "00000000" && !ids.contains(&id) {
            ids.push(id);
        }
    }
    let known = |line: &String| {
        let numbered = |line: String, (index, id): (usize, &String)| {
            line.replace(&format!("<{id}>"), &format!("<{}>", index + 1))
        };
        let line = line.replace("<00000000>", "<0>");
        ids.iter().enumerate().fold(line, numbered)
    };
    lines.iter().map(known).collect()
}

/// Returns a builder whose runtime has a tracer of this level, and the writer of that.
pub fn traced(level: Level) -> (Builder, Memory) {
    let memory = Memory::default();
    let builder = Runtime::builder().long_turns(None).workers(1);
    (builder.tracer(Lines::to(memory.clone(), level)), memory)
}

/// Runs the future in a simulation, whose schedule is always the same, and returns the lines but
/// for those of the runtime.
pub fn lines_of<F: Future + Send + 'static>(future: F) -> Vec<String> {
    within(WATCH, move || {
        let (builder, memory) = traced(Level::Debug);
        let runtime = builder.policy(Simulated::new(3).whole_turns()).build();
        let runtime = runtime.unwrap();
        runtime.block_on(future);
        drop(runtime);
        let mut lines = memory.lines();
        assert_eq!(lines.remove(0), "( <0>greenroom - Started (workers=1)");
        assert_eq!(lines.pop().unwrap(), ") <0>greenroom - Ended");
        lines
    })
}

/// Returns the lines about the actor with this name.
pub fn about(lines: &[String], name: &str) -> Vec<String> {
    let of = |line: &&String| {
        let subject = line.split(" - ").next().unwrap();
        let subject = subject[2..].split('>').nth(1).unwrap();
        subject.split('[').next() == Some(name)
    };
    lines.iter().filter(of).cloned().collect()
}
