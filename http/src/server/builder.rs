//! The options of a server, and the server.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use greenroom::{Address, Reply, actor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::callers::Callers;
use super::listener::{Listener, ListenerEvent, StopReport};
use super::peers::Proxies;
use super::place::ListenPlace;
use super::route::{RegisteredType, TypedRoute, UnknownRoute};
use super::site::Site;
use crate::counts::{Counts, Statuses};
use crate::error::{ListenError, ListenProblem};
use crate::event::HttpEvent;
use crate::limits::Limits;
use crate::message::{HttpRequest, HttpResponse};
use crate::reactor::GivenListener;
use crate::values::answer::Answers;
use crate::view::{METRICS_PATH, Mount};

/// A server, which listens until it is stopped or dropped.
///
/// Dropping it does as [`stop`](Server::stop) does, without waiting.
///
/// ```
/// use greenroom::{Context, Reply, spawn};
/// use greenroom_http::Server;
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Sum {
///     a: u32,
///     #[serde(default)]
///     b: u32,
/// }
///
/// async fn adder(mut cx: Context<(Sum, Reply<u32>)>) {
///     while let Some((sum, reply)) = cx.recv().await {
///         reply.send(sum.a + sum.b);
///     }
/// }
///
/// greenroom::run(async {
///     let adder = spawn!(adder(_));
///     let server = Server::bind("127.0.0.1:0")
///         .on("Sum", &adder.address(), |sum: Sum, reply| (sum, reply))
///         .listen()
///         .await?;
///     println!("curl 'http://{}/Sum?a=1&b=2'", server.local_addr());
///     server.stop().await;
///     Ok::<(), greenroom_http::ListenError>(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
#[must_use = "a server that is dropped stops"]
pub struct Server {
    address: Address<ListenerEvent>,
    local: SocketAddr,
}

/// The options of a [`Server`].
///
/// Without [`listen`](ServerBuilder::listen) nothing happens.
#[must_use = "a builder does nothing until `listen`"]
pub struct ServerBuilder {
    place: ListenPlace,
    types: Vec<(String, RegisteredType)>,
    unknown: Option<UnknownRoute>,
    events: Option<Address<HttpEvent>>,
    form: Answers,
    limits: Limits,
    callers: Callers,
    proxies: Proxies,
    grace: Duration,
    is_exposed: bool,
    pages: BTreeMap<&'static str, Mount>,
    /// `unknown` came after the last `on`.
    last_is_unknown: bool,
    /// What is wrong with the options, if something is.
    problem: Option<String>,
}

/// The time that open requests have after a stop.
const GRACE: Duration = Duration::from_secs(10);

impl Server {
    /// Begins a server for an address such as `127.0.0.1:5050`. Port 0 lets the system choose one.
    pub fn bind(address: impl ToString) -> ServerBuilder {
        ServerBuilder::new(ListenPlace::Address(address.to_string()))
    }

    /// Begins a server for a listener that is there already, such as one of the program's parent. On
    /// Unix it may be a [`UnixListener`](std::os::unix::net::UnixListener), whose file stays.
    ///
    /// ```
    /// use greenroom_http::Server;
    ///
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let server = Server::from_listener(listener);
    /// # drop(server);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_listener(listener: impl Into<GivenListener>) -> ServerBuilder {
        ServerBuilder::new(ListenPlace::Listener(listener.into()))
    }

    /// Begins a server for a socket of Unix at a path, which only the user of this process may use. A
    /// socket at which nobody listens any more is replaced. The file is removed when the server ends.
    ///
    /// What comes there counts as local, as at a loopback address. All clients are one, with the address
    /// 127.0.0.1 and port 0, which is that of the server as well.
    ///
    /// ```
    /// let folder = std::env::temp_dir();
    /// let server = greenroom_http::Server::bind_path(folder.join("shop.socket"));
    /// # drop(server);
    /// ```
    #[cfg(unix)]
    pub fn bind_path(path: impl AsRef<std::path::Path>) -> ServerBuilder {
        ServerBuilder::new(ListenPlace::Path(path.as_ref().to_owned()))
    }

    /// Returns the address at which the server listens, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts no more connections. Those that are open go on.
    pub fn stop_listening(&self) {
        // One that has ended does not listen.
        let _ = self.address.tell(ListenerEvent::StopListening);
    }

    /// Stops the server: accepts nothing more, and waits until the open requests are answered.
    ///
    /// Each connection is closed after the answer to its request. Those that are left when the
    /// [grace](ServerBuilder::grace) is over are cut. A server that has ended reports nothing.
    ///
    /// # Cancel safety
    /// The server goes on stopping when the future is dropped.
    pub async fn stop(&self) -> StopReport {
        let asked = self.address.ask(|reply| ListenerEvent::Stop(Some(reply)));
        asked.await.unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.address.tell(ListenerEvent::Stop(None));
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.name();
        f.debug_tuple("ServerBuilder").field(&place).finish()
    }
}

impl ServerBuilder {
    fn new(place: ListenPlace) -> Self {
        ServerBuilder {
            place,
            types: Vec::new(),
            unknown: None,
            events: None,
            form: Answers::default(),
            limits: Limits::default(),
            callers: Callers::default(),
            proxies: Proxies::default(),
            grace: GRACE,
            is_exposed: false,
            pages: BTreeMap::new(),
            last_is_unknown: false,
            problem: None,
        }
    }

    /// Registers a type of requests under a name, which is the last segment of their path.
    ///
    /// `GET /Xy?x=1` and `POST /Xy` become a `Q`. The closure makes a message of it, with the
    /// right to answer, for the actor at `address`. The answer goes back as JSON. The name must
    /// not be empty, and must differ from the other names.
    pub fn on<Q, R, M>(
        mut self,
        name: &str,
        address: &Address<M>,
        make: impl Fn(Q, Reply<R>) -> M + Send + Sync + 'static,
    ) -> Self
    where
        Q: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        M: Send + 'static,
    {
        if name.is_empty() || name.contains('/') {
            self.wrong(format!("{name:?} is no name of a type"));
        }
        if self.types.iter().any(|(other, _)| other == name) {
            self.wrong(format!("the type {name:?} is registered twice"));
        }
        // The first problem is kept, and `listen` returns it.
        let registered = RegisteredType {
            route: Box::new(TypedRoute::new(name, address, make)),
            statuses: Statuses::default(),
            is_post_only: false,
            is_readable: false,
        };
        self.last_is_unknown = false;
        self.types.push((name.to_owned(), registered));
        self
    }

    /// Lets the type of the last [`on`](ServerBuilder::on) be posted only. `GET` is answered with
    /// 405 for all clients.
    pub fn post_only(mut self) -> Self {
        match self.types.last_mut() {
            Some((_, registered)) => registered.is_post_only = true,
            None => self.wrong("`post_only` comes before any `on`".to_owned()),
        }
        self
    }

    /// Lets pages of any site show the type of the last [`on`](ServerBuilder::on), or what the actor of
    /// [`unknown`](ServerBuilder::unknown) answers, if that came last: as an image, a script or a frame.
    /// A page that reads it with `fetch` names its origin, and needs [`cors`](ServerBuilder::cors).
    ///
    /// Otherwise `GET` and `HEAD` are for clients that are no pages of another site: those that say so
    /// in `Sec-Fetch-Site`, as browsers do, and at loopback addresses those that say nothing, such as
    /// curl. Others are answered with 403. `POST` needs no such mark, since a browser names the
    /// [origin](ServerBuilder::hosts) of the page.
    ///
    /// ```
    /// use greenroom::{Context, Reply, spawn};
    /// use greenroom_http::Server;
    ///
    /// # #[derive(serde::Deserialize)]
    /// # struct Hits;
    /// async fn hits(mut cx: Context<(Hits, Reply<u32>)>) {
    ///     while let Some((Hits, reply)) = cx.recv().await {
    ///         reply.send(42);
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let hits = spawn!(hits(_));
    ///     let server = Server::bind("127.0.0.1:0").on("Hits", &hits, |hits: Hits, reply| (hits, reply));
    ///     let server = server.readable().listen().await?;
    ///     server.stop().await;
    ///     Ok::<(), greenroom_http::ListenError>(())
    /// })
    /// .unwrap();
    /// ```
    pub fn readable(mut self) -> Self {
        match (&mut self.unknown, self.types.last_mut()) {
            (Some(unknown), _) if self.last_is_unknown => unknown.is_readable = true,
            (_, Some((_, registered))) => registered.is_readable = true,
            _ => self.wrong("`readable` comes before any `on`".to_owned()),
        }
        self
    }

    /// Lets clients that say nothing of a site read all types, also from other machines.
    ///
    /// A browser omits `Sec-Fetch-Site` over plain HTTP. So any page can then reach the types of an
    /// [exposed](ServerBuilder::expose) server by `GET`, though not read the answers.
    pub fn allow_unmarked(mut self) -> Self {
        self.callers.allows_unmarked = true;
        self
    }

    /// Lets pages of these origins, such as `https://example.org`, call the server and read its answers.
    ///
    /// Scheme, host and port must be the same. Their requests before others (`OPTIONS`) are answered for
    /// registered types; others go to the actor of [`unknown`](ServerBuilder::unknown).
    /// A text that is no origin is an error of [`listen`](ServerBuilder::listen).
    ///
    /// ```
    /// let server = greenroom_http::Server::bind("127.0.0.1:0").cors(["https://example.org"]);
    /// # drop(server);
    /// ```
    pub fn cors<S: AsRef<str>>(mut self, origins: impl IntoIterator<Item = S>) -> Self {
        for origin in origins {
            let origin = origin.as_ref();
            if !self.callers.allow_origin(origin) {
                self.wrong(format!("{origin:?} is no origin"));
            }
        }
        self
    }

    /// Sets the name that the answers of the last [`on`](ServerBuilder::on) have in an
    /// [envelope](Answers::Envelope).
    pub fn name(mut self, name: &str) -> Self {
        match self.types.last_mut() {
            Some((_, registered)) => registered.route.set_answer_name(name),
            None => self.wrong("`name` comes before any `on`".to_owned()),
        }
        self
    }

    /// Sets the actor for requests of all other names. Without it they are answered with 404.
    pub fn unknown<M: Send + 'static>(
        mut self,
        address: &Address<M>,
        make: impl Fn(HttpRequest, Reply<HttpResponse>) -> M + Send + Sync + 'static,
    ) -> Self {
        self.unknown = Some(UnknownRoute::new(address, make));
        self.last_is_unknown = true;
        self
    }

    /// Sets the address that receives what happens to the server and its connections.
    pub fn events(mut self, address: &Address<HttpEvent>) -> Self {
        self.events = Some(address.clone());
        self
    }

    /// Sets the form of answers. A client that accepts `application/vnd.layer_cake+json` gets an
    /// envelope in any case.
    pub fn answers(mut self, form: Answers) -> Self {
        self.form = form;
        self
    }

    /// Serves clients on layer_cake as its own server does: with [`Answers::LayerCake`], and without a
    /// `Host` at loopback addresses, since they send none.
    ///
    /// ```
    /// let server = greenroom_http::Server::bind("127.0.0.1:5050").layer_cake();
    /// # drop(server);
    /// ```
    pub fn layer_cake(self) -> Self {
        self.answers(Answers::LayerCake)
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds names by which clients may call the server in `Host` and `Origin`.
    ///
    /// `localhost`, the addresses of the loopback and the address at which a connection has come
    /// are always allowed. Other names are answered with 403, so that no page of another site can
    /// use the browser of a user to call the server by a name of its own. The `Origin` of a page must be
    /// the host and port that it calls, or one of [`cors`](ServerBuilder::cors). A text that is no name,
    /// or has a port, is an error of [`listen`](ServerBuilder::listen).
    pub fn hosts<S: AsRef<str>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        for name in names {
            let name = name.as_ref();
            if !self.callers.hosts.allow(name) {
                self.wrong(format!("{name:?} is no name of a host"));
            }
        }
        self
    }

    /// Sets how long requests that are open at a stop may take: 10 s by default.
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    /// Lets the server listen at addresses that other machines reach.
    ///
    /// It knows no encryption and no users: put it behind a proxy that does.
    pub fn expose(mut self) -> Self {
        self.is_exposed = true;
        self
    }

    /// Trusts the proxies with these addresses to say for whom they ask, in `Forwarded`.
    ///
    /// Their connections are not limited. The requests of each of their clients are, by
    /// [`connections_a_peer`](Limits::connections_a_peer). The last address counts that is none of these
    /// proxies. A request whose `Forwarded` has no address has no such limit.
    ///
    /// Requests of a proxy at a loopback address are not local ones: they are read by `GET` only if they
    /// say of which site they are.
    ///
    /// ```
    /// use greenroom_http::Server;
    /// use std::net::Ipv4Addr;
    ///
    /// let proxy = Ipv4Addr::new(10, 0, 0, 1).into();
    /// let server = Server::bind("10.0.0.2:80").expose().trust_proxy([proxy]);
    /// # drop(server);
    /// ```
    pub fn trust_proxy(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        addresses.into_iter().for_each(|it| self.proxies.trust(it));
        self
    }

    /// Counts the connections of clients at loopback addresses, too. Otherwise they have no limit but
    /// that of all.
    pub fn count_loopback(mut self) -> Self {
        self.proxies.counts_loopback = true;
        self
    }

    /// Sets what `GET /` shows, also within pages of other sites.
    ///
    /// ```
    /// use greenroom_http::{HttpResponse, Server};
    ///
    /// let page = HttpResponse::new(200, "<p>hello").header("content-type", "text/html");
    /// let server = Server::bind("127.0.0.1:0").index(page);
    /// # drop(server);
    /// ```
    pub fn index(self, page: HttpResponse) -> Self {
        self.mount(Mount::fixed("/", page))
    }

    /// Adds a page at its own path: [`metrics`](crate::metrics),
    /// [`actors_page`](crate::actors_page) or [one of the program](Mount::page). Without it, the path is that of a type.
    pub fn mount(mut self, page: Mount) -> Self {
        self.pages.insert(page.path(), page);
        self
    }

    fn wrong(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    /// Listens on the current runtime.
    ///
    /// # Errors
    /// [`ListenError`] says why the server does not listen. Outside a runtime it does not.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing listens.
    pub async fn listen(self) -> Result<Server, ListenError> {
        let (place, events) = (self.place.name(), self.events.clone());
        let listening = self.open().await;
        let listening = listening.map_err(|problem| ListenError::new(&place, problem));
        let event = match &listening {
            Ok(server) => HttpEvent::Listening { addr: server.local },
            Err(error) => HttpEvent::NotListening(error.clone()),
        };
        if let Some(events) = events {
            // The program may not receive events any more.
            let _ = events.tell(event);
        }
        listening
    }

    /// Checks the options, and starts the actor that listens.
    async fn open(self) -> Result<Server, ListenProblem> {
        if let Some(problem) = self.problem {
            return Err(ListenProblem::Option(problem));
        }
        if let Some(problem) = self.limits.problem() {
            return Err(ListenProblem::Option(problem));
        }
        // The other options are right. From here on only the place, the system and the runtime may refuse.
        let listener = self.place.listen(self.is_exposed).await?;
        let local = listener.local_addr()?;
        let site = Site {
            types: self.types.into_iter().collect(),
            unknown: self.unknown,
            form: self.form,
            callers: self.callers,
            limits: self.limits,
            in_flight: AtomicUsize::new(0),
            unsent: Arc::default(),
            counts: Counts::default(),
            is_measured: self.pages.contains_key(METRICS_PATH),
            pages: self.pages,
            proxies: self.proxies,
            by_peer: Arc::default(),
        };
        let own = Listener {
            site: Arc::new(site),
            events: self.events,
            grace: self.grace,
        };
        let running = actor(move |cx| own.run(cx, listener));
        let spawned = running.name("http listener").try_spawn();
        let handle = spawned.map_err(|error| ListenProblem::Option(error.problem().to_string()))?;
        let address = handle.address();
        handle.detach();
        Ok(Server { address, local })
    }
}
