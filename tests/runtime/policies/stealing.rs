//! Work stealing with polling: its three phases and their options.
//!
//! A worker that should be in a single phase gets options that keep it in that phase.

use std::time::Duration;

use greenroom::policy::{Polling, Stealing};
use greenroom::{BuildError, Runtime};

use super::own::RoundRobin;
use crate::runtime_stealing::block_until_others_ran;
use crate::support::{WATCH, drive, within};

/// So long that a test in which a worker sleeps it hangs.
const LONG: Duration = Duration::from_secs(3600);

const AGGRESSIVE: Polling = Polling {
    aggressive_attempts: u32::MAX,
    aggressive_steal_interval: 10,
    moderate_attempts: 0,
    moderate_steal_interval: 5,
    moderate_sleep: LONG,
    relaxed_steal_interval: 1,
    relaxed_sleep: LONG,
};

const MODERATE: Polling = Polling {
    aggressive_attempts: 0,
    moderate_attempts: u32::MAX,
    moderate_sleep: Duration::from_micros(50),
    ..AGGRESSIVE
};

const RELAXED: Polling = Polling {
    aggressive_attempts: 0,
    moderate_attempts: 0,
    ..AGGRESSIVE
};

fn polling(workers: usize, name: &str, polling: Polling) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .thread_name(name)
        .policy(Stealing::polling(polling))
        .build()
        .unwrap()
}

/// Checks that tasks queued by a blocked worker are stolen by another worker without work.
fn is_stolen_by_another(numbers: Polling) {
    within(WATCH, move || {
        let runtime = polling(2, "steals", numbers);
        for count in (1..8).cycle().take(100) {
            block_until_others_ran(&runtime, count);
        }
    });
}

#[test]
fn a_worker_steals_in_the_aggressive_phase() {
    is_stolen_by_another(AGGRESSIVE);
}

#[test]
fn a_worker_steals_in_the_moderate_phase() {
    is_stolen_by_another(MODERATE);
}

#[test]
fn a_worker_still_steals_in_the_relaxed_phase() {
    is_stolen_by_another(RELAXED);
    is_stolen_by_another(Polling {
        relaxed_sleep: Duration::from_millis(1),
        ..RELAXED
    });
    is_stolen_by_another(Polling {
        relaxed_steal_interval: 3,
        ..RELAXED
    });
}

#[test]
fn the_default_phases_are_those_of_caf() {
    let Polling {
        aggressive_attempts,
        aggressive_steal_interval,
        moderate_attempts,
        moderate_steal_interval,
        moderate_sleep,
        relaxed_steal_interval,
        relaxed_sleep,
    } = Polling::default();
    assert_eq!((aggressive_attempts, aggressive_steal_interval), (100, 10));
    assert_eq!((moderate_attempts, moderate_steal_interval), (500, 5));
    assert_eq!(moderate_sleep, Duration::from_micros(50));
    assert_eq!(relaxed_steal_interval, 1);
    assert_eq!(relaxed_sleep, Duration::from_millis(10));
    is_stolen_by_another(Polling::default());
}

#[cfg(target_os = "linux")]
mod naps {
    use super::*;
    use crate::policies::sleep_on;
    use crate::support::naps::naps;
    use crate::support::{MANY_HAND_OVERS, hand_over, until};

    fn nap(name: &str) -> (u64, bool) {
        *naps(name)
            .values()
            .next()
            .expect("the runtime has one worker")
    }

    #[test]
    fn a_worker_does_not_sleep_in_the_aggressive_phase() {
        within(WATCH, || {
            let runtime = polling(1, "ca14a", AGGRESSIVE);
            drive(runtime.spawn(async {}));
            let awake = |before| {
                hand_over(MANY_HAND_OVERS / 5);
                nap("ca14a") == (before, false)
            };
            until(|| {
                let (before, _) = nap("ca14a");
                (0..20).all(|_| awake(before))
            });
        });
    }

    #[test]
    fn a_worker_sleeps_briefly_and_repeatedly_in_the_moderate_phase() {
        within(WATCH, || {
            // As long as attempts are left, and each time as long as configured.
            for brief in [1, 50, 1000] {
                let moderate_sleep = Duration::from_micros(brief);
                let numbers = Polling {
                    moderate_sleep,
                    ..MODERATE
                };
                let runtime = polling(1, "ca14m", numbers);
                drive(runtime.spawn(async {}));
                let (before, _) = nap("ca14m");
                until(|| nap("ca14m").0 > before + 50);
                drop(runtime);
                until(|| naps("ca14m").is_empty());
            }
        });
    }

    #[test]
    fn a_long_sleep_in_the_moderate_phase_does_not_delay_a_shutdown() {
        within(WATCH, || {
            let numbers = Polling {
                moderate_sleep: Duration::MAX,
                ..MODERATE
            };
            let runtime = polling(1, "long", numbers);
            until(|| naps("long").values().any(|&(_, sleeps)| sleeps));
            assert_eq!(drive(runtime.shutdown()).left_behind, 0);
        });
    }

    #[test]
    fn a_worker_sleeps_as_long_as_configured_in_the_relaxed_phase() {
        within(WATCH, || {
            let numbers = Polling {
                relaxed_sleep: Duration::from_millis(1),
                ..RELAXED
            };
            let short = polling(1, "ca14r", numbers);
            drive(short.spawn(async {}));
            let (before, _) = nap("ca14r");
            until(|| nap("ca14r").0 > before + 20);
            // After the attempts of the first two phases the worker enters this phase and stays in
            // it.
            let numbers = Polling {
                aggressive_attempts: 10,
                moderate_attempts: 10,
                moderate_sleep: Duration::from_micros(1),
                ..RELAXED
            };
            let long = polling(1, "ca14l", numbers);
            drive(long.spawn(async {}));
            sleep_on("ca14l", 1);
        });
    }
}

#[test]
fn a_steal_interval_of_zero_is_refused() {
    let of = |change: fn(&mut Polling)| {
        let mut numbers = Polling::default();
        change(&mut numbers);
        let builder = Runtime::builder().policy(Stealing::polling(numbers));
        let error = builder.build().unwrap_err();
        assert!(matches!(
            error,
            BuildError::Impossible {
                option: "policy",
                ..
            }
        ));
        error.to_string()
    };
    let text = |phase| format!("policy has {phase}_steal_interval 0, but it must be at least 1");
    assert_eq!(of(|n| n.aggressive_steal_interval = 0), text("aggressive"));
    assert_eq!(of(|n| n.moderate_steal_interval = 0), text("moderate"));
    assert_eq!(of(|n| n.relaxed_steal_interval = 0), text("relaxed"));
}

#[test]
fn all_other_polling_options_may_be_zero_or_maximal() {
    within(WATCH, || {
        let zeros = Polling {
            aggressive_attempts: 0,
            moderate_attempts: 0,
            moderate_sleep: Duration::ZERO,
            relaxed_sleep: Duration::ZERO,
            ..Polling::default()
        };
        let most = Polling {
            aggressive_attempts: 1,
            aggressive_steal_interval: u32::MAX,
            moderate_attempts: 1,
            moderate_steal_interval: u32::MAX,
            moderate_sleep: Duration::from_nanos(1),
            relaxed_steal_interval: u32::MAX,
            relaxed_sleep: Duration::MAX,
        };
        for numbers in [zeros, most] {
            let runtime = polling(2, "edges", numbers);
            for n in 0..100 {
                assert_eq!(drive(runtime.spawn(async move { n })), n);
            }
        }
    });
}

#[test]
fn a_push_wakes_a_worker_in_the_relaxed_phase() {
    within(WATCH, || {
        let runtime = polling(2, "ca16", RELAXED);
        for n in 0..300 {
            // Pushed from outside, and by another worker.
            let inner = runtime.spawn(async move { greenroom::spawn(async move { n }).await });
            assert_eq!(drive(inner), n);
        }
    });
    is_stolen_by_another(RELAXED);
}

#[test]
fn a_policy_may_deal_injected_tasks_to_its_workers_in_turn() {
    within(WATCH, || {
        let policy = RoundRobin::default();
        let dealt = policy.dealt.clone();
        let runtime = Runtime::builder()
            .workers(3)
            .policy(policy)
            .build()
            .unwrap();
        let tasks: Vec<_> = (0..30).map(|n| runtime.spawn(async move { n })).collect();
        let values = drive(futures::future::join_all(tasks));
        assert!(values.into_iter().eq(0..30));
        assert_eq!(*dealt.lock().unwrap(), [0, 1, 2].repeat(10));
    });
}
