//! How nodes find names over a broker: a question under the subject of the name, and its answers.
//!
//! A node answers only for names that it holds. One of those that answer is connected, or all if the
//! names are watched; the names themselves come over the links.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event_listener::Event;
use futures_lite::future::or;

use super::packet::Packet;
use super::subject::{PacketSubject, Token, all_names, all_that_find, all_watches};
use super::{BrokerEngine, TICK};
use crate::link::lock;
use crate::node::NodeState;

/// The ticks after which a question is repeated for a lookup that still waits.
const AGAIN: u32 = 9;

/// The ticks after which a lookup that has not said again what it waits for has ended.
const FORGOTTEN: u32 = 15;

/// The pauses between two questions which names there are: the first one, and the longest. Each is twice
/// as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The names that are announced when the broker is there again. Others come over the links.
const ANNOUNCED: usize = 256;

/// The ticks that the answers of nodes with the right kind have, before one with another kind counts.
const RIGHT_FIRST: u32 = 2;

#[derive(Default)]
pub(super) struct NameQuestions {
    all: Mutex<Questions>,
    /// Notified when what is watched is to be asked for soon.
    again: Event,
}

#[derive(Default)]
struct Questions {
    /// The names that this node holds.
    given: BTreeSet<String>,
    sought: BTreeMap<String, Sought>,
    /// How many watch the names with each prefix.
    watched: BTreeMap<String, usize>,
}

/// A name that lookups wait for.
struct Sought {
    kind: String,
    /// The ticks since the question was asked.
    ticks: u32,
    /// Whether a node is being connected since then.
    is_chosen: bool,
    /// A node that holds the name, with another kind.
    other: Option<String>,
}

impl NameQuestions {
    pub(super) fn has_work(&self) -> bool {
        !lock(&self.all).sought.is_empty()
    }
}

impl BrokerEngine {
    /// Asks who holds a name, which an actor may have.
    pub(super) fn seek(&self, name: &str, kind: &str) {
        let sought = Sought {
            kind: kind.into(),
            ticks: 0,
            is_chosen: false,
            other: None,
        };
        {
            let all = &mut lock(&self.questions.all).sought;
            // Each change has a lookup say so again.
            if all.get(name).is_some_and(|sought| sought.ticks < AGAIN) {
                return;
            }
            all.insert(name.into(), sought);
        }
        self.ask_for(name);
        self.work.notify(usize::MAX);
    }

    fn ask_for(&self, name: &str) {
        let (token, from, name) = (&Token::new(name), &self.me, name.into());
        let subject = PacketSubject::Find { name: token, from };
        self.posts
            .push(subject.text(), Packet::Find { name }.encode(0));
    }

    /// Begins or ends to watch the names with a prefix.
    pub(super) fn watch(&self, prefix: &str, is_begin: bool) {
        let mut questions = lock(&self.questions.all);
        let watched = &mut questions.watched;
        let was_empty = watched.is_empty();
        if is_begin {
            *watched.entry(prefix.into()).or_default() += 1;
        } else if let Some(watches) = watched.get_mut(prefix) {
            *watches -= 1;
            watched.retain(|_, watches| *watches > 0);
        }
        // Under the lock, so that the last change comes last.
        match (was_empty, watched.is_empty()) {
            (true, false) => self.broker.subscribe(all_names()),
            (false, true) => self.broker.unsubscribe(&all_names()),
            _ => {}
        }
        drop(questions);
        if is_begin {
            self.ask_which(prefix);
            self.watch_again();
        }
    }

    /// Returns whether this node watches a name of that one, which comes and goes over their link.
    pub(super) fn is_watched(&self, node: &str) -> bool {
        let watched = lock(&self.questions.all).watched.clone();
        let Some(state) = self.state() else {
            return false;
        };
        let peers = state.peers();
        watched.keys().any(|prefix| peers.has_name(node, prefix))
    }

    fn ask_which(&self, prefix: &str) {
        let subject = PacketSubject::Watch { from: &self.me }.text();
        let prefix = prefix.into();
        self.posts.push(subject, Packet::Watch { prefix }.encode(0));
    }

    /// Begins anew to repeat the questions for what is watched: soon, and then ever more rarely.
    pub(super) fn watch_again(&self) {
        self.questions.again.notify(usize::MAX);
    }

    /// Announces names of this node to those that watch, as far as they are not too many.
    pub(super) fn announce(&self) {
        let given = lock(&self.questions.all).given.clone();
        given
            .iter()
            .take(ANNOUNCED)
            .for_each(|name| self.announce_name(name));
    }

    fn announce_name(&self, name: &str) {
        let Some(kind) = self.state().and_then(|state| state.own_kind(name)) else {
            return;
        };
        let subject = PacketSubject::Names { from: &self.me }.text();
        let name = name.into();
        self.posts
            .push(subject, Packet::Holds { name, kind }.encode(0));
    }

    /// Begins or ends to answer for a name that this node has given or taken away.
    pub(super) fn name(&self, name: &str) {
        let Some(state) = self.state() else { return };
        let pattern = all_that_find(&Token::new(name));
        let mut questions = lock(&self.questions.all);
        // Two changes of one name may come here in any order, so what is so now counts.
        let is_given = state.own_kind(name).is_some();
        let given = &mut questions.given;
        // Under the lock, as in `watch`.
        match is_given {
            true => {
                if given.is_empty() {
                    self.broker.subscribe(all_watches());
                }
                given.insert(name.into());
                self.broker.subscribe(pattern);
            }
            false => {
                given.remove(name);
                self.broker.unsubscribe(&pattern);
                if given.is_empty() {
                    self.broker.unsubscribe(&all_watches());
                }
            }
        }
        drop(questions);
        if is_given {
            self.announce_name(name);
        }
    }

    pub(super) fn answer_find(&self, state: &NodeState, to: &Token, name: &str) {
        let (Some(kind), Some(node)) = (state.own_kind(name), to.name()) else {
            return;
        };
        match state.check_room(&node) {
            Ok(()) => self.answer(to, name, &kind),
            // Another holder may have room, and this one is not to be chosen.
            Err(why) => self.send(to, &Packet::Refused { epoch: 0, why }),
        }
    }

    pub(super) fn answer_watch(&self, state: &NodeState, to: &Token, prefix: &str) {
        let name = {
            let questions = lock(&self.questions.all);
            let mut names = questions.given.range(prefix.to_owned()..);
            names
                .next()
                .filter(|name| name.starts_with(prefix))
                .cloned()
        };
        // One name is enough: all of them come over the link.
        name.inspect(|name| self.answer_find(state, to, name));
    }

    /// Takes the word of a node that it holds a name.
    pub(super) fn found(&self, node: &str, name: &str, kind: &str) {
        let is_wanted = {
            let mut questions = lock(&self.questions.all);
            // Watches want all holders; a lookup wants the first one with an actor of its type.
            let mut prefixes = questions.watched.keys();
            let is_watched = prefixes.any(|prefix| name.starts_with(&**prefix));
            is_watched
                || questions.sought.get_mut(name).is_some_and(|sought| {
                    let is_right = sought.kind == kind;
                    if !is_right {
                        sought.other.get_or_insert_with(|| node.into());
                    }
                    is_right && !std::mem::replace(&mut sought.is_chosen, true)
                })
        };
        if is_wanted {
            self.connect(node);
        }
    }

    /// Repeats questions without an answer, and connects nodes with another kind if no other has.
    pub(super) fn tick_names(&self) {
        let (mut again, mut others) = (Vec::new(), Vec::new());
        let mut questions = lock(&self.questions.all);
        for (name, sought) in &mut questions.sought {
            sought.ticks += 1;
            match &sought.other {
                _ if sought.is_chosen => {}
                Some(other) if sought.ticks == RIGHT_FIRST => others.push(other.clone()),
                // The holder may have subscribed meanwhile.
                None if sought.ticks == 1 => again.push(name.clone()),
                _ => {}
            }
        }
        questions
            .sought
            .retain(|_, sought| sought.ticks < FORGOTTEN);
        drop(questions);
        again.iter().for_each(|name| self.ask_for(name));
        others.iter().for_each(|other| self.connect(other));
    }
}

/// Asks for all that is watched, as long as the node exists. A question may be lost, and no event says
/// when a node is there again.
pub(super) async fn repeat_watches(engine: Arc<BrokerEngine>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let again = engine.questions.again.listen();
        let is_watching = !lock(&engine.questions.all).watched.is_empty();
        let is_asked_for = match is_watching {
            true => {
                let asked = async {
                    again.await;
                    true
                };
                let paused = async {
                    engine.broker.sleep(pause).await;
                    false
                };
                or(asked, paused).await
            }
            false => {
                again.await;
                true
            }
        };
        pause = match is_asked_for {
            // Many links may end at once.
            true => {
                engine.broker.sleep(TICK).await;
                FIRST_PAUSE
            }
            false => LONGEST_PAUSE.min(2 * pause),
        };
        let prefixes: Vec<_> = lock(&engine.questions.all)
            .watched
            .keys()
            .cloned()
            .collect();
        prefixes.iter().for_each(|prefix| engine.ask_which(prefix));
    }
}
