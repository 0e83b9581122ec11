//! From an actor along what it waits for, to the causes.

use super::says::{count, duration, restarts_text, still_text, wait_text, waits_text};
use super::{LONG_TURN_US, STILL_MS, cycles};
use crate::model::{ActorFacts, ActorState, Model, WaitsOn};

/// The steps of a chain, and how many links it has at most.
const DEPTH_MAX: usize = 24;
const LINKS_MAX: usize = 100;

/// What a link of a chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// An actor on the way, with what it waits for.
    Step,
    /// Something beside the way.
    Remark,
    /// A cause: beyond it there is nothing to find.
    Cause,
}

/// A line of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainLink {
    /// How many waits are before it.
    pub depth: usize,
    /// The actor that it is about.
    pub actor: Option<u64>,
    /// What it is.
    pub kind: LinkKind,
    /// What it says, with the actor's name.
    pub text: String,
}

/// Why an actor does not get on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    /// The cycle that it is in, or waits for; empty if there is none.
    pub cycle: Vec<u64>,
    /// The links, from the actor to the causes.
    pub links: Vec<ChainLink>,
}

/// Returns why an actor does not get on.
pub fn chain(model: &Model, id: u64) -> Chain {
    let mut tracing = ChainSearch {
        model,
        chain: Chain::default(),
        path: Vec::new(),
    };
    tracing.explain(id, "");
    let mut chain = tracing.chain;
    let found = chain.links.iter().filter_map(|link| link.actor);
    let met: std::collections::HashSet<u64> = found.collect();
    let mut all = cycles(model).into_iter();
    chain.cycle = all
        .find(|cycle| cycle.iter().all(|member| met.contains(member)))
        .unwrap_or_default();
    chain
}

struct ChainSearch<'a> {
    model: &'a Model,
    chain: Chain,
    /// The actors from the first one to the present one.
    path: Vec<u64>,
}

impl ChainSearch<'_> {
    fn link(&mut self, kind: LinkKind, actor: Option<u64>, text: String) {
        if self.chain.links.len() < LINKS_MAX {
            let depth = self.path.len();
            self.chain.links.push(ChainLink {
                depth,
                actor,
                kind,
                text,
            });
        }
    }

    /// Explains an actor, which the one before waits for in this way.
    fn explain(&mut self, id: u64, waits: &str) {
        use LinkKind::{Cause, Step};
        let model = self.model;
        let label = model.label(id);
        if self.path.contains(&id) {
            let text = format!("{label}, from above: these wait for each other");
            return self.link(Cause, Some(id), text);
        }
        let Some(actor) = model.actor(id) else {
            let text = format!("{label} has ended, or is no actor of this program");
            return self.link(Cause, Some(id), text);
        };
        if self.path.len() == DEPTH_MAX {
            return self.link(Step, Some(id), format!("{label}, and so on"));
        }
        let still = still_text(model, actor);
        let text = format!("{label} {}{still}", waits_text(model, actor));
        self.link(Step, Some(id), text);
        self.path.push(id);
        self.mailbox(actor);
        match actor.state {
            ActorState::Runs => self.running(actor),
            ActorState::Ready => self.ready(),
            ActorState::Idles | ActorState::Unseen => self.waiting(actor, waits),
        }
        self.path.pop();
    }

    /// Adds what is known of the mailbox and the turns of an actor.
    fn mailbox(&mut self, actor: &ActorFacts) {
        use LinkKind::{Cause, Remark};
        let model = self.model;
        let rate = model.message_rate(actor);
        if actor.is_full() {
            let text = format!(
                "its mailbox is full: {} of {}; it takes {rate} messages a second",
                actor.mailbox, actor.capacity
            );
            self.link(Remark, None, text);
        } else if actor.mailbox > 0 {
            let waiting = match actor.mailbox {
                1 => "1 message waits".to_owned(),
                number => format!("{number} messages wait"),
            };
            let growth = model.growth(actor);
            let growth = growth.map_or(String::new(), |growth| {
                format!(", {growth} more each second")
            });
            let text = format!("{waiting} in its mailbox{growth}; it takes {rate} a second");
            let kind = if growth.is_empty() { Remark } else { Cause };
            self.link(kind, None, text);
        }
        let mean = model.mean_turn_us(actor);
        let longest = u64::from(actor.longest_us).max(mean);
        if longest >= LONG_TURN_US {
            let text = format!(
                "its turns are long: up to {}, {} on average",
                duration(longest),
                duration(mean)
            );
            self.link(Cause, None, text);
        }
        if actor.restarts > 0 {
            let text = format!("it has failed: {}", restarts_text(model, actor));
            self.link(Cause, None, text);
        }
    }

    fn running(&mut self, actor: &ActorFacts) {
        let turn = self.model.turn_now(actor.id);
        if let Some((worker, us)) = turn.filter(|(_, us)| *us >= LONG_TURN_US) {
            let text = format!(
                "its turn has taken {}: worker {worker} runs nothing else meanwhile",
                duration(us)
            );
            self.link(LinkKind::Cause, None, text);
        }
    }

    /// Adds the turns for which an actor that is ready waits.
    fn ready(&mut self) {
        let model = self.model;
        let figures = model.figures();
        let workers = figures.workers.iter().enumerate();
        let long = workers.filter_map(|(at, worker)| Some((at, worker.runs.as_ref()?)));
        let long: Vec<_> = long
            .filter(|(_, runs)| runs.for_us >= LONG_TURN_US)
            .collect();
        for (worker, runs) in &long {
            let text = format!(
                "worker {worker} is in a turn of {} for {}",
                model.label(runs.id),
                duration(runs.for_us)
            );
            self.link(LinkKind::Cause, Some(runs.id), text);
        }
        if long.is_empty() && figures.queued > 0 {
            let text = format!("{} are ready before or behind it", figures.queued);
            self.link(LinkKind::Remark, None, text);
        }
    }

    fn waiting(&mut self, actor: &ActorFacts, waits: &str) {
        use LinkKind::{Cause, Remark};
        let model = self.model;
        for wait in &actor.waits {
            let (text, is_blocking) = match *wait {
                WaitsOn::Answer(id) => {
                    self.explain(id, "answer");
                    continue;
                }
                WaitsOn::Room(id) => {
                    self.explain(id, "room");
                    continue;
                }
                WaitsOn::End(id) => {
                    self.explain(id, "end");
                    continue;
                }
                WaitsOn::Noted(what, _) => {
                    let what = model.text(what);
                    (what.to_owned(), what.contains("blocking"))
                }
                WaitsOn::Other => (wait_text(model, *wait), false),
            };
            let blocking = &model.figures().blocking;
            if is_blocking && blocking.waiting > 0 {
                let text = format!(
                    "{} wait for a thread: {} of {} are idle",
                    count(blocking.waiting, "blocking call"),
                    blocking.idle,
                    blocking.threads
                );
                self.link(Cause, None, text);
            }
            let is_cause = !actor.awaits_message && model.still_ms(actor) >= STILL_MS;
            let kind = if is_cause { Cause } else { Remark };
            self.link(
                kind,
                None,
                format!("until then it takes no message: {text}"),
            );
        }
        if actor.awaits_message && actor.mailbox == 0 {
            match waits {
                "answer" => self.link(
                    Cause,
                    None,
                    "it has nothing to do: it keeps the reply, and has not answered".to_owned(),
                ),
                "end" => self.link(Cause, None, "nothing has told it to end".to_owned()),
                _ if actor.waits.is_empty() => {
                    self.link(Remark, None, "it has nothing to do".to_owned());
                }
                _ => {}
            }
        }
    }
}
