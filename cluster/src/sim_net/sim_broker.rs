//! A simulated broker: it carries packets between the nodes that subscribe, and may lose any of them.
//!
//! What one node publishes for another arrives in order, unless the net loses packets: then some are
//! overtaken by others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use event_listener::Event;
use futures_lite::future::{Boxed, or, ready, yield_now};
use greenroom::sim;
use greenroom::time::{Instant, sleep};

use super::NetState;
use crate::engine::LinkEngine;
use crate::engine::broker::{Broker, BrokerEngine, BrokerEvent};
use crate::link::lock;
use crate::node::NodeState;

/// The largest payload: that of a server with its defaults.
const MOST_PAYLOAD: usize = 1 << 20;

/// One node at the broker.
pub(crate) struct SimClient {
    name: String,
    /// What tells this connection from others.
    connection: String,
    net: Weak<Mutex<NetState>>,
    engine: OnceLock<Weak<BrokerEngine>>,
    state: OnceLock<Weak<NodeState>>,
    mail: Mutex<ClientMail>,
    arrived: Event,
    is_gone: AtomicBool,
}

#[derive(Default)]
struct ClientMail {
    patterns: BTreeSet<String>,
    /// What arrives from each node, by when and as the how manieth.
    arrivals: BTreeMap<String, BTreeMap<(Instant, u64), CarriedPacket>>,
    number: u64,
    /// When the last packet of each node arrives.
    last: BTreeMap<String, Instant>,
}

struct CarriedPacket {
    subject: String,
    payload: Vec<u8>,
}

impl fmt::Debug for SimClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimClient")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl SimClient {
    /// Creates a client and its engine.
    pub(super) fn new(
        name: &str,
        most_peers: usize,
        net: &Arc<Mutex<NetState>>,
    ) -> (Arc<SimClient>, Arc<BrokerEngine>) {
        let client = Arc::new(SimClient {
            name: name.into(),
            connection: sim::random().to_string(),
            net: Arc::downgrade(net),
            engine: OnceLock::new(),
            state: OnceLock::new(),
            mail: Mutex::default(),
            arrived: Event::new(),
            is_gone: AtomicBool::new(false),
        });
        let engine = BrokerEngine::new(name, most_peers, client.clone());
        let _ = client.engine.set(Arc::downgrade(&engine));
        (client, engine)
    }

    /// Returns the engine, which has this client, as long as the node exists.
    fn engine(&self) -> Option<Arc<BrokerEngine>> {
        self.engine.get()?.upgrade()
    }

    pub(super) fn start(self: &Arc<Self>, engine: Arc<BrokerEngine>, state: &Arc<NodeState>) {
        let _ = self.state.set(Arc::downgrade(state));
        engine.start(state);
        engine.spawn(Box::pin(receive(self.clone())));
        greenroom::spawn(async move { engine.run().await }).detach();
    }

    pub(super) fn wake(&self) {
        self.arrived.notify(usize::MAX);
    }

    /// Ends the node without a goodbye, as when a process is killed.
    pub(super) fn crash(&self) {
        // Pairs with nothing: one thread runs a simulation.
        self.is_gone.store(true, Ordering::Relaxed);
        let state = self.state.get().and_then(Weak::upgrade);
        state.inspect(|state| state.shut());
    }

    /// Reports to another node that this one is gone.
    pub(super) fn is_gone_for(&self, other: &SimClient) {
        if let Some(engine) = other.engine() {
            engine.event(BrokerEvent::Gone(self.connection.clone()));
        }
    }

    /// Loses all that is under way to this node, with its connection.
    pub(super) fn lose(&self) {
        lock(&self.mail).arrivals.clear();
        if let Some(engine) = self.engine() {
            engine.event(BrokerEvent::Down("the broker has ended".into()));
            engine.event(BrokerEvent::Up);
        }
    }

    fn has(&self, subject: &str) -> bool {
        let mail = lock(&self.mail);
        mail.patterns.iter().any(|pattern| fits(pattern, subject))
    }

    fn push(&self, net: &NetState, from: &str, packet: CarriedPacket) {
        let mut mail = lock(&self.mail);
        // Beyond the end of the clock, it never arrives.
        let Some(due) = Instant::now().checked_add(net.draw_once()) else {
            return;
        };
        let last = mail.last.get(from).copied();
        let due = match net.draw_loss() {
            // It may never come, or be overtaken.
            true if sim::random().is_multiple_of(2) => return,
            true => match due.checked_add(net.loss.1) {
                Some(due) => due,
                None => return,
            },
            false => {
                let due = last.map_or(due, |last| last.max(due));
                mail.last.insert(from.into(), due);
                due
            }
        };
        mail.number += 1;
        let number = mail.number;
        let lane = mail.arrivals.entry(from.into()).or_default();
        lane.insert((due, number), packet);
        drop(mail);
        self.wake();
    }

    /// Takes the next packet that is due. Otherwise returns when to look again.
    fn next(&self, net: &Mutex<NetState>) -> Result<CarriedPacket, Option<Instant>> {
        // The lock of the net is the outer one everywhere.
        let net = lock(net);
        let mut mail = lock(&self.mail);
        let mut lanes: Vec<_> = (mail.arrivals.iter_mut())
            .filter(|(from, _)| net.passes(from, &self.name))
            .filter_map(|(_, lane)| lane.first_entry())
            .collect();
        lanes.sort_by_key(|head| *head.key());
        match lanes.into_iter().next() {
            None => Err(None),
            Some(head) if head.key().0 > Instant::now() => Err(Some(head.key().0)),
            Some(head) => Ok(head.remove()),
        }
    }
}

/// Returns whether a pattern has this subject.
fn fits(pattern: &str, subject: &str) -> bool {
    let (mut pattern, mut subject) = (pattern.split('.'), subject.split('.'));
    loop {
        match (pattern.next(), subject.next()) {
            (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (one, other) if one == other => {}
            _ => return false,
        }
    }
}

/// Takes what arrives at a node, as the one task that does.
async fn receive(client: Arc<SimClient>) {
    while let Some(net) = client.net.upgrade() {
        let listener = client.arrived.listen();
        match client.next(&net) {
            Ok(packet) => {
                let engine = client.engine();
                engine.inspect(|engine| engine.arrived(&packet.subject, &packet.payload));
            }
            Err(None) => listener.await,
            Err(Some(due)) => {
                or(listener, sleep(due.duration_since(Instant::now()))).await;
            }
        }
    }
}

impl Broker for SimClient {
    fn publish(&self, subject: String, payload: Vec<u8>) -> Boxed<()> {
        if !self.is_gone.load(Ordering::Relaxed)
            && let Some(net) = self.net.upgrade()
        {
            let net = lock(&net);
            let others = net.clients.values().filter(|other| other.name != self.name);
            for other in others.filter(|other| other.has(&subject)) {
                let (subject, payload) = (subject.clone(), payload.clone());
                other.push(&net, &self.name, CarriedPacket { subject, payload });
            }
        }
        Box::pin(ready(()))
    }

    fn take_turn(&self) -> Boxed<()> {
        Box::pin(yield_now())
    }

    fn subscribe(&self, pattern: String) {
        lock(&self.mail).patterns.insert(pattern);
    }

    fn unsubscribe(&self, pattern: &str) {
        lock(&self.mail).patterns.remove(pattern);
    }

    fn max_payload(&self) -> usize {
        MOST_PAYLOAD
    }

    fn connection(&self) -> String {
        self.connection.clone()
    }

    fn sleep(&self, duration: Duration) -> Boxed<()> {
        Box::pin(sleep(duration))
    }

    fn close(&self) -> Boxed<()> {
        if let Some(net) = self.net.upgrade() {
            // Another node may have the name by now.
            let mut net = lock(&net);
            if net
                .clients
                .get(&self.name)
                .is_some_and(|client| client.connection == self.connection)
            {
                net.clients.remove(&self.name);
            }
        }
        Box::pin(ready(()))
    }
}
