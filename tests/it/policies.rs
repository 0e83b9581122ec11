//! One suite that every scheduling policy passes: those of greenroom, and users' own.
//!
//! A scenario is a function of a [`Case`]; each policy makes a test of each scenario, which runs it
//! on the numbers of workers that the matrix has.

mod ending;
mod errors;
mod foreign;
mod hooks;
mod misuse;
mod observer;
mod own;
mod prioritized;
mod running;
mod sharing;
mod stealing;
mod wakes;
mod waking;

use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::policy::{Polling, Prioritized, Sharing, Simulated, Stealing};
use greenroom::{Builder, Runtime};

#[cfg(target_os = "linux")]
use crate::origins::{asleep, naps};
use crate::support::{Home, WATCH, matrix, simulated, within};
#[cfg(target_os = "linux")]
use crate::support::{MANY_HAND_OVERS, hand_over, until};

/// A policy, and on how many workers it is to run.
struct Case {
    policy: Kind,
    workers: usize,
    /// How the names of its threads begin, which no other case has.
    threads: String,
}

/// What makes the builders of a case.
#[derive(Clone, Copy)]
enum Kind {
    Of(fn() -> Builder),
    /// With this seed.
    Simulated(u64),
}

impl Case {
    fn builder(&self) -> Builder {
        let builder = match self.policy {
            Kind::Of(make) => make(),
            Kind::Simulated(seed) => Runtime::builder().policy(Simulated::new(seed)),
        };
        builder
            .on_fault(|_| {})
            .workers(self.workers)
            .thread_name(&self.threads)
    }

    fn built(&self, builder: Builder) -> Runtime {
        self.home_built(builder).runtime
    }

    fn runtime(&self) -> Runtime {
        self.built(self.builder())
    }

    fn home(&self) -> Home {
        self.home_built(self.builder())
    }

    fn home_built(&self, builder: Builder) -> Home {
        let home = Home::built(self.workers, builder);
        if let Kind::Simulated(_) = self.policy {
            simulated::adopt(&home.runtime);
        }
        home
    }
}

/// Runs the scenario with this policy, on each number of workers that the matrix has, from this one on.
fn holds(builder: fn() -> Builder, at_least: usize, scenario: fn(&Case)) {
    for workers in matrix::workers(at_least) {
        let _named = matrix::Named(format!("{workers} workers"));
        holds_once(Kind::Of(builder), workers, scenario);
    }
}

/// Runs the scenario in simulations. The number of workers, which makes no difference, is to some
/// scenarios how much they do.
fn holds_simulated(scenario: fn(&Case)) {
    for &seed in matrix::seeds() {
        let _named = matrix::Named(format!("seed {seed}"));
        holds_once(Kind::Simulated(seed), 2, scenario);
    }
}

fn holds_once(policy: Kind, workers: usize, scenario: fn(&Case)) {
    static CASES: AtomicUsize = AtomicUsize::new(0);
    // With an end to the number, so that none begins as another.
    let threads = format!("case{}.", CASES.fetch_add(1, Ordering::Relaxed));
    let case = Case {
        policy,
        workers,
        threads,
    };
    within(WATCH, move || {
        scenario(&case);
        simulated::forget();
    });
}

/// Makes the suite: a module for each policy, with a test of each scenario; and one for simulations,
/// but for those scenarios that need threads. Those of `several` need two workers or more.
macro_rules! suite {
    ($policies:tt: $(
        $file:ident::{ $($scenario:ident,)* }
        $(, threads: { $($threaded:ident,)* })?
        $(, several: { $($several:ident,)* })?
        $(, several threads: { $($several_threads:ident,)* })?
    )+) => {
        $(pub mod $file {
            suite!(@policies $policies $file {
                $($scenario 1,)* $($($threaded 1,)*)?
                $($($several 2,)*)? $($($several_threads 2,)*)?
            });
            suite!(@simulated $file { $($scenario,)* $($($several,)*)? });
        })+
    };
    (@policies { $($policy:ident => $make:expr,)+ } $file:ident $scenarios:tt) => {
        $(suite!(@policy $policy $make, $file, $scenarios);)+
    };
    (@policy $policy:ident $make:expr, $file:ident, { $($scenario:ident $at_least:literal,)+ }) => {
        pub mod $policy {
            use super::super::super::*;

            fn builder() -> Builder {
                Runtime::builder().policy($make)
            }

            $(
                #[test]
                fn $scenario() {
                    holds(builder, $at_least, super::super::super::$file::$scenario);
                }
            )+
        }
    };
    (@simulated $file:ident { }) => {};
    (@simulated $file:ident { $($scenario:ident,)+ }) => {
        pub mod simulated {
            $(
                #[test]
                fn $scenario() {
                    super::super::super::holds_simulated(super::super::super::$file::$scenario);
                }
            )+
        }
    };
}

/// SO23: the schedulers are interchangeable.
mod so23 {
    suite! {
        {
            stealing => Stealing::default(),
            stealing_polling => Stealing::polling(Polling::default()),
            stealing_without_rebalance => Stealing::default().rebalance_interval(None),
            sharing => Sharing::default(),
            prioritized => Prioritized::default(),
            prioritized_aging => Prioritized::default().aging(3),
            newest => own::Newest::default(),
            round_robin => own::RoundRobin::default(),
            wrapped => own::Wrapped::default(),
        }:
        running::{
            so23_the_same_program_gives_the_same_results,
            tasks_and_actors_run_wherever_they_are_spawned,
            messages_of_one_sender_are_handled_in_order,
            a_task_that_is_woken_in_its_run_runs_again,
            an_actor_that_tells_itself_for_ever_starves_nobody,
            a_task_that_yields_for_ever_starves_nobody,
            blocking_calls_come_back,
            a_task_may_wait_for_another_in_block_on,
            pinned_threads_and_workers_talk_to_each_other,
            detached_actors_and_workers_talk_to_each_other,
        }, threads: {
            // Threads that meet.
            an_actor_is_never_run_by_two_threads_at_once,
            all_workers_may_wait_in_block_on_at_once,
        }
        waking::{
            no_wake_up_from_a_foreign_thread_is_lost,
            no_wake_up_from_a_pinned_thread_is_lost,
            no_wake_up_between_workers_is_lost,
            many_wake_ups_at_once_are_all_heard,
            a_timer_fires_though_all_are_idle,
            a_timer_fires_though_all_workers_are_busy,
            a_deadline_from_outside_is_kept_though_all_are_idle,
            a_nearer_deadline_from_outside_is_kept,
        }, several: {
            // A worker blocks, and another one goes on.
            what_a_worker_that_blocks_has_woken_is_run_by_another,
            a_deadline_is_kept_though_the_worker_that_armed_it_blocks,
        }, several threads: {
            // A worker blocks until the test goes on.
            a_timer_fires_though_another_worker_is_busy,
        }
        ending::{
            a_panic_ends_one_task_or_actor_alone,
            a_task_whose_handle_is_dropped_is_cancelled,
            a_killed_actor_is_dropped_with_its_messages,
            what_was_queued_before_a_shutdown_runs,
            what_is_left_at_the_end_of_a_shutdown_is_cancelled_and_counted,
            a_shutdown_ends_all_threads,
            the_last_clone_may_be_dropped_in_a_task,
            a_runtime_comes_to_rest_once_all_is_done,
            a_runtime_comes_to_rest_though_tasks_wait_for_ever,
            an_ask_that_nobody_can_answer_is_told_so,
            a_timer_or_a_blocking_call_keeps_a_runtime_from_its_rest,
        }
    }
}

/// CA17: nobody polls, but for the policy that is there for it.
mod ca17 {
    suite! {
        {
            stealing => Stealing::default(),
            stealing_without_rebalance => Stealing::default().rebalance_interval(None),
            sharing => Sharing::default(),
            prioritized => Prioritized::default(),
            newest => own::Newest::default(),
            round_robin => own::RoundRobin::default(),
            wrapped => own::Wrapped::default(),
        }:
        // How threads sleep.
        waking::{}, threads: {
            ca17_workers_without_work_do_not_run,
        }
    }
}

/// Waits until the threads whose names begin so, which are that many, have not run for a while.
/// Who polls, never has.
#[cfg(target_os = "linux")]
fn sleep_on(prefix: &str, threads: usize) {
    until(|| {
        let before = asleep(prefix);
        assert_eq!(before.len(), threads);
        hand_over(4 * MANY_HAND_OVERS);
        naps(prefix) == before
    });
}
