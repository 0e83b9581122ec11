//! Intervals: ticks at equal distances, and the handling of missed ticks.

use std::time::Duration;

use futures::StreamExt;
use greenroom::time::{Instant, Interval, MissedTicks, interval_at, sleep};

use crate::support::{Home, drive, in_every_home, panic_of, poll_once};

const PERIOD: Duration = Duration::from_millis(2);

in_every_home!(
    the_first_tick_is_at_once_and_none_is_early,
    missed_ticks_are_skipped_by_default,
    missed_ticks_may_come_in_a_burst,
    missed_ticks_may_delay_the_later_ones,
    an_interval_may_start_later_or_earlier,
    a_reset_makes_the_next_tick_due_one_period_later,
);

fn the_first_tick_is_at_once_and_none_is_early(home: &Home) {
    home.block_on(home.spawn_task(async {
        let mut ticks = Interval::new(PERIOD);
        let first = ticks.tick().await;
        for n in 1..5 {
            let due = ticks.tick().await;
            assert!(Instant::now() >= due);
            assert!(due - first >= PERIOD * n);
        }
    }));
}

/// Misses some ticks. Returns when the next three ticks were due and when the first of them was
/// taken, both counted from the last tick before.
async fn after_a_pause(missed: MissedTicks) -> ([Duration; 3], Duration) {
    let mut ticks = Interval::new(PERIOD).with_missed_ticks(missed);
    let start = ticks.tick().await;
    sleep(PERIOD * 5).await;
    let first = ticks.tick().await - start;
    let taken = Instant::now() - start;
    let later = [ticks.tick().await - start, ticks.tick().await - start];
    ([first, later[0], later[1]], taken)
}

fn missed_ticks_are_skipped_by_default(home: &Home) {
    assert_eq!(MissedTicks::default(), MissedTicks::Skip);
    let ([first, second, third], taken) =
        home.block_on(home.spawn_task(after_a_pause(MissedTicks::default())));
    assert!(second > PERIOD * 5 && second <= taken + PERIOD);
    for due in [first, second, third] {
        assert_eq!(
            due.as_nanos() % PERIOD.as_nanos(),
            0,
            "due times are multiples of the period"
        );
    }
}

fn missed_ticks_may_come_in_a_burst(home: &Home) {
    let (due, _) = home.block_on(home.spawn_task(after_a_pause(MissedTicks::Burst)));
    assert_eq!(due, [PERIOD, PERIOD * 2, PERIOD * 3]);
}

fn missed_ticks_may_delay_the_later_ones(home: &Home) {
    let ([first, second, third], taken) =
        home.block_on(home.spawn_task(after_a_pause(MissedTicks::Delay)));
    assert!(first >= PERIOD);
    assert!(second >= PERIOD * 6 && second <= taken + PERIOD);
    assert!(third >= second + PERIOD);
}

fn an_interval_may_start_later_or_earlier(home: &Home) {
    home.block_on(home.spawn_task(async {
        let start = Instant::now() + PERIOD * 3;
        let mut ticks = interval_at(start, PERIOD);
        assert_eq!(ticks.tick().await, start);
        assert!(Instant::now() >= start);
        assert!(ticks.tick().await >= start + PERIOD);

        let over = interval_at(start, PERIOD).with_missed_ticks(MissedTicks::Burst);
        let ticks: Vec<_> = over.take(3).collect().await;
        assert_eq!(ticks, [start, start + PERIOD, start + PERIOD * 2]);
    }));
}

fn a_reset_makes_the_next_tick_due_one_period_later(home: &Home) {
    home.block_on(home.spawn_task(async {
        let mut ticks = Interval::new(PERIOD).with_missed_ticks(MissedTicks::Burst);
        for _ in 0..3 {
            // Ticks are due here, and the reset leaves them out.
            sleep(PERIOD * 4).await;
            let before = Instant::now();
            ticks.reset();
            let due = ticks.tick().await;
            assert!(due >= before + PERIOD);
        }
    }));
}

#[test]
fn an_interval_is_a_stream_that_works_on_any_executor() {
    let ticks: Vec<_> = futures::executor::block_on(Interval::new(PERIOD).take(3).collect());
    let passed = ticks[2] - ticks[0];
    // Ticks missed on a slow machine are skipped.
    assert!(passed >= PERIOD * 2 && passed.as_nanos() % PERIOD.as_nanos() == 0);
}

#[test]
fn a_period_of_zero_panics_and_an_endless_period_ticks_once() {
    let here = line!() + 1;
    let (text, file, line) = panic_of(|| Interval::new(Duration::ZERO));
    assert!(
        text.contains("the period is zero") && text.contains("1 nanosecond"),
        "{text}"
    );
    assert_eq!((file.as_str(), line), (file!(), here));
    for period in [Duration::MAX, Duration::from_nanos(u64::MAX)] {
        let mut ticks = Interval::new(period);
        drive(ticks.tick());
        assert!(poll_once(&mut ticks.next()).is_pending());
    }
}
