//! Ends: a stop, a drain, the last handle, a shutdown, and a panic.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::support::{drive, keep_bombs_quiet, until};

#[test]
fn a_stop_discards_what_waits_and_lets_run_what_runs() {
    everywhere(|| async {
        let builder = Market::<u32>::builder().max_workers(1).capacity(2);
        let market = builder.build().unwrap();
        let (gate, runs) = blocked(&market, Some(1)).await;
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                market
                    .try_offer(Job::new(|| panic!("it was discarded")))
                    .unwrap()
            })
            .collect();
        let mut producer = Box::pin(market.offer(Job::new(|| 7).key(7).priority(3)));
        assert!(poll_once(&mut producer).is_pending());
        let mut second = Box::pin(market.offer(Job::new(|| ())));
        assert!(poll_once(&mut second).is_pending());
        market.stop();
        market.stop();
        let status = market.status();
        assert!(!status.is_operating && !status.is_full);
        assert_eq!(
            (status.waiting, status.discarded, status.running),
            (0, 2, 1)
        );
        for job in waiting {
            assert!(matches!(job.await, Err::<(), _>(JobError::Discarded)));
        }
        // Producers get their jobs back, those that wait and later ones.
        let Err(OfferError::Stopping(job)) = producer.await else {
            panic!("the market was stopped")
        };
        let Err(TryOfferError::Stopping(job)) = market.try_offer(job) else {
            panic!("the market was stopped")
        };
        let other = self::market(1);
        assert_eq!(other.try_offer(job).unwrap().await.unwrap(), 7);
        gate.open();
        runs.await.unwrap();
        market.stopped().await;
        let status = market.status();
        assert_eq!((status.running, status.created), (0, status.died));
    });
}

#[test]
fn a_drained_market_runs_what_it_accepted_and_accepts_no_more() {
    everywhere(|| async {
        let market = market(2);
        let (gate, runs) = blocked(&market, None).await;
        let jobs: Vec<_> = (0..9)
            .map(|n| market.try_offer(Job::new(move || n)).unwrap())
            .collect();
        let mut drain = Box::pin(market.drain());
        assert!(poll_once(&mut drain).is_pending());
        assert!(market.status().is_operating, "until its last job has ended");
        let refused = market.try_offer(Job::new(|| ()));
        assert!(matches!(refused, Err(TryOfferError::Stopping(_))));
        gate.open();
        drain.await;
        assert!(!market.status().is_operating);
        assert!(runs.is_finished());
        for (n, job) in jobs.into_iter().enumerate() {
            assert_eq!(job.await.unwrap(), n);
        }
        // One that has no job ends at once.
        self::market(1).drain().await;
    });
}

#[test]
fn a_job_may_stop_its_market() {
    everywhere(|| async {
        let market = market(1);
        let (gate, runs) = blocked(&market, None).await;
        let own = market.clone();
        let stops = market.try_offer(Job::new(move || own.stop())).unwrap();
        let after = market.try_offer(Job::new(|| ())).unwrap();
        gate.open();
        runs.await.unwrap();
        stops.await.unwrap();
        assert!(matches!(after.await, Err(JobError::Discarded)));
        market.stopped().await;
    });
}

/// Builds a market of a runtime with one job that waits at a gate, and one behind it.
fn busy(runtime: &Runtime) -> (Market<u32>, Gate, JobHandle<()>, JobHandle<()>) {
    let market = Market::builder()
        .on(runtime)
        .max_workers(1)
        .build()
        .unwrap();
    let (gate, runs) = drive(blocked(&market, None));
    let behind = market.try_offer(Job::new(|| ())).unwrap();
    (market, gate, runs, behind)
}

#[test]
fn the_last_handle_waits_for_the_jobs_that_run() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (market, gate, runs, behind) = busy(&runtime);
        let clone = market.clone();
        drop(market);
        assert!(clone.status().is_operating);
        let drops = std::thread::spawn(move || drop(clone));
        assert!(matches!(drive(behind), Err(JobError::Discarded)));
        assert!(!drops.is_finished() && !runs.is_finished());
        gate.open();
        drops.join().unwrap();
        assert!(runs.is_finished());
    });
}

#[test]
fn the_last_handle_gives_the_place_of_a_worker_away_while_it_waits() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (market, gate, runs, behind) = busy(&runtime);
        let drops = runtime.spawn(async move { drop(market) });
        assert!(matches!(drive(behind), Err(JobError::Discarded)));
        // The only worker runs other tasks meanwhile.
        drive(runtime.spawn(async {}));
        assert!(!drops.is_finished());
        gate.open();
        drive(drops);
        assert!(runs.is_finished());
    });
}

#[test]
fn the_last_handle_does_not_wait_on_a_pinned_thread_or_in_a_job() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (market, gate, runs, behind) = busy(&runtime);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        drive(pinned.spawn(move || async move { drop(market) }));
        assert!(matches!(drive(behind), Err(JobError::Discarded)));
        assert!(!runs.is_finished());
        gate.open();
        drive(runs).unwrap();
        // In a job of its own.
        let market = Market::<u32>::builder().on(&runtime).build().unwrap();
        let last = Arc::new(Mutex::new(Some(market.clone())));
        let (own, gate) = (last.clone(), Gate::default());
        let waits = gate.clone();
        let drops = market.try_offer(Job::new(move || {
            waits.pass();
            drop(own.lock().unwrap().take());
        }));
        drop(market);
        gate.open();
        drive(drops.unwrap()).unwrap();
    });
}

#[test]
fn a_worker_that_drops_the_last_handle_does_not_wait_for_itself() {
    within(WATCH, || {
        keep_bombs_quiet();
        let last = Arc::new(Mutex::new(None::<Market<u32>>));
        let drops = last.clone();
        let builder = Runtime::builder().workers(1);
        let builder = builder.on_fault(move |_| drop(drops.lock().unwrap().take()));
        let runtime = builder.build().unwrap();
        // As a result that is not awaited while the worker lingers, the same with another job
        // behind, and in `on_fault`.
        for way in 0..3 {
            let idle = Duration::from_secs(if way == 1 { 0 } else { 1000 });
            let builder = Market::<u32>::builder().on(&runtime).max_workers(1);
            let market = builder.idle(idle).build().unwrap();
            let stopped = market.stopped();
            let (gate, own) = (Gate::default(), market.clone());
            let waits = gate.clone();
            drop(market.try_offer(Job::new(move || {
                waits.pass();
                assert!(way < 2, "bomb");
                own
            })));
            if way == 1 {
                drop(market.try_offer(Job::new(|| ())));
            }
            *last.lock().unwrap() = (way == 2).then_some(market);
            gate.open();
            drive(stopped);
        }
    });
}

/// A value whose drop waits at a gate.
struct Slow(Gate, Gate);

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.open();
        self.1.pass();
    }
}

#[test]
fn a_market_ends_after_a_result_that_is_not_awaited_was_dropped() {
    within(WATCH, || {
        let market = Market::<u32>::builder().build().unwrap();
        let (begun, gate, is_alone) = (Gate::default(), Gate::default(), Gate::default());
        let result = Slow(begun.clone(), gate.clone());
        let passes = is_alone.clone();
        drop(market.try_offer(Job::new(move || {
            passes.pass();
            result
        })));
        is_alone.open();
        drive(begun.wait());
        market.stop();
        let mut stopped = Box::pin(market.stopped());
        assert!(poll_once(&mut stopped).is_pending());
        gate.open();
        drive(stopped);
    });
}

#[test]
fn the_end_of_a_market_does_not_wait_for_a_worker_without_a_thread() {
    within(WATCH, || {
        let builder = Runtime::builder().workers(1).max_blocking_workers(1);
        let runtime = builder.build().unwrap();
        let own = runtime.clone();
        // The only thread of the pool drops a market, and then awaits the end of another.
        let busy = runtime.spawn(async {
            greenroom::unblock(move || {
                let build = || Market::<u32>::builder().build().unwrap();
                let offer = |to: &Market<u32>| to.try_offer(Job::new(|| ())).unwrap();
                let dropped = build();
                let job = offer(&dropped);
                drop(dropped);
                assert!(matches!(drive(job), Err(JobError::Discarded)));
                let stopped = build();
                let job = offer(&stopped);
                stopped.stop();
                own.block_on(stopped.stopped());
                assert!(matches!(drive(job), Err(JobError::Discarded)));
                let status = stopped.status();
                assert_eq!((status.created, status.died), (1, 1));
            })
            .await;
        });
        drive(busy);
        // The workers that were late have found nothing to do.
        drive(runtime.quiescent());
    });
}

#[test]
fn a_drained_market_has_shown_all_results() {
    on_threads(async {
        for _ in 0..3_000 {
            let market = market(2);
            let jobs = [(); 2].map(|()| market.try_offer(Job::new(|| ())).unwrap());
            market.drain().await;
            assert!(jobs.iter().all(JobHandle::is_finished));
        }
    });
}

#[test]
fn the_last_handle_of_a_market_without_a_runtime_gives_the_place_of_a_worker_away() {
    within(WATCH, || {
        let market = market(1);
        let (gate, runs) = drive(blocked_outside(&market));
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let begun = Gate::default();
        let begins = begun.clone();
        let drops = runtime.spawn(async move {
            begins.open();
            drop(market);
        });
        drive(begun.wait());
        drive(runtime.spawn(async {}));
        assert!(!drops.is_finished());
        gate.open();
        drive(drops);
        drive(runs).unwrap();
    });
}

/// As [`blocked`], on the threads of the process.
async fn blocked_outside(market: &Market<u32>) -> (Gate, JobHandle<()>) {
    let (begun, gate) = (Gate::default(), Gate::default());
    let (tells, waits) = (begun.clone(), gate.clone());
    let job = market.try_offer(Job::new(move || {
        tells.open();
        waits.pass();
    }));
    begun.wait().await;
    (gate, job.unwrap())
}

#[test]
fn a_shutdown_that_drops_the_last_handle_does_not_wait_for_the_job() {
    within(WATCH, || {
        let builder = Runtime::builder().workers(1).grace(Duration::ZERO);
        let runtime = builder.build().unwrap();
        let market = Market::<u32>::builder().on(&runtime).build().unwrap();
        let (gate, runs) = drive(blocked_outside(&market));
        runtime
            .spawn(async move {
                let _market = market;
                std::future::pending::<()>().await
            })
            .detach();
        drive(runtime.shutdown());
        assert!(!runs.is_finished());
        gate.open();
        drive(runs).unwrap();
    });
}

#[test]
fn a_wait_for_the_end_that_is_dropped_leaves_nothing() {
    struct Unwoken;
    impl std::task::Wake for Unwoken {
        fn wake(self: Arc<Self>) {}
    }
    within(WATCH, || {
        let market = market(1);
        let unwoken = Arc::new(Unwoken);
        let waker = unwoken.clone().into();
        for _ in 0..3 {
            let mut stopped = Box::pin(market.stopped());
            let mut cx = std::task::Context::from_waker(&waker);
            for _ in 0..2 {
                assert!(stopped.as_mut().poll(&mut cx).is_pending());
                assert_eq!(Arc::strong_count(&unwoken), 3);
            }
            drop(stopped);
            assert_eq!(Arc::strong_count(&unwoken), 2);
        }
    });
}

#[test]
fn a_shutdown_stops_the_markets_and_gives_running_jobs_the_grace() {
    within(WATCH, || {
        let builder = Runtime::builder().workers(1).grace(Duration::from_secs(30));
        let runtime = builder.build().unwrap();
        let (market, gate, runs, behind) = busy(&runtime);
        let own = runtime.clone();
        let shutdown = std::thread::spawn(move || drive(own.shutdown()));
        assert!(matches!(drive(behind), Err(JobError::Discarded)));
        assert!(!market.status().is_operating);
        gate.open();
        shutdown.join().unwrap();
        drive(runs).unwrap();
        let refused = market.try_offer(Job::new(|| ()));
        assert!(matches!(refused, Err(TryOfferError::Stopping(_))));
        drive(market.stopped());
    });
}

#[test]
fn a_panic_belongs_to_its_job_and_frees_worker_and_key() {
    everywhere(|| async {
        keep_bombs_quiet();
        let market = market(1);
        let bomb = market
            .try_offer(Job::new(|| panic!("bomb in a job")).key(1))
            .unwrap();
        match bomb.await {
            Err::<(), _>(JobError::Panicked(panic)) => {
                assert_eq!(panic.text(), Some("bomb in a job"));
            }
            other => panic!("{other:?}"),
        }
        let next = market.try_offer(Job::new(|| 5).key(1)).unwrap();
        assert_eq!(next.await.unwrap(), 5);
    });
}

#[test]
fn a_panic_that_is_not_awaited_reaches_on_fault() {
    within(WATCH, || {
        keep_bombs_quiet();
        let heard = Log::default();
        let hears = heard.clone();
        let builder = Runtime::builder().workers(1);
        let builder = builder.on_fault(move |fault| {
            hears.add(fault.to_string());
            panic!("bomb in on_fault");
        });
        let runtime = builder.build().unwrap();
        let market = Market::<u32>::builder().on(&runtime).build().unwrap();
        drop(market.try_offer(Job::new(|| panic!("bomb 1"))).unwrap());
        until(|| heard.len() == 1);
        // Or when the handle is dropped later.
        let kept = market.try_offer(Job::new(|| panic!("bomb 2"))).unwrap();
        until(|| kept.is_finished());
        drop::<JobHandle<()>>(kept);
        let heard = heard.take();
        assert!(
            heard[0].contains("a task of a market") && heard[0].contains("bomb 1"),
            "{heard:?}"
        );
        assert!(heard[1].contains("bomb 2"), "{heard:?}");
        // The panics of `on_fault` have taken no worker away.
        drive(market.drain());
    });
}

#[test]
fn the_status_changes_nothing_and_tells_of_waits() {
    simulated(|| async {
        let market = market(1);
        let (gate, runs) = blocked(&market, None).await;
        let waits = market.try_offer(Job::new(|| ())).unwrap();
        greenroom::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(market.status(), market.status());
        gate.open();
        runs.await.unwrap();
        waits.await.unwrap();
        assert_eq!(market.status().longest_wait.as_secs(), 5);
    });
}

#[test]
fn each_job_has_one_end_while_markets_are_stopped_under_load() {
    on_threads(async {
        for round in 0..50_u64 {
            let builder = Market::<u32>::builder().max_workers(3).capacity(20);
            let market = builder.capacity_per_key(5).build().unwrap();
            let ran = Arc::new(std::sync::atomic::AtomicU64::new(0));
            let producer = |number: u32| {
                let (market, ran) = (market.clone(), ran.clone());
                greenroom::spawn(async move {
                    let (mut done, mut discarded, mut refused) = (0, 0, 0);
                    for n in 0..200_u32 {
                        let ran = ran.clone();
                        let job = Job::new(move || {
                            ran.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        });
                        match market.offer(job.key(n % 5).priority(number)).await {
                            Ok(job) => match job.await {
                                Ok(()) => done += 1,
                                Err(_) => discarded += 1,
                            },
                            Err(_) => refused += 1,
                        }
                    }
                    (done, discarded, refused)
                })
            };
            let producers: Vec<_> = (0..4).map(producer).collect();
            until(|| ran.load(std::sync::atomic::Ordering::SeqCst) > round);
            market.stop();
            let (mut done, mut discarded) = (0, 0);
            for producer in producers {
                let (own, lost, refused) = producer.await;
                assert_eq!(own + lost + refused, 200);
                done += own;
                discarded += lost;
            }
            market.stopped().await;
            assert_eq!(done, ran.load(std::sync::atomic::Ordering::SeqCst));
            assert_eq!(discarded, market.status().discarded);
        }
    });
}

#[test]
fn a_stop_at_once_cancels_what_runs_and_discards_what_waits() {
    on_threads(async {
        let market = market(1);
        let begun = Gate::default();
        let tells = begun.clone();
        let job = Job::new(move || {
            tells.open();
            while !market::is_cancelled() {
                std::thread::yield_now();
            }
        });
        let runs = market.try_offer(job).unwrap();
        begun.wait().await;
        let waits = market.try_offer(Job::new(|| ())).unwrap();
        market.stop_now();
        assert!(matches!(waits.await, Err(JobError::Discarded)));
        market.stopped().await;
        assert!(runs.is_finished());
    });
}

#[test]
fn the_status_counts_the_jobs_that_have_run_and_those_that_have_panicked() {
    everywhere(|| async {
        keep_bombs_quiet();
        let market = market(2);
        let jobs: Vec<_> = (0..10)
            .map(|n| {
                let work = move || assert!(n % 5 != 0, "bomb in a job");
                market.try_offer(Job::new(work)).unwrap()
            })
            .collect();
        for job in jobs {
            drop(job.await);
        }
        market.drain().await;
        let status = market.status();
        assert_eq!(
            (status.finished, status.failed, status.discarded),
            (10, 2, 0)
        );
    });
}
