//! Requests: several at once, one after another, again until one succeeds, and refused ones.

mod causes;
#[cfg(target_os = "linux")]
mod example;
mod flat;
mod in_flight;
mod permits;
mod races;
mod refusals;
mod replies;
mod retries;

use std::cell::Cell;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use greenroom::request::First;
use greenroom::time::{Instant, RetryIntervals, TimedOut, sleep, timeout};
use greenroom::{
    Address, AskDetail, AskError, Context, RefusalKind, Reply, Runtime, concurrently, retry,
    sequentially, sim, spawn, try_concurrently,
};

use crate::support::{WATCH, panic_of, poll_once, within};

const SEEDS: std::ops::Range<u64> = 0..20;
const HOUR: Duration = Duration::from_secs(3600);
/// More than the lateness of timers and the time of the steps in a simulation.
const LATE: Duration = Duration::from_secs(1);

/// Answers each question after that many hours, the next question meanwhile.
async fn clock(mut cx: Context<(u32, Reply<u32>)>) {
    while let Some((hours, reply)) = cx.recv().await {
        spawn(async move {
            sleep(HOUR * hours).await;
            reply.send(hours);
        })
        .detach();
    }
}

/// Asks the clock for an answer after that many hours.
async fn after(clock: &Address<(u32, Reply<u32>)>, hours: u32) -> Result<u32, AskError> {
    clock.ask(|reply| (hours, reply)).await
}

#[test]
fn concurrent_requests_run_at_once_and_keep_their_order() {
    sim::explore(SEEDS, |_| async {
        let clock = spawn!(clock(_));
        let start = Instant::now();
        let tuple = concurrently((after(&clock, 3), ready("now"), after(&clock, 1))).await;
        assert_eq!(tuple, (Ok(3), "now", Ok(1)));
        let array = concurrently([after(&clock, 2), after(&clock, 1), after(&clock, 3)]).await;
        assert_eq!(array, [Ok(2), Ok(1), Ok(3)]);
        let list = concurrently((0..100).map(|n| after(&clock, n % 4)).collect::<Vec<_>>()).await;
        assert!(list.into_iter().eq((0..100).map(|n| Ok(n % 4))));
        assert!(start.elapsed() < HOUR * 9 + LATE, "{:?}", start.elapsed());
    });
}

#[test]
fn a_fault_is_a_value_among_the_outputs() {
    greenroom::run(async {
        let outputs = concurrently((ready(Err::<u32, _>("no paper")), ready(Ok::<_, ()>(2)))).await;
        assert_eq!(outputs, (Err("no paper"), Ok(2)));
        let outputs = concurrently(vec![ready(Ok(1)), ready(Err("no ink"))]).await;
        assert_eq!(outputs, [Ok(1), Err("no ink")]);
    });
}

#[test]
fn no_requests_give_an_empty_output() {
    greenroom::run(async {
        assert!(concurrently(Vec::<Ready<u32>>::new()).await.is_empty());
        assert!(concurrently([] as [Ready<u32>; 0]).await.is_empty());
        concurrently(()).await;
        let none = Vec::<Ready<Result<u32, ()>>>::new();
        assert_eq!(try_concurrently(none).await, Ok(vec![]));
        assert_eq!(
            sequentially(None::<Ready<Result<u32, ()>>>).await,
            Ok(vec![])
        );
    });
}

#[test]
fn a_tuple_has_up_to_twelve_requests() {
    greenroom::run(async {
        let r = |n: u32| ready(Ok::<_, u32>(n));
        let twelve = || {
            (
                r(1),
                r(2),
                r(3),
                r(4),
                r(5),
                r(6),
                r(7),
                r(8),
                r(9),
                r(10),
                r(11),
                r(12),
            )
        };
        let outputs = concurrently(twelve()).await;
        assert_eq!((outputs.0, outputs.6, outputs.11), (Ok(1), Ok(7), Ok(12)));
        let values = try_concurrently(twelve()).await.unwrap();
        assert_eq!((values.0, values.6, values.11), (1, 7, 12));
        let one = try_concurrently((ready(Err::<(), _>("alone")),)).await;
        assert_eq!(
            one,
            Err(First {
                index: 0,
                error: "alone"
            })
        );
    });
}

#[test]
fn the_first_fault_ends_the_other_requests_and_says_which_failed() {
    sim::explore(SEEDS, |_| async {
        let clock = spawn!(clock(_));
        let fails = |hours| async move {
            sleep(HOUR * hours).await;
            Err::<u32, _>(AskError::NoReply(AskDetail::default()))
        };
        let start = Instant::now();
        let first = try_concurrently((after(&clock, 1), fails(2), after(&clock, 3)));
        let expected = Err(First {
            index: 1,
            error: AskError::NoReply(AskDetail::default()),
        });
        assert_eq!(first.await, expected.map(|(): ()| (0, 0, 0)));
        let requests = [after(&clock, 1), after(&clock, 3)];
        assert_eq!(try_concurrently(requests).await, Ok(vec![1, 3]));
        assert!(start.elapsed() < HOUR * 5 + LATE, "{:?}", start.elapsed());
    });
}

#[test]
fn requests_start_with_the_first_poll_and_end_with_the_drop() {
    greenroom::run(async {
        let (kept, replies) = (spawn!(keep(_)), Rc::new(Cell::new(0)));
        let requests = concurrently([kept.ask(Keep::Reply), kept.ask(Keep::Reply)]);
        assert_eq!(
            kept.ask(Keep::Wanted).await,
            Ok((0, 0)),
            "not polled, not sent"
        );
        assert_eq!(
            timeout(Duration::from_millis(1), requests).await,
            Err(TimedOut)
        );
        assert_eq!(
            kept.ask(Keep::Wanted).await,
            Ok((2, 0)),
            "dropped, not wanted"
        );

        let made = replies.clone();
        let requests = (0..3).map(|_| {
            made.set(made.get() + 1);
            kept.ask(Keep::Reply)
        });
        let sequence = timeout(Duration::from_millis(1), sequentially(requests));
        assert_eq!(replies.get(), 0);
        assert_eq!(sequence.await, Err(TimedOut));
        assert_eq!(replies.get(), 1, "the second waits for the first");
        assert_eq!(kept.ask(Keep::Wanted).await, Ok((3, 0)));
    });
}

enum Keep {
    Reply(Reply<()>),
    /// Asks how many replies were kept, and how many of them are wanted.
    Wanted(Reply<(usize, usize)>),
}

/// Keeps replies and never answers.
async fn keep(mut cx: Context<Keep>) {
    let mut replies = Vec::new();
    while let Some(message) = cx.recv().await {
        match message {
            Keep::Reply(reply) => replies.push(reply),
            Keep::Wanted(reply) => {
                let wanted = replies.iter().filter(|reply| reply.is_wanted());
                reply.send((replies.len(), wanted.count()));
            }
        }
    }
}

#[test]
fn sequential_requests_follow_each_other() {
    sim::explore(SEEDS, |_| async {
        let clock = spawn!(clock(_));
        let start = Instant::now();
        let answers = sequentially([2, 1, 3].map(|hours| after(&clock, hours))).await;
        assert_eq!(answers, Ok(vec![2, 1, 3]));
        assert!(start.elapsed() >= HOUR * 6);
    });
}

#[test]
fn a_sequence_ends_at_its_first_fault_and_takes_no_later_request() {
    greenroom::run(async {
        let mut taken = 0;
        let requests = ["1", "2", "x", "4"].into_iter().map(|text| {
            taken += 1;
            ready(text.parse::<u32>())
        });
        let First { index, error } = sequentially(requests).await.unwrap_err();
        assert_eq!((index, taken), (2, 3));
        let text = First { index, error }.to_string();
        assert_eq!(text, "request 2 failed: invalid digit found in string");
    });
}

/// Makes requests with actors among them until it is stopped, and returns that it was aborted.
async fn makes(mut cx: Context<Result<[bool; 3], TimedOut>>, kept: Address<Keep>) -> RefusalKind {
    let created = spawn!(|mut cx: Context<()>| async move { cx.recv().await.is_some() });
    let first = async move { kept.ask(Keep::Reply).await.is_ok() };
    let created = async move { created.join().await.unwrap() };
    let last = async {
        sleep(HOUR).await;
        true
    };
    let all = timeout(HOUR * 2, concurrently((first, created, last)));
    let all = async {
        all.await
            .map(|(first, created, last)| [first, created, last])
    };
    cx.on_return(all, Result::unwrap);
    match cx.recv().await {
        None => RefusalKind::Aborted,
        Some(Err(TimedOut)) => RefusalKind::TimedOut,
        Some(Ok(_)) => RefusalKind::Fault,
    }
}

#[test]
fn requests_of_an_actor_end_with_its_stop_or_their_time() {
    sim::explore(SEEDS, |_| async {
        for (wait, ends_with) in [
            (HOUR, RefusalKind::Aborted),
            (HOUR * 3, RefusalKind::TimedOut),
        ] {
            let kept = spawn!(keep(_));
            let makes = spawn!(makes(_, kept.address()));
            sleep(wait).await;
            makes.stop();
            assert_eq!(makes.join().await.unwrap(), ends_with);
            assert_eq!(kept.ask(Keep::Wanted).await, Ok((1, 0)), "{wait:?}");
        }
    });
}

/// Waits an hour, and is stopped meanwhile or not. Returns whether the time was over, and when.
async fn delays(mut cx: Context<()>) -> (bool, u64) {
    let begun = Instant::now();
    cx.on_return(sleep(HOUR), Result::unwrap);
    let is_over = cx.recv().await.is_some();
    (is_over, begun.elapsed().as_secs() / 60)
}

#[test]
fn a_delay_in_a_sequence_ends_at_its_time_and_one_of_an_actor_with_its_stop() {
    sim::explore(SEEDS, |_| async {
        let (clock, start) = (spawn!(clock(_)), Instant::now());
        let pause = async || {
            sleep(HOUR).await;
            Ok(0)
        };
        let steps: [Pin<Box<dyn Future<Output = _>>>; 3] = [
            Box::pin(after(&clock, 1)),
            Box::pin(pause()),
            Box::pin(after(&clock, 2)),
        ];
        assert_eq!(sequentially(steps).await, Ok(vec![1, 0, 2]));
        assert_eq!(start.elapsed().as_secs() / 3600, 4);

        let stopped = spawn!(delays(_));
        sleep(HOUR / 2).await;
        stopped.stop();
        assert_eq!(stopped.join().await.unwrap(), (false, 30));
        let delayed = spawn!(delays(_));
        sleep(HOUR + LATE).await;
        assert_eq!(delayed.join().await.unwrap(), (true, 60));
    });
}

#[test]
fn a_request_that_panics_drops_the_others() {
    greenroom::run(async {
        let kept = spawn!(keep(_));
        let address = kept.address();
        let task = spawn(async move {
            let bomb = async {
                sleep(Duration::from_millis(1)).await;
                panic!("bomb")
            };
            let waits = async { address.ask(Keep::Reply).await.is_ok() };
            concurrently((waits, bomb)).await;
        });
        let caught = futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(task));
        assert!(caught.await.is_err());
        assert_eq!(kept.ask(Keep::Wanted).await, Ok((1, 0)));
    });
}

/// Runs a future that ends when its flag is set, on one worker with the task that sets it.
fn beside_another_task<F>(make: impl FnOnce(Arc<AtomicBool>) -> F + Send + 'static) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = runtime.spawn(make(is_over.clone()));
        let other = runtime.spawn(async move { is_over.store(true, Ordering::Relaxed) });
        runtime.block_on(other);
        runtime.block_on(ends)
    })
}

#[test]
fn requests_that_are_ready_at_once_let_other_tasks_run() {
    let ended = beside_another_task(|is_over| {
        sequentially(std::iter::repeat_with(move || {
            match is_over.load(Ordering::Relaxed) {
                false => ready(Ok(())),
                true => ready(Err("over")),
            }
        }))
    });
    assert_eq!(ended.unwrap_err().error, "over");
}

#[test]
fn requests_of_borrowed_actors_may_be_made_in_spawned_tasks_and_actors() {
    async fn made(clock: Address<(u32, Reply<u32>)>) -> u32 {
        let hours = [1, 2];
        let intervals = RetryIntervals::exponential(LATE, HOUR);
        let ask = |hours: u32| clock.ask(move |reply| (hours, reply));
        let mut left = 3;
        let retried = || retry(&intervals, || async { ask(1).await }).when(|_| false);
        let counted = retry(&intervals, || ask(2)).when(|_| {
            left -= 1;
            left > 0
        });
        let both = concurrently((retried(), timeout(HOUR * 9, counted))).await;
        assert_eq!(both, (Ok(1), Ok(Ok(2))));
        let first = timeout(HOUR * 9, try_concurrently(vec![retried(), retried()]));
        assert_eq!(first.await, Ok(Ok(vec![1, 1])));
        let borrowed = sequentially(hours.iter().map(|hours| after(&clock, *hours)));
        assert_eq!(concurrently([borrowed]).await, [Ok(vec![1, 2])]);
        sequentially([retried(), retried()])
            .await
            .unwrap()
            .iter()
            .sum()
    }
    sim::run(1, async {
        let clock = spawn!(clock(_));
        assert_eq!(spawn(made(clock.address())).await, 2);
        let address = clock.address();
        let actor = spawn!(|cx: Context<()>| async move {
            drop(cx);
            made(address).await
        });
        assert_eq!(actor.join().await.unwrap(), 2);
    });
}

#[test]
fn a_poll_after_completion_panics_and_does_nothing() {
    fn polled_again<F: Future>(future: F) -> String {
        let mut future = Box::pin(future);
        assert!(poll_once(&mut future).is_ready());
        panic_of(|| poll_once(&mut future).is_ready()).0
    }
    let over = |name: &str| format!("`{name}` polled after it was ready");
    let failed = || [ready(Ok(1)), ready(Err("no ink")), ready(Ok(3))];
    assert_eq!(polled_again(concurrently(failed())), over("concurrently"));
    let first = try_concurrently(failed());
    assert_eq!(polled_again(first), over("concurrently"));
    assert_eq!(
        polled_again(concurrently((ready(1), ready(2)))),
        over("concurrently")
    );
    assert_eq!(polled_again(sequentially(failed())), over("sequentially"));
    assert_eq!(
        polled_again(sequentially([ready(Ok::<_, ()>(1))])),
        over("sequentially")
    );
    let intervals = RetryIntervals::exponential(HOUR, HOUR);
    let made = Cell::new(0);
    let once = || {
        made.set(made.get() + 1);
        ready(Ok::<_, ()>(1))
    };
    assert_eq!(polled_again(retry(&intervals, once)), over("retry"));
    assert_eq!(made.get(), 1);
}
