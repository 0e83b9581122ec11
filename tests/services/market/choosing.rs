//! Choosing: priorities, age and keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[test]
fn the_highest_priority_goes_first_and_then_the_oldest() {
    everywhere(|| async {
        let market = market(1);
        let (gate, runs) = blocked(&market, None).await;
        let ran = Log::default();
        let mut jobs = Vec::new();
        for (number, priority) in [(0, 1), (1, 0), (2, u32::MAX), (3, 1), (4, 0), (5, u32::MAX)] {
            let ran = ran.clone();
            let job = Job::new(move || ran.add(number)).priority(priority);
            jobs.push(market.offer(job).await.unwrap());
        }
        gate.open();
        runs.await.unwrap();
        for job in jobs {
            job.await.unwrap();
        }
        assert_eq!(ran.take(), [2, 5, 0, 3, 1, 4]);
    });
}

#[test]
fn a_job_whose_key_is_served_lets_others_go_first() {
    everywhere(|| async {
        let builder = Market::<u32>::builder().max_workers(2);
        let market = builder.capacity_per_key(9).build().unwrap();
        let (gate, runs) = blocked(&market, Some(1)).await;
        let ran = Log::default();
        let job = |number: u32| {
            let ran = ran.clone();
            Job::new(move || ran.add(number))
        };
        // Within the key, too, the higher priority goes first.
        let same = market.offer(job(1).key(1).priority(8)).await.unwrap();
        let higher = market.offer(job(2).key(1).priority(9)).await.unwrap();
        let other = market.offer(job(3)).await.unwrap();
        other.await.unwrap();
        assert_eq!(ran.take(), [3]);
        assert_eq!((market.status().waiting, market.status().running), (2, 1));
        gate.open();
        runs.await.unwrap();
        same.await.unwrap();
        higher.await.unwrap();
        assert_eq!(ran.take(), [2, 1]);
    });
}

#[test]
fn two_jobs_of_a_key_never_run_at_the_same_time() {
    on_threads(async {
        let builder = Market::<u32>::builder().max_workers(8);
        let market = builder.capacity_per_key(1000).build().unwrap();
        let inside: Arc<Vec<AtomicUsize>> = Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
        let mut jobs = Vec::new();
        for number in 0..3000_u32 {
            let (inside, key) = (inside.clone(), number % 3);
            let job = Job::new(move || {
                let own = &inside[key as usize];
                assert_eq!(
                    own.fetch_add(1, Ordering::SeqCst),
                    0,
                    "the key is served twice"
                );
                std::thread::yield_now();
                own.fetch_sub(1, Ordering::SeqCst);
            });
            jobs.push(
                market
                    .offer(job.key(key).priority(number % 7))
                    .await
                    .unwrap(),
            );
        }
        for job in jobs {
            job.await.unwrap();
        }
    });
}

#[test]
fn a_cancelled_job_leaves_the_board_and_never_runs() {
    everywhere(|| async {
        let market = market(1);
        let (gate, runs) = blocked(&market, Some(1)).await;
        let never = market
            .try_offer(Job::new(|| panic!("it was cancelled")).key(2))
            .unwrap();
        let after = market.try_offer(Job::new(|| 4)).unwrap();
        assert!(never.cancel());
        assert!(!never.cancel(), "only once");
        assert_eq!(market.status().waiting, 1);
        assert!(matches!(never.await, Err::<(), _>(JobError::Cancelled)));
        // Its key is free.
        let same = market.try_offer(Job::new(|| 5).key(2)).unwrap();
        assert!(!runs.cancel(), "it has begun");
        gate.open();
        runs.await.unwrap();
        assert_eq!((after.await.unwrap(), same.await.unwrap()), (4, 5));
    });
}

#[test]
fn a_job_that_runs_sees_that_it_was_cancelled() {
    on_threads(async {
        let market = market(2);
        let (begun, gate) = (Gate::default(), Gate::default());
        let (tells, waits) = (begun.clone(), gate.clone());
        let job = Job::new(move || {
            assert!(!market::is_cancelled());
            tells.open();
            waits.pass();
            market::is_cancelled()
        });
        let job = market.offer(job).await.unwrap();
        begun.wait().await;
        assert!(!job.cancel());
        // The next job of the worker was not cancelled.
        let next = market.offer(Job::new(market::is_cancelled)).await.unwrap();
        gate.open();
        assert!(job.await.unwrap());
        assert!(!next.await.unwrap());
        assert!(!market::is_cancelled(), "outside any job");
    });
}
