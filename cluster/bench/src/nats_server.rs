//! A NATS server, which ends with the process that has started it.

use std::fs;
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

pub struct NatsServer {
    shell: Child,
    pub address: String,
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
    /// Starts a server of this kind. With TLS the nodes of greenroom are users.
    pub fn start(kind: Kind) -> Outcome<NatsServer> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        drop(listener);
        let rest = match (kind.is_tls(), kind.is_own()) {
            (false, _) => String::new(),
            (true, true) => with_files(&Nats::server_config(["server", "client"])),
            (true, false) => with_files(TLS),
        };
        let config = certificates::path("nats-server.conf");
        fs::write(&config, format!("listen: \"{address}\"\n{rest}"))?;
        // The shell ends the server when the pipe is closed, as it is when this process ends.
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "\"$0\" --config \"$1\" </dev/null & read -r _; kill -9 $!"])
            .arg(program())
            .arg(config)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let shell = shell.spawn()?;
        while TcpStream::connect(&address).is_err() {
            sleep(Duration::from_millis(1));
        }
        Ok(NatsServer { shell, address })
    }
}

/// What a server needs for mutual TLS without users.
const TLS: &str = r#"
tls { cert_file: "server.pem", key_file: "server.key", ca_file: "ca.pem", verify: true }
"#;

/// Returns a configuration with the files of the certificates here.
fn with_files(config: &str) -> String {
    let config = config.to_owned();
    let files = [("server.pem", "nats.pem"), ("server.key", "nats.key"), ("ca.pem", "authority.pem")];
    files.into_iter().fold(config, |config, (named, file)| {
        let path = certificates::path(file);
        config.replace(&format!("\"{named}\""), &format!("{path:?}"))
    })
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
