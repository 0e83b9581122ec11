//! The options of a runtime and their effects.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use greenroom::{Context, Detached, Runtime, spawn};

use crate::support::{Gate, Log, WATCH, keep_bombs_quiet, within};

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

#[test]
fn as_many_tasks_run_at_the_same_time_as_there_are_workers() {
    within(WATCH, || {
        for workers in [1, 2, 3, 8] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let meeting = Arc::new(Barrier::new(workers));
            runtime.block_on(async {
                let tasks: Vec<_> = (0..workers)
                    .map(|_| {
                        let meeting = meeting.clone();
                        greenroom::spawn(async move { meeting.wait().is_leader() })
                    })
                    .collect();
                futures::future::join_all(tasks).await;
            });
        }
    });
}

#[test]
fn worker_threads_have_the_given_name_and_a_number() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(2)
            .thread_name("stage")
            .build()
            .unwrap();
        let names = Log::default();
        let meeting = Arc::new(Barrier::new(2));
        runtime.block_on(async {
            let tasks: Vec<_> = (0..2)
                .map(|_| {
                    let (names, meeting) = (names.clone(), meeting.clone());
                    greenroom::spawn(async move {
                        meeting.wait();
                        names.add(thread_name());
                    })
                })
                .collect();
            futures::future::join_all(tasks).await;
            names.add(greenroom::unblock(thread_name).await);
        });
        let mut names = names.take();
        names.sort();
        assert_eq!(names, ["stage-0", "stage-1", "stage-blocking"]);
    });
}

#[test]
fn a_runtime_can_be_built_with_the_default_options() {
    within(WATCH, || {
        let runtime = Runtime::new().unwrap();
        assert_eq!(
            runtime.block_on(async { greenroom::spawn(async { 42 }).await }),
            42
        );
    });
}

#[test]
fn a_thousand_workers_are_not_too_many() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1024).build().unwrap();
        let sum: u32 = runtime.block_on(async {
            let tasks: Vec<_> = (0..4096)
                .map(|n| greenroom::spawn(async move { n }))
                .collect();
            futures::future::join_all(tasks).await.into_iter().sum()
        });
        assert_eq!(sum, 4095 * 4096 / 2);
    });
}

/// Returns, for each of six messages, the turn in which it is handled with this batch.
fn turns_of_six_messages(batch: usize) -> Vec<usize> {
    within(WATCH, move || {
        let runtime = Runtime::builder().workers(1).batch(batch).build().unwrap();
        let turn = Arc::new(AtomicUsize::new(0));
        let full = Gate::default();
        runtime.block_on(async {
            let (counter, seen) = (turn.clone(), full.clone());
            let reader = spawn!(|mut cx: Context<()>| async move {
                seen.wait().await;
                let mut turns = Vec::new();
                while cx.recv().await.is_some() {
                    turns.push(counter.load(Ordering::SeqCst));
                }
                turns
            });
            (0..6).for_each(|_| reader.tell(()).unwrap());
            // The other task has its turns between those of the reader, on the only worker.
            let counter = turn.clone();
            let other = greenroom::spawn(async move {
                full.open();
                loop {
                    greenroom::yield_now().await;
                    counter.fetch_add(1, Ordering::SeqCst);
                }
            });
            let turns = reader.join().await.unwrap();
            drop(other);
            turns
        })
    })
}

#[test]
fn an_actor_lets_other_tasks_run_after_a_batch_of_messages() {
    let turns = turns_of_six_messages(2);
    assert_eq!(turns.len(), 6);
    for pair in turns.chunks(2) {
        assert_eq!(pair[0], pair[1], "each batch must be one turn: {turns:?}");
    }
    assert!(
        turns[1] < turns[2] && turns[3] < turns[4],
        "other tasks must run between batches: {turns:?}"
    );
}

#[test]
fn a_batch_of_one_lets_other_tasks_run_after_each_message() {
    let turns = turns_of_six_messages(1);
    assert!(
        turns.is_sorted_by(|earlier, later| earlier < later),
        "{turns:?}"
    );
}

#[test]
fn fewer_messages_than_a_batch_are_handled_in_one_turn() {
    let turns = turns_of_six_messages(64);
    assert!(turns.iter().all(|turn| *turn == turns[0]), "{turns:?}");
}

#[test]
fn a_stack_that_is_too_small_or_too_large_is_refused_with_its_limits() {
    for bytes in [0, (128 << 10) - 1, (1 << 30) + 1, usize::MAX] {
        let refused = Runtime::builder().stack_size(bytes).build().unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("stack_size is {bytes} bytes, but must be from 131072 to 1073741824")
        );
    }
}

#[test]
fn the_smallest_stacks_suffice_for_small_tasks_of_every_kind() {
    within(WATCH, || {
        keep_bombs_quiet();
        let builder = Runtime::builder().workers(2).stack_size(128 << 10);
        let runtime = builder.on_fault(|_| {}).build().unwrap();
        let task = runtime.spawn(async {
            let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
            let panics = spawn!(|_cx: Context<()>| async { panic!("bomb") });
            assert!(panics.join().await.is_err());
            let detached = spawn!(|_cx: Context<()>| async { 1 }, on = Detached);
            let waits = Runtime::current().block_on(greenroom::spawn(async { 1 }));
            waits
                + detached.join().await.unwrap()
                + pinned.spawn(|| async { 1 }).await
                + greenroom::unblock(|| 1).await
        });
        assert_eq!(runtime.block_on(task), 4);
    });
}

#[test]
fn debug_texts_show_the_options() {
    within(WATCH, || {
        let builder = Runtime::builder().workers(3).thread_name("stage").batch(5);
        let text = format!("{builder:?}");
        assert!(
            text.contains("3") && text.contains("stage") && text.contains("5"),
            "{text}"
        );
        let text = format!("{:?}", builder.build().unwrap());
        assert!(
            text.contains("workers: 3") && text.contains("stage"),
            "{text}"
        );
    });
}
