//! Sets that several threads use at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::registry::Keyed;
use greenroom::{Context, Reply, actor};

use super::{Book, Order, hold, options, set};
use crate::support::{Draws, Home, WATCH, drive, tenth_in_debug, within};

#[test]
fn of_many_that_start_a_key_at_once_one_does() {
    within(WATCH, || {
        for _ in 0..tenth_in_debug(500) {
            let home = Home::workers(2);
            let (set, book) = set(&home);
            std::thread::scope(|scope| {
                for number in 0..4 {
                    let set = &set;
                    scope.spawn(move || {
                        set.tell(&7, Order::Add(number)).unwrap();
                        drive(set.get_or_spawn(&7)).unwrap();
                    });
                }
            });
            let (number, mut added) = drive(set.ask(&7, Order::Look)).unwrap();
            added.sort();
            assert_eq!((number, added), (1, vec![0, 1, 2, 3]));
            assert_eq!(book.begun(7), 1);
        }
    });
}

#[test]
fn of_many_that_start_one_key_at_the_limit_none_is_refused() {
    within(WATCH, || {
        let home = Home::workers(2);
        let book = Book::default();
        let set = options(&home, &book).limit(1).build().unwrap();
        for key in 0..tenth_in_debug(20_000) as u32 {
            // All threads find the limit at the actor of the key before.
            std::thread::scope(|scope| {
                for number in 0..3 {
                    let set = &set;
                    scope.spawn(move || set.tell(&key, Order::Add(number)).unwrap());
                }
            });
        }
    });
}

#[test]
fn of_many_messages_for_one_next_actor_at_the_limit_none_is_refused() {
    within(WATCH, || {
        for _ in 0..tenth_in_debug(5_000) {
            let home = Home::workers(1);
            let set = options(&home, &Book::default()).limit(1).build().unwrap();
            let end = drive(hold(&set, 7));
            set.remove(&7);
            std::thread::scope(|scope| {
                for number in 0..3 {
                    let set = &set;
                    scope.spawn(move || set.tell(&7, Order::Add(number)).unwrap());
                }
            });
            end.open();
            let (number, mut added) = drive(set.ask(&7, Order::Look)).unwrap();
            added.sort();
            assert_eq!((number, added), (2, vec![0, 1, 2]));
        }
    });
}

#[test]
fn each_accepted_message_is_handled_once_while_actors_end() {
    const THREADS: u64 = 3;
    within(WATCH, || {
        let home = Home::workers(2);
        let sum = Arc::new(AtomicU64::new(0));
        let of_actors = sum.clone();
        let make = move |_key: u32| {
            let sum = of_actors.clone();
            actor(async move |mut cx: Context<u64>| {
                while let Some(number) = cx.recv().await {
                    sum.fetch_add(number, Ordering::SeqCst);
                    if number % 17 == 0 {
                        cx.stop();
                    }
                }
            })
        };
        let set = Keyed::builder(make).on(&home.runtime).limit(5);
        let set = set.idle(Duration::from_millis(1)).build().unwrap();
        let each = tenth_in_debug(100_000) as u64;
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let set = &set;
                scope.spawn(move || {
                    let mut draws = Draws::of(thread, 0);
                    for number in 0..each {
                        let key = draws.below(8) as u32;
                        match number % 13 {
                            0 => drop(drive(set.get_or_spawn(&key))),
                            1 => drop(set.remove(&key)),
                            _ => {}
                        }
                        let mut next = set.tell(&key, number);
                        // The other threads may have an address of all.
                        while let Err(refused) = next {
                            std::thread::yield_now();
                            next = set.tell(&key, refused.into_inner());
                        }
                    }
                });
            }
        });
        set.stop();
        drive(set.ended());
        assert_eq!(sum.load(Ordering::SeqCst), THREADS * each * (each - 1) / 2);
        assert!(set.is_empty());
    });
}

#[test]
fn asks_of_many_threads_are_answered_while_actors_end() {
    within(WATCH, || {
        let home = Home::workers(2);
        let make = |key: u32| {
            actor(async move |mut cx: Context<Reply<u32>>| {
                for _ in 0..5 {
                    let Some(reply) = cx.recv().await else { return };
                    reply.send(key);
                }
                cx.stop();
                while let Some(reply) = cx.recv().await {
                    reply.send(key);
                }
            })
        };
        let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let set = &set;
                scope.spawn(move || {
                    for number in 0..tenth_in_debug(20_000) as u32 {
                        let key = number % 3;
                        match drive(set.ask(&key, |reply| reply)) {
                            Ok(answer) => assert_eq!(answer, key),
                            // It closed just before the question came.
                            Err(error) => {
                                assert!(error.to_string().starts_with("the mailbox is closed"))
                            }
                        }
                    }
                });
            }
        });
    });
}
