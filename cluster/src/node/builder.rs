//! `NodeBuilder`: the options of a node.
//!
//! All of them are checked before anything starts.

#[cfg(feature = "sockets")]
use std::path::PathBuf;
use std::time::Duration;

use super::Node;
use super::names::{LONGEST_NAME, SHORTEST_LEASE, is_name};
#[cfg(feature = "nats")]
use crate::engine::nats::Nats;
#[cfg(feature = "sockets")]
use crate::engine::tcp::SocketOptions;
use crate::error::OpenError;
use crate::limits::Limits;
use crate::link::frame::{ClusterMember, Hello, TRACES};
use crate::sim_net::SimNet;

/// The longest lease.
const LONGEST_LEASE: Duration = Duration::from_secs(3600);

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
    #[cfg(feature = "sockets")]
    sockets: SocketOptions,
    lease: Duration,
    limits: Limits,
    net: Option<SimNet>,
    has_traces: bool,
    #[cfg(feature = "nats")]
    nats: Option<Nats>,
}

impl NodeBuilder {
    pub(super) fn new(name: String) -> Self {
        NodeBuilder {
            name,
            #[cfg(feature = "sockets")]
            sockets: SocketOptions::default(),
            lease: Duration::from_secs(5),
            limits: Limits::default(),
            net: None,
            has_traces: false,
            #[cfg(feature = "nats")]
            nats: None,
        }
    }

    /// Adds an address to listen at: `tls/host:port`, `tcp/host:port` or `host:port`. Port 0 is any
    /// free one. A node that listens nowhere can still dial others.
    #[cfg(feature = "sockets")]
    pub fn listen_address(mut self, address: impl Into<String>) -> Self {
        self.sockets.listen.push(address.into());
        self
    }

    /// Adds an address under which other nodes dial this one, as in
    /// [`listen_address`](Self::listen_address). The default is where it listens, except at
    /// `0.0.0.0` and `[::]`.
    #[cfg(feature = "sockets")]
    pub fn advertised_address(mut self, address: impl Into<String>) -> Self {
        self.sockets.advertise.push(address.into());
        self
    }

    /// Adds addresses of nodes that are dialled until they are connected, and again when their
    /// links end. They name the other nodes.
    #[cfg(feature = "sockets")]
    pub fn seeds<S: Into<String>>(mut self, seeds: impl IntoIterator<Item = S>) -> Self {
        self.sockets.seeds.extend(seeds.into_iter().map(Into::into));
        self
    }

    /// Sets the PEM files of the certificate chain, of its key, and of the authorities that sign
    /// the certificates of all nodes.
    ///
    /// The certificate has the name of the node as a DNS name, and may have more. It is used for
    /// both directions: if it is limited to purposes, then to `serverAuth` and `clientAuth`.
    #[cfg(feature = "sockets")]
    pub fn identity(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        authority: impl Into<PathBuf>,
    ) -> Self {
        self.sockets.identity = Some([certificate.into(), key.into(), authority.into()]);
        self
    }

    /// Lets a node without an identity listen at addresses that others can reach. Anyone who
    /// reaches them can read and send everything.
    #[cfg(feature = "sockets")]
    pub fn insecure(mut self) -> Self {
        self.sockets.is_insecure = true;
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

    /// Sends the context of the span in which a message is sent along with the message, and takes those of
    /// other nodes. By default neither is done.
    ///
    /// It has an effect if the tracer of a runtime knows
    /// [contexts](greenroom::trace::CarriedSpan::current_context). A message to a node with this option is
    /// then larger, with W3C's contexts by 56 bytes. Nodes without it get none.
    pub fn traces(mut self) -> Self {
        self.has_traces = true;
        self
    }

    /// Connects the node with a simulated net, and with all nodes there, instead of sockets.
    pub fn net(mut self, net: &SimNet) -> Self {
        self.net = Some(net.clone());
        self
    }

    /// Connects the node with NATS servers, and over them with the nodes that it talks to, instead of
    /// sockets.
    #[cfg(feature = "nats")]
    pub fn nats(mut self, nats: Nats) -> Self {
        self.nats = Some(nats);
        self
    }

    /// Opens the node. It does not wait for other nodes.
    ///
    /// # Errors
    /// [`OpenError`] says which option is impossible, or what the system refuses.
    ///
    /// # Cancel safety
    /// If the future is dropped, the node closes.
    pub async fn open(self) -> Result<Node, OpenError> {
        self.check()?;
        let (hello, limits) = (self.hello(), self.limits);
        if let Some(net) = self.net {
            return Ok(Node::new(net.open(hello, limits)));
        }
        #[cfg(feature = "nats")]
        if let Some(nats) = self.nats {
            return Ok(Node::new(nats.open(hello, limits).await?));
        }
        #[cfg(feature = "sockets")]
        {
            let open = greenroom::unblock(move || self.sockets.open(hello, limits));
            Ok(Node::new(open.await?))
        }
        #[cfg(not(feature = "sockets"))]
        Err(OpenError::NoEngine)
    }

    fn check(&self) -> Result<(), OpenError> {
        let wrong = |why: String| Err(OpenError::Option(why));
        let name = &self.name;
        if !is_name(name) {
            let text = format!("the name {name:?} is empty or longer than {LONGEST_NAME} bytes");
            return wrong(text);
        }
        let (lease, least, most) = (self.lease, SHORTEST_LEASE, LONGEST_LEASE);
        if lease < least || lease > most {
            let text = format!("the lease is {lease:?}, and {least:?} to {most:?} are allowed");
            return wrong(text);
        }
        #[cfg(feature = "sockets")]
        {
            self.sockets.check().map_err(OpenError::Option)?;
            if self.has_other_engine() && self.sockets != SocketOptions::default() {
                return wrong(
                    "a node at a net or at NATS servers has no options of sockets".into(),
                );
            }
        }
        match self.limits.problem() {
            Some(problem) => wrong(problem),
            None => Ok(()),
        }
    }

    /// Returns whether the node has another engine than sockets.
    #[cfg(feature = "sockets")]
    fn has_other_engine(&self) -> bool {
        #[cfg(feature = "nats")]
        let is_at_servers = self.nats.is_some();
        #[cfg(not(feature = "nats"))]
        let is_at_servers = false;
        is_at_servers || self.net.is_some()
    }

    fn hello(&self) -> Hello {
        let halves = [greenroom::sim::random(), greenroom::sim::random()].map(u128::from);
        Hello {
            member: ClusterMember {
                name: self.name.clone(),
                incarnation: halves[0] << 64 | halves[1],
                addresses: Vec::new(),
            },
            lease: u32::try_from(self.lease.as_millis()).unwrap_or(u32::MAX),
            frame: u32::try_from(self.limits.frame).unwrap_or(u32::MAX),
            features: if self.has_traces { TRACES } else { 0 },
        }
    }
}
