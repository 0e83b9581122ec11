//! A NATS server of a test, which ends with it.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use greenroom_cluster::Nats;

/// The program, if it is not on the path.
const PROGRAM: &str = "GREENROOM_NATS_SERVER";

pub struct Server {
    child: Child,
    folder: tempfile::TempDir,
    pub port: u16,
}

/// Returns a port that was free just now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn program() -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(|| "nats-server".into(), Into::into)
}

/// Returns whether there is a server, and says so if not.
pub fn is_here(test: &str) -> bool {
    let found = Command::new(program()).arg("--version").output();
    let is_here = found.is_ok_and(|output| output.status.success());
    if !is_here {
        println!("SKIPPED {test}: no program nats-server, and no {PROGRAM}");
    }
    is_here
}

impl Server {
    /// Starts a server without users.
    pub fn open() -> Server {
        Server::with(free_port(), tempfile::tempdir().unwrap(), "")
    }

    fn with(port: u16, folder: tempfile::TempDir, config: &str) -> Server {
        let path = folder.path().join("nats-server.conf");
        let ports = folder.path().to_str().unwrap();
        let config = format!("listen: \"127.0.0.1:{port}\"\nports_file_dir: \"{ports}\"\n{config}");
        fs::write(&path, config).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(program())
            .arg("--config")
            .arg(&path)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Server {
            child,
            folder,
            port,
        };
        server.wait();
        server
    }

    /// Waits until the server listens.
    fn wait(&mut self) {
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Some(status) = self.child.try_wait().unwrap() {
                let log = fs::read_to_string(self.folder.path().join("log"));
                panic!("the server has ended, {status}: {log:?}");
            }
            std::thread::yield_now();
        }
    }

    /// Returns how a node connects with a server without users.
    pub fn insecure(&self) -> Nats {
        Nats::servers([format!("127.0.0.1:{}", self.port)]).insecure()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
