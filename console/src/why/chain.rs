//! From an actor along what it waits for, to the causes.

use super::says::{
    count, duration, mailbox_text, restarts_text, still_text, turns_text, wait_text, waits_text,
};
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
    let mut search = ChainSearch {
        model,
        chain: Chain::default(),
        path: Vec::new(),
    };
    search.explain(id, None);
    let mut chain = search.chain;
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
            self.chain.links.push(ChainLink {
                depth: self.path.len(),
                actor,
                kind,
                text,
            });
        }
    }

    /// Explains an actor, which the one before waits for in this way.
    fn explain(&mut self, id: u64, wait: Option<WaitsOn>) {
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
            ActorState::Running => self.running(actor),
            ActorState::Ready => self.ready(),
            ActorState::Waiting | ActorState::Unseen => self.waiting(actor, wait),
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
            let waiting = mailbox_text(actor.mailbox);
            let growth = model.growth(actor);
            let growth = growth.map_or(String::new(), |growth| {
                format!(", {growth} more each second")
            });
            let text = format!("{waiting} in its mailbox{growth}; it takes {rate} a second");
            let kind = if growth.is_empty() { Remark } else { Cause };
            self.link(kind, None, text);
        }
        if u64::from(actor.longest_us).max(model.mean_turn_us(actor)) >= LONG_TURN_US {
            let text = format!("its turns are long: {}", turns_text(model, actor));
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

    /// Explains what an actor waits for, which the one before waits for in this way.
    fn waiting(&mut self, actor: &ActorFacts, before: Option<WaitsOn>) {
        use LinkKind::{Cause, Remark};
        let model = self.model;
        for wait in &actor.waits {
            if let Some(id) = wait.of() {
                self.explain(id, Some(*wait));
                continue;
            }
            let text = wait_text(model, *wait);
            let blocking = &model.figures().blocking;
            if text.contains("blocking") && blocking.waiting > 0 {
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
            let text = format!("until then it takes no message: {text}");
            self.link(kind, None, text);
        }
        if !actor.awaits_message || actor.mailbox > 0 {
            return;
        }
        let (kind, text) = match before {
            Some(WaitsOn::Answer(_)) => (
                Cause,
                "it has nothing to do: it keeps the reply, and has not answered",
            ),
            Some(WaitsOn::End(_)) => (Cause, "nothing has told it to end"),
            _ if actor.waits.is_empty() => (Remark, "it has nothing to do"),
            _ => return,
        };
        self.link(kind, None, text.to_owned());
    }
}
