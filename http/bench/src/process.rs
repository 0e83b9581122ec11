//! Another process of this program, and what the system knows of it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Outcome;
use crate::servers::Kind;

/// A server in its own process, which ends when this is dropped.
pub struct Serving {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub port: u16,
}

impl Serving {
    pub fn start(kind: Kind) -> Outcome<Serving> {
        let mut command = Command::new(std::env::current_exe()?);
        let command = command.args(["serve", kind.name()]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.ok_or("no output")?);
        let mut own = Serving {
            child,
            input,
            output,
            port: 0,
        };
        own.port = own.line()?.parse()?;
        Ok(own)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the live memory of the server since the first question, in bytes.
    pub fn memory(&mut self) -> Outcome<i64> {
        let input = self.input.as_mut().ok_or("no input")?;
        writeln!(input, "memory")?;
        Ok(self.line()?.parse()?)
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// Returns the processor time of all threads of a process, in nanoseconds.
pub fn processor_time(pid: u32) -> Outcome<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let stat = fs::read_to_string(thread?.path().join("schedstat"))?;
        let time = stat.split(' ').next().unwrap_or_default();
        sum += time.parse::<u64>()?;
    }
    Ok(sum)
}

/// Returns how often a thread of a process was given a processor.
pub fn switches(pid: u32) -> Outcome<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        sum += field(&status, "voluntary_ctxt_switches")?;
        sum += field(&status, "nonvoluntary_ctxt_switches")?;
    }
    Ok(sum)
}

/// Returns the memory of a process that is resident and of no file, in bytes.
pub fn resident(pid: u32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(field(&status, "RssAnon")? * 1024)
}

fn field(status: &str, name: &str) -> Outcome<u64> {
    let of = |line: &str| {
        line.split_once(':')
            .filter(|(key, _)| *key == name)
            .is_some()
    };
    let line = status
        .lines()
        .find(|line| of(line))
        .ok_or("no such field")?;
    let value = line.split_whitespace().nth(1).ok_or("no value")?;
    Ok(value.parse()?)
}
