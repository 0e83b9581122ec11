//! Two hosts with a cable: a test in a network namespace of its own, and a process in another one.
//!
//! A direction becomes silent by a neighbour entry with a wrong hardware address. All of it goes
//! away with the processes.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use crate::process::only;
use crate::support::skipped;

/// The variable that names the test for which the process was started.
const ALONE: &str = "GREENROOM_FAULTS_ALONE";

pub const HERE: &str = "10.99.0.1";
pub const THERE: &str = "10.99.0.2";

/// The hardware address of no host.
const NO_HOST: &str = "02:00:00:00:00:99";

/// Returns a command that runs its arguments in a namespace of their own.
fn unshare(options: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(options);
    command
}

/// Runs this test again in a network namespace of its own. Returns whether that is here.
pub fn is_apart(test: &str) -> bool {
    if std::env::var(ALONE).is_ok_and(|name| name == test) {
        ip("link set lo up");
        return true;
    }
    let options = ["--map-root-user", "--net"];
    // All that the tests need, at once.
    let probe = "ip link add name va type veth peer name vb && ip link set va up \
                 && ip neigh replace 10.99.0.2 lladdr 02:00:00:00:00:99 nud permanent dev va \
                 && unshare --net true && command -v nsenter";
    let probe = unshare(&options).args(["sh", "-c", probe]).output();
    match probe {
        Ok(probe) if probe.status.success() => {}
        Ok(probe) => {
            let why = String::from_utf8_lossy(&probe.stderr).replace('\n', " ");
            skipped(test, &format!("no network namespace: {why}"));
            return false;
        }
        Err(error) => {
            skipped(test, &format!("no program unshare: {error}"));
            return false;
        }
    }
    let mut command = only(test, unshare(&options));
    let output = command.env(ALONE, test).stdin(Stdio::null()).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}, apart: {text}");
    assert!(text.contains("1 passed"), "there is no test {test}: {text}");
    false
}

fn sh(command: &str) {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {text}");
}

fn ip(arguments: &str) {
    sh(&format!("ip {arguments}"));
}

/// The host at the other end of the cable. It ends with this value, or with this process.
pub struct Host(Child);

impl Host {
    /// Creates a host, and connects it with this one.
    pub fn new() -> Host {
        // It lives until its input is closed.
        let mut host = unshare(&["--net", "sh", "-c", "echo; exec cat"]);
        let host = host.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut host = host.spawn().unwrap();
        // It is in its own namespace when it writes.
        let out = host.stdout.as_mut().unwrap();
        out.read_exact(&mut [0]).unwrap();
        let (id, host) = (host.id(), Host(host));
        ip(&format!(
            "link add name va type veth peer name vb netns {id}"
        ));
        ip(&format!("address add {HERE}/24 dev va"));
        ip("link set va up");
        host.ip("link set lo up");
        host.ip(&format!("address add {THERE}/24 dev vb"));
        host.ip("link set vb up");
        host
    }

    /// Returns a command that runs its arguments on this host.
    pub fn command(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.0.id().to_string(), "--net"]);
        command
    }

    fn ip(&self, arguments: &str) {
        let id = self.0.id();
        sh(&format!("nsenter --target {id} --net ip {arguments}"));
    }

    /// Lets the other host receive nothing from this one.
    pub fn hears_nothing(&self) {
        ip(&format!(
            "neigh replace {THERE} lladdr {NO_HOST} nud permanent dev va"
        ));
    }

    /// Lets this host receive nothing from the other one.
    pub fn says_nothing(&self) {
        self.ip(&format!(
            "neigh replace {HERE} lladdr {NO_HOST} nud permanent dev vb"
        ));
    }

    /// Ends the silence.
    pub fn heal(&self) {
        // Each is there or not.
        let id = self.0.id();
        let own = format!("ip neigh del {THERE} dev va");
        let other = format!("nsenter --target {id} --net ip neigh del {HERE} dev vb");
        sh(&format!("{own}; {other}; true"));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
