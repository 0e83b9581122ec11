//! `Nats`: how a node connects with NATS servers.
//!
//! All is checked before the node is open: the servers, and who they say that the node is.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use async_nats::rustls::crypto::{CryptoProvider, ring};
use async_nats::{Client, ConnectOptions, Event};
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};

use super::{GONE, NatsBroker, follow};
use crate::engine::broker::{Broker, BrokerEngine, LEAST_PAYLOAD, most_batches, token};
use crate::engine::{LinkEngine, OpenNode, Renew, no_certificate};
use crate::error::{OpenError, RenewError};
use crate::limits::Limits;
use crate::link::frame::Hello;
use crate::node::NodeState;

/// How often the server is pinged. After two pings without an answer, the connection ends.
const PING: Duration = Duration::from_secs(1);

/// How long a server may take to accept a connection, and then to say who the node is.
const PATIENCE: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(2);

/// The pauses between two tries to connect again: from the first one, doubled, to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How a node connects with NATS servers, for [`NodeBuilder::nats`](crate::NodeBuilder::nats).
///
/// The node tries the servers in any order, and those that they name. If the connection ends, all of
/// its links end, and the node connects again.
///
/// # Security
/// The server vouches for the sender of each message, so it has to know who a node is: by its
/// [certificate](Nats::identity), or by a [password](Nats::password). The user has the name of the
/// node, and may publish only under that name. `greenroom-cluster nats-config` prints such users. Who
/// runs a server can read and forge all that goes over it.
///
/// TLS uses the cryptography that the program has chosen for `rustls`. If it has chosen none, `ring`
/// becomes the choice of the program.
///
/// ```no_run
/// # greenroom::run(async {
/// use greenroom_cluster::{Nats, Node};
///
/// let nats = Nats::servers(["tls://nats1.example", "tls://nats2.example"]);
/// let nats = nats.identity("shop.pem", "shop.key", "ca.pem");
/// let node = Node::builder("shop").nats(nats).open().await?;
/// # Ok::<(), greenroom_cluster::OpenError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
#[must_use = "it does nothing before a node is opened with it"]
pub struct Nats {
    servers: Vec<String>,
    /// The files of certificate, key and authority.
    identity: Option<[PathBuf; 3]>,
    password: Option<String>,
    is_insecure: bool,
}

impl Nats {
    /// Names the servers: `tls://host:port`, `nats://host:port` or `host:port`. The port is 4222 if
    /// there is none. If one begins with `tls://`, all connections are TLS.
    pub fn servers<S: Into<String>>(servers: impl IntoIterator<Item = S>) -> Self {
        Nats {
            servers: servers.into_iter().map(Into::into).collect(),
            identity: None,
            password: None,
            is_insecure: false,
        }
    }

    /// Sets the PEM files of the certificate chain of the node, of its key, and of the authority of
    /// the servers. All connections are TLS then.
    ///
    /// The files are read again for each connection.
    pub fn identity(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        authority: impl Into<PathBuf>,
    ) -> Self {
        self.identity = Some([certificate.into(), key.into(), authority.into()]);
        self
    }

    /// Sets the password of the user that has the name of the node.
    ///
    /// It goes over the net as it is, unless the connections are TLS: by [`identity`](Nats::identity),
    /// or if the address of one of the servers begins with `tls://`.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Lets the node use a server that does not know who it is, such as one for tests. Anyone who
    /// reaches the server can speak as any node.
    pub fn insecure(mut self) -> Self {
        self.is_insecure = true;
        self
    }

    /// Opens a node: connects, and starts its thread.
    pub(crate) async fn open(self, hello: Hello, limits: Limits) -> Result<OpenNode, OpenError> {
        on_thread(move |opened| self.serve(hello, limits, opened)).await
    }

    /// Connects and runs the tasks of a node, until it is closed.
    async fn serve(self, hello: Hello, limits: Limits, opened: OpenOutcome<OpenNode>) {
        let name = hello.member.name.clone();
        let (events, received) = mpsc::unbounded_channel();
        let client = match self.connect(&name, limits.peers, events).await {
            Ok(client) => client,
            Err(error) => return drop(opened.send(Err(error))),
        };
        let broker = Arc::new(NatsBroker {
            client,
            engine: OnceLock::new(),
            subscriptions: Mutex::default(),
        });
        let carrier: Arc<dyn Broker> = Arc::new(broker.clone());
        let engine = BrokerEngine::new(&name, limits.peers, carrier);
        let _ = broker.engine.set(Arc::downgrade(&engine));
        let state = NodeState::new(hello, limits, Arc::new(engine.clone()));
        engine.start(&state);
        broker.subscribe(GONE.into());
        engine.spawn(Box::pin(follow(broker, received)));
        let open = OpenNode {
            state,
            addresses: Vec::new(),
            renew: self.renew(),
        };
        // If the caller has gone, the node closes as it is dropped.
        drop(opened.send(Ok(open)));
        // A task of its own: what it wakes goes on without a look at the socket.
        let _ = tokio::spawn(async move { engine.run().await }).await;
    }

    /// Connects, and asks who this is.
    pub(super) async fn connect(
        &self,
        name: &str,
        peers: usize,
        events: mpsc::UnboundedSender<Event>,
    ) -> Result<Client, OpenError> {
        let is_tls = |server: &String| server.starts_with("tls://");
        let is_tls = self.identity.is_some() || self.servers.iter().any(is_tls);
        if is_tls && CryptoProvider::get_default().is_none() {
            // Without one, a program with several cannot make a connection. It may have come meanwhile.
            let _ = ring::default_provider().install_default();
        }
        let mut options = ConnectOptions::new()
            .name(name)
            .no_echo()
            .ping_interval(PING)
            .connection_timeout(PATIENCE)
            .subscription_capacity(most_batches(peers))
            .require_tls(is_tls)
            .custom_inbox_prefix(format!("_INBOX.{}", token(name)))
            .max_reconnects(None)
            .reconnect_delay_callback(pause)
            .event_callback(move |event| {
                // The node may have closed.
                let _ = events.send(event);
                async {}
            });
        if let Some([certificate, key, authority]) = &self.identity {
            options = options
                .add_root_certificates(authority.clone())
                .add_client_certificate(certificate.clone(), key.clone());
        }
        if let Some(password) = &self.password {
            options = options.user_and_password(name.into(), password.clone());
        }
        let servers = self.servers.iter().map(|server| {
            let parsed = server.parse::<async_nats::ServerAddr>();
            parsed.map_err(|error| OpenError::Option(format!("{server:?} is no server: {error}")))
        });
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        if servers.is_empty() {
            return Err(OpenError::Option("there is no NATS server".into()));
        }
        let client = options.connect(servers).await.map_err(|error| {
            OpenError::Server(format!("cannot connect with {:?}: {error}", self.servers))
        })?;
        let most = client.max_payload();
        if most < LEAST_PAYLOAD {
            let text = format!("its max_payload is {most}, and at least {LEAST_PAYLOAD} is needed");
            return Err(OpenError::Server(text));
        }
        if !self.is_insecure {
            is_user(&client, name).await.map_err(OpenError::Server)?;
        }
        Ok(client)
    }

    fn renew(&self) -> Renew {
        let Some(files) = self.identity.clone() else {
            return no_certificate();
        };
        // Each connection reads them anew.
        Box::new(move || {
            files.iter().try_for_each(|file| {
                let read = std::fs::read(file).map(drop);
                read.map_err(|error| RenewError::new(file.display().to_string(), error))
            })
        })
    }
}

impl fmt::Debug for Nats {
    /// Shows all but the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats")
            .field("servers", &self.servers)
            .field("identity", &self.identity)
            .field("is_insecure", &self.is_insecure)
            .finish_non_exhaustive()
    }
}

/// Where the outcome of what runs on a thread goes.
type OpenOutcome<T> = oneshot::Sender<Result<T, OpenError>>;

/// Runs a future on a thread with a runtime of tokio, until the future ends. Returns what it sends.
pub(super) async fn on_thread<T, F>(
    serve: impl FnOnce(OpenOutcome<T>) -> F + Send + 'static,
) -> Result<T, OpenError>
where
    T: Send + 'static,
    F: Future<Output = ()>,
{
    let (outcome, received) = oneshot::channel();
    let thread = thread::Builder::new().name("greenroom-cluster".into());
    let serve = move || match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(serve(outcome)),
        Err(error) => drop(outcome.send(Err(OpenError::Thread(error)))),
    };
    thread.spawn(serve).map_err(OpenError::Thread)?;
    let ended = || {
        Err(OpenError::Server(
            "the thread of its client has panicked".into(),
        ))
    };
    received.await.unwrap_or_else(|_| ended())
}

fn pause(tries: usize) -> Duration {
    // The first try has the number 1.
    let doubled = FIRST_PAUSE * (1 << tries.saturating_sub(1).min(10));
    doubled.min(LONGEST_PAUSE)
}

/// Asks the server who this is. Returns what is wrong if it is not the user of this name.
async fn is_user(client: &Client, name: &str) -> Result<(), String> {
    let info = client.server_info();
    if !info.auth_required && !info.tls_required {
        return Err("it has no users, and lets anyone speak as any node (see `insecure`)".into());
    }
    let answer = user_info(client)
        .await
        .map_err(|why| format!("{why}, as {name:?}"))?;
    match answer.pointer("/data/user").and_then(|user| user.as_str()) {
        Some(user) if user == name => Ok(()),
        Some(user) => Err(format!(
            "the user of this connection is {user:?}, and not {name:?}"
        )),
        None => Err(format!("it does not say who this is: {answer}")),
    }
}

/// Asks the server for the user of this connection.
pub(super) async fn user_info(client: &Client) -> Result<serde_json::Value, String> {
    let asked = client.request("$SYS.REQ.USER.INFO", "".into());
    let answer = match tokio::time::timeout(ANSWER, asked).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(format!("it does not say who this is: {error}")),
        // Another user may not receive the answer.
        Err(_) => return Err(format!("it has not said within {ANSWER:?} who this is")),
    };
    serde_json::from_slice(&answer.payload)
        .map_err(|error| format!("it does not say who this is: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use greenroom::time::sleep;

    use super::{CryptoProvider, Nats, PING};
    use crate::Node;

    /// What a server without TLS says first.
    const INFO: &str = concat!(
        r#"INFO {"server_id":"a","server_name":"a","version":"2.15.1","host":"127.0.0.1","#,
        r#""port":4222,"headers":true,"max_payload":1048576,"proto":1,"client_id":1}"#,
        "\r\n"
    );

    /// Opens a node at a server without TLS, and at another one that is not there. Returns what it
    /// sends first.
    fn sent_first(other: &str) -> Vec<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap().to_string();
        let received = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(INFO.as_bytes()).unwrap();
            let mut first = [0; 4];
            let length = stream.read(&mut first).unwrap();
            first[..length].to_vec()
        });
        let nats = Nats::servers([&*server, other]).password("secret");
        let opened = greenroom::run(Node::builder("shop").nats(nats).open());
        assert!(opened.is_err());
        received.join().unwrap()
    }

    #[test]
    fn no_connection_is_plain_if_one_of_the_servers_is_named_with_tls() {
        assert_eq!(sent_first("nats://127.0.0.1:1"), b"CONN");
        assert_ne!(sent_first("tls://127.0.0.1:1"), b"CONN");
        // Here rustls itself makes no choice, and a handshake without one would panic.
        assert!(CryptoProvider::get_default().is_some());
    }

    /// Opens a node at a server that answers its first ping, and then is silent. Returns how many
    /// pings it sends after that, until it gives the connection up.
    async fn unanswered_pings() -> usize {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap().to_string();
        let received = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            // A node that connects again finds nothing.
            drop(listener);
            (&stream).write_all(INFO.as_bytes()).unwrap();
            let lines = BufReader::new(&stream).split(b'\n').map_while(Result::ok);
            let mut pings = lines.filter(|line| line == b"PING\r");
            pings.next().unwrap();
            (&stream).write_all(b"PONG\r\n").unwrap();
            pings.take(10).count()
        });
        let nats = Nats::servers([server]).insecure();
        let node = Node::builder("shop").nats(nats).open().await.unwrap();
        while node.status().unreached.is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
        // The client closes its socket when it has another one, or ends.
        drop(node);
        greenroom::unblock(|| received.join().unwrap()).await
    }

    #[test]
    fn a_connection_whose_server_is_silent_ends_after_two_pings() {
        let pings = greenroom::run(unanswered_pings());
        // The next one, after 3 s in all, is not sent.
        assert_eq!((pings, PING), (2, Duration::from_secs(1)));
    }

    #[test]
    fn a_password_is_not_shown() {
        let nats = Nats::servers(["a:4222"]).password("secret");
        let shown = format!("{nats:?}");
        assert!(
            shown.contains("a:4222") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
