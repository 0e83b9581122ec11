//! One suite that every scheduling policy passes: greenroom's own policies, and custom ones.
//!
//! A scenario is a function of a [`Case`]. Each policy makes a test of each scenario, which runs on
//! the worker counts that the matrix selects.

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
use crate::support::naps::{asleep, naps};
use crate::support::{Home, WATCH, matrix, simulated, within};
#[cfg(target_os = "linux")]
use crate::support::{MANY_HAND_OVERS, hand_over, until};

/// A policy and the number of workers on which it runs.
struct Case {
    policy: Kind,
    workers: usize,
    /// The prefix of its threads' names; no other case has the same.
    threads: String,
}

/// The source of a case's builders.
#[derive(Clone, Copy)]
enum Kind {
    Of(fn() -> Builder),
    /// A simulation with this seed.
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

/// Runs the scenario with this policy on each worker count of the matrix that is at least
/// `at_least`.
fn holds(builder: fn() -> Builder, at_least: usize, scenario: fn(&Case)) {
    for workers in matrix::workers(at_least) {
        let _named = matrix::Named(format!("{workers} workers"));
        holds_once(Kind::Of(builder), workers, scenario);
    }
}

/// Runs the scenario in simulations. Some scenarios scale their work by the number of workers,
/// which otherwise makes no difference here.
fn holds_simulated(scenario: fn(&Case)) {
    for &seed in matrix::seeds() {
        let _named = matrix::Named(format!("seed {seed}"));
        holds_once(Kind::Simulated(seed), 2, scenario);
    }
}

fn holds_once(policy: Kind, workers: usize, scenario: fn(&Case)) {
    static CASES: AtomicUsize = AtomicUsize::new(0);
    // The full stop ends the number, so that no prefix is the prefix of another.
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

/// Makes the suite: a module for each policy with a test of each scenario, and one for simulations
/// without the scenarios that need threads. Scenarios in `several` need two workers or more.
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

/// Policies are interchangeable: all pass the same scenarios.
mod every_policy {
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
            the_same_program_gives_the_same_results,
            tasks_and_actors_run_wherever_they_are_spawned,
            messages_of_one_sender_are_handled_in_order,
            a_task_that_is_woken_in_its_turn_runs_again,
            an_actor_that_messages_itself_forever_does_not_starve_other_tasks,
            a_task_that_yields_forever_does_not_starve_other_tasks,
            blocking_calls_return_their_values,
            a_task_may_block_on_another_task,
            pinned_threads_and_workers_talk_to_each_other,
            detached_actors_and_workers_talk_to_each_other,
        }, threads: {
            // Threads wait for each other at a barrier.
            an_actor_is_never_run_by_two_threads_at_once,
            all_workers_may_wait_in_block_on_at_once,
        }
        waking::{
            no_wake_up_from_a_foreign_thread_is_lost,
            no_wake_up_from_a_pinned_thread_is_lost,
            no_wake_up_between_workers_is_lost,
            many_simultaneous_wake_ups_are_all_delivered,
            a_timer_fires_while_all_workers_are_idle,
            a_timer_fires_while_all_workers_are_busy,
            a_deadline_armed_outside_fires_while_all_workers_are_idle,
            a_nearer_deadline_armed_outside_fires_in_time,
        }, several: {
            // One worker blocks while another one continues.
            tasks_woken_by_a_worker_that_blocks_are_run_by_another,
            a_deadline_fires_while_the_worker_that_armed_it_blocks,
        }, several threads: {
            // A worker blocks until the test continues.
            a_timer_fires_while_another_worker_is_busy,
        }
        ending::{
            a_panic_ends_only_its_task_or_actor,
            a_task_whose_handle_is_dropped_is_cancelled,
            a_killed_actor_is_dropped_with_its_messages,
            tasks_queued_before_a_shutdown_run,
            tasks_left_at_the_end_of_a_shutdown_are_cancelled_and_counted,
            a_shutdown_ends_all_threads,
            the_last_clone_may_be_dropped_in_a_task,
            a_runtime_is_quiescent_once_all_work_is_done,
            a_runtime_is_quiescent_while_tasks_wait_forever,
            an_ask_that_no_actor_can_answer_gets_a_deadlock_error,
            timers_and_blocking_calls_delay_quiescence,
        }
    }
}

/// All policies but the polling one: their idle workers park.
mod parking_policies {
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
        // Checks how threads sleep.
        waking::{}, threads: {
            workers_without_work_do_not_run,
        }
    }
}

/// Waits until the `threads` threads whose names have this prefix have not run for a while. A
/// worker that polls never does that.
#[cfg(target_os = "linux")]
fn sleep_on(prefix: &str, threads: usize) {
    until(|| {
        let before = asleep(prefix);
        assert_eq!(before.len(), threads);
        hand_over(4 * MANY_HAND_OVERS);
        naps(prefix) == before
    });
}
