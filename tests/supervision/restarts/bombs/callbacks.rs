//! Panics of functions that belong to an actor, and of what its messages and sources own.

use std::panic::resume_unwind;

use futures::stream::{self, StreamExt};
use greenroom::policy::TaskInfo;
use greenroom::supervise::Restarts;
use greenroom::{Context, Fault, Observer, Runtime, actor, spawn};

use super::{Look, Owns, still_serves};
use crate::restarts::{HOUR, ever, never, text_of};
use crate::support::{Bomb, Drops, Home, Log, WATCH, in_every_home, keep_bombs_quiet, within};

in_every_home!(
    a_panic_of_a_rule_ends_the_actor,
    a_panic_in_the_drop_of_a_rule_is_contained,
    panics_of_on_undelivered_are_contained,
    panics_in_the_drops_of_messages_are_contained,
    panics_in_the_drops_of_sources_are_contained,
    drops_may_use_the_actor,
    a_drop_may_kill_the_actor,
);

fn a_panic_of_a_rule_ends_the_actor(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for panics in [false, true] {
            let drops = Drops::default();
            let own = drops.clone();
            let ends = actor(move |cx: Context<u32>| async move {
                let _cx = cx;
                if panics {
                    resume_unwind(Box::new(Bomb::new(true, &own)));
                }
                Bomb::new(true, &own)
            });
            let undelivered = Log::default();
            let log = undelivered.clone();
            let ends = ends.on_undelivered(move |number| log.add(number));
            let rule = |_: &Result<Bomb, Fault>| panic!("bomb of a rule");
            let held = home.hold();
            let ends = home.spawn(ends.restart(Restarts::when(rule)));
            ends.tell(1).unwrap();
            drop(held);
            match ends.join().await {
                Err(fault) => assert_eq!(fault.to_string(), "panicked: bomb of a rule"),
                Ok(_) => panic!("the rule has panicked"),
            }
            assert_eq!((drops.count(), undelivered.take()), (1, vec![1]));
        }
    });
    still_serves(home);
}

fn a_panic_in_the_drop_of_a_rule_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for ending in ["return", "panic", "kill"] {
            let drops = Drops::default();
            let bomb = Bomb::new(true, &drops);
            let rule = move |_: &Result<(), Fault>| {
                bomb.look();
                ending == "kill"
            };
            let ends = actor(move |mut cx: Context<()>| async move {
                if ending == "panic" {
                    panic!("bomb");
                }
                cx.recv().await;
            });
            let ends = home.spawn(ends.restart(Restarts::when(rule).delays(never())));
            match ending {
                "kill" => ends.kill(),
                _ => drop(ends.tell(())),
            }
            let weak = ends.downgrade();
            ends.closed().await;
            drop(ends);
            weak.closed().await;
            assert_eq!(drops.count(), 1, "{ending}");
        }
    });
    still_serves(home);
}

fn panics_of_on_undelivered_are_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let seen = Log::default();
        let log = seen.clone();
        let panics = actor(|mut cx: Context<u32>| async move {
            cx.recv().await;
            panic!("bomb");
        });
        let panics = panics.on_undelivered(move |number| {
            log.add(number);
            panic!("bomb for {number}");
        });
        let held = home.hold();
        let rules = Restarts::<()>::on_fault().intensity(1, HOUR);
        let panics = home.spawn(panics.restart(rules));
        for number in 1..=5 {
            panics.tell(number).unwrap();
        }
        drop(held);
        assert_eq!(text_of(panics.join().await), "bomb");
        assert_eq!(seen.take(), [3, 4, 5]);
    });
    still_serves(home);
}

fn panics_in_the_drops_of_messages_are_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let panics = actor(|mut cx: Context<Bomb>| {
            let message = cx.try_recv();
            // The message in hand is dropped while the panic unwinds.
            Owns::<_, ()>::until((message, cx), Err("bomb"))
        });
        let held = home.hold();
        let rules = Restarts::on_fault().intensity(2, HOUR);
        let panics = home.spawn(panics.restart(rules));
        for _ in 0..6 {
            panics.tell(Bomb::new(true, &drops)).unwrap();
        }
        drop(held);
        let weak = panics.downgrade();
        weak.closed().await;
        assert_eq!(text_of(panics.join().await), "bomb");
        assert_eq!(drops.count(), 6);
    });
    still_serves(home);
}

fn panics_in_the_drops_of_sources_are_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let drops = Drops::default();
        let own = drops.clone();
        let attaches = actor(move |mut cx: Context<u32>| async move {
            let bomb = Bomb::new(true, &own);
            let stream = stream::pending().inspect(move |_: &u32| bomb.look());
            cx.attach(stream).detach();
            let bomb = Bomb::new(true, &own);
            let child = spawn!(|mut cx: Context<()>| async move { cx.recv().await });
            cx.adopt(child, move |_| {
                bomb.look();
                1
            });
            let bomb = Bomb::new(true, &own);
            cx.on_return(greenroom::spawn(std::future::pending::<()>()), move |_| {
                bomb.look();
                1
            });
            let number = cx.recv().await;
            assert!(number.is_some(), "it is open");
            match number {
                Some(3) => (),
                _ => resume_unwind(Box::new("bomb")),
            }
        });
        let attaches = home.spawn(attaches.restart(ever()));
        for number in 1..=3 {
            attaches.tell(number).unwrap();
        }
        attaches.join().await.unwrap();
        assert_eq!(drops.count(), 9);
    });
    still_serves(home);
}

/// Calls a function when it is dropped.
struct Calls<F: FnMut()>(F);

impl<F: FnMut()> Drop for Calls<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn drops_may_use_the_actor(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let own = log.clone();
        let uses = actor(move |mut cx: Context<u32>| async move {
            let weak = cx.downgrade();
            let calls = Calls(move || {
                let Some(address) = weak.upgrade() else {
                    return;
                };
                drop(address.tell(100));
                let child = spawn!(|mut cx: Context<()>| async move { cx.recv().await });
                drop(child);
            });
            let _calls = calls;
            while let Some(number) = cx.recv().await {
                own.add(number);
                if number < 3 {
                    panic!("bomb");
                }
                if number == 100 && own.len() >= 5 {
                    return;
                }
            }
        });
        let held = home.hold();
        let uses = home.spawn(uses.restart(ever()));
        for number in 1..=3 {
            uses.tell(number).unwrap();
        }
        drop(held);
        uses.closed().await;
        uses.join().await.unwrap();
        let mut log = log.take();
        log.sort_unstable();
        assert_eq!(log, [1, 2, 3, 100, 100]);
    });
    still_serves(home);
}

fn a_drop_may_kill_the_actor(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for stops in [false, true] {
            let begun = Log::default();
            let log = begun.clone();
            let ends = actor(move |cx: Context<u32>| async move {
                log.add(());
                let address = cx.address();
                let _calls = Calls(move || match stops {
                    true => address.stop(),
                    false => address.kill(),
                });
                panic!("bomb");
            });
            let ends = home.spawn(ends.restart(Restarts::<()>::always()));
            ends.closed().await;
            assert!(ends.join().await.is_err());
            assert_eq!(begun.len(), 1);
        }
    });
    still_serves(home);
}

#[test]
fn a_panic_of_an_observer_is_contained() {
    struct Panics;
    impl Observer for Panics {
        fn restarted(&self, _actor: &TaskInfo, incarnation: u64, _fault: Option<&Fault>) {
            panic!("bomb of an observer, {incarnation}");
        }
    }
    keep_bombs_quiet();
    within(WATCH, || {
        let home = Home::built(1, Runtime::builder().observer(Panics));
        home.block_on(async {
            let panics = actor(|cx: Context<()>| async move {
                if cx.incarnation_number() < 3 {
                    panic!("bomb");
                }
            });
            home.spawn(panics.restart(ever())).join().await.unwrap();
        });
        still_serves(&home);
    });
}
