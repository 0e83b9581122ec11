//! Models 66 to 71, of markets whose workers are threads of the model.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use ::loom::thread::{JoinHandle, spawn, yield_now};
use ::loom::{explore, model::Builder};

use super::board::BoardRules;
use super::cell::{AwaitedJob, JobCell, Labor, Work};
use super::core::MarketCore;
use super::error::{JobError, TryOfferError};
use super::handle::{EndOf, wait_for};
use super::job::{Job, JobHandle};
use super::offer::Offered;
use super::serving::serve;
use super::state::{MarketLimits, MarketPhase};
use crate::contain::KeptWaker;
use crate::park;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::tracer::SentSpan;

const ONE: MarketLimits = MarketLimits {
    workers: 1,
    jobs: 4,
    idle: Duration::ZERO,
    rules: BoardRules::plain(1),
};

/// Starts a thread for a worker.
fn hire(core: &Arc<MarketCore<u8>>) {
    let core = core.clone();
    spawn(move || serve(&core));
}

/// Starts no thread for a worker, which stays on its way.
fn promise(_core: &Arc<MarketCore<u8>>) {}

fn market(limits: MarketLimits, hire: fn(&Arc<MarketCore<u8>>)) -> Arc<MarketCore<u8>> {
    MarketCore::new(limits, None, hire)
}

fn offer<F, T>(core: &Arc<MarketCore<u8>>, job: Job<u8, F>) -> JobHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let Ok(handle) = Offered::new(core, job).now() else {
        panic!("a job was refused");
    };
    handle
}

/// Waits until a market that was stopped has ended.
fn wait_for_end(core: &Arc<MarketCore<u8>>) {
    core.close(MarketPhase::Stopped);
    wait_for(core, EndOf::new(core));
    assert!(core.is_still(), "a market has ended with a worker");
}

/// Checks that a job runs although the last worker leaves, which is the only one allowed.
#[test]
fn model_66_a_job_that_is_offered_to_a_leaving_worker_runs() {
    ::loom::model(|| {
        let core = market(ONE, hire);
        let first = offer(&core, Job::new(|| 1));
        let second = offer(&core, Job::new(|| 2));
        assert!(matches!(wait_for(&core, first), Ok(1)));
        assert!(matches!(wait_for(&core, second), Ok(2)));
        wait_for_end(&core);
    });
}

/// Checks that a job runs although the time of the idle worker ends that is woken for it.
#[test]
fn model_66_a_job_that_is_offered_to_an_idle_worker_runs() {
    let mut model = Builder::new();
    model.expect_explicit_explore = true;
    model.check(|| {
        let idle = Duration::from_secs(1);
        let core = market(MarketLimits { idle, ..ONE }, hire);
        let first = offer(&core, Job::new(|| 1));
        assert!(matches!(wait_for(&core, first), Ok(1)));
        while core.status().idle == 0 {
            yield_now();
        }
        let worker = core.change(|state, _| state.idle.values().next().cloned());
        let worker = worker.expect("a worker is idle");
        explore();
        let passes = spawn(move || worker.let_time_pass(idle));
        let second = offer(&core, Job::new(|| 2));
        assert!(matches!(wait_for(&core, second), Ok(2)));
        passes.join().unwrap();
        wait_for_end(&core);
    });
}

/// Waits for room, then for the job. Returns whether the job ran, or came back unchanged.
fn produce(core: &Arc<MarketCore<u8>>, key: u8) -> bool {
    let mut offered = Offered::new(core, Job::new(|| 2).key(key));
    let added = wait_for(core, poll_fn(|cx| offered.poll(cx)));
    match offered.finish(added) {
        Ok(job) => matches!(wait_for(core, job), Ok(2)),
        Err(TryOfferError::Stopping(job)) => (job.work)() == 2 && job.key == Some(key),
        Err(_) => panic!("the job waits for room and for nothing else"),
    }
}

fn producer(core: &Arc<MarketCore<u8>>, key: u8) -> JoinHandle<bool> {
    let core = core.clone();
    spawn(move || produce(&core, key))
}

/// Checks that a stop gives their jobs back to producers that begin to wait for room.
#[test]
fn model_67_producers_at_a_full_board_get_their_jobs_back_at_a_stop() {
    ::loom::model(|| {
        let core = market(MarketLimits { jobs: 1, ..ONE }, promise);
        let waiting = offer(&core, Job::new(|| 1));
        let producers = [1, 2].map(|key| producer(&core, key));
        core.close(MarketPhase::Stopped);
        for producer in producers {
            assert!(producer.join().unwrap(), "a job was not given back");
        }
        assert!(matches!(wait_for(&core, waiting), Err(JobError::Discarded)));
        wait_for_end(&core);
    });
}

/// Checks that all producers at a full board have their turn.
#[test]
fn model_67_producers_at_a_full_board_go_one_after_another() {
    ::loom::model(|| {
        let core = market(MarketLimits { jobs: 1, ..ONE }, hire);
        let first = offer(&core, Job::new(|| 1));
        let other = producer(&core, 1);
        assert!(produce(&core, 2), "a job was not run");
        assert!(other.join().unwrap(), "a job was not run");
        assert!(matches!(wait_for(&core, first), Ok(1)));
        wait_for_end(&core);
    });
}

/// Checks that two jobs of a key never run at the same time, and that both run.
#[test]
fn model_68_jobs_of_a_key_exclude_each_other() {
    ::loom::model(|| {
        let core = market(MarketLimits { workers: 2, ..ONE }, hire);
        let running = Arc::new(AtomicUsize::new(0));
        let jobs = [(); 2].map(|()| {
            let running = running.clone();
            let job = Job::new(move || {
                // Relaxed: the count says only what happens at the same time.
                let others = running.fetch_add(1, Ordering::Relaxed);
                assert_eq!(others, 0, "two jobs of a key run");
                running.fetch_sub(1, Ordering::Relaxed);
            });
            offer(&core, job.key(7))
        });
        for job in jobs {
            wait_for(&core, job).expect("two jobs of a key run");
        }
        wait_for_end(&core);
    });
}

/// Fails to start a thread once. The time until the next try passes at some moment.
fn hire_late(core: &Arc<MarketCore<u8>>) {
    if core.status().failed_starts > 0 {
        return hire(core);
    }
    if core.start_failed().is_some() {
        let core = core.clone();
        spawn(move || core.change(|state, _| state.retry.fire()));
    }
}

/// Checks that a job runs after no thread was started for it, while another one is offered.
#[test]
fn model_69_a_job_runs_after_a_failed_start() {
    ::loom::model(|| {
        let core = market(ONE, hire_late);
        let own = core.clone();
        let other = spawn(move || wait_for(&own, offer(&own, Job::new(|| 1))));
        let second = offer(&core, Job::new(|| 2));
        assert!(matches!(wait_for(&core, second), Ok(2)));
        assert!(matches!(other.join().unwrap(), Ok(1)));
        wait_for_end(&core);
    });
}

/// Checks that a stopped market ends after the job that runs, and creates no worker.
#[test]
fn model_70_a_market_ends_after_its_last_worker() {
    ::loom::model(|| {
        let core = market(ONE, hire);
        let (begun, ended) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let (begins, ends) = (begun.clone(), ended.clone());
        // Relaxed: the end of the market orders the counts.
        let job = offer(
            &core,
            Job::new(move || {
                begins.fetch_add(1, Ordering::Relaxed);
                ends.fetch_add(1, Ordering::Relaxed);
            }),
        );
        wait_for_end(&core);
        let counts = [begun, ended].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counts[0], counts[1], "a job runs after the end");
        assert_eq!(wait_for(&core, job).is_ok(), counts[0] == 1);
        assert_eq!(core.status().created, 1);
        assert_eq!(core.status().died, 1);
    });
}

/// Checks that a worker that is lost stops the market, while a job is offered.
#[test]
fn model_70_a_lost_worker_is_not_replaced() {
    fn lose(core: &Arc<MarketCore<u8>>) {
        let core = core.clone();
        spawn(move || core.close(MarketPhase::Stopped));
    }
    ::loom::model(|| {
        let core = market(ONE, lose);
        let first = offer(&core, Job::new(|| 1));
        let second = Offered::new(&core, Job::new(|| 2)).now();
        assert!(matches!(wait_for(&core, first), Err(JobError::Discarded)));
        match second {
            Ok(second) => assert!(matches!(wait_for(&core, second), Err(JobError::Discarded))),
            Err(refused) => assert!(matches!(refused, TryOfferError::Stopping(_))),
        }
        wait_for(&core, EndOf::new(&core));
        assert_eq!(core.status().created, 1, "a lost worker is replaced");
    });
}

/// Checks that a job that is cancelled as it begins has one end, and that its task sees it.
#[test]
fn model_71_a_job_that_is_cancelled_as_it_begins_has_one_end() {
    ::loom::model(|| {
        let core = market(ONE, hire);
        let job = offer(&core, Job::new(|| 1));
        let was_waiting = job.cancel();
        match wait_for(&core, job) {
            Ok(1) => assert!(!was_waiting, "a cancelled job runs"),
            Err(JobError::Cancelled) => assert!(was_waiting),
            _ => panic!("a job has another end"),
        }
        wait_for_end(&core);
    });
}

/// Checks that the outcome of a job reaches the task that begins to await it.
#[test]
fn model_71_an_outcome_reaches_its_task() {
    ::loom::model(|| {
        let cell = JobCell::new(Labor {
            work: || 1,
            retry: None,
            span: SentSpan::NONE,
        });
        let own = cell.clone();
        let worker = spawn(move || {
            own.run();
            own.show().waker.inspect(KeptWaker::wake_by_ref);
        });
        let parker = park::own();
        let waker = Waker::from(parker.clone());
        while cell.poll(&Context::from_waker(&waker)).is_pending() {
            parker.park(None);
        }
        worker.join().unwrap();
    });
}
