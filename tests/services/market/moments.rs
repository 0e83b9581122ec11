//! Moments: jobs that are delayed, limited by a rate, aged or tried again, and reserved workers.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use greenroom::time::{Instant, RetryIntervals, sleep};

use super::*;
use crate::support::drive;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns work whose first attempts fail: by an error if their number is even, otherwise by a
/// panic. Each begin is logged.
fn fails(
    times: usize,
    begins: &Log<Instant>,
) -> impl FnMut() -> Result<usize, usize> + Send + 'static {
    let (begins, mut attempts) = (begins.clone(), 0);
    move || {
        begins.add(Instant::now());
        attempts += 1;
        match attempts {
            failed if failed > times => Ok(failed),
            failed if failed % 2 == 0 => Err(failed),
            _ => panic!("bomb"),
        }
    }
}

/// Returns the virtual times in milliseconds since a moment.
fn since(start: Instant, moments: &Log<Instant>) -> Vec<u128> {
    let moments = moments.take().into_iter();
    moments
        .map(|it| it.duration_since(start).as_millis())
        .collect()
}

fn every(millis: u64, attempts: u64) -> RetryIntervals {
    let intervals = RetryIntervals::every(ms(millis));
    intervals.with_step_limit(attempts).unwrap()
}

#[test]
fn a_delayed_job_begins_when_it_is_due_and_holds_up_no_other() {
    simulated(|| async {
        let market = market(1);
        let start = Instant::now();
        let begins = Log::default();
        let job = |delay| {
            let begins = begins.clone();
            Job::new(move || begins.add(Instant::now()))
                .after(ms(delay))
                .key(delay as u32)
        };
        let mut jobs = Vec::new();
        for delay in [30, 0, 10, 20] {
            jobs.push(market.offer(job(delay)).await.unwrap());
        }
        assert_eq!((market.status().waiting, market.status().delayed), (4, 3));
        for job in jobs {
            job.await.unwrap();
        }
        assert_eq!(since(start, &begins), [0, 10, 20, 30]);
        assert!(
            market.status().longest_wait < ms(1),
            "it waits from when it is due"
        );
    });
}

#[test]
fn a_delayed_job_does_not_begin_early_on_threads_or_outside_a_runtime() {
    let begins_late = |market: &Market<u32>| {
        let offered = std::time::Instant::now();
        let job = Job::new(move || offered.elapsed()).after(ms(20));
        market.try_offer(job).unwrap()
    };
    let outside = Market::<u32>::builder().build().unwrap();
    let job = begins_late(&outside);
    // Nothing but the timer's thread lets the job begin.
    assert!(drive(job).unwrap() >= ms(20));
    on_threads(async move {
        let market = market(1);
        assert!(begins_late(&market).await.unwrap() >= ms(20));
    });
}

#[test]
fn a_delayed_job_takes_room_and_counts_for_its_key_which_others_may_use() {
    simulated(|| async {
        let builder = Market::<u32>::builder().max_workers(1).capacity(3);
        let market = builder.capacity_per_key(1).build().unwrap();
        let late = market
            .offer(Job::new(|| 1).key(7).after(ms(9)))
            .await
            .unwrap();
        let other = market.offer(Job::new(|| 2).key(7)).await.unwrap();
        let third = market.try_offer(Job::new(|| 3).key(7)).map(drop);
        assert!(matches!(third, Err(TryOfferError::KeyBusy(_))));
        assert_eq!(other.await.unwrap(), 2);
        assert!(!late.is_finished());
        let rest = [(); 2].map(|()| market.try_offer(Job::new(|| 4).after(ms(8))).unwrap());
        assert!(market.status().is_full);
        assert!(market.try_offer(Job::new(|| 5)).unwrap_err().is_full());
        assert_eq!(late.await.unwrap(), 1);
        for job in rest {
            assert_eq!(job.await.unwrap(), 4);
        }
    });
}

#[test]
fn a_job_that_is_not_due_is_cancelled_or_discarded_and_a_drain_waits_for_it() {
    simulated(|| async {
        let start = Instant::now();
        let late = |market: &Market<u32>| {
            let job = Job::new(Instant::now).after(ms(10));
            market.try_offer(job).unwrap()
        };
        let drained = market(1);
        let (job, cancelled) = (late(&drained), late(&drained));
        assert!(cancelled.cancel());
        assert!(matches!(cancelled.await, Err(JobError::Cancelled)));
        drained.drain().await;
        assert!(job.is_finished());
        assert_eq!(job.await.unwrap().duration_since(start).as_millis(), 10);
        let stopped = market(1);
        let job = late(&stopped);
        stopped.stop();
        assert!(matches!(job.await, Err(JobError::Discarded)));
        stopped.stopped().await;
        assert_eq!(start.elapsed().as_millis(), 10, "a stop waits for nothing");
        assert_eq!(
            (stopped.status().discarded, stopped.status().delayed),
            (1, 0)
        );
    });
}

#[test]
fn a_job_that_fails_is_tried_again_after_each_interval() {
    simulated(|| async {
        let (market, begins) = (market(1), Log::default());
        let start = Instant::now();
        let intervals = RetryIntervals::steps([ms(10), ms(20), ms(40)]).unwrap();
        let job = Job::new(fails(3, &begins)).retries(intervals);
        let job = market.offer(job).await.unwrap();
        assert_eq!(job.await.unwrap(), Ok(4));
        assert_eq!(since(start, &begins), [0, 10, 30, 70]);
        let status = market.status();
        assert_eq!((status.retried, status.finished, status.failed), (3, 1, 0));
    });
}

#[test]
fn the_last_failure_is_the_outcome_of_a_job() {
    simulated(|| async {
        let (market, begins) = (market(1), Log::default());
        let error = Job::new(fails(9, &begins)).retries(every(1, 1));
        assert_eq!(market.offer(error).await.unwrap().await.unwrap(), Err(2));
        let panic = Job::new(fails(9, &begins)).retries(every(1, 2));
        let panic = market.offer(panic).await.unwrap().await;
        assert!(matches!(panic, Err(JobError::Panicked(_))));
        let status = market.status();
        assert_eq!((status.retried, status.finished, status.failed), (3, 2, 2));
        // Without retries an error is a result as any other.
        let once = market.offer(Job::new(|| Err::<(), _>(7))).await.unwrap();
        assert_eq!(once.await.unwrap(), Err(7));
        assert_eq!((market.status().finished, market.status().failed), (3, 2));
    });
}

#[test]
fn others_of_its_key_run_while_a_job_waits_for_its_next_attempt() {
    simulated(|| async {
        let builder = Market::<u32>::builder().max_workers(1);
        let market = builder.capacity_per_key(1).build().unwrap();
        let begins = Log::default();
        let start = Instant::now();
        let job = Job::new(fails(1, &begins)).key(1).retries(every(10, 5));
        let failing = market.offer(job).await.unwrap();
        let other = market.offer(Job::new(Instant::now).key(1)).await.unwrap();
        assert!(other.await.unwrap().duration_since(start) < ms(1));
        assert_eq!((market.status().waiting, market.status().delayed), (1, 1));
        assert_eq!(failing.await.unwrap(), Ok(2));
        // All is free afterwards.
        let next = [(); 2].map(|()| market.try_offer(Job::new(|| 3).key(1)).unwrap());
        for job in next {
            assert_eq!(job.await.unwrap(), 3);
        }
    });
}

#[test]
fn a_job_that_was_cancelled_or_whose_market_was_stopped_is_not_tried_again() {
    simulated(|| async {
        let begins = Log::default();
        let paused = market(1);
        let job = Job::new(fails(9, &begins)).key(1).retries(every(1000, 9));
        let job = paused.offer(job).await.unwrap();
        sleep(ms(1)).await;
        assert!(job.cancel(), "it waits for its next attempt");
        assert!(matches!(job.await, Err(JobError::Cancelled)));
        let job = Job::new(fails(9, &begins)).key(1).retries(every(1000, 9));
        let job = paused.offer(job).await.unwrap();
        sleep(ms(1)).await;
        paused.stop();
        assert!(matches!(job.await, Err(JobError::Discarded)));
        assert_eq!(begins.take().len(), 2);
    });
    simulated(|| async {
        for is_stopped in [false, true] {
            let market = market(1);
            let (begun, gate) = (Gate::default(), Gate::default());
            let (tells, waits) = (begun.clone(), gate.clone());
            let work = move || {
                tells.open();
                Runtime::current().block_on(waits.wait());
                Err::<(), ()>(())
            };
            let job = market
                .try_offer(Job::new(work).retries(every(1, 9)))
                .unwrap();
            begun.wait().await;
            match is_stopped {
                true => market.stop(),
                false => assert!(!job.cancel(), "it runs"),
            }
            gate.open();
            let outcome = job.await;
            match is_stopped {
                true => assert!(matches!(outcome, Err(JobError::Discarded))),
                false => assert!(matches!(outcome, Err(JobError::Cancelled))),
            }
            let status = market.status();
            let counts = (status.retried, status.discarded, status.finished);
            assert_eq!(counts, (0, u64::from(is_stopped), 0));
        }
    });
}

#[test]
fn a_panic_that_is_not_the_last_one_reaches_on_fault() {
    within(WATCH, || {
        crate::support::keep_bombs_quiet();
        let faults = Log::default();
        let own = faults.clone();
        let builder = Runtime::builder().workers(1);
        let builder = builder.on_fault(move |fault| own.add(fault.to_string()));
        builder.build().unwrap().block_on(async {
            let (market, begins) = (market(1), Log::default());
            let job = Job::new(fails(1, &begins)).retries(every(0, 1));
            assert_eq!(market.offer(job).await.unwrap().await.unwrap(), Ok(2));
        });
        let faults = faults.take();
        assert!(
            faults.len() == 1 && faults[0].contains("bomb"),
            "{faults:?}"
        );
    });
}

#[test]
fn a_job_that_is_refused_keeps_its_options_also_if_it_is_large() {
    simulated(|| async {
        let market = Market::<u32>::builder().max_workers(1).capacity(1);
        let market = market.build().unwrap();
        let start = Instant::now();
        let begins = Log::default();
        let (bytes, mut fails) = ([1_u8; 10_000], fails(1, &begins));
        let large = move || fails().map(|attempts| attempts + usize::from(bytes[9_999]));
        let large = Job::new(large).after(ms(5)).retries(every(10, 1));
        let first = market.try_offer(Job::new(|| ()).after(ms(1))).unwrap();
        let large = market.try_offer(large).unwrap_err();
        assert!(large.is_full());
        first.await.unwrap();
        let large = market.offer(large.into_inner()).await.unwrap();
        assert_eq!(large.await.unwrap(), Ok(3));
        assert_eq!(since(start, &begins), [6, 16]);
    });
}

#[test]
fn in_no_period_do_more_jobs_of_a_key_begin_than_its_rate_says() {
    simulated(|| async {
        let builder = Market::<u32>::builder().max_workers(4).rate(2, ms(10));
        let market = builder.capacity_per_key(9).build().unwrap();
        let start = Instant::now();
        let [limited, free] = [(); 2].map(|()| Log::default());
        let job = |begins: &Log<Instant>| {
            let begins = begins.clone();
            Job::new(move || begins.add(Instant::now()))
        };
        let mut jobs = vec![market.offer(job(&limited).key(1)).await.unwrap()];
        sleep(ms(4)).await;
        for _ in 0..5 {
            jobs.push(
                market
                    .offer(job(&limited).key(1).priority(9))
                    .await
                    .unwrap(),
            );
            jobs.push(market.offer(job(&free)).await.unwrap());
        }
        for job in jobs {
            job.await.unwrap();
        }
        assert_eq!(since(start, &limited), [0, 4, 10, 14, 20, 24]);
        assert_eq!(since(start, &free), [4; 5]);
        // Starts count also while no job of the key is in the market.
        market
            .offer(job(&limited).key(1))
            .await
            .unwrap()
            .await
            .unwrap();
        market
            .offer(job(&limited).key(2))
            .await
            .unwrap()
            .await
            .unwrap();
        assert_eq!(since(start, &limited), [30, 30]);
    });
}

#[test]
fn an_attempt_is_a_start_for_the_rate() {
    simulated(|| async {
        let market = Market::<u32>::builder().rate(1, ms(10)).build().unwrap();
        let (start, begins) = (Instant::now(), Log::default());
        let job = Job::new(fails(2, &begins)).key(1).retries(every(4, 9));
        assert_eq!(market.offer(job).await.unwrap().await.unwrap(), Ok(3));
        assert_eq!(since(start, &begins), [0, 10, 20]);
    });
}

/// A waker whose call takes a while. Notes when it returns.
struct SlowWaker(Duration, Log<Instant>);

impl Wake for SlowWaker {
    fn wake(self: Arc<Self>) {
        let begun = Instant::now();
        while begun.elapsed() < self.0 {
            std::thread::yield_now();
        }
        self.1.add(Instant::now());
    }
}

#[test]
fn a_start_counts_for_a_rate_from_when_the_job_begins() {
    const PER: Duration = Duration::from_millis(50);
    on_threads(async {
        let builder = Market::<u32>::builder().max_workers(1).rate(1, PER);
        let market = builder.capacity_per_key(1).build().unwrap();
        let (first, mut blocked) = blocked(&market, None).await;
        let (woken, begins) = (Log::default(), Log::default());
        let waker = Waker::from(Arc::new(SlowWaker(2 * PER, woken.clone())));
        let poll = Pin::new(&mut blocked).poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
        let jobs = [(); 2].map(|()| {
            let begins = begins.clone();
            let job = Job::new(move || begins.add(Instant::now()));
            market.try_offer(job.key(1)).unwrap()
        });
        // The worker has taken the next job when it wakes who awaits this one.
        first.open();
        for job in jobs {
            job.await.unwrap();
        }
        let (woken, begins) = (woken.take()[0], begins.take());
        assert!(begins[0] >= woken && begins[1] >= woken + PER);
    });
}

#[test]
fn a_job_that_waits_gains_priorities() {
    simulated(|| async {
        let builder = Market::<u32>::builder().max_workers(1).aging(ms(12));
        let market = builder.build().unwrap();
        let ran = Arc::new(Mutex::new(Vec::new()));
        let job = |number: u32| {
            let ran = ran.clone();
            Job::new(move || {
                ran.lock().unwrap().push(number);
                // A job takes as long as there is until the next one is offered.
                Runtime::current().block_on(sleep(ms(5)));
            })
        };
        let mut jobs = vec![
            market.offer(job(0).priority(2)).await.unwrap(),
            market.offer(job(99)).await.unwrap(),
        ];
        for number in 1..12 {
            jobs.push(market.offer(job(number).priority(2)).await.unwrap());
            sleep(ms(5)).await;
        }
        for job in jobs {
            job.await.unwrap();
        }
        // The job of priority 0 goes before those that come more than 24 ms later.
        let ran = ran.lock().unwrap().clone();
        let before = ran.iter().position(|number| *number == 99).unwrap();
        assert_eq!(ran[..before], [0, 1, 2, 3, 4, 5]);
    });
}

#[test]
fn reserved_workers_take_only_jobs_that_are_urgent_enough() {
    everywhere(|| async {
        let builder = Market::<u32>::builder().max_workers(3).reserved(5, 1);
        let market = builder.build().unwrap();
        let (first, one) = blocked(&market, None).await;
        let (second, two) = blocked(&market, None).await;
        let other = market.offer(Job::new(|| 4).priority(4)).await.unwrap();
        for priority in [5, u32::MAX] {
            let urgent = market
                .offer(Job::new(|| 5).priority(priority))
                .await
                .unwrap();
            assert_eq!(urgent.await.unwrap(), 5);
        }
        assert!(!other.is_finished());
        assert_eq!((market.status().waiting, market.status().running), (1, 2));
        // In a simulation the last one that waits returns first.
        second.open();
        assert_eq!(other.await.unwrap(), 4);
        first.open();
        one.await.unwrap();
        two.await.unwrap();
    });
}

#[test]
fn urgent_jobs_take_the_other_workers_as_well() {
    everywhere(|| async {
        let builder = Market::<u32>::builder().max_workers(2).reserved(0, 1);
        let market = builder.build().unwrap();
        let (first, one) = blocked(&market, None).await;
        let (second, two) = blocked(&market, None).await;
        assert_eq!(market.status().running, 2);
        first.open();
        second.open();
        one.await.unwrap();
        two.await.unwrap();
    });
}

#[test]
fn the_options_of_moments_are_judged_when_the_market_is_built() {
    let builder = || Market::<u32>::builder().max_workers(2);
    let zero = Duration::ZERO;
    for (option, builder) in [
        ("aging", builder().aging(zero)),
        ("rate", builder().rate(0, ms(1))),
        ("rate", builder().rate(1, zero)),
        ("reserved", builder().reserved(1, 2)),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(option), "{error}");
    }
    let all = builder()
        .aging(Duration::MAX)
        .rate(usize::MAX, Duration::MAX);
    let market = all.reserved(1, 1).build().unwrap();
    let never = market
        .try_offer(Job::new(|| ()).after(Duration::MAX))
        .unwrap();
    let now = market
        .try_offer(Job::new(|| 1).key(1).priority(u32::MAX))
        .unwrap();
    assert_eq!(drive(now).unwrap(), 1);
    assert!(never.cancel());
}
