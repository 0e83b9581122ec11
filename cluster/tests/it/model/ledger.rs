//! What is promised of each message, checked when it happens.
//!
//! A way is what an address promises: the order from one node to one actor, until the address is
//! lost. It goes on when all of its addresses are dropped and the actor is looked up again. A
//! simulation runs one task at a time, so each event is noted in the order in which it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::messages::Id;

/// Returns whether an address has an end. It exists as long as the model has the address.
pub type Held = Arc<dyn Fn() -> bool + Send + Sync>;

#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    ways: Vec<Way>,
    /// The newest way between two ends.
    newest: BTreeMap<Ends, u64>,
    /// The way of the last message that came from one end to the other.
    last: BTreeMap<Ends, u64>,
    /// The capacities of the actors.
    capacities: BTreeMap<u64, Option<usize>>,
    /// The actors that were stopped.
    stopped: BTreeSet<u64>,
    /// The questions that clerks have instead of recorders.
    passed: BTreeSet<u64>,
    /// The lives of nodes so far.
    lives: u64,
    /// The messages so far.
    messages: u64,
}

/// The life of a node that sends, and an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ends {
    pub life: u64,
    pub actor: u64,
}

struct Way {
    ends: Ends,
    /// The links that the node had lost when the way began.
    lost_links: u64,
    held: Weak<dyn Fn() -> bool + Send + Sync>,
    /// The messages in the order in which they were accepted.
    accepted: Vec<u64>,
    /// How many of them the actor has received.
    received: usize,
    /// The questions that were not handled, as the node of the actor says.
    refused: BTreeSet<u64>,
}

impl Way {
    fn has_received(&self, number: u64) -> bool {
        self.accepted[..self.received].contains(&number)
    }
}

impl Book {
    fn way(&mut self, number: u64) -> &mut Way {
        &mut self.ways[number as usize]
    }
}

impl Ledger {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap()
    }

    pub fn new_life(&self) -> u64 {
        let mut book = self.book();
        book.lives += 1;
        book.lives
    }

    pub fn add_actor(&self, actor: u64, capacity: Option<usize>) {
        self.book().capacities.insert(actor, capacity);
    }

    pub fn stopped(&self, actor: u64) {
        self.book().stopped.insert(actor);
    }

    /// Returns the way of an address that has come, and what holds it.
    pub fn way(&self, ends: Ends, lost_links: u64, held: Held) -> (u64, Held) {
        let has_ended = held();
        let mut book = self.book();
        let is_stopped = book.stopped.contains(&ends.actor);
        if let Some(number) = book.newest.get(&ends).copied().filter(|_| !has_ended) {
            let way = book.way(number);
            match way.held.upgrade() {
                Some(held) if !held() => return (number, held),
                // Nothing has ended it, so what was accepted is still to come.
                None if way.lost_links == lost_links && !is_stopped => {
                    way.held = Arc::downgrade(&held);
                    return (number, held);
                }
                _ => {}
            }
        }
        let number = book.ways.len() as u64;
        book.ways.push(Way {
            ends,
            lost_links,
            held: Arc::downgrade(&held),
            accepted: Vec::new(),
            received: 0,
            refused: BTreeSet::new(),
        });
        if !has_ended {
            book.newest.insert(ends, number);
        }
        (number, held)
    }

    /// Returns the number of a new message.
    pub fn id(&self, way: u64) -> Id {
        let mut book = self.book();
        book.messages += 1;
        let number = book.messages;
        Id { way, number }
    }

    /// Notes that a message was accepted. A bounded actor has at most its capacity under way from
    /// this node, and as much in its mailbox.
    pub fn accepted(&self, id: Id) {
        let mut book = self.book();
        let way = book.way(id.way);
        way.accepted.push(id.number);
        let (ends, left) = (way.ends, way.accepted.len() - way.received);
        if let Some(capacity) = book.capacities[&ends.actor] {
            assert!(
                left <= 2 * capacity,
                "{left} messages are under way to an actor of capacity {capacity}: {id:?}"
            );
        }
    }

    /// Notes what an actor has received: the next one of its way, and of no older way.
    pub fn received(&self, id: Id, actor: u64) {
        let mut book = self.book();
        let way = book.way(id.way);
        let next = way.accepted.get(way.received);
        assert_eq!(next, Some(&id.number), "{id:?} is not the next one");
        assert!(!way.refused.contains(&id.number), "{id:?} was refused");
        way.received += 1;
        let ends = way.ends;
        assert_eq!(ends.actor, actor, "{id:?} came to another actor");
        let before = book.last.insert(ends, id.way).unwrap_or(id.way);
        assert!(before <= id.way, "{id:?} came after the way {before}");
    }

    /// Notes that a clerk has the question of a recorder.
    pub fn passed(&self, question: u64) {
        let is_new = self.book().passed.insert(question);
        assert!(is_new, "the question {question} was passed on twice");
    }

    /// Notes an answer. Its question was handled.
    pub fn answered(&self, id: Id) {
        let is_handled = self.book().way(id.way).has_received(id.number);
        assert!(is_handled, "{id:?} has an answer and was not handled");
    }

    /// Notes an answer of a clerk to the question of a recorder.
    pub fn answered_by_clerk(&self, id: Id) {
        self.answered(id);
        let is_passed = self.book().passed.contains(&id.number);
        assert!(is_passed, "{id:?} has an answer, and no clerk had it");
    }

    /// Notes that a question was not handled, as the node of the actor says.
    pub fn refused(&self, id: Id) {
        let mut book = self.book();
        let way = book.way(id.way);
        assert!(!way.has_received(id.number), "{id:?} was handled");
        way.refused.insert(id.number);
    }

    /// Checks that all has come on a way that was never lost.
    pub fn all_has_come(&self, number: u64) {
        let mut book = self.book();
        let way = book.way(number);
        let missing = &way.accepted[way.received..];
        assert!(missing.is_empty(), "{missing:?} of {number} never came");
    }
}
