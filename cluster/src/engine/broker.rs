//! The engine over a broker: links between nodes that only know the broker, and each other's names.
//!
//! A broker carries packets from one name to another. It may lose any of them, and it tells who has
//! published each. So batches of frames are numbered, and the numbers decide: a link of which a batch
//! is missing ends. A link exists only between nodes that talk. All that comes is taken by one task
//! at a time.

mod flow;
mod greeting;
mod links;
mod names;
mod packet;
mod posts;
mod subject;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use event_listener::Event;
use futures_lite::future::Boxed;

use links::Links;
use names::NameQuestions;
use packet::Packet;
use posts::Posts;
use subject::Token;

use super::{LinkEngine, NodeEvent, Tasks};
use crate::link::lock;
use crate::node::NodeState;

/// Returns how many batches may be under way to a node with so many peers, twice over: a subscription
/// is to have room for what else comes.
#[cfg(feature = "nats")]
pub(crate) fn most_batches(peers: usize) -> usize {
    let granted = flow::BUDGET + flow::LEAST * peers as u64;
    usize::try_from(2 * granted / flow::BATCH).unwrap_or(usize::MAX)
}

/// The bytes of the largest payload that a server is to take at least.
#[cfg(feature = "nats")]
pub(crate) const LEAST_PAYLOAD: usize = 8 << 10;

/// The time after which numbers that differ are sent, and hellos are sent again.
const TICK: Duration = Duration::from_millis(100);

/// The problems that are remembered.
const MOST_PROBLEMS: usize = 64;

/// Returns whether these bytes are a packet of this version.
#[cfg(any(test, fuzzing))]
pub(crate) fn is_packet(bytes: &[u8]) -> bool {
    packet::Packet::decode(bytes).is_ok()
}

/// Returns the name of a node as it stands in subjects.
#[cfg(feature = "nats")]
pub(crate) fn token(name: &str) -> String {
    Token::new(name).to_string()
}

/// Returns the patterns of all that a node publishes.
#[cfg(feature = "nats")]
pub(crate) fn patterns_from(node: &str) -> Vec<String> {
    subject::all_from(&Token::new(node)).into()
}

/// Returns the patterns of all that a node receives.
#[cfg(feature = "nats")]
pub(crate) fn patterns_to(node: &str) -> Vec<String> {
    use subject::{all_names, all_questions, all_to, all_watches};
    vec![
        all_to(&Token::new(node)),
        all_questions(),
        all_names(),
        all_watches(),
    ]
}

/// What a broker does for one node.
pub(crate) trait Broker: Send + Sync {
    /// Publishes, after all that was published before. Waits while the broker takes no more.
    fn publish(&self, subject: String, payload: Vec<u8>) -> Boxed<()>;

    /// Lets the broker work on what was published. Waits until it has.
    fn take_turn(&self) -> Boxed<()>;

    /// Begins to receive what is published under this pattern, in which `*` is any token.
    fn subscribe(&self, pattern: String);

    fn unsubscribe(&self, pattern: &str);

    /// Returns the bytes of the largest payload that the broker takes now.
    fn max_payload(&self) -> usize;

    /// Returns what tells the connection of this node from all others. Empty if nothing does.
    fn connection(&self) -> String;

    fn sleep(&self, duration: Duration) -> Boxed<()>;

    /// Waits until all that was published is with the broker, and leaves it.
    fn close(&self) -> Boxed<()>;
}

/// What has become of the connection with a broker.
pub(crate) enum BrokerEvent {
    /// It is there again. What was published meanwhile has not come.
    Up,
    /// It is gone, for this reason.
    Down(String),
    /// It goes on, and has refused something.
    #[cfg_attr(
        not(feature = "nats"),
        expect(dead_code, reason = "a simulated broker refuses nothing")
    )]
    Failed(String),
    /// What was published may have been dropped on its way to this node.
    #[cfg_attr(
        not(any(feature = "nats", test)),
        expect(dead_code, reason = "a simulated broker drops without a word")
    )]
    Dropped,
    /// Another node has lost this connection.
    Gone(String),
}

pub(crate) struct BrokerEngine {
    me: Token,
    broker: Arc<dyn Broker>,
    state: OnceLock<Weak<NodeState>>,
    most_peers: usize,
    tasks: Tasks,
    posts: Posts,
    links: Mutex<Links>,
    questions: NameQuestions,
    /// Whether the connection with the broker is gone, so that it says nothing of the next one.
    is_down: AtomicBool,
    /// Notified when there may be work for ticks.
    work: Event,
    /// Why the broker, or a node, is not connected, by its name.
    problems: Mutex<BTreeMap<String, String>>,
}

impl BrokerEngine {
    pub(crate) fn new(name: &str, most_peers: usize, broker: Arc<dyn Broker>) -> Arc<BrokerEngine> {
        Arc::new(BrokerEngine {
            me: Token::new(name),
            broker,
            state: OnceLock::new(),
            most_peers,
            tasks: Tasks::default(),
            posts: Posts::default(),
            links: Mutex::default(),
            questions: NameQuestions::default(),
            is_down: AtomicBool::new(false),
            work: Event::new(),
            problems: Mutex::default(),
        })
    }

    /// Begins to receive, and adds the tasks, which [`run`](BrokerEngine::run) runs.
    pub(crate) fn start(self: &Arc<Self>, state: &Arc<NodeState>) {
        let _ = self.state.set(Arc::downgrade(state));
        self.broker.subscribe(subject::all_to(&self.me));
        self.tasks
            .spawn_last(Box::pin(posts::publish(self.clone())));
        self.spawn(Box::pin(tick(self.clone())));
        self.spawn(Box::pin(names::repeat_watches(self.clone())));
        // A node of the same name says so.
        self.send(&self.me, &Packet::Cut { epoch: 0 });
        state.start();
    }

    /// Runs all tasks, until the engine is stopped.
    pub(crate) async fn run(&self) {
        self.tasks.run().await;
    }

    fn state(&self) -> Option<Arc<NodeState>> {
        self.state.get()?.upgrade()
    }

    /// Takes what has become of the connection with the broker.
    pub(crate) fn event(&self, event: BrokerEvent) {
        const BROKER: &str = "";
        match event {
            // What was asked and announced meanwhile has not reached the broker.
            BrokerEvent::Up => {
                self.is_down.store(false, Ordering::Relaxed);
                lock(&self.problems).remove(BROKER);
                self.watch_again();
                self.announce();
            }
            BrokerEvent::Down(why) => {
                self.is_down.store(true, Ordering::Relaxed);
                lock(&self.problems).insert(BROKER.into(), why);
                self.lose(None);
            }
            BrokerEvent::Failed(why) => drop(lock(&self.problems).insert(BROKER.into(), why)),
            BrokerEvent::Dropped => self.lose(None),
            BrokerEvent::Gone(connection) => self.lose(Some(&connection)),
        }
    }

    /// Remembers why a node is not connected.
    fn fail(&self, peer: &Token, why: String) {
        let Some(name) = peer.name() else { return };
        let mut problems = lock(&self.problems);
        problems.insert(name, why);
        // Invented names push each other out, and not the broker, which has none.
        if problems.len() > MOST_PROBLEMS {
            let drawn = 1 + greenroom::sim::random() as usize % (MOST_PROBLEMS - 1);
            let name = problems.keys().nth(drawn).cloned();
            name.inspect(|name| drop(problems.remove(name)));
        }
    }

    /// Forgets why a node was not connected.
    fn solve(&self, node: &str) {
        lock(&self.problems).remove(node);
    }
}

/// Sends again what may be lost, as long as the node exists.
async fn tick(engine: Arc<BrokerEngine>) {
    loop {
        let work = engine.work.listen();
        let has_work = lock(&engine.links).has_work() || engine.questions.has_work();
        match has_work {
            false => work.await,
            true => {
                drop(work);
                engine.broker.sleep(TICK).await;
                engine.tick_links();
                engine.tick_names();
            }
        }
    }
}

impl LinkEngine for Arc<BrokerEngine> {
    fn spawn(&self, task: Boxed<()>) {
        self.tasks.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> Boxed<()> {
        self.broker.sleep(duration)
    }

    fn note(&self, event: NodeEvent<'_>) -> bool {
        match event {
            // Nodes that do not talk are not connected.
            NodeEvent::Learnt { .. } => {}
            NodeEvent::Left(node) => self.forget(node),
            NodeEvent::Lost => self.watch_again(),
            NodeEvent::Unused(node) => return !self.is_watched(node),
            NodeEvent::Wanted(node) => self.connect(node),
            NodeEvent::Sought { name, kind } => self.seek(name, kind),
            NodeEvent::Watched { prefix, is_begin } => self.watch(prefix, is_begin),
            NodeEvent::Named(name) => self.name(name),
        }
        true
    }

    fn problems(&self) -> Vec<String> {
        let problems = lock(&self.problems);
        let texts = problems.iter().map(|(node, why)| match &**node {
            "" => why.clone(),
            node => format!("{node}: {why}"),
        });
        texts.collect()
    }

    fn stop(&self) -> Boxed<()> {
        self.tasks.stop.stop();
        self.tasks.ended()
    }
}
