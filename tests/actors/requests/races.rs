//! The first of several requests, the first that succeeds, and a future until a signal.

use std::future::{Ready, pending, ready};
use std::pin::pin;

use futures::future::{BoxFuture, FutureExt};
use greenroom::request::{AllFailed, first_ok, race, run_until};
use greenroom::time::{Instant, TimedOut, sleep, timeout};
use greenroom::{Answer, Reply, concurrently, sim, spawn};

use super::{HOUR, Keep, LATE, SEEDS, after, clock, keep};
use crate::support::{Drops, drive, panic_of, poll_once};

#[test]
fn a_race_returns_the_first_output_and_drops_the_others_before() {
    sim::explore(SEEDS, |_| async {
        let (clock, kept) = (spawn!(clock(_)), spawn!(keep(_)));
        let start = Instant::now();
        let first = race((after(&clock, 3), after(&clock, 1), async {
            kept.ask(Keep::Reply).await.map(|()| 0)
        }));
        assert_eq!(first.await, Ok(1));
        assert_eq!(
            kept.ask(Keep::Wanted).await,
            Ok((1, 0)),
            "the loser is not wanted"
        );
        let list = (2..50)
            .map(|hours| after(&clock, hours))
            .collect::<Vec<_>>();
        assert_eq!(race(list).await, Ok(2));
        assert_eq!(race([after(&clock, 2), after(&clock, 1)]).await, Ok(1));
        assert!(start.elapsed() < HOUR * 4 + LATE, "{:?}", start.elapsed());
    });
}

#[test]
fn of_requests_that_are_ready_at_once_the_earliest_wins() {
    greenroom::run(async {
        assert_eq!(race((ready(1), ready(2))).await, 1);
        assert_eq!(race((pending(), ready(2), ready(3))).await, 2);
        assert_eq!(race([ready(1), ready(2)]).await, 1);
        assert_eq!(race((ready("alone"),)).await, "alone");
    });
}

#[test]
fn a_race_takes_up_to_twelve_requests_in_a_tuple() {
    greenroom::run(async {
        let p = pending::<Result<u32, u32>>;
        let twelve = (
            p(),
            p(),
            p(),
            p(),
            p(),
            p(),
            p(),
            p(),
            p(),
            p(),
            p(),
            ready(Ok(12)),
        );
        assert_eq!(race(twelve).await, Ok(12));
        let r = |n| ready(Err::<u32, u32>(n));
        let twelve = (
            r(0),
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
        );
        assert!(
            first_ok(twelve)
                .await
                .unwrap_err()
                .errors
                .into_iter()
                .eq(0..12)
        );
    });
}

#[test]
fn of_a_list_the_one_that_was_woken_first_wins_and_of_a_tuple_the_earliest() {
    /// Races two requests, the later of which is answered first. Both are there at the second poll.
    fn winner(first: impl FnOnce([Answer<u32>; 2]) -> BoxFuture<'static, u32>) -> u32 {
        let ((one, answer), (two, later)) = (Reply::pair(), Reply::pair());
        let mut race = first([answer, later]);
        assert!(poll_once(&mut race).is_pending());
        two.send(2);
        one.send(1);
        drive(race)
    }
    let value = |answer: Answer<u32>| async move { answer.await.unwrap() };
    let of_list = winner(|answers| race(answers.map(value)).boxed());
    let of_tuple = winner(|[one, two]| race((value(one), value(two))).boxed());
    assert_eq!((of_list, of_tuple), (2, 1));
}

#[test]
fn the_first_that_succeeds_ends_the_others_and_those_that_fail_do_not() {
    sim::explore(SEEDS, |_| async {
        let clock = spawn!(clock(_));
        let answer = async |hours| after(&clock, hours).await.map_err(|_| 0);
        let start = Instant::now();
        let value = first_ok((failing(1), answer(2), answer(3)));
        assert_eq!(value.await, Ok(2));
        assert!(start.elapsed() < HOUR * 2 + LATE, "{:?}", start.elapsed());
    });
}

#[test]
fn all_errors_are_returned_in_the_order_of_the_requests() {
    sim::explore(SEEDS, |_| async {
        let failed = first_ok(vec![failing(3), failing(1), failing(2)]).await;
        let failed = failed.unwrap_err();
        assert_eq!(failed.errors, [3, 1, 2]);
        assert_eq!(failed.to_string(), "all 3 requests failed: 3; 1; 2");
        let one = first_ok([failing(1)]).await.unwrap_err();
        assert_eq!(one.to_string(), "the only request failed: 1");
    });
}

/// Fails after that many hours.
async fn failing(hours: u32) -> Result<u32, u32> {
    sleep(HOUR * hours).await;
    Err(hours)
}

#[test]
fn no_requests_fail_at_once_or_are_refused() {
    greenroom::run(async {
        let none = first_ok(Vec::<Ready<Result<u32, u32>>>::new()).await;
        assert_eq!(none, Err(AllFailed { errors: vec![] }));
        assert_eq!(none.unwrap_err().to_string(), "there was no request");
    });
    let here = line!() + 1;
    let (text, file, line) = panic_of(|| drop(race(Vec::<Ready<u32>>::new())));
    let expected = ("`race` of no requests never ends", file!(), here);
    assert_eq!((&*text, &*file, line), expected);
}

#[test]
fn a_thousand_requests_that_fail_at_once_let_other_tasks_run() {
    greenroom::run(async {
        let failing = first_ok(
            (0..1000)
                .map(|n| ready(Err::<(), _>(n)))
                .collect::<Vec<_>>(),
        );
        let mut failing = pin!(failing);
        assert!(poll_once(&mut failing).is_pending(), "it yields");
        assert_eq!(failing.await.unwrap_err().errors.len(), 1000);
    });
}

#[test]
fn a_signal_ends_a_future_and_drops_it() {
    sim::explore(SEEDS, |_| async {
        let drops = Drops::default();
        let dropped = drops.one();
        let until = run_until(sleep(HOUR), async move {
            let _dropped = dropped;
            pending::<u32>().await
        });
        let start = Instant::now();
        let (ended, ()) = concurrently((until, sleep(HOUR * 2))).await;
        assert_eq!((ended, drops.count()), (None, 1));
        assert!(start.elapsed() < HOUR * 2 + LATE);

        let value = run_until(sleep(HOUR * 2), async {
            sleep(HOUR).await;
            42
        });
        assert_eq!(value.await, Some(42));
        assert_eq!(
            run_until(ready(()), ready(42)).await,
            Some(42),
            "no value is lost"
        );
        let endless = timeout(HOUR, run_until(pending::<()>(), pending::<()>()));
        assert_eq!(endless.await, Err(TimedOut));
    });
}

#[test]
fn what_is_polled_after_it_was_ready_says_so() {
    fn polled_again<F: Future>(what: &str, future: F) {
        let mut future = Box::pin(future);
        assert!(poll_once(&mut future).is_ready());
        let (text, ..) = panic_of(|| drop(poll_once(&mut future)));
        assert_eq!(text, format!("`{what}` polled after it was ready"));
    }
    polled_again("race", race([ready(1)]));
    polled_again("first_ok", first_ok((ready(Ok::<_, ()>(1)),)));
    polled_again("first_ok", first_ok((ready(Err::<(), _>(1)),)));
    polled_again("run_until", run_until(ready(()), pending::<()>()));
}
