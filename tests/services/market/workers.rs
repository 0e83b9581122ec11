//! Workers: when one more comes, how long it stays, and what happens if there is no thread.

use std::pin::Pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::*;
use crate::child::{ThreadLimit, alone, threads_named};
use crate::support::{OpenOnDrop, drive, until};

#[test]
fn a_second_worker_comes_for_a_job_that_waits_beside_one_that_runs() {
    everywhere(|| async {
        let market = market(2);
        let (gate, runs) = blocked(&market, None).await;
        // In the document it would wait.
        assert_eq!(
            market.offer(Job::new(|| 1)).await.unwrap().await.unwrap(),
            1
        );
        assert_eq!(market.status().created, 2);
        gate.open();
        runs.await.unwrap();
    });
}

#[test]
fn workers_are_never_more_than_the_limit_and_jobs_that_wait_for_each_other_all_get_one() {
    on_threads(async {
        let market = market(5);
        for _ in 0..20 {
            let meeting = Arc::new(Barrier::new(5));
            let meet = |_| {
                let meeting = meeting.clone();
                market
                    .try_offer(Job::new(move || meeting.wait().is_leader()))
                    .unwrap()
            };
            for job in (0..5).map(meet).collect::<Vec<_>>() {
                job.await.unwrap();
            }
        }
        let (gates, blocked): (Vec<_>, Vec<_>) = {
            let mut all = Vec::new();
            for _ in 0..5 {
                all.push(blocked(&market, None).await);
            }
            all.into_iter().unzip()
        };
        let sixth = market.try_offer(Job::new(|| ())).unwrap();
        let status = market.status();
        assert_eq!((status.running, status.waiting), (5, 1));
        gates.iter().for_each(Gate::open);
        for job in blocked {
            job.await.unwrap();
        }
        sixth.await.unwrap();
    });
}

#[test]
fn no_worker_comes_for_jobs_whose_key_is_served() {
    on_threads(async {
        let builder = Market::<u32>::builder().max_workers(9);
        let market = builder.capacity_per_key(100).build().unwrap();
        let (gate, runs) = blocked(&market, Some(1)).await;
        let jobs: Vec<_> = (0..50)
            .map(|n| market.try_offer(Job::new(move || n).key(1)).unwrap())
            .collect();
        let status = market.status();
        assert_eq!((status.created, status.waiting), (1, 50));
        gate.open();
        runs.await.unwrap();
        for job in jobs {
            job.await.unwrap();
        }
        assert_eq!(market.status().created, 1, "the worker was used again");
    });
}

#[test]
fn a_worker_without_a_job_dies_at_once_or_lingers() {
    on_threads(async {
        let dies = market(3);
        dies.offer(Job::new(|| ())).await.unwrap().await.unwrap();
        until(|| dies.status().died == 1);
        assert_eq!(dies.status().idle, 0);
        let lingers = Market::<u32>::builder()
            .max_workers(3)
            .idle(WATCH)
            .build()
            .unwrap();
        for _ in 0..100 {
            lingers.offer(Job::new(|| ())).await.unwrap().await.unwrap();
            until(|| lingers.status().idle == 1);
        }
        let status = lingers.status();
        assert_eq!((status.created, status.died), (1, 0));
        // A stop ends it.
        lingers.stop();
        lingers.stopped().await;
        assert_eq!((lingers.status().died, lingers.status().idle), (1, 0));
        let brief = Market::<u32>::builder()
            .idle(Duration::from_millis(1))
            .build()
            .unwrap();
        brief.offer(Job::new(|| ())).await.unwrap().await.unwrap();
        until(|| brief.status().died == 1);
    });
}

#[test]
fn a_worker_that_finds_no_job_is_gone_before_the_last_result_is_seen() {
    /// Looks at the market when it is woken, on the thread of the worker.
    struct Looks(Market<u32>, Log<market::MarketStatus>);
    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            self.1.add(self.0.status());
        }
    }
    on_threads(async {
        let (market, seen) = (market(1), Log::default());
        let looks = Waker::from(Arc::new(Looks(market.clone(), seen.clone())));
        let ends = |mut job: JobHandle<()>, gate: Gate| {
            let mut cx = Context::from_waker(&looks);
            assert!(Pin::new(&mut job).poll(&mut cx).is_pending());
            gate.open();
            until(|| seen.len() == 1);
            let status = seen.take().remove(0);
            (status.created, status.died, status.idle)
        };
        for number in 1..=3 {
            // A worker that has ended does not count as idle, so another one comes at once.
            let (gate, job) = blocked(&market, None).await;
            assert_eq!(ends(job, gate), (number, number, 0));
        }
        // It serves what waits first.
        let (gate, first) = blocked(&market, None).await;
        let (begun, last_gate) = (Gate::default(), Gate::default());
        let (begins, waits) = (begun.clone(), last_gate.clone());
        let _guard = OpenOnDrop(last_gate.clone());
        let last = market.try_offer(Job::new(move || {
            begins.open();
            waits.pass();
        }));
        assert_eq!(ends(first, gate), (4, 3, 0));
        begun.wait().await;
        assert_eq!(ends(last.unwrap(), last_gate), (4, 4, 0));
        // After a stop it gets no other.
        let (gate, job) = blocked(&market, None).await;
        let discarded = market.try_offer(Job::new(|| ())).unwrap();
        market.stop();
        assert_eq!(ends(job, gate), (5, 5, 0));
        assert!(matches!(discarded.await, Err(JobError::Discarded)));
    });
}

#[test]
fn a_market_starts_no_thread_of_its_own() {
    const NAME: &str = "market::workers::a_market_starts_no_thread_of_its_own";
    alone(NAME, || {
        let runtime = Runtime::builder().workers(1).max_blocking_workers(2);
        // The clock of long turns is a thread of the process.
        let runtime = runtime.long_turns(None).build().unwrap();
        let threads = || threads_named("");
        let before = threads();
        let build = |_| Market::<u32>::builder().on(&runtime).build().unwrap();
        let markets: Vec<_> = (0..100).map(build).collect();
        assert!(threads() <= before);
        for market in &markets {
            drive(market.offer_blocking(Job::new(|| ())).unwrap()).unwrap();
        }
        markets.iter().for_each(Market::stop);
        assert!(threads() <= before + 2, "those of the pool");
        // Without a runtime, all markets of the process have the same timer thread and pool.
        let build = |_| Market::<u32>::builder().build().unwrap();
        let first = build(0);
        let before = threads();
        let markets: Vec<_> = (0..100).map(build).collect();
        assert!(threads() <= before);
        drop((first, markets));
    });
}

#[test]
fn a_job_waits_on_the_board_while_the_system_starts_no_thread() {
    const NAME: &str =
        "market::workers::a_job_waits_on_the_board_while_the_system_starts_no_thread";
    alone(NAME, || {
        let Some(limit) = ThreadLimit::new(NAME) else {
            return;
        };
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let market = Market::<u32>::builder().on(&runtime).build().unwrap();
        limit.forbid();
        let here = std::thread::current().id();
        let job = Job::new(move || assert_ne!(std::thread::current().id(), here));
        let job = market.try_offer(job).unwrap();
        until(|| market.status().failed_starts >= 3);
        let status = market.status();
        assert_eq!((status.waiting, status.running, status.created), (1, 0, 0));
        assert!(!job.is_finished());
        // The runtime is not quiescent meanwhile.
        let mut quiescent = Box::pin(runtime.quiescent());
        assert!(poll_once(&mut quiescent).is_pending());
        until(|| market.status().failed_starts >= 5);
        assert!(poll_once(&mut quiescent).is_pending());
        limit.allow();
        // The market tries again by itself.
        runtime.block_on(job).unwrap();
        assert_eq!(market.status().created, 1);
        crate::support::drive(quiescent);
    });
}

#[test]
fn a_thread_that_does_not_start_beside_a_busy_one_is_tried_again() {
    const NAME: &str =
        "market::workers::a_thread_that_does_not_start_beside_a_busy_one_is_tried_again";
    alone(NAME, || {
        let Some(limit) = ThreadLimit::new(NAME) else {
            return;
        };
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let market = Market::<u32>::builder().on(&runtime).build().unwrap();
        let (begun, gate) = (Gate::default(), Gate::default());
        let (tells, waits) = (begun.clone(), gate.clone());
        let first = market.try_offer(Job::new(move || {
            tells.open();
            waits.pass();
        }));
        crate::support::drive(begun.wait());
        limit.forbid();
        // The first job ends after the second one.
        let second = market.try_offer(Job::new(move || gate.open())).unwrap();
        until(|| market.status().failed_starts >= 3);
        assert_eq!((market.status().waiting, market.status().running), (1, 1));
        let third = market.try_offer(Job::new(|| ())).unwrap();
        until(|| market.status().failed_starts >= 5);
        limit.allow();
        runtime.block_on(async {
            second.await.unwrap();
            first.unwrap().await.unwrap();
            third.await.unwrap();
        });
    });
}

#[test]
fn a_thread_that_another_call_of_the_pool_could_not_start_is_tried_again() {
    const NAME: &str =
        "market::workers::a_thread_that_another_call_of_the_pool_could_not_start_is_tried_again";
    alone(NAME, || {
        let Some(limit) = ThreadLimit::new(NAME) else {
            return;
        };
        // Mostly the worker is queued before the first thread has come, which then starts none.
        for _ in 0..5 {
            let runtime = Runtime::builder().workers(1).build().unwrap();
            let market = Market::<u32>::builder().on(&runtime).build().unwrap();
            let gate = Gate::default();
            let (waits, opens) = (gate.clone(), gate);
            let [call] = runtime.block_on(async { [greenroom::unblock(move || waits.pass())] });
            limit.forbid();
            let job = market.try_offer(Job::new(move || opens.open())).unwrap();
            until(|| market.status().failed_starts > 0);
            limit.allow();
            runtime.block_on(job).unwrap();
            runtime.block_on(call);
        }
    });
}

#[test]
fn an_idle_worker_takes_a_job_while_another_one_waits_for_a_thread() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).max_blocking_workers(2);
        runtime.build().unwrap().block_on(async {
            let builder = Market::<u32>::builder().max_workers(2);
            let market = builder.idle(Duration::MAX).build().unwrap();
            let (gate, first) = blocked(&market, None).await;
            // The other thread ends its call after the third job.
            let (begun, end) = (Gate::default(), Gate::default());
            let (tells, waits) = (begun.clone(), end.clone());
            let call = greenroom::unblock(move || {
                tells.open();
                waits.pass();
            });
            begun.wait().await;
            let second = market.try_offer(Job::new(|| ())).unwrap();
            gate.open();
            first.await.unwrap();
            second.await.unwrap();
            until(|| market.status().idle == 1);
            let third = market.try_offer(Job::new(move || end.open())).unwrap();
            third.await.unwrap();
            call.await;
        });
    });
}

#[test]
fn a_market_outside_any_runtime_has_threads_of_the_process() {
    within(WATCH, || {
        let market = Market::<u32>::builder().build().unwrap();
        let job = market.offer_blocking(Job::new(|| 42)).unwrap();
        assert_eq!(crate::support::drive(job).unwrap(), 42);
        crate::support::drive(market.drain());
    });
}

#[test]
fn a_market_outside_any_runtime_tries_again_too() {
    const NAME: &str = "market::workers::a_market_outside_any_runtime_tries_again_too";
    alone(NAME, || {
        let Some(limit) = ThreadLimit::new(NAME) else {
            return;
        };
        limit.forbid();
        let error = Market::<u32>::builder().build().unwrap_err().to_string();
        assert!(error.starts_with("runtime is missing"), "{error}");
        limit.allow();
        let market = Market::<u32>::builder().build().unwrap();
        limit.forbid();
        let job = market.try_offer(Job::new(|| ())).unwrap();
        until(|| market.status().failed_starts >= 3);
        limit.allow();
        crate::support::drive(job).unwrap();
    });
}
