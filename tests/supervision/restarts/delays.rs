//! The delays before restarts, in virtual time, and the window of the intensity.

use std::ops::Range;
use std::time::Duration;

use greenroom::supervise::Restarts;
use greenroom::time::{Instant, RetryIntervals, sleep};
use greenroom::{Context, Detached, Handle, Runtime, actor, sim, spawn};

use super::{HOUR, Order, ever, lost, obedient, text_of};
use crate::support::{Gate, Home, Log, WATCH, in_every_home, keep_bombs_quiet, within};

in_every_home!(
    messages_gather_during_a_delay,
    an_actor_that_always_fails_leaves_its_thread_to_others,
);

const SEEDS: Range<u64> = 0..20;
const SEC: Duration = Duration::from_secs(1);
/// More than the steps of these tests and the units of timers take in a simulation.
const BRIEF: Duration = Duration::from_millis(10);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Spawns an actor that lives for these times, one after another, and then panics. After the last
/// one it returns. The log has the delay before each restart.
fn mortal(lives: &[Duration], rules: Restarts<()>) -> (Handle<(), ()>, Log<Duration>) {
    let (log, lives) = (Log::default(), lives.to_vec());
    let (delays, died) = (
        log.clone(),
        std::sync::Arc::new(std::sync::Mutex::new(None)),
    );
    let mortal = actor(move |cx: Context<()>| async move {
        let number = cx.incarnation_number() as usize;
        if let Some(died) = died.lock().unwrap().take() {
            delays.add(Instant::now() - died);
        }
        let Some(life) = lives.get(number) else {
            return;
        };
        sleep(*life).await;
        *died.lock().unwrap() = Some(Instant::now());
        panic!("bomb {number}");
    });
    (mortal.restart(rules).spawn(), log)
}

/// Asserts that the delays are these, but for the steps of the simulation.
#[track_caller]
fn assert_delays(delays: &Log<Duration>, expected: &[u64]) {
    let delays = delays.take();
    let is_so = |(delay, expected): (&Duration, &u64)| {
        (secs(*expected)..secs(*expected) + BRIEF).contains(delay)
    };
    let are_so = delays.len() == expected.len() && delays.iter().zip(expected).all(is_so);
    assert!(are_so, "{delays:?} instead of {expected:?} s");
}

/// Intervals of 1 s, 2 s, and then 5 s each.
fn growing() -> RetryIntervals {
    RetryIntervals::every(secs(5)).with_first_steps([secs(1), secs(2)])
}

#[test]
fn delays_in_a_row_are_those_of_the_intervals() {
    keep_bombs_quiet();
    sim::explore(SEEDS, |_| async {
        let rules = ever().delays(growing());
        let (mortal, delays) = mortal(&[Duration::ZERO; 5], rules);
        mortal.join().await.unwrap();
        assert_delays(&delays, &[1, 2, 5, 5, 5]);
    });
}

#[test]
fn without_intervals_there_is_no_delay() {
    keep_bombs_quiet();
    sim::explore(SEEDS, |_| async {
        let (mortal, delays) = mortal(&[SEC; 4], ever());
        mortal.join().await.unwrap();
        assert_delays(&delays, &[0, 0, 0, 0]);
    });
}

#[test]
fn an_incarnation_that_lived_for_the_window_ends_the_row() {
    keep_bombs_quiet();
    sim::explore(SEEDS, |_| async {
        let rules = Restarts::on_fault().intensity(9, secs(60));
        let rules = rules.delays(growing());
        let lives = [0, 0, 0, 61, 59, 0, 61, 61].map(secs);
        let (mortal, delays) = mortal(&lives, rules);
        mortal.join().await.unwrap();
        assert_delays(&delays, &[1, 2, 5, 1, 2, 5, 1, 1]);
    });
}

#[test]
fn an_incarnation_that_blocked_its_own_thread_for_the_window_ends_the_row() {
    keep_bombs_quiet();
    sim::explore(SEEDS, |_| async {
        let log = Log::default();
        let own = log.clone();
        let blocks = actor(move |cx: Context<()>| async move {
            own.add(Instant::now());
            // It never leaves its first turn.
            Runtime::current().block_on(sleep(secs(100)));
            if cx.incarnation_number() < 3 {
                panic!("bomb");
            }
        });
        let rules = Restarts::on_fault().intensity(9, secs(60));
        let rules = rules.delays(growing());
        let blocks = blocks.restart(rules).on(Detached).spawn();
        blocks.join().await.unwrap();
        let begun = log.take();
        let delays = Log::default();
        for pair in begun.windows(2) {
            delays.add(pair[1] - pair[0] - secs(100));
        }
        assert_delays(&delays, &[1, 1, 1]);
    });
}

#[test]
fn after_the_last_delay_the_actor_ends_with_its_last_result() {
    keep_bombs_quiet();
    sim::explore(SEEDS, |_| async {
        let rules = ever().delays(growing().with_step_limit(2).unwrap());
        let (mortal, delays) = mortal(&[Duration::ZERO; 9], rules);
        assert_eq!(text_of(mortal.join().await), "bomb 2");
        assert_delays(&delays, &[1, 2]);
    });
}

#[test]
fn a_stand_down_differs_from_its_length_by_up_to_a_quarter() {
    keep_bombs_quiet();
    let delays = sim::run(1, async {
        let (mortal, delays) = mortal(&[Duration::ZERO; 1000], ever().stand_down(secs(100)));
        mortal.join().await.unwrap();
        delays.take()
    });
    assert_eq!(delays.len(), 1000);
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!((secs(75)..secs(76)).contains(least), "{least:?}");
    assert!((secs(124)..secs(125) + BRIEF).contains(most), "{most:?}");
}

#[test]
fn the_shortest_and_the_longest_stand_down_are_possible() {
    keep_bombs_quiet();
    sim::explore(SEEDS, |_| async {
        let (short, delays) = mortal(&[Duration::ZERO; 3], ever().stand_down(Duration::ZERO));
        short.join().await.unwrap();
        assert_delays(&delays, &[0, 0, 0]);
        let (long, delays) = mortal(&[Duration::ZERO; 3], ever().stand_down(Duration::MAX));
        sleep(1000 * HOUR).await;
        long.stop();
        assert_eq!(text_of(long.join().await), "bomb 0");
        assert_eq!(delays.take(), []);
    });
}

#[test]
fn the_last_of_after_and_stand_down_holds() {
    keep_bombs_quiet();
    sim::explore(SEEDS, |_| async {
        let rules = ever().stand_down(HOUR).delays(growing());
        let (mortal, delays) = mortal(&[SEC; 2], rules);
        mortal.join().await.unwrap();
        assert_delays(&delays, &[1, 2]);
    });
}

#[test]
fn restarts_before_the_window_do_not_count() {
    keep_bombs_quiet();
    sim::explore(SEEDS, |_| async {
        // At any time there were at most two restarts within the last ten seconds.
        let rules = Restarts::on_fault().intensity(2, secs(10));
        let (often, _) = mortal(&[secs(6); 20], rules.clone());
        often.join().await.unwrap();
        // The third restart comes before the first is ten seconds old.
        let (too_often, _) = mortal(&[4, 4, 5].map(secs), rules.clone());
        assert_eq!(text_of(too_often.join().await), "bomb 2");
        let (seldom, _) = mortal(&[4, 4, 6].map(secs), rules);
        seldom.join().await.unwrap();
    });
}

#[test]
fn many_restarts_within_a_window_are_counted() {
    keep_bombs_quiet();
    within(WATCH, || {
        sim::run(1, async {
            // More than the history has entries, and evenly spread.
            let count = 3000;
            let log = Log::default();
            let own = log.clone();
            let ticks = actor(move |_cx: Context<()>| async move {
                own.add(Instant::now());
                sleep(SEC).await;
                panic!("bomb");
            });
            let rules = Restarts::<()>::on_fault().intensity(count, secs(10_000));
            let ticks = ticks.restart(rules).spawn();
            assert_eq!(text_of(ticks.join().await), "bomb");
            assert_eq!(log.len(), count as usize + 1);
        });
    });
}

#[test]
fn a_delay_of_one_actor_delays_no_other() {
    keep_bombs_quiet();
    sim::explore(SEEDS, |_| async {
        let begun = Instant::now();
        let (obeys, _) = obedient();
        let waits = obeys.restart(ever().stand_down(HOUR)).spawn();
        lost(waits.ask(|reply| Order::Lose("bomb", reply)).await);
        let other = spawn!(|mut cx: Context<u32>| async move { cx.recv().await });
        other.tell(1).unwrap();
        assert_eq!(other.join().await.unwrap(), Some(1));
        assert!(begun.elapsed() < BRIEF);
        assert_eq!(waits.ask(Order::Number).await, Ok(1));
        assert!(begun.elapsed() >= HOUR * 3 / 4);
    });
}

#[test]
fn a_question_during_a_delay_is_no_deadlock() {
    keep_bombs_quiet();
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).detect_deadlocks(true);
        runtime.build().unwrap().block_on(async {
            let (obeys, _) = obedient();
            let delays = RetryIntervals::every(Duration::from_millis(5));
            let obeys = obeys.restart(ever().delays(delays)).spawn();
            for number in 1..=5 {
                lost(obeys.ask(|reply| Order::Lose("bomb", reply)).await);
                assert_eq!(obeys.ask(Order::Number).await, Ok(number));
            }
        });
    });
}

fn messages_gather_during_a_delay(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for capacity in [None, Some(100)] {
            let (mut obeys, log) = obedient();
            if let Some(capacity) = capacity {
                obeys = obeys.capacity(capacity);
            }
            let delays = RetryIntervals::every(Duration::from_millis(2));
            let obeys = home.spawn(obeys.restart(ever().delays(delays)));
            for round in 0..5 {
                let lose = obeys.ask(|reply| Order::Lose("bomb", reply));
                lost(lose.await);
                for number in 0..5 {
                    obeys.tell(Order::Log(5 * round + number)).unwrap();
                    greenroom::yield_now().await;
                }
            }
            assert_eq!(obeys.join().await.unwrap(), 5);
            assert_eq!(log.take(), (0..25).collect::<Vec<_>>());
        }
    });
}

fn an_actor_that_always_fails_leaves_its_thread_to_others(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let again = Gate::default();
        let own = again.clone();
        let fails = actor(move |cx: Context<()>| async move {
            if cx.incarnation_number() == 100 {
                own.open();
            }
            panic!("bomb");
        });
        let rules = Restarts::<()>::always().intensity(u32::MAX, HOUR);
        let fails = home.spawn(fails.restart(rules));
        for _ in 0..10 {
            home.spawn_task(greenroom::yield_now()).await;
        }
        again.wait().await;
        fails.kill();
        fails.closed().await;
    });
}
