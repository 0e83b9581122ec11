//! The options of a client, and the client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom::time::RetryIntervals;
use greenroom::{Address, Reply, actor};
use hyper::http::uri::{Authority, PathAndQuery};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::connection::Upstream;
use super::exchange::TypedExchange;
use super::pool::{PoolMessage, run};
use crate::values::answer::Answers;

/// A client of a server, which gives addresses of the actors there.
///
/// A clone is the same client. Its connections are closed when the last clone and the last of its
/// addresses are dropped.
///
/// ```
/// use greenroom::{Context, Reply, spawn};
/// use greenroom_http::{Client, Server};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Double(u32);
///
/// async fn doubler(mut cx: Context<(Double, Reply<u32>)>) {
///     while let Some((Double(number), reply)) = cx.recv().await {
///         reply.send(2 * number);
///     }
/// }
///
/// greenroom::run(async {
///     let near = spawn!(doubler(_)).address();
///     let server = Server::bind("127.0.0.1:0").on("Double", &near, |q: Double, reply| (q, reply));
///     let server = server.listen().await?;
///
///     let client = Client::connect(server.local_addr()).open()?;
///     let far = client.address::<Double, u32>("Double");
///     assert_eq!(far.ask(|reply| (Double(21), reply)).await, Ok(42));
///     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// })
/// .unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    address: Address<PoolMessage>,
}

/// The options of a [`Client`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `open`"]
pub struct ClientBuilder {
    address: String,
    connections: usize,
    retry: Option<RetryIntervals>,
    form: Answers,
    path: String,
    largest_answer: usize,
    timeout: Duration,
}

/// The bytes of the largest answer by default.
const LARGEST_ANSWER: usize = 16 << 20;

/// The connections of a client by default, and at most: each is an actor. A server takes 1024 in all
/// by default.
const CONNECTIONS: usize = 4;
const CONNECTIONS_MAX: usize = 1024;

/// The time of a request by default, as long as a server waits for its actors by default.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The intervals between tries to connect by default, in milliseconds.
const STEPS_MS: [u64; 4] = [100, 200, 400, 800];

/// The reason why a client cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError {
    address: String,
    problem: String,
}

impl ConnectError {
    /// Returns the address as it was given.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot connect to {:?} ({})", self.address, self.problem)
    }
}

impl std::error::Error for ConnectError {}

impl Client {
    /// Begins a client of the server at an address such as `127.0.0.1:5050`.
    pub fn connect(address: impl ToString) -> ClientBuilder {
        ClientBuilder {
            address: address.to_string(),
            connections: CONNECTIONS,
            retry: None,
            form: Answers::Plain,
            path: "/".to_owned(),
            largest_answer: LARGEST_ANSWER,
            timeout: TIMEOUT,
        }
    }

    /// Returns the address of the actor that answers requests of this name.
    ///
    /// Each message is posted, with `Q` as JSON. The answer, an `R`, comes back through the reply.
    /// Each connection carries one request at a time, in the order in which they came. 256 more
    /// wait; another one is refused as [`Overloaded`](greenroom::RefusalKind::Overloaded).
    ///
    /// # Errors
    /// An asker gets the [`Refusal`](greenroom::Refusal) of the other side. One of the client has
    /// the kind `NotConnected` if there is no connection, so the request has not arrived. With
    /// `TimedOut` and `Unavailable` it may have arrived. It is never sent twice. A refusal with a
    /// code from 200 to 299 comes back as a malformed answer. One that is too large is a `Fault` with
    /// the condition `answer too large`: the same question would have the same answer.
    ///
    /// # Cancel safety
    /// A request whose asker is gone is not sent. If it is under way, its connection is reset, so that
    /// the server sees it too.
    pub fn address<Q, R>(&self, name: &str) -> Address<(Q, Reply<R>)>
    where
        Q: Serialize + Send + 'static,
        R: DeserializeOwned + Send + 'static,
    {
        let name: Arc<str> = name.into();
        self.address.map(move |(question, reply)| {
            PoolMessage::Carry(Box::new(TypedExchange {
                name: name.clone(),
                question,
                reply,
            }))
        })
    }
}

impl ClientBuilder {
    /// Sets how many connections there may be: from 1 to 1024, and 4 by default. They are opened when
    /// they are needed.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets the intervals at which a connection is tried again, by default four times within 1.5 s.
    /// Requests wait meanwhile.
    pub fn retry_intervals(mut self, intervals: RetryIntervals) -> Self {
        self.retry = Some(intervals);
        self
    }

    /// Sends requests and asks for answers in the envelope of layer_cake.
    pub fn envelope(mut self, is_on: bool) -> Self {
        self.form = match is_on {
            true => Answers::Envelope,
            false => Answers::Plain,
        };
        self
    }

    /// Talks to a server on layer_cake: with [`Answers::LayerCake`], in both directions.
    ///
    /// ```
    /// use greenroom_http::Client;
    ///
    /// greenroom::run(async {
    ///     // What its own clients call `http_client='/tables/'`.
    ///     let client = Client::connect("127.0.0.1:5050").layer_cake().path("/tables/").open();
    ///     assert!(client.is_ok(), "it connects with the first request");
    /// });
    /// ```
    pub fn layer_cake(mut self) -> Self {
        self.form = Answers::LayerCake;
        self
    }

    /// Sets the path before the names of the types: `/` by default. A path begins and ends with a
    /// slash.
    pub fn path(mut self, path: &str) -> Self {
        self.path = path.to_owned();
        self
    }

    /// Sets the bytes of the largest answer: 16 MiB by default. A larger one becomes a refusal, and its
    /// connection is closed.
    pub fn largest_answer(mut self, bytes: usize) -> Self {
        self.largest_answer = bytes;
        self
    }

    /// Sets how long a request may take once it is sent, and how long a try to connect: 30 s by
    /// default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Opens the client on the current runtime. It connects when the first request is made.
    ///
    /// # Errors
    /// [`ConnectError`]:
    /// - if the address is no host with a port;
    /// - if the path does not begin and end with a slash, or has signs that a URI does not have;
    /// - if the number of connections is not from 1 to 1024;
    /// - if there is no runtime.
    pub fn open(self) -> Result<Client, ConnectError> {
        let error = |problem: String| ConnectError {
            address: self.address.clone(),
            problem,
        };
        let authority = self.address.parse::<Authority>();
        let has_port = authority.is_ok_and(|it| it.port_u16().is_some());
        if !has_port || self.address.contains('@') {
            return Err(error("it is no host with a port".to_owned()));
        }
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            let connections = self.connections;
            return Err(error(format!(
                "the number of connections is {connections}, not from 1 to {CONNECTIONS_MAX}"
            )));
        }
        let is_path = self.path.starts_with('/') && self.path.ends_with('/');
        let is_pure = self.path.parse::<PathAndQuery>().is_ok() && !self.path.contains(['?', '#']);
        if !is_path || !is_pure {
            let path = &self.path;
            return Err(error(format!(
                "{path:?} is no path with slashes at both ends"
            )));
        }
        let steps = STEPS_MS.map(Duration::from_millis);
        let upstream = Arc::new(Upstream {
            address: self.address.clone(),
            retry: match self.retry {
                Some(retry) => retry,
                None => {
                    let steps = RetryIntervals::steps(steps);
                    steps.map_err(|problem| error(problem.to_string()))?
                }
            },
            form: self.form,
            path: self.path.clone(),
            largest_answer: self.largest_answer,
            timeout: self.timeout,
        });
        let connections = self.connections;
        // The pool ends when the client and all of its addresses are dropped.
        let pool = actor(move |cx| run(cx, upstream, connections)).name("http client");
        let spawned = pool.try_spawn();
        let handle = spawned.map_err(|problem| error(problem.problem().to_string()))?;
        let address = handle.address();
        handle.detach();
        Ok(Client { address })
    }
}
