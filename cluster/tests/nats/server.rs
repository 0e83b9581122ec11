//! NATS servers of a test, which end with its process.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use greenroom_cluster::Nats;

use crate::certificates::{self, NAMES, files_of};

/// The program, if it is not on the path.
const PROGRAM: &str = "GREENROOM_NATS_SERVER";

/// A server. It ends with this value, or with this process.
pub struct Server {
    shell: Child,
    folder: tempfile::TempDir,
    /// The address at which it listens.
    host: &'static str,
    port: u16,
    /// Runs its arguments where the server is.
    by: Command,
    config: String,
}

/// Returns a port that was free just now, and is no one that the system gives to a client. No other
/// call here returns it.
fn free_port() -> u16 {
    const PORTS: u32 = 10_000;
    static CALLS: AtomicU32 = AtomicU32::new(0);
    loop {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (std::process::id().wrapping_mul(97) + call) % PORTS;
        let port = u16::try_from(port).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn program() -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(|| "nats-server".into(), Into::into)
}

/// Returns whether there is a server, and says so if not.
pub fn is_here() -> bool {
    static IS_HERE: OnceLock<bool> = OnceLock::new();
    *IS_HERE.get_or_init(|| {
        let found = Command::new(program()).arg("--version").output();
        let is_here = found.is_ok_and(|output| output.status.success());
        if !is_here {
            let why = format!("no program nats-server, and no {PROGRAM}");
            crate::support::skipped("nats", &why);
        }
        is_here
    })
}

impl Server {
    /// Starts a server without users.
    pub fn open() -> Server {
        Server::with("")
    }

    /// Starts a server with the nodes as users, and TLS.
    pub fn secure() -> Server {
        Server::with(&Server::secure_config(&NAMES))
    }

    /// Returns the configuration of a server with these users.
    pub fn secure_config(nodes: &[&str]) -> String {
        Server::config_in(certificates::folder(), nodes)
    }

    /// Returns the configuration of a server with these users, and the certificates in a folder.
    pub fn config_in(folder: &Path, nodes: &[&str]) -> String {
        Server::with_files(folder, Nats::server_config(nodes))
    }

    /// Returns the configuration of a server without TLS, whose users have the passwords `word of NAME`.
    pub fn password_config(nodes: &[&str]) -> String {
        let config = Nats::server_config(nodes);
        // Behind the part about certificates.
        let mut config = config.split_once("}\n").unwrap().1.to_owned();
        for name in nodes {
            let user = format!("{{ user: \"{name}\",");
            config = config.replace(&user, &format!("{user} password: \"word of {name}\","));
        }
        config
    }

    /// Lets a printed configuration name the files of this folder.
    pub fn with_files(folder: &Path, config: String) -> String {
        let folder = folder.to_str().unwrap();
        ["server.pem", "server.key", "ca.pem"]
            .iter()
            .fold(config, |config, file| {
                config.replace(&format!("\"{file}\""), &format!("\"{folder}/{file}\""))
            })
    }

    /// Starts a server of this configuration that writes all it receives to its log. Returns also where
    /// it tells its numbers.
    pub fn monitored(config: &str) -> (Server, String) {
        let monitor = format!("127.0.0.1:{}", free_port());
        let more = format!("trace: true\nhttp: \"{monitor}\"\n");
        (Server::with(&(more + config)), monitor)
    }

    pub fn with(config: &str) -> Server {
        let mut server = Server::new("127.0.0.1", Command::new("env"), config.into());
        server.start();
        server
    }

    /// Starts servers of this configuration that know each other.
    pub fn cluster<const N: usize>(config: &str) -> [Server; N] {
        let here = |_| ("127.0.0.1", Command::new("env"));
        Server::cluster_at(std::array::from_fn(here), config)
    }

    /// Starts servers that know each other, at these addresses and by these commands.
    pub fn cluster_at<const N: usize>(
        hosts: [(&'static str, Command); N],
        config: &str,
    ) -> [Server; N] {
        let hosts = hosts.map(|(host, by)| (host, by, free_port()));
        let routes = hosts
            .each_ref()
            .map(|(host, _, port)| format!("\"nats://{host}:{port}\""))
            .join(", ");
        let mut servers = hosts.map(|(host, by, port)| {
            let listen = format!("name: cluster\n  listen: \"{host}:{port}\"");
            let config = format!("{config}\ncluster {{\n  {listen}\n  routes: [{routes}]\n}}\n");
            Server::new(host, by, config)
        });
        servers.iter_mut().for_each(Server::start);
        servers
    }

    /// Starts a server with users at this address of this host.
    pub fn secure_at(host: &'static str) -> Server {
        let config = Server::secure_config(&NAMES);
        let mut server = Server::new(host, Command::new("env"), config);
        server.start();
        server
    }

    fn new(host: &'static str, by: Command, config: String) -> Server {
        Server {
            shell: Command::new("true").spawn().unwrap(),
            folder: tempfile::tempdir().unwrap(),
            host,
            port: free_port(),
            by,
            config,
        }
    }

    /// Starts the program at the port, and waits until it listens.
    pub fn start(&mut self) {
        self.write_config();
        let log = fs::File::create(self.folder.path().join("log")).unwrap();
        // The shell ends the server when the pipe is closed, as it is when this process ends.
        let mut shell = Command::new(self.by.get_program());
        shell
            .args(self.by.get_args())
            .args([
                "sh",
                "-c",
                "\"$0\" --config nats-server.conf --pid pid </dev/null & read -r _; kill -9 $!",
            ])
            .arg(program())
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let _ = self.shell.wait();
        self.shell = shell.spawn().unwrap();
        while TcpStream::connect((self.host, self.port)).is_err() {
            let log = self.log();
            assert!(!log.contains("address already in use"), "{log}");
            std::thread::yield_now();
        }
    }

    fn write_config(&self) {
        let config = format!("listen: \"{}\"\n{}", self.address(), self.config);
        fs::write(self.folder.path().join("nats-server.conf"), config).unwrap();
    }

    /// Makes the server read another configuration.
    pub fn reload(&mut self, config: &str) {
        self.config = config.into();
        self.write_config();
        self.signal("HUP");
    }

    /// Ends the server, and starts one of another configuration in its place.
    pub fn replace(&mut self, config: &str) {
        self.kill();
        self.config = config.into();
        self.start();
    }

    /// Sends the server a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} $(cat pid)");
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &kill]).current_dir(self.folder.path());
        assert!(shell.status().unwrap().success(), "{kill}");
    }

    /// Ends the server, as `kill -9` does.
    pub fn kill(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }

    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns what the server has written.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Returns how a node connects with a server without users.
    pub fn insecure(&self) -> Nats {
        Nats::servers([self.address()]).insecure()
    }

    /// Returns how a node connects with a server that knows it.
    pub fn known(&self, name: &str) -> Nats {
        nats(name, &self.address())
    }
}

/// Returns how a node connects with the server at this address.
pub fn nats(name: &str, address: &str) -> Nats {
    let [certificate, key, authority] = files_of(name);
    Nats::servers([address]).identity(certificate, key, authority)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
