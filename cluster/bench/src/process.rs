//! Another process of this program, and what the system knows of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::Outcome;

/// How long a process may take for a line: the slowest figure takes about a minute.
const PATIENCE: Duration = Duration::from_secs(150);

/// Another process, which is killed when this is dropped.
pub struct Process {
    child: Child,
    /// The lines of its output.
    output: Receiver<String>,
    /// A server ends if this is closed, also if this process is killed.
    _input: Option<ChildStdin>,
}

impl Process {
    pub fn start(arguments: &[&str]) -> Outcome<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        let command = command.args(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let lines = BufReader::new(output.ok_or("no output")?).lines();
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Ok(Process {
            child,
            output,
            _input: input,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line of its output.
    pub fn line(&mut self) -> Outcome<String> {
        match self.output.recv_timeout(PATIENCE) {
            Ok(line) => Ok(line.trim().to_owned()),
            Err(RecvTimeoutError::Timeout) => Err(format!("no line within {PATIENCE:?}").into()),
            Err(RecvTimeoutError::Disconnected) => Err("the process has ended".into()),
        }
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, name: &str) -> Outcome<()> {
        let kill = format!("kill -{name} {}", self.pid());
        let sent = Command::new("sh").args(["-c", &kill]).status()?;
        sent.success().then_some(()).ok_or_else(|| kill.into())
    }

    pub fn kill(&mut self) -> Outcome<()> {
        Ok(self.child.kill()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the number of threads of a process.
pub fn threads(pid: u32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    field(&status, "Threads")
}

/// Returns how often threads of a process were given a processor.
pub fn switches(pid: u32) -> Outcome<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        sum += field(&status, "voluntary_ctxt_switches")?;
        sum += field(&status, "nonvoluntary_ctxt_switches")?;
    }
    Ok(sum)
}

/// Returns the memory of a process that is resident, in bytes.
pub fn resident(pid: u32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(field(&status, "VmRSS")? * 1024)
}

/// Returns the most memory of a process that was ever resident, in bytes.
pub fn peak(pid: u32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(field(&status, "VmHWM")? * 1024)
}

fn field(status: &str, name: &str) -> Outcome<u64> {
    let of = |line: &&str| line.split_once(':').is_some_and(|(key, _)| key == name);
    let line = status.lines().find(of).ok_or("no such field")?;
    let value = line.split_whitespace().nth(1).ok_or("no value")?;
    Ok(value.parse()?)
}
