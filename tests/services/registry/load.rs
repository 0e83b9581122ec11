//! Names and groups under load from several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::registry::{Group, LookupError, Name, RegisterError};
use greenroom::{Runtime, actor, spawn, yield_now};

use super::idle;
use crate::support::{WATCH, on_workers, within};

#[test]
fn of_many_that_register_a_name_at_once_one_has_it() {
    const LEADER: Name<()> = Name::new("leader");
    on_workers(2, async {
        for _ in 0..200 {
            let candidates: Vec<_> = (0..8).map(|_| spawn!(idle::<()>(_))).collect();
            let tries = candidates.iter().map(|candidate| {
                let address = candidate.address();
                greenroom::spawn(async move { LEADER.register(&address).is_ok() })
            });
            let tries: Vec<_> = tries.collect();
            let mut leads = Vec::new();
            for (candidate, registered) in candidates.iter().zip(tries) {
                if registered.await {
                    leads.push(candidate.address());
                }
            }
            assert_eq!(leads, [LEADER.get().unwrap()]);
            drop(leads);
            for candidate in candidates {
                candidate.join().await.unwrap();
            }
        }
    });
}

#[test]
fn a_registration_that_races_with_the_end_leaves_a_free_name() {
    const SHORT: Name<()> = Name::new("short");
    const SHORTS: Group<()> = Group::new("shorts");
    on_workers(2, async {
        for _ in 0..2_000 {
            let short = spawn!(idle::<()>(_));
            let address = short.address();
            let registers = greenroom::spawn(async move {
                let registered = SHORT.register(&address);
                let joined = SHORTS.join(&address);
                assert!(matches!(registered, Ok(()) | Err(RegisterError::Closed)));
                drop(joined);
            });
            short.kill();
            short.closed().await;
            registers.await;
            assert!(SHORT.get().is_err());
            assert_eq!(SHORTS.members(), []);
        }
    });
}

#[test]
fn a_wait_that_races_with_the_registration_ends() {
    const RACED: Name<()> = Name::new("raced");
    on_workers(2, async {
        for _ in 0..2_000 {
            let raced = spawn!(idle::<()>(_));
            let waits = greenroom::spawn(RACED.wait());
            RACED.register(&raced).unwrap();
            assert_eq!(waits.await.unwrap(), *raced);
            assert!(RACED.unregister());
        }
    });
}

#[test]
fn a_group_under_load_counts_each_message() {
    const LOADED: Group<u32> = Group::new("loaded");
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let received = Arc::new(AtomicUsize::new(0));
        let members: Vec<_> = (0..50)
            .map(|_| {
                let received = received.clone();
                let member = actor(|mut cx: greenroom::Context<u32>| async move {
                    while cx.recv().await.is_some() {
                        // Relaxed: read after the actors were joined.
                        received.fetch_add(1, Ordering::Relaxed);
                    }
                });
                member.on(&runtime).spawn()
            })
            .collect();
        runtime.block_on(async {
            let others: Vec<_> = members.iter().map(|member| member.address()).collect();
            let changes = greenroom::spawn(async move {
                for _ in 0..20 {
                    for member in &others {
                        LOADED.join(member).unwrap();
                    }
                    for member in &others {
                        assert!(LOADED.leave(member));
                        yield_now().await;
                    }
                }
            });
            let mut sent = 0;
            while !changes.is_finished() {
                sent += LOADED.broadcast(1).sent;
                if let Some(next) = LOADED.next() {
                    next.tell(2).unwrap();
                    sent += 1;
                }
                yield_now().await;
            }
            changes.await;
            for member in members {
                member.join().await.unwrap();
            }
            assert_eq!(sent, received.load(Ordering::Relaxed));
        });
    });
}

#[test]
fn ten_thousand_names_are_found_while_their_actors_are_replaced() {
    const NAMES: usize = 10_000;
    let name = |number: usize| Name::<()>::owned(format!("name {number}"));
    on_workers(2, async move {
        let mut actors: Vec<_> = (0..NAMES).map(|_| spawn!(idle::<()>(_))).collect();
        for (number, actor) in actors.iter().enumerate() {
            name(number).register(actor).unwrap();
        }
        let firsts: Arc<Vec<u64>> = Arc::new(actors.iter().map(|actor| actor.id()).collect());
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let firsts = firsts.clone();
                greenroom::spawn(async move {
                    for number in 0..NAMES {
                        match name(number).get() {
                            // Those with odd numbers are never replaced.
                            Ok(found) if number % 2 == 1 => assert_eq!(found.id(), firsts[number]),
                            Ok(_) => {}
                            Err(error) => {
                                assert!(matches!(error, LookupError::Unknown { .. }), "{error}");
                                assert_eq!(number % 2, 0);
                            }
                        }
                    }
                })
            })
            .collect();
        for number in (0..NAMES).step_by(2) {
            let successor = spawn!(idle::<()>(_));
            std::mem::replace(&mut actors[number], successor)
                .join()
                .await
                .unwrap();
            name(number).register(&actors[number]).unwrap();
        }
        for reader in readers {
            reader.await;
        }
        for (number, actor) in actors.iter().enumerate() {
            assert_eq!(name(number).get().unwrap(), **actor);
        }
    });
}
