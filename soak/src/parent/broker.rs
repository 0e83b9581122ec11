//! The NATS server of a run.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::system::ends_with_this_thread;

/// A server, which is killed when this is dropped.
pub struct NatsProgram {
    child: Child,
    /// Where it listens.
    pub address: String,
}

impl NatsProgram {
    /// Starts a server without users, for clients of this machine alone.
    pub fn start(program: &Path, address: &str) -> Result<NatsProgram, String> {
        let version = Command::new(program).arg("--version").output();
        if !version.is_ok_and(|output| output.status.success()) {
            return Err(format!("{} does not run", program.display()));
        }
        let (host, port) = address.split_once(':').ok_or("an address has a port")?;
        let mut command = Command::new(program);
        command.args(["--addr", host, "--port", port]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = ends_with_this_thread(&mut command).spawn();
        Ok(NatsProgram {
            child: child.map_err(|error| error.to_string())?,
            address: address.to_owned(),
        })
    }
}

impl Drop for NatsProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
