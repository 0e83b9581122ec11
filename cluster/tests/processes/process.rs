//! A node in a process of its own, which can be killed and stopped.
//!
//! The process writes lines: where it listens, the names that come and go, and each note that its
//! actor has handled. What it has written is read even if it is killed. It reads commands, and ends
//! at the end of its input, so it does not outlive the test.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use greenroom::spawn;
use greenroom_cluster::{NameChange, Node};

use crate::certificates;
use crate::notes::{Note, notes};
use crate::support::{LONG, at, listener, process_builder};

/// The variable with the options of the node.
const NODE: &str = "GREENROOM_FAULTS_NODE";

/// The numbers of a note that was handled: of its session, and its own.
pub type Handled = (u64, u64);

pub struct Process {
    child: Child,
    lines: UnboundedReceiver<String>,
    handled: Vec<Handled>,
    /// Where the node listens.
    pub address: String,
}

/// The options of a node.
#[derive(Clone)]
pub struct Options {
    pub name: &'static str,
    pub listen: String,
    /// Empty if it is where the node listens.
    pub advertise: String,
    /// Empty if there is none.
    pub seed: String,
    pub lease: Duration,
}

impl Options {
    pub fn new(name: &'static str) -> Self {
        Options {
            name,
            listen: listener(),
            advertise: String::new(),
            seed: String::new(),
            lease: Duration::from_secs(5),
        }
    }
}

/// Returns a command that runs only this test of this binary.
pub fn only(test: &str, mut command: Command) -> Command {
    let [certificate, ..] = certificates::files();
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(certificates::GIVEN, certificate.parent().unwrap());
    command
}

impl Process {
    /// Starts a node, and waits until it listens.
    pub async fn start(options: &Options) -> Process {
        Process::start_by(Command::new("env"), options).await
    }

    /// Starts a node by a command that runs its arguments in its own process.
    pub async fn start_by(command: Command, options: &Options) -> Process {
        let Options {
            name,
            listen,
            advertise,
            seed,
            lease,
        } = options;
        let lease = lease.as_millis();
        let mut child = only("node", command)
            .env(
                NODE,
                format!("{name} {listen} {lease} ={advertise} ={seed}"),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, lines) = unbounded();
        let out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // The test may have ended.
                let _ = to.unbounded_send(line);
            }
        });
        let mut process = Process {
            child,
            lines,
            handled: Vec::new(),
            address: String::new(),
        };
        process.address = process.wait_for("listens ").await;
        process
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line with this beginning, and returns the rest.
    pub async fn wait_for(&mut self, beginning: &str) -> String {
        while let Some(line) = self.line().await {
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.into();
            }
        }
        panic!("the process has ended without a line {beginning:?}");
    }

    /// Waits until so many notes were handled.
    pub async fn handles(&mut self, notes: usize) {
        while self.handled.len() < notes {
            self.line().await.expect("the process has ended");
        }
    }

    async fn line(&mut self) -> Option<String> {
        let line = self.lines.next().await?;
        if let Some(numbers) = line.strip_prefix("handled ") {
            let (session, number) = numbers.split_once(' ').unwrap();
            let numbers = (session.parse().unwrap(), number.parse().unwrap());
            self.handled.push(numbers);
        }
        Some(line)
    }

    pub fn command(&mut self, command: &str) {
        let mut to = self.child.stdin.as_ref().unwrap();
        writeln!(to, "{command}").unwrap();
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(sent.success(), "{kill}");
    }

    /// Kills the process, as `kill -9` does. Returns what it has handled.
    pub async fn kill(mut self) -> Vec<Handled> {
        self.child.kill().unwrap();
        self.all_handled().await
    }

    /// Closes the node and ends the process. Returns what it has handled.
    pub async fn close(mut self) -> Vec<Handled> {
        self.command("close");
        self.all_handled().await
    }

    async fn all_handled(mut self) -> Vec<Handled> {
        while self.line().await.is_some() {}
        std::mem::take(&mut self.handled)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the node that the environment describes, if it does, to the end of the process.
pub fn serve() {
    let Ok(options) = std::env::var(NODE) else {
        return;
    };
    // What the test harness has begun to write is a line of its own.
    println!();
    greenroom::run(async {
        let mut options = options.split(' ');
        let mut next = || options.next().unwrap();
        let (name, listen, lease) = (next(), next(), next());
        let [advertise, seed] = [next(), next()].map(|given| &given[1..]);
        let lease = Duration::from_millis(lease.parse().unwrap());
        let builder = process_builder(name, listen, advertise, seed).lease(lease);
        let node = builder.open().await.unwrap();
        let tell = |session, number| println!("handled {session} {number}");
        let actor = spawn!(notes(_, tell));
        for name in ["notes", name] {
            node.publish(name, &actor).unwrap().detach();
        }
        greenroom::spawn(watch(node.clone())).detach();
        println!("listens {}", at(&node));
        obey(node).await;
    });
    std::process::exit(0);
}

/// Writes the names that come and go.
async fn watch(node: Node) {
    let mut watch = node.watch_names("");
    while let Some(change) = watch.next().await {
        match change {
            NameChange::Come { name, node, .. } => println!("come {name} {node}"),
            NameChange::Gone { name, node, .. } => println!("gone {name} {node}"),
            _ => {}
        }
    }
}

/// Obeys commands to the end of the input.
async fn obey(node: Node) {
    loop {
        let command = greenroom::unblock(|| std::io::stdin().lines().next());
        let Some(Ok(command)) = command.await else {
            return;
        };
        match command.split_once(' ') {
            Some(("ask", name)) => {
                let far = node.lookup::<Note>(name).timeout(LONG).await.unwrap();
                greenroom::spawn(async move { far.ask(Note::Keep).await }).detach();
            }
            _ => return node.close().await,
        }
    }
}
