//! Code of users: keys, jobs, results and wakers whose methods and drops panic, offer and stop.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::support::{Drops, keep_bombs_quiet};

/// A key whose `Eq` panics while its bomb is armed. All have the same hash.
#[derive(Clone, Debug)]
struct Key(u32, Arc<AtomicBool>);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        assert!(!self.1.load(Ordering::SeqCst), "bomb in Eq");
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        0.hash(state);
    }
}

#[test]
fn an_eq_that_panics_leaves_the_board_as_it_was() {
    on_threads(async {
        keep_bombs_quiet();
        let bomb = Arc::new(AtomicBool::new(false));
        let key = |number| Key(number, bomb.clone());
        let builder = Market::<Key>::builder().max_workers(1).max_jobs(2);
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
        bomb.store(true, Ordering::SeqCst);
        let offers = || drop(market.try_offer(Job::new(|| 3).key(key(3))));
        catch_unwind(AssertUnwindSafe(offers)).unwrap_err();
        bomb.store(false, Ordering::SeqCst);
        assert_eq!(market.status().waiting, 1);
        let third = market.try_offer(Job::new(|| 3).key(key(3))).unwrap();
        gate.open();
        runs.unwrap().await.unwrap();
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
