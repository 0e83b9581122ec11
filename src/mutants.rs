//! Checks that the models find mutations: each mutation is enabled in turn, and a model must fail.
//!
//! A mutation is a wrong line of the sources behind `sync::mutant("name")`. Each model runs in its
//! own process, since loom may abort when it reports a deadlock.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const DEADLOCK: &str = "deadlock; threads";
const RACE: &str = "Causality violation";
const ORDER: &str = "once, in order";
const TAKEN: &str = "taken once each";
const FLIGHT: &str = "something is in flight";
const LOST: &str = "a wake-up was lost";
const SETTLED: &str = "run or dropped, once";

/// The mutation, the model that finds it, and the text that the model prints: its own assertion, or
/// loom's report of a lost wake-up or of an unordered access.
const MUTANTS: &[(&str, &str, &str)] = &[
    ("word_taken_without_exchange", "model_01_two", RACE),
    ("block_is_not_linked", "model_02", ORDER),
    ("block_is_not_linked", "model_03", DEADLOCK),
    ("word_release", "model_04", RACE),
    ("rest_without_a_look", "model_04", ORDER),
    ("word_release", "model_05", RACE),
    ("word_taken_without_exchange", "model_05", RACE),
    ("closed_still_accepts", "model_06", ORDER),
    ("closed_still_accepts", "model_07", "accepted is drained"),
    (
        "room_is_not_passed_on",
        "model_08_a_sender_never",
        "letter was taken",
    ),
    (
        "accepted_sender_is_not_woken",
        "model_08_a_sender_that_waits",
        DEADLOCK,
    ),
    (
        "reserved_is_not_waited_for",
        "model_08_a_closed_mailbox_ends_after_its_last_place_is_filled",
        "a permit was given before the close",
    ),
    (
        "foreign_reader_is_not_woken",
        "model_08_a_closed_mailbox_ends_after_its_last_place_is_given",
        DEADLOCK,
    ),
    (
        "given_up_place_wakes_nobody",
        "model_08_a_closed_mailbox_ends_after_its_last_place_is_given",
        DEADLOCK,
    ),
    (
        "given_up_place_is_not_passed_on",
        "model_08_a_place_that_is_given_up",
        DEADLOCK,
    ),
    ("close_forgets_the_line", "model_08_a_close", DEADLOCK),
    (
        "displaced_letter_keeps_its_room",
        "model_74",
        "the room is free again",
    ),
    ("urgent_letter_is_forgotten", "model_75", DEADLOCK),
    ("asker_is_not_woken", "model_09_dropped_reply", DEADLOCK),
    (
        "ended_asker_is_not_woken",
        "model_09_deadlock_wakes",
        DEADLOCK,
    ),
    (
        "ended_ask_is_answered",
        "model_09_deadlock_and",
        "there is one outcome",
    ),
    ("lock_release", "model_09_the_lock", RACE),
    ("oneshot_left_relaxed", "model_38", RACE),
    ("the_last_end_frees_nothing", "model_38", "leaked"),
    ("notify_without_fence", "model_10_a_push", DEADLOCK),
    ("sleep_without_fence", "model_10_a_push", DEADLOCK),
    ("no_chain_wake", "model_11", DEADLOCK),
    ("search_ends_without_fence", "model_11", DEADLOCK),
    ("two_thieves", "model_11", "two workers searched at once"),
    ("only_the_searcher_looks_again", "model_12", DEADLOCK),
    ("slot_unwatched", "model_36", DEADLOCK),
    ("slots_are_not_looked_at", "model_36", DEADLOCK),
    ("watch_ends_without_fence", "model_36", DEADLOCK),
    ("hold_off_without_fence", "model_45", DEADLOCK),
    ("watch_is_not_left_to_another", "model_36", DEADLOCK),
    ("watcher_takes_nothing", "model_12", DEADLOCK),
    ("sleep_without_fence", "model_13_worker", DEADLOCK),
    ("pinned_thread_is_not_unparked", "model_13_pinned", DEADLOCK),
    ("unpark_without_the_lock", "model_33", DEADLOCK),
    ("woken_relaxed", "model_37_wake_ups", LOST),
    ("rest_without_exchange", "model_37_a_wake_up", LOST),
    ("third_wake_without_exchange", "model_37_wake_ups", LOST),
    ("begun_relaxed", "model_37_wake_ups", LOST),
    ("rested_relaxed", "model_37_a_turn", RACE),
    ("disarmed_without_exchange", "model_37_the_end", RACE),
    ("disarmed_without_exchange", "model_37_a_handle", RACE),
    ("released_relaxed", "model_37_the_end", RACE),
    ("extras_looked_for_before_the_end", "model_39", DEADLOCK),
    ("waits_without_a_second_look", "model_39", DEADLOCK),
    (
        "revived_and_still_abandoned",
        "model_43",
        "an upgraded address is open",
    ),
    ("dropped_before_the_wake_up", "model_44", DEADLOCK),
    ("caller_is_not_woken", "model_35_the_result", DEADLOCK),
    (
        "taken_without_fence",
        "model_34",
        "the shutdown is not notified",
    ),
    (
        "a_call_is_not_taken_back",
        "model_32",
        "neither seen nor called for",
    ),
    ("ring_push_relaxed", "model_14", TAKEN),
    ("head_moved_without_exchange", "model_14", TAKEN),
    ("slot_filled_relaxed", "model_14", RACE),
    ("slot_taken_without_fence", "model_14_the_slot", RACE),
    ("slot_claimed_without_fence", "model_14_the_slot", RACE),
    (
        "wake_looks_without_the_lock",
        "model_15_writes",
        "the last run has seen all",
    ),
    ("drain_looks_once", "model_16", SETTLED),
    ("drain_ends_without_fence", "model_16", SETTLED),
    ("late_push_stays", "model_16", SETTLED),
    (
        "declared_before_the_scan",
        "model_18_quiescence_is_declared_after_the_work_of_a_keep",
        FLIGHT,
    ),
    (
        "counted_only_after_the_take",
        "model_18_quiescence_is_declared_after_the_work_of_a_keep",
        FLIGHT,
    ),
    (
        "declared_without_a_second_look",
        "model_18_quiescence_is_declared_after_the_work_of_a_deadline",
        FLIGHT,
    ),
    (
        "timeouts_are_no_work",
        "model_18_quiescence_is_declared_after_the_work_of_a_timeout",
        FLIGHT,
    ),
    (
        "declared_without_a_second_look",
        "model_18_quiescence_is_declared_after_the_work_of_a_timeout",
        FLIGHT,
    ),
    (
        "deadlines_are_looked_at_without_the_lock",
        "model_18_quiescence_comes_when",
        DEADLOCK,
    ),
    (
        "timeouts_are_not_looked_at_alone",
        "model_18_a_deadlock_is_found",
        DEADLOCK,
    ),
    (
        "the_last_hold_declares_nothing",
        "model_18_quiescence_comes_with",
        DEADLOCK,
    ),
    ("a_watcher_does_not_look", "model_18_a_late", DEADLOCK),
    (
        "parking_is_notified_without_fence",
        "model_31_a_push",
        DEADLOCK,
    ),
    ("parking_without_a_last_look", "model_31_a_push", DEADLOCK),
    ("a_wake_up_is_not_passed_on", "model_31_a_wake_up", DEADLOCK),
    ("counted_after_the_enqueue", "model_31_quiescence", FLIGHT),
    (
        "sleepers_are_not_woken_at_the_end",
        "model_17_a_shutdown_ends_a_worker_that_sleeps",
        DEADLOCK,
    ),
    ("an_ended_worker_keeps_its_queues", "model_17_an", SETTLED),
    (
        "abandoned_without_a_second_look",
        "model_30",
        "the source was attached before the actor closed",
    ),
    (
        "fired_stays_in_the_table",
        "model_28_a_deadline_is_fired_once",
        "the waker was dropped",
    ),
    (
        "keeper_is_woken_for_no_deadline",
        "model_28_a_sleeper_is_woken_for_an",
        DEADLOCK,
    ),
    (
        "no_keeper_for_a_deadline",
        "model_28_a_sleeper_is_woken_for_the",
        DEADLOCK,
    ),
    (
        "each_deadline_waits_for_its_turn",
        "model_28_a_deadline_of_a_turn",
        DEADLOCK,
    ),
    (
        "each_deadline_waits_for_its_turn",
        "model_28_a_later_deadline",
        DEADLOCK,
    ),
    (
        "no_keeper_for_a_deadline_of_a_worker",
        "model_28_a_deadline_of_a_worker",
        DEADLOCK,
    ),
    (
        "a_displaced_thread_stays_the_worker",
        "model_29_a_worker_has",
        "a token is run once",
    ),
    (
        "a_panic_leaves_the_search",
        "model_29_a_worker_whose_loop_panics",
        DEADLOCK,
    ),
    (
        "a_worker_is_lost_when_the_pool_is_over",
        "model_29_a_shutdown",
        DEADLOCK,
    ),
    (
        "a_thread_is_inside_by_its_role",
        "model_40_a_leaving_thread_may_drop",
        DEADLOCK,
    ),
    (
        "a_thread_that_is_gone_notifies_nobody",
        "model_40_a_leaving_thread_may_drop",
        DEADLOCK,
    ),
    (
        "a_late_push_interrupts_no_join",
        "model_40_a_leaving_thread_may_wait",
        DEADLOCK,
    ),
    ("a_wait_keeps_the_token", "model_41_outer", DEADLOCK),
    ("a_wait_keeps_the_token", "model_41_loop", DEADLOCK),
    ("idle_without_exchange", "model_46_a_wait", DEADLOCK),
    ("counted_after_the_wake_up", "model_46_quiescence", DEADLOCK),
    (
        "termination_counted_before_it_is",
        "model_47",
        "handled after the kill",
    ),
    (
        "termination_counted_relaxed",
        "model_47",
        "handled after the kill",
    ),
    (
        "stop_counted_before_it_is",
        "model_47",
        "received after the stop",
    ),
    ("cell_released_relaxed", "model_48", RACE),
    ("cell_freed_without_fence", "model_48", RACE),
    (
        "a_late_push_is_not_noticed",
        "model_16_an_entry_for",
        DEADLOCK,
    ),
    (
        "a_worker_leaves_what_its_last_turn_left",
        "model_49_a_task_of_a_late",
        "the task was not dropped",
    ),
    (
        "tracked_without_a_look",
        "model_49_a_task_that_another",
        "the task was not dropped",
    ),
    (
        "late_push_stays",
        "model_49_a_task_that_is_woken",
        "the task was not dropped",
    ),
    (
        "a_dropped_split_looks_once",
        "model_50",
        "the actor was not dropped",
    ),
    (
        "a_hint_is_believed",
        "model_51_a_block",
        "another thread took the last magazine",
    ),
    ("what_has_no_room_is_lost", "model_51_blocks", "leaked"),
    (
        "a_pinned_thread_parks_without_a_second_look",
        "model_52",
        DEADLOCK,
    ),
    ("unpark_wakes_no_driver", "model_53_a_push", DEADLOCK),
    (
        "a_keeper_leaves_no_heir",
        "model_53_a_keeper",
        "no sleeper keeps the deadline",
    ),
    (
        "an_end_is_taken_twice",
        "model_54_an_end",
        "one thread takes the end",
    ),
    (
        "the_last_place_forgets_its_message",
        "model_55_a",
        "each letter is delivered once",
    ),
    ("the_lender_is_not_woken", "model_56_lender_is", DEADLOCK),
    ("word_release", "model_56_lender_is", RACE),
    (
        "given_back_before_the_reader_is_left",
        "model_56_context",
        RACE,
    ),
    (
        "revoked_by_a_hint",
        "model_57_context_belongs_to_its_holder_or_its_lender",
        "one of both has the reader",
    ),
    (
        "revoked_by_a_hint",
        "model_57_letters",
        "each letter is delivered once",
    ),
    (
        "a_late_answer_counts",
        "model_58_a_late_answer",
        "nothing has answered the second request",
    ),
    (
        "a_writer_is_granted_a_lock_that_is_held",
        "model_59",
        "a task is not alone",
    ),
    (
        "a_cancelled_request_frees_nothing",
        "model_60_a_cancelled",
        DEADLOCK,
    ),
    (
        "a_cancelled_task_keeps_its_locks",
        "model_60_a_cancel_against",
        DEADLOCK,
    ),
    (
        "the_world_waits_for_no_task",
        "model_61",
        "a task is not alone",
    ),
    ("halted_loopers_stay", "model_61", DEADLOCK),
    ("a_lane_waits_after_its_look", "model_62", DEADLOCK),
    ("waits_without_a_second_look", "model_62_a_close", DEADLOCK),
    (
        "a_value_is_taken_when_the_world_may_stop",
        "model_63",
        "the value is given back",
    ),
    ("a_lane_waits_without_a_look_at_posts", "model_64", DEADLOCK),
    (
        "a_thread_that_was_woken_late_ends",
        "model_65_a_thread",
        DEADLOCK,
    ),
    (
        "a_thread_with_a_job_brings_no_other",
        "model_65_jobs",
        DEADLOCK,
    ),
    (
        "a_worker_that_has_come_is_still_expected",
        "model_66_a_job_that_is_offered_to_a_leaving",
        DEADLOCK,
    ),
    (
        "a_late_worker_stays_idle",
        "model_66_a_job_that_is_offered_to_an_idle",
        DEADLOCK,
    ),
    (
        "a_stop_forgets_the_line",
        "model_67_producers_at_a_full_board_get",
        DEADLOCK,
    ),
    (
        "a_stop_waits_for_workers_without_threads",
        "model_67_producers_at_a_full_board_get",
        DEADLOCK,
    ),
    (
        "room_is_not_passed_to_the_line",
        "model_67_producers_at_a_full_board_go",
        DEADLOCK,
    ),
    (
        "a_key_is_freed_before_its_job_runs",
        "model_68",
        "two jobs of a key run",
    ),
    ("a_failed_start_is_not_tried_again", "model_69", DEADLOCK),
    (
        "a_market_ends_before_its_workers",
        "model_70_a_market",
        "a market has ended with a worker",
    ),
    (
        "a_task_awaits_without_a_second_look",
        "model_71_an",
        DEADLOCK,
    ),
    (
        "a_look_disarms_last",
        "model_72",
        "nothing looks at the turns",
    ),
];

#[test]
fn loom_mutants_are_caught() {
    let mut missed = Vec::new();
    for &(mutant, model, text) in MUTANTS {
        // Most need one preemption, and a slow model takes an hour with two.
        let said = run(mutant, model, "1").or_else(|_| run(mutant, model, "2"));
        if !said.as_ref().is_ok_and(|said| said.contains(text)) {
            let (Ok(said) | Err(said)) = said;
            missed.push(format!("{mutant}: {model} did not say {text:?}:\n{said}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Runs a model with a mutation and this number of preemptions. Returns what it says, as an error if
/// it passes.
fn run(mutant: &str, model: &str, preemptions: &str) -> Result<String, String> {
    let run = Command::new(std::env::current_exe().unwrap())
        .args([model, "--nocapture", "--test-threads=1"])
        .env("GREENROOM_MUTANT", mutant)
        .env("LOOM_MAX_PREEMPTIONS", preemptions)
        .output()
        .unwrap();
    let said = [run.stdout, run.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    match run.status.success() {
        true => Err(said),
        false => Ok(said),
    }
}

#[test]
fn loom_every_mutation_has_its_model_and_every_model_its_mutation() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let after = |text: &'static str| {
        let found = sources.split(text).skip(1);
        found.map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')))
    };
    let faults: BTreeSet<_> = after("mutant(\"")
        .filter_map(|mut words| words.next())
        .collect();
    assert_eq!(faults, MUTANTS.iter().map(|row| row.0).collect());
    let models = after("fn model_").filter_map(|mut words| words.next()?.get(..2));
    let models: BTreeSet<_> = models.filter(|model| model.parse::<u8>().is_ok()).collect();
    let number = |row: &(&str, &'static str, &str)| row.1.strip_prefix("model_")?.get(..2);
    assert_eq!(models, MUTANTS.iter().filter_map(number).collect());
}

/// Reads all sources in `folder`, except this one.
fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &sources(&path);
        } else if path.file_name().is_some_and(|name| name != "mutants.rs") {
            all += &std::fs::read_to_string(&path).unwrap();
        }
    }
    all
}
