//! The actors to look at: stuck, slow, growing and faulting ones, the worst first.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::says::{
    count, duration, mailbox_text, restarts_text, still_text, turns_text, waits_text,
};
use super::{LONG_TURN_US, STILL_MS, cycles};
use crate::model::{ActorFacts, ActorState, Model};

/// The suspects of a kind that are kept.
const KEPT: usize = 100;

/// So many messages that wait are a suspicion even if it is not known yet whether they become more.
const MANY: u32 = 1_000;

/// A fault or a turn is recent for so many refreshes.
const RECENT: u32 = 60;

/// The steps that are followed from an actor to what holds it up.
const STEPS_MAX: usize = 64;

/// What is wrong with an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// It stands still, and messages or actors wait for it.
    Stuck,
    /// Its turns are long.
    Slow,
    /// More and more messages wait for it.
    Growing,
    /// It has had faults.
    Faulting,
}

impl Trouble {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Trouble; 4] = [
        Trouble::Stuck,
        Trouble::Slow,
        Trouble::Growing,
        Trouble::Faulting,
    ];

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        ["stuck", "slow", "growing", "faulting"][self as usize]
    }
}

/// An actor to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// What is wrong.
    pub trouble: Trouble,
    /// The actor.
    pub actor: u64,
    /// What is known of it, in a sentence without its name.
    pub says: String,
}

/// The actors to look at.
#[derive(Debug, Default)]
pub struct Suspects {
    kinds: [Vec<Suspect>; 4],
    counts: [usize; 4],
}

impl Suspects {
    /// Returns the suspects of a kind, the worst first.
    pub fn of(&self, trouble: Trouble) -> &[Suspect] {
        &self.kinds[trouble as usize]
    }

    /// Returns how many there are of a kind. Not all of them need be in the list.
    pub fn count(&self, trouble: Trouble) -> usize {
        self.counts[trouble as usize]
    }

    /// Returns the suspects of all kinds.
    pub fn all(&self) -> impl Iterator<Item = &Suspect> {
        self.kinds.iter().flatten()
    }

    /// Keeps the heaviest of a kind, and lets each say what is known of it.
    fn put(&mut self, trouble: Trouble, mut found: Weighed, says: impl Fn(u64) -> String) {
        found.sort_unstable_by_key(|(weight, id)| (Reverse(*weight), *id));
        self.counts[trouble as usize] = found.len();
        let kept = found.into_iter().take(KEPT).map(|(_, actor)| Suspect {
            trouble,
            actor,
            says: says(actor),
        });
        self.kinds[trouble as usize] = kept.collect();
    }
}

/// Weights and actors.
type Weighed = Vec<(u64, u64)>;

/// Returns the actors to look at.
pub fn suspects(model: &Model) -> Suspects {
    let mut suspects = Suspects::default();
    if !model.is_whole() {
        return suspects;
    }
    let mut waits = Followers::of(model);
    let stuck = std::mem::take(&mut waits.roots);
    let slow: Weighed = found(model, slow_weight);
    let are_known = |found: &Weighed| found.iter().map(|(_, id)| *id).collect::<HashSet<u64>>();
    let (are_stuck, are_slow) = (are_known(&stuck), are_known(&slow));
    let growing = found(model, |model, actor| {
        if are_stuck.contains(&actor.id) || waits.victims.contains(&actor.id) {
            return None;
        }
        let weight = growing_weight(model, actor)?;
        // Long turns are the reason, and named above.
        let is_explained = are_slow.contains(&actor.id);
        Some(if is_explained { weight / 1_000 } else { weight })
    });
    let faulting = found(model, faulting_weight);

    let mut put = |trouble, found, says: &dyn Fn(&ActorFacts) -> String| {
        suspects.put(trouble, found, |id| {
            model.actor(id).map(says).unwrap_or_default()
        });
    };
    put(Trouble::Stuck, stuck, &|it| stuck_text(model, it, &waits));
    put(Trouble::Slow, slow, &|it| slow_text(model, it));
    put(Trouble::Growing, growing, &|it| growing_text(model, it));
    put(Trouble::Faulting, faulting, &|it| restarts_text(model, it));
    suspects
}

fn found(model: &Model, weight: impl Fn(&Model, &ActorFacts) -> Option<u64>) -> Weighed {
    let actors = model.actors().iter();
    actors
        .filter_map(|actor| Some((weight(model, actor)?, actor.id)))
        .collect()
}

/// Actors that stand still, and who waits for them.
struct Followers {
    /// The actors that hold themselves up, with their weights.
    roots: Weighed,
    /// The members of cycles, with the sizes of these.
    circles: HashMap<u64, usize>,
    /// How many actors wait for each root, over others too.
    followers: HashMap<u64, u64>,
    /// The actors that stand still since another one does.
    victims: HashSet<u64>,
}

impl Followers {
    fn of(model: &Model) -> Self {
        let circles: HashMap<u64, usize> = cycles(model)
            .iter()
            .flat_map(|cycle| cycle.iter().map(|id| (*id, cycle.len())))
            .collect();
        let blocked = model.actors().iter().filter(|actor| actor.is_blocked());
        let still: HashMap<u64, &ActorFacts> = blocked
            .filter(|actor| model.still_ms(actor) >= STILL_MS || circles.contains_key(&actor.id))
            .map(|actor| (actor.id, actor))
            .collect();
        let (mut followers, mut victims) = (HashMap::new(), HashSet::new());
        for (id, actor) in &still {
            let (mut at, mut steps) = (*actor, 0);
            while let Some(next) = held_by(model, at).filter(|_| !circles.contains_key(&at.id)) {
                steps += 1;
                at = next;
                if steps == STEPS_MAX || !still.contains_key(&at.id) {
                    break;
                }
            }
            if steps > 0 {
                victims.insert(*id);
                *followers.entry(at.id).or_default() += 1;
            }
        }
        let is_root = |id: &u64| !victims.contains(id);
        let roots = still.iter().filter(|(id, _)| is_root(id));
        let roots = roots.filter_map(|(id, actor)| {
            let waiting = followers.get(id).copied().unwrap_or(0) + u64::from(actor.mailbox);
            let is_circle = circles.contains_key(id);
            let holds_nobody = waiting == 0 && !is_circle && !awaits_answer(actor);
            let still = model.still_ms(actor).min(1_000_000_000);
            let weight = u64::from(is_circle) << 62 | waiting.min(1 << 30) << 30 | still;
            (!holds_nobody).then_some((weight, *id))
        });
        Followers {
            roots: roots.collect(),
            circles,
            followers,
            victims,
        }
    }
}

/// Returns whether an actor waits for the answer of another one.
fn awaits_answer(actor: &ActorFacts) -> bool {
    use crate::model::WaitsOn::Answer;
    actor.waits.iter().any(|wait| matches!(wait, Answer(_)))
}

/// Returns the actor that holds up another one, since it stands still itself, has to do, or is in a turn.
fn held_by<'a>(model: &'a Model, actor: &ActorFacts) -> Option<&'a ActorFacts> {
    let targets = actor.waits.iter().filter_map(|wait| wait.of());
    let mut targets = targets.filter_map(|id| model.actor(id));
    targets.find(|target| {
        target.is_blocked() || target.state != ActorState::Waiting || target.mailbox > 0
    })
}

fn slow_weight(model: &Model, actor: &ActorFacts) -> Option<u64> {
    let now = model.turn_now(actor.id).map_or(0, |(_, us)| us);
    let is_recent = model.still_ms(actor) < u64::from(RECENT) * 1_000;
    let longest = u64::from(actor.longest_us) / if is_recent { 1 } else { 8 };
    let weight = now.max(longest).max(model.mean_turn_us(actor));
    (weight >= LONG_TURN_US).then_some(weight)
}

fn growing_weight(model: &Model, actor: &ActorFacts) -> Option<u64> {
    let mailbox = u64::from(actor.mailbox);
    if let Some(growth) = model.growth(actor) {
        return Some(1_000_000_000 + 1_000 * growth + mailbox);
    }
    let is_at_its_highest = actor.mailbox >= MANY && actor.mailbox == actor.highest;
    (actor.is_full() || is_at_its_highest).then_some(1_000 + mailbox)
}

fn faulting_weight(model: &Model, actor: &ActorFacts) -> Option<u64> {
    let has_faults = actor.restarts > 0 || !actor.fault.is_empty();
    let is_recent = model.faulted_ago(actor).is_some_and(|ago| ago < RECENT);
    has_faults.then_some(u64::from(is_recent) << 40 | u64::from(actor.restarts))
}

fn stuck_text(model: &Model, actor: &ActorFacts, waits: &Followers) -> String {
    let mut text = waits_text(model, actor) + &still_text(model, actor);
    if let Some(size) = waits.circles.get(&actor.id) {
        text += &match size {
            1 => ": for itself".to_owned(),
            _ => format!(": a cycle of {size}"),
        };
    }
    match waits.followers.get(&actor.id) {
        Some(1) => text += "; 1 actor waits for it",
        Some(number) => text += &format!("; {number} actors wait for it"),
        None => {}
    }
    match actor.mailbox {
        0 => text,
        waiting => format!("{text}; {}", mailbox_text(waiting)),
    }
}

fn slow_text(model: &Model, actor: &ActorFacts) -> String {
    if let Some((worker, us)) = model.turn_now(actor.id)
        && us >= LONG_TURN_US
    {
        return format!("in one turn for {} on worker {worker}", duration(us));
    }
    format!("turns of {}", turns_text(model, actor))
}

fn growing_text(model: &Model, actor: &ActorFacts) -> String {
    let waiting = count(actor.mailbox.into(), "message");
    let rate = model.message_rate(actor);
    match model.growth(actor) {
        Some(growth) => {
            format!("{waiting} in the mailbox, {growth} more each second; takes {rate}")
        }
        None if actor.is_full() => {
            format!("its mailbox is full with {waiting}; takes {rate} a second")
        }
        None => format!("{waiting} in the mailbox, as many as never before; takes {rate} a second"),
    }
}
