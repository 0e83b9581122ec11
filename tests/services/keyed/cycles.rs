//! Actors that end, and wait for the ends of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::registry::{KeyError, Keyed};
use greenroom::time::timeout;
use greenroom::{Address, Context, actor, current_actor};

use crate::support::{Draws, Gate, Home, Log, in_every_home};

in_every_home!(
    of_two_ending_actors_that_wait_for_each_other_one_gets_the_cycle,
    of_three_ending_actors_in_a_cycle_one_gets_it,
    a_cycle_may_lead_through_several_sets,
    a_chain_of_ending_actors_is_no_cycle,
    a_wait_that_was_given_up_is_no_part_of_a_cycle,
    a_task_of_an_ending_actor_may_wait_for_its_key,
);

/// What an actor does when it has received this and its mailbox is closed.
type AtEnd = Box<dyn FnOnce() -> futures::future::BoxFuture<'static, ()> + Send>;

type Ends = Keyed<u32, AtEnd>;

/// Returns a set whose actors keep what they receive, and do it when they were stopped.
fn ends(home: &Home) -> Ends {
    let make = |_key| {
        actor(async |mut cx: Context<AtEnd>| {
            let mut all = Vec::new();
            while let Some(at_end) = cx.recv().await {
                all.push(at_end);
            }
            for at_end in all {
                at_end().await;
            }
        })
    };
    Keyed::builder(make).on(&home.runtime).build().unwrap()
}

/// Lets the actor of a key do this at its end, which begins now.
fn at_end<F>(set: &Ends, key: u32, does: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    set.tell(&key, Box::new(|| Box::pin(does()))).unwrap();
    assert!(set.remove(&key));
}

type Found = Result<Address<AtEnd>, KeyError>;

/// Lets the actors of these keys wait for each other in a circle, each when all of them end. Each
/// actor is in the set that is given with its key. Returns what the calls have returned, with the
/// caller.
async fn circle(of: &[(Ends, u32)]) -> Vec<(String, Found)> {
    let (log, all) = (Log::default(), Gate::default());
    for (at, (set, key)) in of.iter().enumerate() {
        // The one before may still end.
        drop(set.get_or_spawn(key).await);
        let (next, next_key) = of[(at + 1) % of.len()].clone();
        let (log, all) = (log.clone(), all.clone());
        at_end(set, *key, async move || {
            all.wait().await;
            let found = next.get_or_spawn(&next_key).await;
            log.add((current_actor().unwrap().to_string(), found));
        });
    }
    all.open();
    while log.len() < of.len() {
        greenroom::yield_now().await;
    }
    log.take()
}

/// Checks that one call of a circle has got the cycle, with all actors, and the others an address.
fn check(found: &[(String, Found)]) {
    let cycles = found.iter().filter_map(|(caller, found)| match found {
        Err(KeyError::Deadlock(cycle)) => Some((caller, cycle)),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    });
    let [(caller, cycle)] = cycles.collect::<Vec<_>>()[..] else {
        panic!("one cycle was expected: {found:?}");
    };
    let names: Vec<&str> = cycle.as_str().split(" → ").collect();
    assert_eq!(names.len(), found.len() + 1, "{cycle}");
    assert_eq!(names[0], caller);
    let ends: BTreeSet<String> = names[1..].iter().map(|&name| name.to_owned()).collect();
    let actors = found.iter();
    let actors = actors.map(|(actor, _)| format!("{actor} (for its end)"));
    assert_eq!(ends, actors.collect());
}

fn of_two_ending_actors_that_wait_for_each_other_one_gets_the_cycle(home: &Home) {
    let set = ends(home);
    home.block_on(async {
        for _ in 0..home.many(100) {
            check(&circle(&[(set.clone(), 1), (set.clone(), 2)]).await);
        }
        set.stop();
        set.ended().await;
    });
}

fn of_three_ending_actors_in_a_cycle_one_gets_it(home: &Home) {
    let set = ends(home);
    home.block_on(async {
        for _ in 0..home.many(100) {
            let of = [1, 2, 3].map(|key| (set.clone(), key));
            check(&circle(&of).await);
        }
        set.stop();
        set.ended().await;
    });
}

fn a_cycle_may_lead_through_several_sets(home: &Home) {
    let (first, second) = (ends(home), ends(home));
    home.block_on(async {
        check(
            &circle(&[
                (first.clone(), 1),
                (second.clone(), 1),
                (first, 2),
                (second, 2),
            ])
            .await,
        );
    });
}

fn a_chain_of_ending_actors_is_no_cycle(home: &Home) {
    let set = ends(home);
    home.block_on(async {
        let (end, found) = (Gate::default(), Log::default());
        let of_last = end.clone();
        at_end(&set, 9, async move || of_last.wait().await);
        // Each one and the one before wait for the next one.
        for key in (0..9).rev() {
            let (own, found) = (set.clone(), found.clone());
            at_end(&set, key, async move || {
                let next = key + 1;
                let next = futures::join!(own.get_or_spawn(&next), own.get_or_spawn(&9));
                found.add(next.0.is_ok() && next.1.is_ok());
            });
        }
        let first = set.get_or_spawn(&0);
        let ((), first) = futures::join!(async { end.open() }, first);
        assert!(first.is_ok());
        assert_eq!(found.take(), [true; 9]);
    });
}

fn a_wait_that_was_given_up_is_no_part_of_a_cycle(home: &Home) {
    let set = ends(home);
    home.block_on(async {
        let (given_up, end, found) = (Gate::default(), Gate::default(), Log::default());
        let (own, gate, held) = (set.clone(), given_up.clone(), end.clone());
        at_end(&set, 1, async move || {
            let short = Duration::from_millis(1);
            assert!(timeout(short, own.get_or_spawn(&2)).await.is_err());
            gate.open();
            held.wait().await;
        });
        let (own, log) = (set.clone(), found.clone());
        at_end(&set, 2, async move || {
            given_up.wait().await;
            let next = futures::join!(own.get_or_spawn(&1), async { end.open() });
            log.add(next.0.is_ok());
        });
        assert!(set.get_or_spawn(&2).await.is_ok());
        assert_eq!(found.take(), [true]);
    });
}

fn a_task_of_an_ending_actor_may_wait_for_its_key(home: &Home) {
    let set = ends(home);
    home.block_on(async {
        let (own, found) = (set.clone(), Log::default());
        let log = found.clone();
        at_end(&set, 1, async move || {
            greenroom::spawn(async move { log.add(own.get_or_spawn(&1).await.is_ok()) }).detach();
        });
        while found.len() == 0 {
            greenroom::yield_now().await;
        }
        assert_eq!(found.take(), [true]);
    });
}

/// Whom each actor waits for, as the actors know themselves.
type Waits = Arc<Mutex<BTreeMap<u32, u32>>>;

/// Lets all actors end, each of which waits for a drawn one, or for none. No call waits for ever,
/// and a deadlock is one.
async fn drawn(home: &Home, seed: u64) {
    const KEYS: u32 = 6;
    let (set, waits) = (ends(home), Waits::default());
    for key in 0..KEYS {
        let (own, waits) = (set.clone(), waits.clone());
        let mut draws = Draws::of(seed, u64::from(key));
        let next = draws.below(KEYS as usize + 1) as u32;
        at_end(&set, key, async move || {
            if draws.one_in(2) {
                greenroom::time::sleep(draws.millis(3)).await;
            }
            if next == KEYS {
                return;
            }
            waits.lock().unwrap().insert(key, next);
            let found = own.get_or_spawn(&next).await;
            let mut waits = waits.lock().unwrap();
            if let Err(KeyError::Deadlock(_)) = &found {
                let steps = std::iter::successors(Some(next), |at| waits.get(at).copied());
                let mut steps = steps.take(KEYS as usize + 1);
                assert!(steps.any(|at| at == key), "{key} is in no cycle: {waits:?}");
            } else {
                found.unwrap();
            }
            waits.remove(&key);
        });
    }
    for key in 0..KEYS {
        set.get_or_spawn(&key).await.unwrap();
    }
}

#[test]
fn a_deadlock_is_a_cycle_and_no_call_waits_for_ever() {
    crate::support::within(crate::support::WATCH, || {
        for seed in 0..300 {
            let home = Home::simulated(seed);
            home.block_on(drawn(&home, seed));
        }
    });
}
