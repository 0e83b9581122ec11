//! `NodeBuilder`: the options of a node.
//!
//! All of them are checked before anything starts.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::names::{LONGEST_NAME, SHORTEST_LEASE};
use super::{Node, NodeState};
use crate::engine::tcp::{Tcp, Tls, bare, bind};
use crate::error::OpenError;
use crate::limits::Limits;
use crate::link::frame::{ClusterMember, Hello};
use crate::sim_net::SimNet;

/// The longest lease.
const LONGEST_LEASE: Duration = Duration::from_secs(3600);

/// The addresses of a node, and the bytes of each: so a hello and a frame have room for all.
const MOST_ADDRESSES: usize = 8;
const LONGEST_ADDRESS: usize = 255;

/// The options of a [`Node`], from [`Node::builder`].
///
/// # Security
/// With an [identity](NodeBuilder::identity), all links are TLS, and both sides show a certificate.
/// Without one they are plain, and then a node listens at addresses of this machine alone, unless
/// it is [insecure](NodeBuilder::insecure). A node that connects may send messages of any published
/// kind to any published actor. Nothing is sent to addresses that were not given: nodes are found
/// by seeds, and by the nodes that seeds know.
///
/// ```no_run
/// # greenroom::run(async {
/// use greenroom_cluster::Node;
///
/// let node = Node::builder("shop")
///     .listen_address("tls/0.0.0.0:7447")
///     .advertised_address("node1.example:7447")
///     .seeds(["tls/node2.example:7447"])
///     .identity("shop.pem", "shop.key", "ca.pem")
///     .open()
///     .await?;
/// # Ok::<(), greenroom_cluster::OpenError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing before `open`"]
pub struct NodeBuilder {
    name: String,
    listen: Vec<String>,
    advertise: Vec<String>,
    seeds: Vec<String>,
    identity: Option<[PathBuf; 3]>,
    is_insecure: bool,
    lease: Duration,
    limits: Limits,
    net: Option<SimNet>,
}

impl NodeBuilder {
    pub(super) fn new(name: String) -> Self {
        NodeBuilder {
            name,
            listen: Vec::new(),
            advertise: Vec::new(),
            seeds: Vec::new(),
            identity: None,
            is_insecure: false,
            lease: Duration::from_secs(5),
            limits: Limits::default(),
            net: None,
        }
    }

    /// Adds an address to listen at: `tls/host:port`, `tcp/host:port` or `host:port`. Port 0 is any
    /// free one. A node that listens nowhere can still dial others.
    pub fn listen_address(mut self, address: impl Into<String>) -> Self {
        self.listen.push(address.into());
        self
    }

    /// Adds an address under which other nodes dial this one, as in
    /// [`listen_address`](Self::listen_address). The default is where it listens, except at
    /// `0.0.0.0` and `[::]`.
    pub fn advertised_address(mut self, address: impl Into<String>) -> Self {
        self.advertise.push(address.into());
        self
    }

    /// Adds addresses of nodes that are dialled until they are connected, and again when their
    /// links end. They name the other nodes.
    pub fn seeds<S: Into<String>>(mut self, seeds: impl IntoIterator<Item = S>) -> Self {
        self.seeds.extend(seeds.into_iter().map(Into::into));
        self
    }

    /// Sets the PEM files of the certificate chain, of its key, and of the authorities that sign
    /// the certificates of all nodes.
    ///
    /// The certificate has the name of the node as a DNS name, and may have more. It is used for
    /// both directions: if it is limited to purposes, then to `serverAuth` and `clientAuth`.
    pub fn identity(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        authority: impl Into<PathBuf>,
    ) -> Self {
        self.identity = Some([certificate.into(), key.into(), authority.into()]);
        self
    }

    /// Lets a node without an identity listen at addresses that others can reach. Anyone who
    /// reaches them can read and send everything.
    pub fn insecure(mut self) -> Self {
        self.is_insecure = true;
        self
    }

    /// Sets the lease: the default is 5 s, and the shortest one 500 ms. A node that sends nothing
    /// for 1.5 times this is lost, or up to a tenth of it earlier. Nodes that have nothing to send
    /// ping each other.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Connects the node with a simulated net, and with all nodes there, instead of sockets.
    pub fn net(mut self, net: &SimNet) -> Self {
        self.net = Some(net.clone());
        self
    }

    /// Opens the node. It does not wait for other nodes.
    ///
    /// # Errors
    /// [`OpenError`] says which option is impossible, or what the system refuses.
    pub async fn open(self) -> Result<Node, OpenError> {
        self.check()?;
        match self.net.clone() {
            Some(net) => Ok(self.open_in(&net)),
            None => greenroom::unblock(move || self.open_at_sockets()).await,
        }
    }

    fn check(&self) -> Result<(), OpenError> {
        let wrong = |why: String| Err(OpenError::Option(why));
        let name = &self.name;
        if name.is_empty() || name.len() > LONGEST_NAME {
            let text = format!("the name {name:?} is empty or longer than {LONGEST_NAME} bytes");
            return wrong(text);
        }
        let (lease, least, most) = (self.lease, SHORTEST_LEASE, LONGEST_LEASE);
        if lease < least || lease > most {
            let text = format!("the lease is {lease:?}, and {least:?} to {most:?} are allowed");
            return wrong(text);
        }
        // A hello has to hold all of them.
        let addresses: Vec<_> = self.listen.iter().chain(&self.advertise).collect();
        if addresses.len() > MOST_ADDRESSES {
            let count = addresses.len();
            return wrong(format!("{count} addresses are more than {MOST_ADDRESSES}"));
        }
        if let Some(long) = addresses
            .iter()
            .find(|address| address.len() > LONGEST_ADDRESS)
        {
            return wrong(format!("{long:?} is longer than {LONGEST_ADDRESS} bytes"));
        }
        match self.limits.problem() {
            Some(problem) => wrong(problem),
            None => Ok(()),
        }
    }

    fn hello(&self, addresses: Vec<String>) -> Hello {
        let halves = [greenroom::sim::random(), greenroom::sim::random()].map(u128::from);
        Hello {
            member: ClusterMember {
                name: self.name.clone(),
                incarnation: halves[0] << 64 | halves[1],
                addresses,
            },
            lease: u32::try_from(self.lease.as_millis()).unwrap_or(u32::MAX),
            frame: u32::try_from(self.limits.frame).unwrap_or(u32::MAX),
        }
    }

    fn open_in(self, net: &SimNet) -> Node {
        let engine = net.engine(&self.name);
        let hello = self.hello(Vec::new());
        let state = NodeState::new(hello, self.limits, Arc::new(engine.clone()));
        state.start();
        net.join(&engine, &state);
        Node::new(state, None, Vec::new())
    }

    fn open_at_sockets(self) -> Result<Node, OpenError> {
        let tls = match &self.identity {
            None => None,
            Some(files) => {
                let tls = Tls::read(files.clone(), &self.name);
                Some(Arc::new(tls.map_err(OpenError::Identity)?))
            }
        };
        let is_tls = tls.is_some();
        let all_bare = |given: &[String]| {
            let all = given.iter().map(|address| bare(address, is_tls));
            all.collect::<Result<Vec<_>, _>>()
                .map_err(OpenError::Option)
        };
        let (seeds, advertise) = (all_bare(&self.seeds)?, all_bare(&self.advertise)?);
        // All addresses are checked before one is bound.
        let listen = all_bare(&self.listen)?;
        let may_be_exposed = is_tls || self.is_insecure;
        let bound = (self.listen.iter().zip(&listen))
            .map(|(given, bare)| bind(given, bare, may_be_exposed));
        let (listeners, dialled): (Vec<_>, Vec<_>) =
            bound.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let listens = listeners
            .iter()
            .filter_map(|listener: &TcpListener| listener.local_addr().ok());
        let listens = listens.map(|at| at.to_string()).collect();
        let addresses = match advertise.is_empty() {
            true => dialled.into_iter().flatten().collect(),
            false => advertise,
        };
        let engine = Tcp::new(tls.clone(), seeds);
        let state = NodeState::new(self.hello(addresses), self.limits, Arc::new(engine.clone()));
        engine.start(&state, listeners)?;
        Ok(Node::new(state, tls, listens))
    }
}
