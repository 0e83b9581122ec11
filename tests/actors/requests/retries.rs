//! Retries and the intervals between them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::time::{Instant, IntervalsError, RetryIntervals};
use greenroom::{AskDetail, AskError, Context, Reply, retry, sim, spawn};

use super::{SEEDS, beside_another_task};

const SEC: Duration = Duration::from_secs(1);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_first_steps_come_once_and_the_regular_step_until_the_limit() {
    let steps = [secs(1), secs(2)];
    let only_first = RetryIntervals::steps(steps).unwrap();
    assert!(only_first.iter().eq(steps));
    let regular = RetryIntervals::every(secs(5)).with_first_steps(steps);
    assert!(
        regular
            .iter()
            .take(4)
            .eq([secs(1), secs(2), secs(5), secs(5)])
    );
    assert_eq!(regular.iter().take(1000).count(), 1000);
    for limit in [1, 2, 5] {
        let intervals = RetryIntervals::every(SEC).with_first_steps(steps);
        let intervals = intervals.with_step_limit(limit);
        assert_eq!(intervals.unwrap().iter().count() as u64, limit);
    }
}

#[test]
fn a_step_limit_ends_exponential_intervals_before_and_after_the_greatest() {
    // 1 s, 2 s and 4 s come before the greatest, 8 s.
    for limit in [1, 2, 3, 4, 5, 100] {
        let intervals = RetryIntervals::exponential(SEC, secs(8)).with_step_limit(limit);
        let intervals: Vec<_> = intervals.unwrap().iter().collect();
        assert_eq!(intervals.len() as u64, limit);
        for (index, interval) in intervals.into_iter().enumerate() {
            let step = secs(1 << index.min(3));
            assert!((step..=step + step / 4).contains(&interval));
        }
    }
}

#[test]
fn a_retry_with_exponential_intervals_ends_at_their_step_limit() {
    sim::explore(SEEDS, |_| async {
        let (mut attempts, begun) = (0, Instant::now());
        let three = RetryIntervals::exponential(SEC, secs(60)).with_step_limit(3);
        let outcome: Result<(), u32> = retry(&three.unwrap(), || {
            attempts += 1;
            ready(Err(attempts))
        })
        .await;
        assert_eq!((outcome, attempts), (Err(4), 4));
        // 1 s, 2 s and 4 s, and up to a quarter more.
        assert!((secs(7)..secs(10)).contains(&begun.elapsed()));
    });
}

#[test]
fn jitter_is_a_multiple_of_its_unit_up_to_a_share_of_the_step() {
    let unit = Duration::from_millis(10);
    let whole = RetryIntervals::every(SEC).with_jitter_unit(unit).unwrap();
    let part = whole.clone();
    let steps = move |share| part.clone().with_jitter_share(share).unwrap();
    let jitters: Vec<_> = sim::run(1, async move {
        let intervals = steps(0.25);
        intervals.iter().map(|step| step - SEC).take(1000).collect()
    });
    assert!(jitters.iter().all(|jitter| jitter.as_millis() % 10 == 0));
    // Each multiple comes, about as often as any other.
    let mut counts = BTreeMap::new();
    for jitter in jitters {
        *counts.entry(jitter.as_millis()).or_insert(0) += 1;
    }
    assert!(
        counts.keys().copied().eq((0..=250).step_by(10)),
        "{counts:?}"
    );
    let mean = 1000 / 26;
    assert!(
        counts
            .values()
            .all(|count| (mean / 2..mean * 2).contains(count)),
        "{counts:?}"
    );

    assert!(
        whole
            .iter()
            .take(1000)
            .all(|step| (SEC..=SEC * 2).contains(&step))
    );
    let none = whole.with_jitter_share(0.0).unwrap();
    assert!(none.iter().take(100).all(|step| step == SEC));
    let great = RetryIntervals::every(Duration::MAX).with_jitter_unit(SEC);
    let great = great.and_then(|great| great.with_jitter_share(1e300));
    assert_eq!(great.unwrap().iter().next(), Some(Duration::MAX));
}

#[test]
fn a_simulation_repeats_the_jitter_of_its_seed() {
    let drawn = |seed| {
        sim::run(seed, async {
            let intervals = RetryIntervals::exponential(SEC, secs(60));
            intervals.iter().take(20).collect::<Vec<_>>()
        })
    };
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
}

#[test]
fn exponential_intervals_double_up_to_the_greatest() {
    let lengths = |first, most| -> Vec<u64> {
        let intervals = RetryIntervals::exponential(first, most);
        intervals
            .iter()
            .take(6)
            .map(|interval| interval.as_secs_f64().floor() as u64)
            .collect()
    };
    for (found, least) in lengths(secs(10), secs(100))
        .into_iter()
        .zip([10, 20, 40, 80, 100, 100])
    {
        assert!(
            (least..=least + least / 4).contains(&found),
            "{found} for {least}"
        );
    }
    assert_eq!(lengths(secs(4), secs(2))[0], 2, "the greatest is the first");
    let from_zero = RetryIntervals::exponential(Duration::ZERO, Duration::MAX);
    assert!(from_zero.iter().take(200).count() == 200);
}

#[test]
fn impossible_intervals_are_errors_that_name_value_and_limit() {
    let cases = [
        (
            RetryIntervals::steps([]),
            "no intervals: there are no steps",
        ),
        (
            RetryIntervals::every(SEC).with_step_limit(0),
            "step_limit is 0, but must be at least 1",
        ),
        (
            RetryIntervals::every(SEC).with_jitter_unit(Duration::ZERO),
            "jitter_unit is 0 ns, but must be at least 1 ns",
        ),
        (
            RetryIntervals::every(SEC).with_jitter_share(-0.5),
            "jitter_share is -0.5, but must be a finite number of at least 0",
        ),
        (
            RetryIntervals::every(SEC).with_jitter_share(f64::NAN),
            "jitter_share is NaN, but must be a finite number of at least 0",
        ),
        (
            RetryIntervals::every(SEC).with_jitter_share(f64::INFINITY),
            "jitter_share is inf, but must be a finite number of at least 0",
        ),
    ];
    for (intervals, text) in cases {
        assert_eq!(intervals.unwrap_err().to_string(), text);
    }
    assert_eq!(RetryIntervals::steps([]), Err(IntervalsError::NoIntervals));
}

#[test]
fn a_retry_waits_for_each_interval_and_returns_the_last_error() {
    let intervals = RetryIntervals::steps([secs(10), secs(20), secs(30)]).unwrap();
    sim::explore(SEEDS, move |_| {
        let intervals = intervals.clone();
        async move {
            let (start, mut at) = (Instant::now(), Vec::new());
            let failed = retry(&intervals, || {
                at.push(start.elapsed().as_secs());
                let attempt = at.len();
                async move { Err::<(), _>(attempt) }
            });
            assert_eq!(failed.await, Err(4));
            assert_eq!(at, [0, 10, 30, 60]);
        }
    });
}

#[test]
fn a_retry_ends_with_the_first_success() {
    let regular = RetryIntervals::every(SEC);
    let (attempts, value) = sim::run(1, async move {
        let mut attempts = 0;
        let value = retry(&regular, || {
            attempts += 1;
            ready(if attempts < 100 {
                Err("not yet")
            } else {
                Ok(attempts)
            })
        });
        let value = value.await;
        (attempts, value)
    });
    assert_eq!((attempts, value), (100, Ok(100)));
}

#[test]
fn a_retry_ends_at_once_if_the_actor_is_closed_unless_when_decides_otherwise() {
    let run = Simulated::new(1).try_run(async {
        let closed = spawn!(|cx: Context<Reply<u32>>| async move { drop(cx) });
        closed.closed().await;
        let three = RetryIntervals::every(SEC).with_step_limit(3).unwrap();
        let mut attempts = 0;
        let asked = retry(&three, || {
            attempts += 1;
            closed.ask(|reply| reply)
        });
        assert_eq!(asked.await, Err(AskError::Closed(AskDetail::default())));
        assert_eq!(attempts, 1);

        let asked = retry(&three, || {
            attempts += 1;
            closed.ask(|reply| reply)
        });
        assert_eq!(
            asked.when(|_| true).await,
            Err(AskError::Closed(AskDetail::default()))
        );
        assert_eq!(attempts, 1 + 4);

        let unparsed = retry(&three, || {
            attempts += 1;
            ready("x".parse::<u32>())
        });
        assert!(unparsed.when(|_| false).await.is_err());
        assert_eq!(attempts, 5 + 1);
    });
    run.unwrap();
}

#[test]
fn a_retry_without_pauses_lets_other_tasks_run() {
    let ended = beside_another_task(|is_over| {
        let no_pause = RetryIntervals::every(Duration::ZERO);
        let failing = retry(&no_pause, || ready(Err::<(), _>("not yet")));
        failing.when(move |_| !is_over.load(Ordering::Relaxed))
    });
    assert_eq!(ended, Err("not yet"));
}

#[test]
fn exponential_intervals_differ_between_callers() {
    for (first, most) in [(SEC, secs(60)), (secs(10), SEC)] {
        let intervals = RetryIntervals::exponential(first, most);
        let drawn: BTreeSet<_> = (0..100).map(|_| intervals.iter().next()).collect();
        assert!(drawn.len() > 50, "{drawn:?}");
    }
}
