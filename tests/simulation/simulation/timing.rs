//! Virtual time: all timers follow it, and it passes only when it should.

use std::time::Duration;

use futures::StreamExt;
use greenroom::policy::Simulated;
use greenroom::time::{Instant, Interval, MissedTicks, sleep, timeout};
use greenroom::{AskError, Context, Reply, Runtime, spawn, yield_now};

use super::{SEEDS, run_of};

const HOUR: Duration = Duration::from_secs(3600);
/// The maximal lateness of timers, and the time that the steps take.
const LATE: Duration = Duration::from_millis(2);

#[test]
fn a_sleep_of_a_year_is_over_in_a_few_steps() {
    for seed in SEEDS {
        let run = run_of(seed, async {
            let start = Instant::now();
            sleep(HOUR * 24 * 365).await;
            start.elapsed()
        });
        assert!(run.value >= HOUR * 24 * 365 && run.value < HOUR * 24 * 365 + LATE);
        assert!(run.time >= run.value && run.steps < 5);
    }
}

#[test]
fn the_clock_begins_at_zero_and_moves_only_between_steps() {
    let run = run_of(1, async {
        let first = Instant::now();
        for _ in 0..1000 {
            std::hint::black_box(vec![0; 100]);
        }
        assert_eq!(Instant::now(), first);
        yield_now().await;
        assert!(Instant::now() > first);
        first
    });
    assert!(format!("{:?}", run.value).starts_with("Instant(1000"));
}

#[test]
fn virtual_time_passes_for_a_task_that_waits_by_yielding() {
    for seed in SEEDS {
        run_of(seed, async {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(1) {
                yield_now().await;
            }
        });
    }
}

#[test]
fn timers_fire_while_a_task_is_always_ready() {
    for seed in SEEDS {
        run_of(seed, async {
            let busy = spawn(async {
                loop {
                    yield_now().await;
                }
            });
            sleep(Duration::from_millis(1)).await;
            busy.cancel().await;
        });
    }
}

#[test]
fn timers_are_never_early_and_are_late_by_a_drawn_jitter() {
    let mut late = 0;
    for seed in 0..100 {
        let most = Duration::from_secs(10);
        let by = Simulated::new(seed).timer_jitter(most).try_run(async {
            let start = Instant::now();
            sleep(HOUR).await;
            start
                .elapsed()
                .checked_sub(HOUR)
                .expect("the timer must not fire early")
        });
        let by = by.unwrap().value;
        assert!(by < most + LATE);
        late += u32::from(by > LATE);
    }
    assert!(
        (30..=70).contains(&late),
        "about half of the timers must be late: {late}"
    );
    for seed in SEEDS {
        let in_time = Simulated::new(seed)
            .timer_jitter(Duration::ZERO)
            .try_run(async {
                let start = Instant::now();
                sleep(HOUR).await;
                start.elapsed()
            });
        assert_eq!(in_time.unwrap().value, HOUR + Duration::from_micros(1));
    }
}

#[test]
fn timers_of_different_deadlines_fire_in_order() {
    for seed in SEEDS {
        let order = run_of(seed, async {
            let (tell, told) = std::sync::mpsc::channel();
            let sleepers: Vec<_> = [3, 1, 2, 5, 4]
                .into_iter()
                .map(|n| {
                    let tell = tell.clone();
                    spawn(async move {
                        sleep(HOUR * n).await;
                        tell.send(n).unwrap();
                    })
                })
                .collect();
            for sleeper in sleepers {
                sleeper.await;
            }
            drop(tell);
            told.into_iter().collect::<Vec<_>>()
        });
        assert_eq!(order.value, [1, 2, 3, 4, 5]);
    }
}

#[test]
fn timers_of_equal_deadlines_fire_in_any_order() {
    let first = |seed| {
        let both = async {
            let (a, b) = (sleep(HOUR), sleep(HOUR));
            let (a, b) = (spawn(a), spawn(b));
            match futures::future::select(a, b).await {
                futures::future::Either::Left(_) => 'a',
                futures::future::Either::Right(_) => 'b',
            }
        };
        run_of(seed, both).value
    };
    let found: Vec<char> = SEEDS.map(first).collect();
    assert!(found.contains(&'a') && found.contains(&'b'));
}

#[test]
fn all_timers_follow_virtual_time() {
    for seed in SEEDS {
        let run = run_of(seed, async {
            assert!(timeout(HOUR, std::future::pending::<()>()).await.is_err());
            let silent = spawn!(|mut cx: Context<Reply<()>>| async move {
                let kept = cx.recv().await;
                cx.recv().await;
                drop(kept);
            });
            let asked = silent.ask(|reply| reply).timeout(HOUR).await;
            assert_eq!(asked, Err(AskError::TimedOut));
            silent.join().await.unwrap();
            let mut ticks = Interval::new(HOUR).with_missed_ticks(MissedTicks::Burst);
            for _ in 0..3 {
                ticks.next().await.unwrap();
            }
            let timed = spawn!(|mut cx: Context<u32>| async move {
                let _once = cx.send_after(HOUR, 1);
                let _often = cx.send_every(HOUR, || 10);
                let mut sum = 0;
                while sum < 31 {
                    sum += cx.recv().await.unwrap();
                }
                sum
            });
            assert_eq!(timed.join().await.unwrap(), 31);
            greenroom::unblock(|| {}).await;
            let pinned = Runtime::current().spawn_pinned("p").unwrap();
            pinned.spawn(|| sleep(HOUR)).await;
        });
        // 1 + 1 + 2 + 3 + 1, since the first of the ticks is at once.
        assert!(
            run.time >= HOUR * 8 && run.time < HOUR * 8 + LATE * 10,
            "{:?}",
            run.time
        );
    }
}

#[test]
fn a_runtime_with_threads_inside_a_simulation_uses_system_time() {
    run_of(1, async {
        let virtual_now = Instant::now();
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (before, after) = runtime.block_on(async {
            let before = Instant::now();
            sleep(Duration::from_millis(1)).await;
            (before, Instant::now())
        });
        assert!(after - before >= Duration::from_millis(1));
        drop(runtime);
        assert_eq!(
            Instant::now(),
            virtual_now,
            "the simulation has its virtual time again"
        );
    });
}

#[test]
fn outside_a_simulation_its_thread_uses_system_time() {
    let before = Instant::now();
    run_of(1, async { sleep(HOUR).await });
    assert!(before.elapsed() < HOUR);
}

#[test]
fn timers_created_outside_a_simulation_start_inside_it() {
    for seed in SEEDS {
        let runs = [(); 2].map(|()| {
            let (first, second) = (sleep(HOUR), timeout(HOUR, std::future::pending::<()>()));
            let mut ticks = Interval::new(HOUR);
            run_of(seed, async move {
                let start = Instant::now();
                first.await;
                let passed = start.elapsed();
                assert!(passed >= HOUR && passed < HOUR + LATE, "{passed:?}");
                assert!(second.await.is_err());
                let begun = ticks.tick().await;
                assert_eq!(ticks.tick().await - begun, HOUR);
            })
            .fingerprint
        });
        assert_eq!(runs[0], runs[1]);
    }
}
