//! `SimNet`: a net within the program, with delays, partitions and crashes, for tests.
//!
//! Within a [simulation](greenroom::sim) all of it follows from the seed, and time is virtual. Each
//! node has one task for all of its links, as it has one thread with sockets. Frames of a link
//! arrive in order, since the transport that is modelled repeats what is lost.

mod sim_broker;
mod sim_engine;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sim_broker::SimClient;
pub(crate) use sim_engine::SimEngine;

use greenroom::sim;

use crate::engine::{OpenNode, no_certificate};
use crate::limits::Limits;
use crate::link::frame::Hello;
use crate::link::lock;
use crate::node::NodeState;

/// A net within the program, for tests: nodes that are [opened](crate::NodeBuilder::net) in it are
/// connected with each other.
///
/// ```
/// use greenroom::sim;
/// use greenroom_cluster::{Node, SimNet};
///
/// sim::run(7, async {
///     let net = SimNet::new();
///     let a = Node::builder("a").net(&net).open().await.unwrap();
///     let b = Node::builder("b").net(&net).open().await.unwrap();
///     net.partition(["a"], ["b"]);
///     // Each side goes on, and after 1.5 leases the other side is lost.
///     net.heal();
/// #   drop((a, b));
/// });
/// ```
#[derive(Clone, Debug)]
pub struct SimNet {
    state: Arc<Mutex<NetState>>,
}

#[derive(Debug)]
struct NetState {
    delay: Range<Duration>,
    /// The share of frames that come late, and by how much.
    loss: (f64, Duration),
    /// Pairs of which the first one does not reach the second one.
    apart: BTreeSet<(String, String)>,
    nodes: BTreeMap<String, Arc<SimEngine>>,
    /// The nodes at the broker, if there is one.
    clients: BTreeMap<String, Arc<SimClient>>,
    has_broker: bool,
}

impl Default for SimNet {
    fn default() -> Self {
        SimNet::new()
    }
}

impl SimNet {
    /// Creates a net in which a frame takes 1 to 2 ms.
    pub fn new() -> Self {
        SimNet::of(false)
    }

    /// Creates a net in which all frames go over a broker, as with the feature `nats`,
    /// and take 1 to 2 ms.
    pub fn with_broker() -> Self {
        SimNet::of(true)
    }

    fn of(has_broker: bool) -> Self {
        let state = NetState {
            delay: Duration::from_millis(1)..Duration::from_millis(2),
            loss: (0.0, Duration::ZERO),
            apart: BTreeSet::new(),
            nodes: BTreeMap::new(),
            clients: BTreeMap::new(),
            has_broker,
        };
        let state = Arc::new(Mutex::new(state));
        SimNet { state }
    }

    fn state(&self) -> MutexGuard<'_, NetState> {
        lock(&self.state)
    }

    /// Sets how long frames take from now on.
    pub fn delay(&self, delay: Range<Duration>) {
        self.state().delay = delay;
    }

    /// Sets the share of frames, from 0 to 1, that are lost and sent again after this time. Frames
    /// behind them wait, since a link keeps the order.
    ///
    /// A broker sends nothing again: there, half of them never come, and those behind the other half
    /// do not wait. So the link ends.
    pub fn loss(&self, share: f64, again_after: Duration) {
        self.state().loss = (share, again_after);
    }

    /// Lets no frame pass between nodes of the two sides, in either direction. What is under way
    /// arrives after [`heal`](Self::heal), unless the link is given up before.
    pub fn partition<'a>(
        &self,
        one: impl IntoIterator<Item = &'a str>,
        other: impl IntoIterator<Item = &'a str> + Clone,
    ) {
        for a in one {
            for b in other.clone() {
                self.silence(a, b);
                self.silence(b, a);
            }
        }
    }

    /// Lets no frame pass from one node to another. The other direction stays as it is.
    pub fn silence(&self, from: &str, to: &str) {
        self.state().apart.insert((from.into(), to.into()));
    }

    /// Ends all partitions.
    pub fn heal(&self) {
        let (engines, clients): (Vec<_>, Vec<_>) = {
            let mut state = self.state();
            state.apart.clear();
            let engines = state.nodes.values().cloned().collect();
            (engines, state.clients.values().cloned().collect())
        };
        engines.iter().for_each(|engine| engine.wake());
        clients.iter().for_each(|client| client.wake());
    }

    /// Ends a node as the end of its process does: it sends nothing more, and receives nothing. Its
    /// peers notice that when the ends of its connections arrive. A node of the same name may be
    /// opened again.
    pub fn crash(&self, name: &str) {
        let engine = self.state().nodes.remove(name);
        if let Some(engine) = engine {
            engine.crash();
        }
        let client = self.state().clients.remove(name);
        if let Some(client) = client {
            client.crash();
            self.tell_that_it_is_gone(&client);
        }
    }

    /// Ends the broker, and begins it again. All links end, and what is under way is lost.
    pub fn restart_broker(&self) {
        let clients: Vec<_> = self.state().clients.values().cloned().collect();
        clients.iter().for_each(|client| client.lose());
    }

    /// Opens a node, and begins to connect it with the others. An older one of its name crashes.
    pub(crate) fn open(&self, hello: Hello, limits: Limits) -> OpenNode {
        let name = hello.member.name.clone();
        if self.state().has_broker {
            return self.open_at_broker(hello, limits);
        }
        let engine = SimEngine::new(&name, Arc::downgrade(&self.state));
        let state = NodeState::new(hello, limits, Arc::new(engine.clone()));
        state.start();
        self.crash(&name);
        self.state().nodes.insert(name, engine.clone());
        engine.start(&state);
        OpenNode {
            state,
            addresses: Vec::new(),
            renew: no_certificate(),
        }
    }
}

impl SimNet {
    fn open_at_broker(&self, hello: Hello, limits: Limits) -> OpenNode {
        let name = hello.member.name.clone();
        let (client, engine) = SimClient::new(&name, limits.peers, &self.state);
        let state = NodeState::new(hello, limits, Arc::new(engine.clone()));
        self.crash(&name);
        self.state().clients.insert(name, client.clone());
        client.start(engine, &state);
        OpenNode {
            state,
            addresses: Vec::new(),
            renew: no_certificate(),
        }
    }

    /// Reports to half of the other nodes that this one is gone. The lease tells the others.
    fn tell_that_it_is_gone(&self, gone: &SimClient) {
        let clients: Vec<_> = self.state().clients.values().cloned().collect();
        for client in clients.iter().filter(|_| sim::random().is_multiple_of(2)) {
            gone.is_gone_for(client);
        }
    }
}

impl NetState {
    /// Returns whether frames pass from one node to another.
    fn passes(&self, from: &str, to: &str) -> bool {
        !self.apart.contains(&(from.to_owned(), to.to_owned()))
    }

    /// Draws how long the next frame takes, with what is sent again.
    fn draw(&self) -> Duration {
        let delay = self.draw_once();
        match self.draw_loss() {
            true => delay.saturating_add(self.loss.1),
            false => delay,
        }
    }

    /// Draws how long it takes if it is not lost.
    fn draw_once(&self) -> Duration {
        let span = self.delay.end.saturating_sub(self.delay.start).as_nanos() as u64;
        let extra = Duration::from_nanos(sim::random() % span.max(1));
        self.delay.start.saturating_add(extra)
    }

    /// Draws whether a frame is lost.
    fn draw_loss(&self) -> bool {
        (sim::random() % 1_000_000) as f64 / 1e6 < self.loss.0
    }

    /// Returns the nodes that this one is to connect: those with a higher name.
    fn above(&self, name: &str) -> Vec<Arc<SimEngine>> {
        let above = self.nodes.iter().filter(|(other, _)| other.as_str() > name);
        above.map(|(_, engine)| engine.clone()).collect()
    }

    /// Removes a node, unless another one has its name by now.
    fn remove(&mut self, engine: &Arc<SimEngine>) -> Option<Arc<SimEngine>> {
        let node = self.nodes.get(engine.name())?;
        match Arc::ptr_eq(node, engine) {
            true => self.nodes.remove(engine.name()),
            false => None,
        }
    }
}
