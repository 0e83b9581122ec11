//! Random histories of sets in simulations, beside a book of all messages.
//!
//! Callers tell, ask, remove, hold addresses and wait; actors return, panic, sleep, end slowly, and
//! wait for the ends of others. Of a key at most one actor is alive. Each accepted message is handled,
//! or is dropped with an actor that has failed or with one that could not start, and never twice.
//! Each call returns.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::registry::{KeyError, Keyed, KeyedAskError};
use greenroom::time::sleep;
use greenroom::{AskError, Context, Reply, Runtime, actor};

use super::Book;
use crate::support::matrix::Named;
use crate::support::{Draws, WATCH, keep_bombs_quiet, within};

const SEEDS: u64 = 400;
const CALLERS: u64 = 4;
const CALLS: usize = 25;
const KEYS: usize = 3;

/// What has become of a message. Each is there once at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Accepted,
    Refused,
    Handled,
    Dropped,
}

#[derive(Clone, Default)]
struct Fates(Arc<Mutex<BTreeMap<u32, Fate>>>);

impl Fates {
    /// Changes the fate of a message, which was one of these.
    fn change(&self, id: u32, from: &[Option<Fate>], to: Fate) {
        let before = self.0.lock().unwrap().insert(id, to);
        assert!(from.contains(&before), "message {id}: {before:?} to {to:?}");
    }
}

/// A message, which notes its drop if it was not handled.
struct Note {
    id: u32,
    fates: Fates,
    is_noted: bool,
    does: Does,
    reply: Option<Reply<u32>>,
}

#[derive(Clone, Copy)]
enum Does {
    Nothing,
    Sleep(Duration),
    Return,
    Stop,
    Panic,
}

impl Note {
    fn note(mut self, fate: Fate) -> (u32, Option<Reply<u32>>) {
        self.fates.change(self.id, &[Some(Fate::Accepted)], fate);
        self.is_noted = true;
        (self.id, self.reply.take())
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if !self.is_noted {
            self.fates
                .change(self.id, &[Some(Fate::Accepted)], Fate::Dropped);
        }
    }
}

type Notes = Keyed<u32, Note>;

/// What the actors of a history have in common.
#[derive(Clone)]
struct Plan {
    book: Book,
    seed: u64,
    capacity: Option<usize>,
    /// Whether the function of the builder and the actors fail at times.
    fails: bool,
}

async fn handle(mut cx: Context<Note>, key: u32, plan: Plan, set: Arc<Mutex<Option<Notes>>>) {
    let entry = plan.book.begin(key);
    let _entry = entry;
    while let Some(note) = cx.recv().await {
        let does = note.does;
        if let (id, Some(reply)) = note.note(Fate::Handled) {
            reply.send(id);
        }
        match does {
            Does::Nothing => {}
            Does::Sleep(time) => sleep(time).await,
            Does::Return => break,
            Does::Stop => cx.stop(),
            Does::Panic => panic!("bomb"),
        }
    }
    // Its mailbox has closed, or it returns, so that it waits for itself at most once.
    cx.stop();
    let Some(own) = set.lock().unwrap().clone() else {
        return;
    };
    if key == 0 {
        let asked = own.get_or_spawn(&key).await;
        let is_own = matches!(asked, Err(KeyError::Deadlock(_) | KeyError::Stopped));
        assert!(is_own, "{asked:?}");
    }
    // The actor of that key may end as well, and wait for this one through the others.
    let asked = own.get_or_spawn(&((key + 1) % KEYS as u32)).await;
    assert!(!matches!(asked, Err(KeyError::Spawn(_))), "{asked:?}");
}

struct Caller {
    set: Notes,
    draws: Draws,
    fates: Fates,
    next: u32,
    fails: bool,
}

impl Caller {
    fn note(&mut self) -> Note {
        self.next += 1;
        let does = match self.draws.below(if self.fails { 10 } else { 8 }) {
            0 => Does::Return,
            1 => Does::Stop,
            2 | 3 => Does::Sleep(self.draws.millis(20)),
            8 | 9 => Does::Panic,
            _ => Does::Nothing,
        };
        self.fates.change(self.next, &[None], Fate::Accepted);
        Note {
            id: self.next,
            fates: self.fates.clone(),
            is_noted: false,
            does,
            reply: None,
        }
    }

    async fn call(&mut self) {
        let key = self.draws.below(KEYS) as u32;
        match self.draws.below(10) {
            0..=4 => {
                let note = self.note();
                if let Err(refused) = self.set.tell(&key, note) {
                    refused.into_inner().note(Fate::Refused);
                }
            }
            5 | 6 => {
                let (mut note, id) = (self.note(), self.next);
                let asked = self.set.ask(&key, |reply| {
                    note.reply = Some(reply);
                    note
                });
                match asked.await {
                    Ok(answer) => assert_eq!(answer, id),
                    Err(KeyedAskError::Ask(AskError::NoReply(_) | AskError::Closed(_))) => {}
                    Err(KeyedAskError::Key(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            7 => drop(self.set.remove(&key)),
            8 => {
                if let Ok(actor) = self.set.get_or_spawn(&key).await {
                    sleep(self.draws.millis(30)).await;
                    drop(actor);
                }
            }
            _ => sleep(self.draws.millis(40)).await,
        }
        assert!(self.set.len() <= KEYS);
    }
}

fn set(runtime: &Runtime, plan: &Plan, draws: &mut Draws) -> Notes {
    let own = Arc::new(Mutex::new(None));
    let (of_set, plan, made) = (own.clone(), plan.clone(), Mutex::new(draws.clone()));
    let fails = plan.fails;
    let make = move |key| {
        let fails = fails && made.lock().unwrap().one_in(8);
        assert!(!fails, "bomb");
        let (plan, set) = (plan.clone(), of_set.clone());
        let capacity = plan.capacity;
        let actor = actor(move |cx| handle(cx, key, plan, set));
        match capacity {
            Some(capacity) => actor.capacity(capacity),
            None => actor,
        }
    };
    let mut set = Keyed::builder(make).on(runtime);
    if draws.one_in(2) {
        set = set.idle(Duration::from_millis(10));
    }
    if draws.one_in(2) {
        set = set.limit(1 + draws.below(KEYS));
    }
    let set = set.build().unwrap();
    if draws.one_in(2) {
        *own.lock().unwrap() = Some(set.clone());
    }
    set
}

async fn history(runtime: &Runtime, seed: u64) {
    let mut draws = Draws::of(seed, 0);
    let plan = Plan {
        book: Book::default(),
        seed,
        capacity: draws.one_in(2).then(|| 1 + draws.below(3)),
        fails: draws.one_in(2),
    };
    let (set, fates) = (set(runtime, &plan, &mut draws), Fates::default());
    let callers: Vec<_> = (1..=CALLERS)
        .map(|part| {
            let mut caller = Caller {
                set: set.clone(),
                draws: Draws::of(plan.seed, part),
                fates: fates.clone(),
                next: part as u32 * 1000,
                fails: plan.fails,
            };
            runtime.spawn(async move {
                for _ in 0..CALLS {
                    caller.call().await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await;
    }
    set.stop();
    set.ended().await;
    assert!(set.is_empty() && set.keys().is_empty());
    for (id, fate) in &*fates.0.lock().unwrap() {
        assert_ne!(*fate, Fate::Accepted, "message {id} is nowhere");
    }
}

#[test]
fn each_message_has_one_fate_and_each_call_returns() {
    keep_bombs_quiet();
    within(WATCH, || {
        for seed in 0..SEEDS {
            let _named = Named(format!("seed {seed}"));
            let builder = Runtime::builder().policy(Simulated::new(seed));
            let runtime = builder.on_fault(|_| {}).build().unwrap();
            runtime.block_on(history(&runtime, seed));
        }
    });
}
