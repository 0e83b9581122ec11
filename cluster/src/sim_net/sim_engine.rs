//! The engine of a node in a simulated net.
//!
//! One task of the simulation runs all that its thread would run with sockets. What two nodes send
//! each other is in two lanes, each of them in order.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use event_listener::Event;
use futures_lite::future::{Boxed, or};
use greenroom::time::{Instant, sleep};

use super::NetState;
use crate::engine::{LinkEngine, NodeEvent, Tasks};
use crate::link::frame::{Hello, LENGTH};
use crate::link::{Link, LinkOwner, LinkWire, lock};
use crate::node::NodeState;

/// The time between two tries to connect two nodes.
const REDIAL: Duration = Duration::from_millis(100);

pub(crate) struct SimEngine {
    name: String,
    net: Weak<Mutex<NetState>>,
    state: Mutex<Option<Weak<NodeState>>>,
    /// What arrives, by the numbers of the connections.
    lanes: Mutex<BTreeMap<u64, SimLane>>,
    arrived: Event,
    tasks: Tasks,
}

struct SimLane {
    from: String,
    sender: Weak<SimEngine>,
    link: Option<Arc<Link>>,
    arrivals: VecDeque<(Instant, Arrival)>,
    /// The bytes in it.
    bytes: usize,
}

enum Arrival {
    Connection(Hello, Arc<dyn LinkWire>),
    Frame(Vec<u8>),
    End,
}

/// The way from one node to another.
struct SimWire {
    number: u64,
    from: Weak<SimEngine>,
    to: Weak<SimEngine>,
    net: Weak<Mutex<NetState>>,
}

impl fmt::Debug for SimEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimEngine")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl SimEngine {
    pub(super) fn new(name: &str, net: Weak<Mutex<NetState>>) -> Arc<SimEngine> {
        Arc::new(SimEngine {
            name: name.into(),
            net,
            state: Mutex::new(None),
            lanes: Mutex::new(BTreeMap::new()),
            arrived: Event::new(),
            tasks: Tasks::default(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn wake(&self) {
        self.arrived.notify(usize::MAX);
    }

    pub(super) fn start(self: &Arc<Self>, state: &Arc<NodeState>) {
        *lock(&self.state) = Some(Arc::downgrade(state));
        self.spawn(Box::pin(receive(self.clone())));
        self.spawn(Box::pin(connect(self.clone())));
        let this = self.clone();
        greenroom::spawn(async move { this.tasks.run().await }).detach();
    }

    fn state(&self) -> Option<Arc<NodeState>> {
        lock(&self.state).as_ref()?.upgrade()
    }

    /// Ends the node without a goodbye: only the ends of its connections go out, as when a process is
    /// killed.
    pub(super) fn crash(self: &Arc<Self>) {
        // The wires of the node send nothing but their ends from now on.
        self.tasks.stop.stop();
        if let Some(state) = self.state() {
            state.shut();
        }
    }

    /// Adds an arrival to a lane, behind all others. Does nothing if the lane is gone.
    fn push_arrival(&self, number: u64, takes: Duration, arrival: Arrival) {
        if let Some(lane) = lock(&self.lanes).get_mut(&number) {
            // Beyond the end of the clock, it never arrives.
            let Some(due) = Instant::now().checked_add(takes) else {
                return;
            };
            let due = lane.arrivals.back().map_or(due, |(last, _)| due.max(*last));
            if let Arrival::Frame(frame) = &arrival {
                lane.bytes += frame.len();
            }
            lane.arrivals.push_back((due, arrival));
        }
        self.wake();
    }

    fn add_lane(&self, number: u64, from: &Arc<SimEngine>) {
        let lane = SimLane {
            from: from.name.clone(),
            sender: Arc::downgrade(from),
            link: None,
            arrivals: VecDeque::new(),
            bytes: 0,
        };
        lock(&self.lanes).insert(number, lane);
    }

    fn remove_lane(&self, number: u64) {
        let removed = lock(&self.lanes).remove(&number);
        drop(removed);
    }

    /// Takes the next arrival that is due, with the number of its lane. Otherwise returns when to look
    /// again.
    fn next(&self, net: &Mutex<NetState>) -> Result<(u64, Arrival), Option<Instant>> {
        let mut lanes = lock(&self.lanes);
        // The lock of the net is the inner one everywhere.
        let net = lock(net);
        let open = lanes
            .iter()
            .filter(|(_, lane)| net.passes(&lane.from, &self.name));
        let heads = open.filter_map(|(number, lane)| Some((lane.arrivals.front()?.0, *number)));
        let Some((due, number)) = heads.min() else {
            return Err(None);
        };
        if due > Instant::now() {
            return Err(Some(due));
        }
        let lane = lanes.get_mut(&number).ok_or(None)?;
        let (_, arrival) = lane.arrivals.pop_front().ok_or(None)?;
        if let Arrival::Frame(frame) = &arrival {
            lane.bytes -= frame.len();
        }
        Ok((number, arrival))
    }

    /// Notifies the other end of a lane that there is room.
    fn notify_sender(&self, number: u64) {
        let sender = lock(&self.lanes)
            .get(&number)
            .and_then(|lane| lane.sender.upgrade());
        let Some(sender) = sender else { return };
        let link = lock(&sender.lanes)
            .get(&number)
            .and_then(|lane| lane.link.clone());
        link.inspect(|link| link.drained());
    }

    /// Takes an arrival: a connection brings a link up, and what follows goes to that link.
    fn take(&self, number: u64, arrival: Arrival) {
        let Some(state) = self.state() else { return };
        let link = lock(&self.lanes)
            .get(&number)
            .and_then(|lane| lane.link.clone());
        // A lane has a link as soon as its connection was admitted.
        match (arrival, link) {
            (Arrival::Connection(hello, wire), _) => match state.up(hello, wire.clone()) {
                Ok(link) => {
                    state.spread_members();
                    if let Some(lane) = lock(&self.lanes).get_mut(&number) {
                        lane.link = Some(link);
                    }
                }
                Err(why) => {
                    state.refused(why);
                    wire.cut();
                }
            },
            (Arrival::Frame(frame), Some(link)) => {
                if link.frame(&frame[LENGTH..]).is_err() {
                    state.counts().malformed.add();
                    state.down(&link);
                }
            }
            (Arrival::End, Some(link)) => state.down(&link),
            (Arrival::Frame(_) | Arrival::End, None) => self.remove_lane(number),
        }
    }
}

/// Takes what arrives at a node, in order, as the one task that does.
async fn receive(engine: Arc<SimEngine>) {
    while let Some(net) = engine.net.upgrade() {
        let listener = engine.arrived.listen();
        match engine.next(&net) {
            Ok((number, arrival)) => {
                engine.take(number, arrival);
                engine.notify_sender(number);
            }
            Err(None) => listener.await,
            Err(Some(due)) => {
                or(listener, sleep(due.duration_since(Instant::now()))).await;
            }
        }
    }
}

/// Connects a node with those that have higher names, whenever it has no link to them.
async fn connect(engine: Arc<SimEngine>) {
    while let Some(net) = engine.net.upgrade() {
        let others = lock(&net).above(&engine.name);
        for other in others {
            engine.connect_with(&other, &net);
        }
        sleep(REDIAL).await;
    }
}

impl SimEngine {
    fn connect_with(self: &Arc<Self>, other: &Arc<SimEngine>, net: &Arc<Mutex<NetState>>) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (Some(here), Some(there)) = (self.state(), other.state()) else {
            return;
        };
        let passes = {
            let net = lock(net);
            net.passes(&self.name, &other.name) && net.passes(&other.name, &self.name)
        };
        if !passes || here.link_to(&other.name).is_some() {
            return;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Both lanes exist before anything arrives, and the own end comes up first.
        self.add_lane(number, other);
        other.add_lane(number, self);
        let wire = |from: &Arc<SimEngine>, to: &Arc<SimEngine>| -> Arc<dyn LinkWire> {
            Arc::new(SimWire {
                number,
                from: Arc::downgrade(from),
                to: Arc::downgrade(to),
                net: Arc::downgrade(net),
            })
        };
        let out = Arrival::Connection(here.hello.clone(), wire(other, self));
        let takes = lock(net).draw();
        other.push_arrival(number, takes, out);
        let back = Arrival::Connection(there.hello.clone(), wire(self, other));
        self.push_arrival(number, Duration::ZERO, back);
    }
}

impl LinkWire for SimWire {
    fn push(&self, frame: &[u8], _: bool) {
        let (Some(from), Some(to), Some(net)) =
            (self.from.upgrade(), self.to.upgrade(), self.net.upgrade())
        else {
            return;
        };
        if !from.tasks.stop.is_stopped() {
            let takes = lock(&net).draw();
            to.push_arrival(self.number, takes, Arrival::Frame(frame.to_vec()));
        }
    }

    fn backlog(&self) -> usize {
        let Some(to) = self.to.upgrade() else {
            return 0;
        };
        let lanes = lock(&to.lanes);
        lanes.get(&self.number).map_or(0, |lane| lane.bytes)
    }

    fn cut(&self) {
        if let Some(from) = self.from.upgrade() {
            from.remove_lane(self.number);
        }
        if let (Some(to), Some(net)) = (self.to.upgrade(), self.net.upgrade()) {
            let takes = lock(&net).draw();
            to.push_arrival(self.number, takes, Arrival::End);
        }
    }
}

impl LinkEngine for Arc<SimEngine> {
    fn spawn(&self, task: Boxed<()>) {
        self.tasks.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> Boxed<()> {
        Box::pin(sleep(duration))
    }

    fn note(&self, _: NodeEvent<'_>) -> bool {
        false
    }

    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    fn stop(&self) -> Boxed<()> {
        if let Some(net) = self.net.upgrade() {
            let removed = lock(&net).remove(self);
            drop(removed);
        }
        self.tasks.stop.stop();
        self.tasks.ended()
    }
}
