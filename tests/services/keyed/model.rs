//! Random histories of sets in simulations, beside a book of all messages.
//!
//! Callers tell, ask, remove, kill, hold addresses and wait; actors return, panic, sleep, end slowly,
//! and wait for the ends of others. Some sets are killed, and some runtimes shut down. Of a key at most
//! one actor is alive. Each accepted message is handled or undelivered, and never twice. It is dropped
//! only if an actor of its key could not start, or with the runtime. Each call returns.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    Undelivered,
    Dropped,
    /// It was dropped for no reason.
    Lost,
    /// It had a fate already.
    Twice,
}

#[derive(Clone, Default)]
struct Fates(Arc<Mutex<BTreeMap<u32, Fate>>>);

impl Fates {
    /// Changes the fate of a message, which was this one. It panics nowhere, since the set may
    /// contain that.
    fn change(&self, id: u32, from: Option<Fate>, to: Fate) {
        let mut all = self.0.lock().unwrap();
        let is_first = all.get(&id).copied() == from;
        all.insert(id, if is_first { to } else { Fate::Twice });
    }
}

/// A message, which notes its drop if it was neither handled nor undelivered.
struct Note {
    id: u32,
    key: u32,
    plan: Plan,
    /// How often the function had failed for the key.
    failed_before: usize,
    is_noted: bool,
    does: Does,
    reply: Option<Reply<u32>>,
    /// Whether it is asked. If it is refused, it is dropped.
    is_ask: bool,
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
        let fates = &self.plan.fates;
        fates.change(self.id, Some(Fate::Accepted), fate);
        self.is_noted = true;
        (self.id, self.reply.take())
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if self.is_noted {
            return;
        }
        let Plan { fates, failed, .. } = &self.plan;
        let may_drop = self.is_ask
            || failed[self.key as usize].load(Ordering::SeqCst) > self.failed_before
            || self.plan.is_over.load(Ordering::SeqCst);
        let fate = if may_drop { Fate::Dropped } else { Fate::Lost };
        fates.change(self.id, Some(Fate::Accepted), fate);
    }
}

type Notes = Keyed<u32, Note>;

/// What the actors of a history have in common.
#[derive(Clone)]
struct Plan {
    book: Book,
    fates: Fates,
    seed: u64,
    /// The most room of a mailbox, if it is bounded.
    capacity: Option<usize>,
    /// Whether the function of the builder and the actors fail at times.
    fails: bool,
    /// How often the function has failed for each key.
    failed: Arc<[AtomicUsize; KEYS]>,
    /// Whether the runtime shuts down.
    is_over: Arc<AtomicBool>,
    /// The set, if its actors use it, until the history is over.
    own: Arc<Mutex<Option<Notes>>>,
}

async fn handle(mut cx: Context<Note>, key: u32, plan: Plan) {
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
    let Some(own) = plan.own.lock().unwrap().clone() else {
        return;
    };
    if key == 0 {
        let asked = own.get_or_spawn(&key).await;
        let is_own = matches!(asked, Err(KeyError::Deadlock(_) | KeyError::Stopped));
        assert!(is_own || plan.is_over.load(Ordering::SeqCst), "{asked:?}");
    }
    // The actor of that key may end as well, and wait for this one through the others.
    let asked = own.get_or_spawn(&((key + 1) % KEYS as u32)).await;
    let may_end = plan.is_over.load(Ordering::SeqCst);
    let has_ended = matches!(asked, Err(KeyError::Spawn(_)));
    assert!(may_end || !has_ended, "{asked:?}");
}

struct Caller {
    set: Notes,
    draws: Draws,
    plan: Plan,
    next: u32,
}

impl Caller {
    fn note(&mut self, key: u32, is_ask: bool) -> Note {
        self.next += 1;
        let does = match self.draws.below(if self.plan.fails { 10 } else { 8 }) {
            0 => Does::Return,
            1 => Does::Stop,
            2 | 3 => Does::Sleep(self.draws.millis(20)),
            8 | 9 => Does::Panic,
            _ => Does::Nothing,
        };
        let fates = &self.plan.fates;
        fates.change(self.next, None, Fate::Accepted);
        Note {
            id: self.next,
            key,
            plan: self.plan.clone(),
            failed_before: self.plan.failed[key as usize].load(Ordering::SeqCst),
            is_noted: false,
            does,
            reply: None,
            is_ask,
        }
    }

    async fn call(&mut self) {
        let key = self.draws.below(KEYS) as u32;
        match self.draws.below(11) {
            0..=4 => {
                for _ in 0..=self.draws.below(4) {
                    let note = self.note(key, false);
                    if let Err(refused) = self.set.tell(&key, note) {
                        refused.into_inner().note(Fate::Refused);
                    }
                }
            }
            5 | 6 => {
                let (mut note, id) = (self.note(key, true), self.next);
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
            9 => {
                if let Ok(actor) = self.set.get_or_spawn(&key).await {
                    actor.kill();
                }
            }
            _ => sleep(self.draws.millis(40)).await,
        }
        assert!(self.set.len() <= KEYS);
    }
}

fn set(runtime: &Runtime, plan: &Plan, draws: &mut Draws) -> Notes {
    let (own, plan, made) = (&plan.own, plan.clone(), Mutex::new(draws.clone()));
    let make = move |key| {
        let mut draws = made.lock().unwrap();
        if plan.fails && draws.one_in(8) {
            drop(draws);
            plan.failed[key as usize].fetch_add(1, Ordering::SeqCst);
            panic!("bomb");
        }
        let plan = plan.clone();
        let capacity = plan.capacity.map(|most| 1 + draws.below(most));
        let actor = actor(move |cx| handle(cx, key, plan));
        let actor = actor.on_undelivered(|note: Note| drop(note.note(Fate::Undelivered)));
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
        fates: Fates::default(),
        seed,
        capacity: draws.one_in(2).then(|| 1 + draws.below(6)),
        fails: draws.one_in(2),
        failed: Arc::default(),
        is_over: Arc::default(),
        own: Arc::default(),
    };
    let set = set(runtime, &plan, &mut draws);
    let serve = || {
        let own = set.clone();
        actor(move |cx| own.serve(cx)).on(runtime).spawn()
    };
    let mut serves = serve();
    let mut callers: Vec<_> = (1..=CALLERS)
        .map(|part| {
            let mut caller = Caller {
                set: set.clone(),
                draws: Draws::of(plan.seed, part),
                plan: plan.clone(),
                next: part as u32 * 1000,
            };
            runtime.spawn(async move {
                for _ in 0..CALLS {
                    caller.call().await;
                }
            })
        })
        .collect();
    match draws.below(8) {
        // The set accepts messages again each time, but for the last one.
        how @ 0..=4 => {
            for _ in 0..10 {
                sleep(draws.millis(40)).await;
                let next = serve();
                match how {
                    0 | 1 => serves.kill(),
                    _ => set.stop(),
                }
                serves = next;
            }
        }
        5 => {
            sleep(draws.millis(200)).await;
            plan.is_over.store(true, Ordering::SeqCst);
            runtime.shutdown().await;
            callers.clear();
        }
        _ => {}
    }
    for caller in callers {
        caller.await;
    }
    serves.stop();
    set.stop();
    set.ended().await;
    *plan.own.lock().unwrap() = None;
    let is_over = plan.is_over.load(Ordering::SeqCst);
    assert!(is_over || set.is_empty() && set.keys().is_empty());
    for (id, fate) in &*plan.fates.0.lock().unwrap() {
        let is_wrong = matches!(fate, Fate::Lost | Fate::Twice);
        let is_nowhere = *fate == Fate::Accepted && !is_over;
        assert!(!is_wrong && !is_nowhere, "message {id}: {fate:?}");
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
