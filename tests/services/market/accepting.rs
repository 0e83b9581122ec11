//! Accepting: a full board, the line of producers, and keys.

use super::*;
use crate::support::naps::asleep;
use crate::support::{drive, until};

/// Builds a market with one worker and room for so many jobs.
fn narrow(jobs: usize, capacity_per_key: usize) -> Market<u32> {
    let builder = Market::builder().max_workers(1).capacity(jobs);
    builder.capacity_per_key(capacity_per_key).build().unwrap()
}

#[test]
fn a_full_board_makes_producers_wait_in_the_order_of_their_arrival() {
    on_threads(async {
        let market = narrow(1, 0);
        let (gate, first) = blocked(&market, None).await;
        let ran = Log::default();
        let job = |number: u32| {
            let ran = ran.clone();
            Job::new(move || ran.add(number))
        };
        let second = market.offer(job(0)).await.unwrap();
        assert!(market.status().is_full);
        let mut offers: Vec<_> = (1..4).map(|n| Box::pin(market.offer(job(n)))).collect();
        for offer in &mut offers {
            assert!(poll_once(offer).is_pending());
        }
        assert!(market.try_offer(job(9)).unwrap_err().is_full());
        gate.open();
        first.await.unwrap();
        // Awaited the other way round, they are accepted in the order of their arrival.
        let offers = offers.into_iter().rev();
        let tasks: Vec<_> = offers.map(|offer| greenroom::spawn(offer)).collect();
        for task in tasks {
            task.await.unwrap().await.unwrap();
        }
        second.await.unwrap();
        assert_eq!(ran.take(), [0, 1, 2, 3]);
        assert!(!market.status().is_full);
    });
}

#[test]
fn try_offer_does_not_overtake_producers_that_wait() {
    on_threads(async {
        let market = narrow(1, 0);
        let (gate, first) = blocked(&market, None).await;
        let second = market.try_offer(Job::new(|| ())).unwrap();
        let mut waits = Box::pin(market.offer(Job::new(|| ())));
        assert!(poll_once(&mut waits).is_pending());
        gate.open();
        first.await.unwrap();
        second.await.unwrap();
        // There is room, which is for the producer that waits.
        let refused = market.try_offer(Job::new(|| ()));
        assert!(matches!(refused, Err(TryOfferError::Full(_))));
        waits.await.unwrap().await.unwrap();
        market.try_offer(Job::new(|| ())).unwrap().await.unwrap();
    });
}

#[test]
fn a_pending_offer_that_is_dropped_gives_up_its_place() {
    on_threads(async {
        let market = narrow(1, 0);
        let (gate, first) = blocked(&market, None).await;
        let second = market.try_offer(Job::new(|| ())).unwrap();
        let mut dropped = Box::pin(market.offer(Job::new(|| panic!("it was not accepted"))));
        let mut waits = Box::pin(market.offer(Job::new(|| 3)));
        assert!(poll_once(&mut dropped).is_pending());
        assert!(poll_once(&mut waits).is_pending());
        gate.open();
        first.await.unwrap();
        second.await.unwrap();
        drop(dropped);
        assert_eq!(waits.await.unwrap().await.unwrap(), 3);
    });
}

#[test]
fn a_thread_may_wait_for_room() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let market = Market::<u32>::builder()
            .on(&runtime)
            .max_workers(1)
            .capacity(1);
        let market = market.build().unwrap();
        let sums = std::thread::scope(|scope| {
            let thread = |_| {
                scope.spawn(|| {
                    let jobs = (0..50).map(|n| market.offer_blocking(Job::new(move || n)).unwrap());
                    let jobs: Vec<_> = jobs.collect();
                    let sum = async { jobs_sum(jobs).await };
                    runtime.block_on(sum)
                })
            };
            let threads: Vec<_> = (0..4).map(thread).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum::<u32>()
        });
        assert_eq!(sums, 4 * 49 * 50 / 2);
    });
}

async fn jobs_sum(jobs: Vec<JobHandle<u32>>) -> u32 {
    let mut sum = 0;
    for job in jobs {
        sum += job.await.unwrap();
    }
    sum
}

#[test]
fn a_key_has_one_job_in_the_market_by_default() {
    everywhere(|| async {
        let market = market(2);
        let (gate, runs) = blocked(&market, Some(1)).await;
        let refused = market.try_offer(Job::new(|| 7).key(1).priority(5));
        let Err(TryOfferError::KeyBusy(job)) = refused else {
            panic!("the key is served")
        };
        assert!(matches!(
            market.offer(Job::new(|| ()).key(1)).await,
            Err(OfferError::KeyBusy(_))
        ));
        // Another key, and no key, are free.
        market
            .offer(Job::new(|| ()).key(2))
            .await
            .unwrap()
            .await
            .unwrap();
        let none = [(); 2].map(|()| market.try_offer(Job::new(|| ())).unwrap());
        for job in none {
            job.await.unwrap();
        }
        gate.open();
        runs.await.unwrap();
        // The key is free when the result is seen.
        assert_eq!(market.try_offer(job).unwrap().await.unwrap(), 7);
    });
}

#[test]
fn as_many_jobs_of_a_key_wait_as_its_policy_says() {
    on_threads(async {
        let market = narrow(100, 2);
        let (gate, runs) = blocked(&market, Some(1)).await;
        let waiting = [1, 2].map(|n| market.try_offer(Job::new(move || n).key(1)).unwrap());
        let refused = market.try_offer(Job::new(|| 3).key(1));
        assert!(matches!(refused, Err(TryOfferError::KeyBusy(_))));
        assert!(waiting[0].cancel());
        let third = market.try_offer(Job::new(|| 3).key(1)).unwrap();
        gate.open();
        runs.await.unwrap();
        assert_eq!(third.await.unwrap(), 3);
    });
}

#[test]
fn the_limits_are_judged_when_the_market_is_built() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(1)
            .max_blocking_workers(4)
            .build()
            .unwrap();
        let on = || Market::<u32>::builder().on(&runtime);
        let text = |builder: market::MarketBuilder<u32>| builder.build().unwrap_err().to_string();
        assert_eq!(
            text(on().max_workers(0)),
            "max_workers is 0, but must be from 1 to 4"
        );
        assert_eq!(
            text(on().max_workers(5)),
            "max_workers is 5, but must be from 1 to 4"
        );
        assert_eq!(
            text(on().capacity(0)),
            "capacity is 0, but must be at least 1"
        );
        // The default is what the pool has.
        let market = on().build().unwrap();
        let meeting = std::sync::Arc::new(std::sync::Barrier::new(4));
        let meet = |_| {
            let meeting = meeting.clone();
            market
                .try_offer(Job::new(move || meeting.wait().is_leader()))
                .unwrap()
        };
        let leaders = (0..4).map(meet).collect::<Vec<_>>();
        runtime.block_on(async {
            for leader in leaders {
                leader.await.unwrap();
            }
        });
        assert_eq!(market.status().created, 4);
    });
}

#[test]
fn by_default_at_most_64_jobs_run_however_many_threads_the_pool_has() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).max_blocking_workers(200);
        let runtime = runtime.build().unwrap();
        let market = Market::<u32>::builder().on(&runtime).build().unwrap();
        let gate = Gate::default();
        let job = |_| {
            let gate = gate.clone();
            market.try_offer(Job::new(move || gate.pass())).unwrap()
        };
        let jobs: Vec<_> = (0..70).map(job).collect();
        until(|| market.status().running >= 64);
        // The arrival of a worker is one change with the decision whether another one comes.
        let status = market.status();
        gate.open();
        jobs.into_iter().for_each(|job| drive(job).unwrap());
        assert_eq!((status.running, status.waiting), (64, 6));
        assert_eq!(status.created, 64);
    });
}

#[test]
fn a_stop_lets_all_producers_go_tasks_and_threads() {
    const THREADS: u32 = 5;
    on_threads(async {
        let market = narrow(1, 0);
        let (gate, runs) = blocked(&market, None).await;
        let waits = market.try_offer(Job::new(|| ())).unwrap();
        let job = |number: u32| Job::new(move || number);
        let offer = |number| Box::pin(market.offer(job(number)));
        let mut tasks: Vec<_> = (0..5).map(offer).collect();
        for task in &mut tasks {
            assert!(poll_once(task).is_pending());
        }
        let thread = |number: u32| {
            let market = market.clone();
            let thread = std::thread::Builder::new().name(format!("sj2-{number}"));
            let offers = move || market.offer_blocking(job(number)).map(drop);
            thread.spawn(offers).unwrap()
        };
        let threads: Vec<_> = (0..THREADS).map(thread).collect();
        // They sleep as soon as they are in the line.
        until(|| asleep("sj2-").len() == THREADS as usize);
        market.stop();
        let other = self::market(1);
        let mut numbers = Vec::new();
        let mut returned = Vec::new();
        for thread in threads {
            returned.push(thread.join().unwrap().unwrap_err());
        }
        for task in tasks {
            returned.push(task.await.map(drop).unwrap_err());
        }
        for error in returned {
            // Each has its job back.
            let OfferError::Stopping(job) = error else {
                panic!("{error:?}")
            };
            numbers.push(other.offer(job).await.unwrap().await.unwrap());
        }
        assert_eq!(numbers, [0, 1, 2, 3, 4].repeat(2));
        assert!(matches!(waits.await, Err(JobError::Discarded)));
        gate.open();
        runs.await.unwrap();
    });
}

#[test]
fn a_key_whose_job_waits_accepts_no_other_by_default() {
    everywhere(|| async {
        let market = market(1);
        let (gate, runs) = blocked(&market, None).await;
        let waits = market.try_offer(Job::new(|| 1).key(1)).unwrap();
        let higher = market.try_offer(Job::new(|| 2).key(1).priority(9));
        let Err(TryOfferError::KeyBusy(higher)) = higher else {
            panic!("a job of the key waits")
        };
        let refused = market.offer(Job::new(|| 3).key(1)).await;
        assert!(matches!(refused, Err(OfferError::KeyBusy(_))));
        assert_eq!(market.status().waiting, 1);
        // A job that is cancelled is not in the market any more.
        assert!(waits.cancel());
        let higher = market.try_offer(higher).unwrap();
        gate.open();
        runs.await.unwrap();
        assert_eq!(higher.await.unwrap(), 2);
    });
}

#[test]
fn a_job_has_no_key_and_the_lowest_priority_unless_it_is_told() {
    everywhere(|| async {
        let plain = Job::<u32, _>::new(|| ());
        let options = "key: None, priority: 0, delay: 0ns, retries: None";
        assert_eq!(format!("{plain:?}"), format!("Job {{ {options}, .. }}"));
        let market = market(2);
        let (gate, runs) = blocked(&market, None).await;
        // One without a key runs beside another one.
        market.try_offer(plain).unwrap().await.unwrap();
        gate.open();
        runs.await.unwrap();
    });
}

#[test]
fn the_board_has_room_for_4096_jobs_by_default() {
    on_threads(async {
        let market = market(1);
        let (gate, runs) = blocked(&market, None).await;
        let jobs: Vec<_> = (0..4096)
            .map(|n| market.try_offer(Job::new(move || n)).unwrap())
            .collect();
        assert!(market.try_offer(Job::new(|| 0)).unwrap_err().is_full());
        assert_eq!(
            (market.status().waiting, market.status().is_full),
            (4096, true)
        );
        gate.open();
        runs.await.unwrap();
        for (n, job) in jobs.into_iter().enumerate() {
            assert_eq!(job.await.unwrap(), n);
        }
    });
}
