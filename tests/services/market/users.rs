//! Code of users: keys, jobs, results and wakers whose methods and drops panic, offer and stop.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::support::{Drops, keep_bombs_quiet};

/// A key whose `Eq` and `Hash` panic while their bombs are armed. All have the same hash.
#[derive(Clone, Debug)]
struct Key(u32, Arc<Bombs>);

#[derive(Debug, Default)]
struct Bombs {
    eq: AtomicBool,
    hash: AtomicBool,
}

/// Sets a bomb off in what runs.
fn with(bomb: &AtomicBool, run: impl FnOnce()) {
    bomb.store(true, Ordering::SeqCst);
    catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    bomb.store(false, Ordering::SeqCst);
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        assert!(!self.1.eq.load(Ordering::SeqCst), "bomb in Eq");
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert!(!self.1.hash.load(Ordering::SeqCst), "bomb in Hash");
        0.hash(state);
    }
}

#[test]
fn an_eq_or_a_hash_that_panics_leaves_the_board_as_it_was() {
    on_threads(async {
        keep_bombs_quiet();
        let bombs = Arc::<Bombs>::default();
        let key = |number| Key(number, bombs.clone());
        let builder = Market::<Key>::builder().max_workers(1).capacity(2);
        let market = builder.build().unwrap();
        let (begun, gate) = (Gate::default(), Gate::default());
        let (tells, waits) = (begun.clone(), gate.clone());
        let runs = market.try_offer(
            Job::new(move || {
                tells.open();
                waits.pass();
            })
            .key(key(1)),
        );
        begun.wait().await;
        let second = market.try_offer(Job::new(|| 2).key(key(2))).unwrap();
        for bomb in [&bombs.eq, &bombs.hash] {
            with(bomb, || drop(market.try_offer(Job::new(|| 3).key(key(3)))));
            assert_eq!(market.status().waiting, 1);
        }
        let third = market.try_offer(Job::new(|| 3).key(key(3))).unwrap();
        gate.open();
        runs.unwrap().await.unwrap();
        assert_eq!((second.await.unwrap(), third.await.unwrap()), (2, 3));
    });
}

#[test]
fn room_that_was_given_to_a_producer_whose_eq_panics_goes_to_the_next() {
    on_threads(async {
        keep_bombs_quiet();
        let bombs = Arc::<Bombs>::default();
        let key = |number| Key(number, bombs.clone());
        let builder = Market::<Key>::builder().max_workers(1).capacity(2);
        let market = builder.build().unwrap();
        let gates = [(); 2].map(|()| (Gate::default(), Gate::default()));
        let mut jobs = Vec::new();
        for (number, (begun, gate)) in (1..).zip(&gates) {
            let (tells, waits) = (begun.clone(), gate.clone());
            let job = Job::new(move || {
                tells.open();
                waits.pass();
                number
            });
            jobs.push(market.try_offer(job.key(key(number))).unwrap());
            gates[0].0.wait().await;
        }
        jobs.push(market.try_offer(Job::new(|| 3)).unwrap());
        let offer = |number| Box::pin(market.offer(Job::new(move || number).key(key(number))));
        let (mut panics, mut waits) = (offer(4), offer(5));
        assert!(poll_once(&mut panics).is_pending());
        assert!(poll_once(&mut waits).is_pending());
        gates[0].1.open();
        gates[1].0.wait().await;
        // The first one was given room, and its key is compared with that of the job that runs.
        with(&bombs.eq, || drop(poll_once(&mut panics)));
        drop(panics);
        jobs.push(waits.await.unwrap());
        gates[1].1.open();
        for (job, number) in jobs.into_iter().zip([1, 2, 3, 5]) {
            assert_eq!(job.await.unwrap(), number);
        }
    });
}

/// Offers to a market, stops it and panics when it is called or dropped.
struct Rude(Market<u32>, Drops);

impl std::task::Wake for Rude {
    fn wake(self: std::sync::Arc<Self>) {
        drop(self.1.one());
        drop(self.0.try_offer(Job::new(|| ())));
        self.0.stop();
        panic!("bomb in a waker");
    }
}

#[test]
fn wakers_may_offer_stop_and_panic() {
    on_threads(async {
        keep_bombs_quiet();
        // Those of a producer, of a task that awaits a job, and of one that awaits the end.
        for way in 0..3 {
            let builder = Market::builder().max_workers(1).capacity(1);
            let market: Market<u32> = builder.build().unwrap();
            let (gate, runs) = blocked(&market, None).await;
            let mut waiting = market.try_offer(Job::new(|| ())).unwrap();
            let called = Drops::default();
            let rude = Arc::new(Rude(market.clone(), called.clone()));
            let mut offer = Box::pin(market.offer(Job::new(|| ())));
            let mut end = Box::pin(market.stopped());
            let mut polls = move |cx: &mut std::task::Context<'_>| match way {
                0 => offer.as_mut().poll(cx).is_pending(),
                1 => std::pin::Pin::new(&mut waiting).poll(cx).is_pending(),
                _ => end.as_mut().poll(cx).is_pending(),
            };
            let waits = polls(&mut std::task::Context::from_waker(&rude.into()));
            assert!(waits);
            gate.open();
            runs.await.unwrap();
            if way == 2 {
                market.stop();
            }
            crate::support::until(|| called.count() == 1);
            market.stopped().await;
            assert_eq!(market.status().running, 0);
        }
    });
}

/// A key that meddles when it is dropped.
struct Meddling {
    number: u32,
    _meddles: Meddles,
}

impl Clone for Meddling {
    fn clone(&self) -> Self {
        panic!("bomb in Clone");
    }
}

impl PartialEq for Meddling {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Meddling {}

impl Hash for Meddling {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

#[test]
fn drops_of_keys_may_offer_stop_and_panic() {
    on_threads(async {
        keep_bombs_quiet();
        let drops = Drops::default();
        let other = market(1);
        let market = Market::<Meddling>::builder().max_workers(1);
        let market = market.build().unwrap();
        for number in 1..4 {
            let key = Meddling {
                number: 7,
                _meddles: Meddles(other.clone(), drops.clone()),
            };
            let job = market.offer(Job::new(move || number).key(key));
            assert_eq!(job.await.unwrap().await.unwrap(), number);
            crate::support::until(|| drops.count() == number);
        }
        market.drain().await;
        other.stopped().await;
    });
}

#[test]
fn a_key_that_is_known_is_dropped_without_harm_when_its_job_is_accepted() {
    on_threads(async {
        keep_bombs_quiet();
        let drops = Drops::default();
        let market = Market::<Meddling>::builder().max_workers(1);
        let market = market.capacity_per_key(2).build().unwrap();
        let key = || Meddling {
            number: 7,
            _meddles: Meddles(self::market(1), drops.clone()),
        };
        let gate = Gate::default();
        let waits = gate.clone();
        let first = market.try_offer(Job::new(move || waits.pass()).key(key()));
        let second = market.try_offer(Job::new(|| 2).key(key())).unwrap();
        let third = market.offer(Job::new(|| 3).key(key())).await.unwrap();
        assert_eq!(drops.count(), 2);
        gate.open();
        first.unwrap().await.unwrap();
        assert_eq!((second.await.unwrap(), third.await.unwrap()), (2, 3));
    });
}

/// Offers to a market and stops it when it is dropped, and then panics.
struct Meddles(Market<u32>, Drops);

impl Drop for Meddles {
    fn drop(&mut self) {
        drop(self.1.one());
        drop(self.0.try_offer(Job::new(|| ())));
        self.0.stop();
        panic!("bomb in a drop");
    }
}

#[test]
fn drops_of_jobs_and_results_may_offer_stop_and_panic() {
    on_threads(async {
        keep_bombs_quiet();
        let drops = Drops::default();
        // A job that is cancelled, one that is discarded, and a result that is not awaited.
        for way in 0..3 {
            let market = market(1);
            let (gate, runs) = blocked(&market, None).await;
            let meddles = Meddles(market.clone(), drops.clone());
            let result = way == 2;
            let job = market
                .try_offer(Job::new(move || result.then_some(meddles)))
                .unwrap();
            match way {
                0 => assert!(job.cancel()),
                1 => market.stop(),
                _ => drop(job),
            }
            gate.open();
            runs.await.unwrap();
            crate::support::until(|| drops.count() == way + 1);
            market.stopped().await;
        }
    });
}

#[test]
fn captures_are_dropped_before_the_result_is_seen() {
    everywhere(|| async {
        let market = market(1);
        let drops = Drops::default();
        let dropped = drops.one();
        let job = market.offer(Job::new(move || drop(dropped))).await.unwrap();
        job.await.unwrap();
        assert_eq!(drops.count(), 1);
        let (gate, runs) = blocked(&market, None).await;
        let dropped = drops.one();
        let job = market.try_offer(Job::new(move || drop(dropped))).unwrap();
        assert!(job.cancel());
        assert_eq!(drops.count(), 2);
        gate.open();
        runs.await.unwrap();
    });
}

/// Waits at a gate when it is dropped.
struct Waits(Gate);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.pass();
    }
}

#[test]
fn a_result_that_is_dropped_may_wait_for_the_next_job() {
    on_threads(async {
        let builder = Market::builder().capacity_per_key(1);
        let market: Market<u32> = builder.max_workers(2).build().unwrap();
        let (go, gate) = (Gate::default(), Gate::default());
        let (goes, waits) = (go.clone(), Waits(gate.clone()));
        let first = Job::new(move || {
            goes.pass();
            waits
        });
        drop(market.offer(first.key(1)).await.unwrap());
        let second = Job::new(move || gate.open());
        let second = market.offer(second.key(1)).await.unwrap();
        go.open();
        second.await.unwrap();
        market.drain().await;
    });
}
