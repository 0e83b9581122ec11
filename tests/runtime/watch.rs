//! `Runtime::watch`: what its items have, who gets them, and when they come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join;
use greenroom::policy::Simulated;
use greenroom::registry::{Group, Name};
use greenroom::{
    ActorWait, Address, Changes, Context, Handle, Reply, Runtime, TaskReport, Watch, actor,
};

use crate::heap;
use crate::support::{Home, WATCH, drive, in_every_home, on_threads, within};
#[cfg(target_os = "linux")]
use crate::support::{naps::naps, until};

in_every_home!(
    the_first_item_has_all_actors,
    a_copy_that_follows_the_items_becomes_the_report,
    an_actor_that_does_nothing_is_in_no_item_but_the_first,
    a_viewer_that_takes_nothing_loses_items_and_then_gets_all_actors,
    viewers_of_one_runtime_share_their_items,
    a_watch_ends_when_the_runtime_shuts_down,
);

on_threads!(a_runtime_whose_threads_are_held_is_seen,);

const SHORT: Duration = Duration::from_millis(1);

enum Word {
    Plain,
    Ask(Reply<()>),
    /// Asks this actor, which does not answer.
    Wait(Address<Word>),
}

async fn answers(mut cx: Context<Word>) {
    while let Some(word) = cx.recv().await {
        match word {
            Word::Plain => {}
            Word::Ask(reply) => reply.send(()),
            Word::Wait(of) => drop(of.ask(Word::Ask).await),
        }
    }
}

/// Never answers.
async fn keeps(mut cx: Context<Word>) {
    let mut kept = Vec::new();
    while let Some(word) = cx.recv().await {
        kept.push(word);
    }
}

/// What a viewer knows, if it follows the items.
#[derive(Default)]
struct Copied(BTreeMap<u64, TaskReport>);

impl Copied {
    fn follow(&mut self, item: &Changes) {
        assert!(item.stats.actors.is_empty());
        if item.is_whole {
            self.0.clear();
            assert_eq!(item.ended, [0; 0]);
        }
        for id in &item.ended {
            assert!(self.0.remove(id).is_some(), "{id} is not known");
        }
        for report in &item.changed {
            self.0.insert(report.task.id(), report.clone());
        }
    }

    /// Returns all that it knows, as a text.
    fn text(&self) -> String {
        text(self.0.values())
    }

    /// Follows the items until the condition holds.
    fn follow_until(&mut self, home: &Home, watch: &mut Watch, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            self.follow(&next(home, watch));
        }
    }
}

fn text<'a>(reports: impl Iterator<Item = &'a TaskReport>) -> String {
    let lines = reports.map(|report| format!("{report:?}\n"));
    lines.collect()
}

fn next(home: &Home, watch: &mut Watch) -> Arc<Changes> {
    home.block_on(watch.next()).expect("the runtime goes on")
}

/// Returns the report of the actors, as a text.
fn report(home: &Home) -> String {
    let report = home.runtime.report();
    text(report.iter().filter(|report| report.actor.is_some()))
}

fn spawn_all(home: &Home, count: usize) -> Vec<Handle<Word, ()>> {
    (0..count).map(|_| home.spawn(actor(answers))).collect()
}

/// Follows the items until they have told all that a report tells.
fn settle(home: &Home, watch: &mut Watch, copied: &mut Copied) {
    while copied.text() != report(home) {
        copied.follow(&next(home, watch));
    }
}

fn the_first_item_has_all_actors(home: &Home) {
    let actors = spawn_all(home, 300);
    let mut watch = home.runtime.watch(SHORT);
    let item = next(home, &mut watch);
    assert!(item.is_whole);
    let mut ids: Vec<u64> = item.changed.iter().map(|it| it.task.id()).collect();
    ids.sort_unstable();
    let mut spawned: Vec<u64> = actors.iter().map(|actor| actor.id()).collect();
    spawned.sort_unstable();
    assert_eq!(ids, spawned);
    assert!(!next(home, &mut watch).is_whole);
}

fn a_copy_that_follows_the_items_becomes_the_report(home: &Home) {
    let mut random = fastrand::Rng::with_seed(7);
    let mut actors = spawn_all(home, 200);
    let mut watch = home.runtime.watch(SHORT);
    let mut copied = Copied::default();
    for _ in 0..home.many(100).max(10) {
        for _ in 0..random.usize(..20) {
            let at = random.usize(..actors.len());
            let name = Name::owned(random.u8(..9).to_string()).on(&home.runtime);
            let group = Group::owned(random.u8(..3).to_string()).on(&home.runtime);
            match random.usize(..10) {
                0 => actors.extend(spawn_all(home, 1)),
                1 if actors.len() > 1 => drop(actors.swap_remove(at)),
                2 => actors[at].kill(),
                3 => drop(actors[at].tell(Word::Plain)),
                // The name may be taken, and the actor may have ended.
                4 => drop(name.register(&actors[at])),
                5 => drop(name.unregister()),
                6 => drop(group.join(&actors[at])),
                7 => drop(group.leave(&actors[at])),
                8 => drop(home.block_on(actors[at].ask(Word::Ask))),
                _ => drop(actors[at].address()),
            }
        }
        copied.follow(&next(home, &mut watch));
        settle(home, &mut watch, &mut copied);
    }
    // The tables of the runtime become empty.
    actors.clear();
    copied.follow_until(home, &mut watch, |copied| copied.0.is_empty());
    let _last = home.spawn(actor(keeps));
    copied.follow_until(home, &mut watch, |copied| copied.0.len() == 1);
}

fn an_actor_that_does_nothing_is_in_no_item_but_the_first(home: &Home) {
    let _idle = spawn_all(home, 300);
    let busy = home.spawn(actor(answers));
    let mut watch = home.runtime.watch(SHORT);
    let is_dormant = |it: &TaskReport| it.actor.as_ref().unwrap().is_dormant;
    Copied::default().follow_until(home, &mut watch, |copied| {
        copied.0.len() == 301 && copied.0.values().all(is_dormant)
    });
    for _ in 0..5 {
        home.block_on(busy.ask(Word::Ask)).unwrap();
        let item = next(home, &mut watch);
        let others = item.changed.iter().filter(|it| it.task.id() != busy.id());
        assert_eq!((others.count(), item.ended.len()), (0, 0), "{item:?}");
    }
}

fn a_viewer_that_takes_nothing_loses_items_and_then_gets_all_actors(home: &Home) {
    let _actors = spawn_all(home, 3);
    let mut slow = home.runtime.watch(SHORT);
    let mut quick = home.runtime.watch(SHORT);
    assert!(next(home, &mut quick).is_whole);
    for _ in 0..10 {
        next(home, &mut quick);
    }
    let whole = [(); 4].map(|()| next(home, &mut slow).is_whole);
    assert_eq!(whole, [true, false, true, false]);
}

fn viewers_of_one_runtime_share_their_items(home: &Home) {
    let mut watches = [(); 2].map(|()| home.runtime.watch(SHORT));
    let mut taken: Vec<Arc<Changes>> = Vec::new();
    loop {
        for watch in &mut watches {
            let item = next(home, watch);
            if taken.iter().any(|other| Arc::ptr_eq(other, &item)) {
                return;
            }
            taken.push(item);
        }
    }
}

fn a_watch_ends_when_the_runtime_shuts_down(home: &Home) {
    let _actors = spawn_all(home, 3);
    let mut watch = home.runtime.watch(SHORT);
    next(home, &mut watch);
    let to_its_end = async { while watch.next().await.is_some() {} };
    let (report, ()) = home.block_on(join(home.runtime.shutdown(), to_its_end));
    assert_eq!((report.ended, report.left_behind), (3, 0));
    // Also one that begins later.
    let mut late = home.runtime.watch(SHORT);
    assert!(drive(late.next()).is_none());
}

fn a_runtime_whose_threads_are_held_is_seen(home: &Home) {
    let actor = home.spawn(actor(answers));
    home.block_on(actor.ask(Word::Ask)).unwrap();
    let mut watch = home.runtime.watch(SHORT);
    let mut copied = Copied::default();
    settle(home, &mut watch, &mut copied);
    let held = home.hold();
    actor.tell(Word::Plain).unwrap();
    let is_seen = |copied: &Copied| {
        let status = copied.0[&actor.id()].actor.as_ref().unwrap();
        status.mailbox == 1 && !status.is_dormant
    };
    while !is_seen(&copied) {
        copied.follow(&drive(watch.next()).unwrap());
    }
    drop(held);
}

#[test]
#[cfg(target_os = "linux")]
fn the_thread_of_the_walks_lives_as_long_as_there_are_viewers() {
    within(WATCH, || {
        let builder = Runtime::builder().workers(1).thread_name("viewed");
        let runtime = builder.build().unwrap();
        let threads = || naps("viewed-watch").len();
        assert_eq!(threads(), 0);
        for _ in 0..3 {
            let mut watches = [(); 3].map(|()| runtime.watch(SHORT));
            for watch in &mut watches {
                drive(watch.next()).unwrap();
            }
            assert_eq!(threads(), 1);
            drop(watches);
            until(|| threads() == 0);
        }
        let mut watch = runtime.watch(SHORT);
        drive(watch.next()).unwrap();
        drop(runtime);
        until(|| threads() == 0);
    });
}

#[test]
fn a_watch_that_is_dropped_in_the_middle_of_walks_disturbs_no_other() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let _actors: Vec<_> = (0..1000)
            .map(|_| actor(answers).on(&runtime).spawn())
            .collect();
        let mut watch = runtime.watch(SHORT);
        let mut copied = Copied::default();
        for round in 0..50 {
            let mut other = runtime.watch(SHORT);
            if round % 2 == 0 {
                assert!(drive(other.next()).unwrap().is_whole);
            }
            drop(other);
            copied.follow(&drive(watch.next()).unwrap());
        }
        assert_eq!(copied.0.len(), 1000);
    });
}

#[test]
fn a_wait_for_an_actor_that_did_not_change_has_its_name() {
    within(WATCH, || {
        let builder = Runtime::builder().workers(1).endless_waits(true);
        let runtime = builder.build().unwrap();
        let asked = actor(keeps).name("asked").on(&runtime).spawn();
        let asker = actor(answers).on(&runtime).spawn();
        asked.tell(Word::Plain).unwrap();
        let mut watch = runtime.watch(SHORT);
        let mut copied = Copied::default();
        asker.tell(Word::Wait(asked.address())).unwrap();
        let waits_for = |copied: &Copied| {
            let asker = copied.0.get(&asker.id())?;
            match asker.waits[..] {
                [ActorWait::Answer(ref of)] => Some(of.name() == Some("asked")),
                _ => None,
            }
        };
        while waits_for(&copied) != Some(true) {
            copied.follow(&drive(watch.next()).unwrap());
        }
        // Now the asker alone changes, for an item that has no news of the actor that is asked.
        for _ in 0..3 {
            drop(asker.address());
            asker.tell(Word::Plain).unwrap();
            copied.follow(&drive(watch.next()).unwrap());
            assert_eq!(waits_for(&copied), Some(true));
        }
    });
}

fn simulated() -> Runtime {
    let policy = Simulated::new(0);
    Runtime::builder().policy(policy).build().unwrap()
}

#[test]
fn the_shortest_interval_counts_in_the_time_of_a_simulation() {
    within(WATCH, || {
        let runtime = simulated();
        runtime.block_on(async {
            let mut rare = Runtime::current().watch(Duration::from_secs(3600));
            let mut often = Runtime::current().watch(Duration::from_secs(2));
            let (mut last, begun) = (often.next().await.unwrap().at, rare.next().await);
            let begun = begun.unwrap().at;
            for _ in 0..10 {
                let item = often.next().await.unwrap();
                assert!(item.at - last >= Duration::from_secs(2));
                last = item.at;
                assert_eq!(rare.next().await.unwrap().at, last);
            }
            assert!(last - begun < Duration::from_secs(60));
            drop(often);
            let item = rare.next().await.unwrap();
            assert!(item.at - last >= Duration::from_secs(2));
            assert!(rare.next().await.unwrap().at - item.at >= Duration::from_secs(3600));
        });
    });
}

/// Returns how often this thread allocates for an item, if so many actors do nothing.
fn allocations(actors: usize) -> usize {
    let runtime = simulated();
    let _actors: Vec<_> = (0..actors)
        .map(|_| actor(answers).on(&runtime).spawn())
        .collect();
    runtime.block_on(async {
        let mut watch = Runtime::current().watch(SHORT);
        // The first one is whole, and the second one may have what has changed since.
        for _ in 0..3 {
            watch.next().await.unwrap();
        }
        let before = heap::here().allocations;
        for _ in 0..10 {
            assert_eq!(watch.next().await.unwrap().changed.len(), 0);
        }
        heap::here().allocations - before
    })
}

#[test]
fn an_item_takes_no_memory_for_actors_that_did_not_change() {
    within(WATCH, || {
        let (few, many) = (allocations(10), allocations(1000));
        assert!(many < few + 10, "{many} times, and {few} with few actors");
    });
}
