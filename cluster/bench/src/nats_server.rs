//! NATS servers, which end with the process that has started them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use greenroom_cluster::Nats;

use crate::kinds::Kind;
use crate::{Outcome, certificates};

/// The program, if it is not where `.ci/install nats` leaves it.
const PROGRAM: &str = "GREENROOM_NATS_SERVER";

/// The password of all users without TLS.
pub const PASSWORD: &str = "secret";

/// One server, or three that know each other.
pub struct NatsServer {
    shells: Vec<Child>,
    /// Where a server listens, and another one of them if there are more.
    pub addresses: [String; 2],
}

fn program() -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nats/bin/nats-server");
    std::env::var_os(PROGRAM).map_or(installed, Into::into)
}

/// Returns whether there is a server.
pub fn is_here() -> bool {
    let version = Command::new(program()).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

impl NatsServer {
    /// Starts what this kind needs, with the server and the client as users.
    pub fn start(kind: Kind) -> Outcome<NatsServer> {
        let users = Nats::server_config(["server", "client"]);
        let users = match kind.is_own() {
            true => users,
            false => for_bare_clients(&users),
        };
        let config = match kind.is_tls() {
            true => with_files(&users),
            false => without_tls(&users),
        };
        let servers = if kind == Kind::GreenroomNatsThree {
            3
        } else {
            1
        };
        NatsServer::start_all(servers, &config)
    }

    /// Starts servers without users that know each other.
    pub fn start_all(servers: usize, config: &str) -> Outcome<NatsServer> {
        let mut addresses = free(2 * servers)?;
        let routes = addresses.split_off(servers);
        let mut shells = Vec::new();
        for (address, route) in addresses.iter().zip(&routes) {
            let others = routes.iter().map(|route| format!("\"nats://{route}\""));
            let others = others.collect::<Vec<_>>().join(", ");
            let cluster = format!("name: bench, listen: \"{route}\", routes: [{others}]");
            let text = format!("listen: \"{address}\"\n{config}\ncluster {{ {cluster} }}\n");
            let file = certificates::path(&format!("nats-server-{}.conf", shells.len()));
            fs::write(&file, text)?;
            // The shell ends the server when the pipe is closed, as it is when this process ends.
            let mut shell = Command::new("sh");
            shell
                .args([
                    "-c",
                    "\"$0\" --config \"$1\" </dev/null & read -r _; kill -9 $!",
                ])
                .arg(program())
                .arg(file)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            shells.push(shell.spawn()?);
        }
        for address in &addresses {
            // A server names the others in its cluster once it is connected with them.
            while !greeting(address).is_some_and(|text| {
                servers == 1 || addresses.iter().all(|other| text.contains(other))
            }) {
                sleep(Duration::from_millis(1));
            }
        }
        let addresses = [addresses[0].clone(), addresses[servers - 1].clone()];
        Ok(NatsServer { shells, addresses })
    }
}

/// Returns addresses at which nothing listens.
fn free(many: usize) -> Outcome<Vec<String>> {
    let bind = |_| TcpListener::bind("127.0.0.1:0");
    // All at once, so that no two are the same.
    let free = (0..many).map(bind).collect::<Result<Vec<_>, _>>()?;
    let addresses = free.iter().map(|it| Ok(it.local_addr()?.to_string()));
    addresses.collect()
}

/// Returns what a server says first, if one listens.
fn greeting(address: &str) -> Option<String> {
    let stream = TcpStream::connect(address).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    line.starts_with("INFO").then_some(line)
}

/// Returns the configuration with the permissions of bare clients, so that a server checks as much.
fn for_bare_clients(config: &str) -> String {
    let allowed = r#"["tally", "_INBOX.>"]"#;
    let lines = config.lines().map(|line| match line.trim_start() {
        rest if rest.starts_with("publish:") => format!("publish: {allowed}"),
        rest if rest.starts_with("subscribe:") => format!("subscribe: {allowed} }} }}"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a configuration without certificates. The users have a password.
fn without_tls(config: &str) -> String {
    let users = config.replace(
        ", permissions:",
        &format!(", password: {PASSWORD}, permissions:"),
    );
    match (users.find("tls {"), users.find("verify_and_map: true\n}")) {
        (Some(from), Some(to)) => {
            users[..from].to_owned() + &users[to..].replacen("verify_and_map: true\n}", "", 1)
        }
        _ => users,
    }
}

/// Returns a configuration with the files of the certificates here.
fn with_files(config: &str) -> String {
    let config = config.to_owned();
    let files = [
        ("server.pem", "nats.pem"),
        ("server.key", "nats.key"),
        ("ca.pem", "authority.pem"),
    ];
    files.into_iter().fold(config, |config, (named, file)| {
        let path = certificates::path(file);
        config.replace(&format!("\"{named}\""), &format!("{path:?}"))
    })
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        for shell in &mut self.shells {
            drop(shell.stdin.take());
            let _ = shell.wait();
        }
    }
}
