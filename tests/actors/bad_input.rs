//! Invalid values: each is refused with a text that names it and its limit, or handled as
//! documented. None panics where a result is returned, hangs, or leads to an allocation of its
//! size.

use std::time::Duration;

use greenroom::{BuildError, Builder, Context, Runtime, SpawnProblem, actor, spawn};

use crate::support::{Gate, WATCH, drive, panic_of, within};

/// A change to a builder, and what the error text must name if the builder refuses it.
type Row = (
    &'static str,
    fn(Builder) -> Builder,
    &'static [&'static str],
);

#[test]
fn impossible_options_of_a_runtime_are_refused_with_value_and_limit() {
    let rows: &[Row] = &[
        (
            "no workers",
            |b| b.workers(0),
            &["workers is 0", "1 to 1024"],
        ),
        (
            "a worker too many",
            |b| b.workers(1025),
            &["workers is 1025", "1 to 1024"],
        ),
        (
            "all workers",
            |b| b.workers(usize::MAX),
            &["workers is 18446744073709551615", "1024"],
        ),
        (
            "no batch",
            |b| b.batch(0),
            &["batch is 0", "1 to 4294967295"],
        ),
        (
            "a batch too large",
            |b| b.batch(1 << 32),
            &["batch is 4294967296", "4294967295"],
        ),
        (
            "all batch",
            |b| b.batch(usize::MAX),
            &["batch is 18446744073709551615", "4294967295"],
        ),
        (
            "NUL",
            |b| b.thread_name("a\0b"),
            &["thread_name", "NUL", "byte 1"],
        ),
        (
            "only NUL",
            |b| b.thread_name("\0"),
            &["thread_name", "NUL", "byte 0"],
        ),
        ("several", |b| b.workers(0).batch(0), &["is 0"]),
    ];
    within(WATCH, move || {
        for (what, change, named) in rows {
            let refused = change(Runtime::builder().workers(1)).build();
            let Err(error) = refused else {
                panic!("{what}: not refused")
            };
            assert!(
                matches!(error, BuildError::Impossible { .. }),
                "{what}: {error:?}"
            );
            let text = error.to_string();
            for name in *named {
                assert!(
                    text.contains(name),
                    "{what}: {text:?} does not name {name:?}"
                );
            }
            assert!(std::error::Error::source(&error).is_none());
        }
    });
}

#[test]
fn extreme_but_valid_options_of_a_runtime_are_accepted() {
    type Row = (&'static str, fn(Builder) -> Builder);
    let rows: &[Row] = &[
        ("batch 1", |b| b.batch(1)),
        ("the largest batch", |b| b.batch(u32::MAX as usize)),
        ("an empty name", |b| b.thread_name("")),
        ("a long name", |b| b.thread_name("n".repeat(1 << 20))),
        ("a name of two lines", |b| b.thread_name("two\nlines")),
        ("no ASCII", |b| b.thread_name("Bühne")),
        ("no grace", |b| b.grace(Duration::ZERO)),
        ("the smallest grace", |b| b.grace(Duration::from_nanos(1))),
        ("the longest grace", |b| b.grace(Duration::MAX)),
    ];
    within(WATCH, move || {
        for (what, change) in rows {
            let runtime = change(Runtime::builder().workers(1)).build();
            let runtime = runtime.unwrap_or_else(|error| panic!("{what}: {error}"));
            let value = runtime.block_on(async {
                let actor = spawn!(|mut cx: Context<u32>| async move { cx.recv().await });
                actor.tell(40).unwrap();
                actor.join().await.unwrap().unwrap()
                    + greenroom::spawn(async { 1 }).await
                    + greenroom::unblock(|| 1).await
            });
            assert_eq!(value, 42, "{what}");
            assert_eq!(drive(runtime.shutdown()).left_behind, 0, "{what}");
        }
    });
}

#[test]
fn a_grace_of_zero_cancels_actors_that_do_not_end_at_once() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(1)
            .grace(Duration::ZERO)
            .build()
            .unwrap();
        let begun = Gate::default();
        let here = begun.clone();
        let stubborn = spawn!(
            |_cx: Context<()>| async move {
                here.open();
                std::future::pending::<()>().await;
            },
            on = &runtime
        );
        begun.pass();
        let report = drive(runtime.shutdown());
        assert_eq!((report.ended, report.cancelled), (0, 1));
        assert!(drive(stubborn.join()).is_err());
    });
}

#[test]
fn names_of_pinned_threads_may_be_anything_without_nul() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        for (name, at) in [("\0", "byte 0"), ("ab\0c", "byte 2")] {
            let error = runtime.spawn_pinned(name).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
            let text = error.to_string();
            assert!(text.contains("NUL") && text.contains(at), "{text}");
        }
        for name in [
            "".to_owned(),
            "two\nlines".into(),
            "n".repeat(1 << 20),
            "Bühne".into(),
        ] {
            let pinned = runtime.spawn_pinned(name.clone()).unwrap();
            assert_eq!(drive(pinned.spawn(|| async { 42 })), 42);
            assert!(format!("{pinned:?}").contains(&format!("{name:?}")));
            // The same name can be used twice.
            let twin = runtime.spawn_pinned(name).unwrap();
            assert_eq!(drive(twin.spawn(|| async { 42 })), 42);
        }
    });
}

async fn echo(mut cx: Context<u32>) -> Option<u32> {
    cx.recv().await
}

#[test]
fn a_capacity_of_zero_is_refused_on_every_kind_of_thread() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let refused = actor(echo)
            .capacity(0)
            .on(&runtime)
            .try_spawn()
            .unwrap_err();
        assert_eq!(refused.problem(), SpawnProblem::ZeroCapacity);
        let text = refused.to_string();
        assert!(
            text.contains("capacity is 0") && text.contains("at least 1"),
            "{text}"
        );
        // The actor was returned unchanged.
        let handle = actor(refused.into_inner()).on(&pinned).spawn();
        handle.tell(42).unwrap();
        assert_eq!(drive(handle.join()).unwrap(), Some(42));
        for (text, file, _) in [
            panic_of(|| drop(spawn!(echo(_), capacity = 0, on = &runtime))),
            panic_of(|| drop(spawn!(echo(_), capacity = 0, on = &pinned))),
            runtime.block_on(async { panic_of(|| drop(spawn!(echo(_), capacity = 0))) }),
        ] {
            assert!(
                text.contains("capacity is 0") && text.contains("at least 1"),
                "{text}"
            );
            assert_eq!(file, file!());
        }
    });
}

#[test]
fn the_smallest_and_the_largest_capacity_are_taken() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        for capacity in [1, 2, usize::MAX - 1, usize::MAX] {
            let handle = spawn!(echo(_), capacity = capacity, on = &runtime);
            drive(handle.send(42)).unwrap();
            assert_eq!(drive(handle.join()).unwrap(), Some(42));
        }
    });
}

#[test]
fn names_of_actors_may_be_anything() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        for name in [
            "".to_owned(),
            "a\0b".into(),
            "two\nlines".into(),
            "n".repeat(1 << 20),
        ] {
            let handle = spawn!(echo(_), name = name.clone(), on = &runtime);
            assert_eq!(handle.name(), Some(&*name));
            handle.tell(42).unwrap();
            assert_eq!(drive(handle.join()).unwrap(), Some(42));
        }
    });
}

#[test]
fn calls_without_a_runtime_name_the_missing_runtime() {
    within(WATCH, || {
        assert!(Runtime::try_current().is_none());
        let refused = actor(echo).name("lost").try_spawn().unwrap_err();
        assert_eq!(refused.problem(), SpawnProblem::NoRuntime);
        assert!(
            refused
                .to_string()
                .contains("no greenroom runtime is current")
        );
        // Arguments are checked before the runtime.
        let refused = actor(echo).capacity(0).try_spawn().unwrap_err();
        assert_eq!(refused.problem(), SpawnProblem::ZeroCapacity);
        for text in [
            panic_of(|| drop(Runtime::current())).0,
            panic_of(|| drop(greenroom::spawn(async {}))).0,
            panic_of(|| drop(spawn!(echo(_)))).0,
            panic_of(|| drop(actor(echo).spawn())).0,
        ] {
            assert!(
                text.contains("no greenroom runtime is current on this thread"),
                "{text}"
            );
            assert!(
                text.contains("`greenroom::run`"),
                "the text does not say what to do: {text}"
            );
        }
        // These need no runtime.
        drive(greenroom::yield_now());
        drive(greenroom::time::sleep(Duration::ZERO));
        assert_eq!(drive(greenroom::unblock(|| 42)), 42);
    });
}

#[test]
fn error_texts_are_not_empty_and_have_no_full_stop() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        drive(runtime.shutdown());
        let texts = [
            Runtime::builder()
                .workers(0)
                .build()
                .unwrap_err()
                .to_string(),
            actor(echo)
                .on(&runtime)
                .try_spawn()
                .unwrap_err()
                .to_string(),
            actor(echo).try_spawn().unwrap_err().to_string(),
            runtime.spawn_pinned("late").unwrap_err().to_string(),
            runtime.spawn_pinned("\0").unwrap_err().to_string(),
        ];
        for text in texts {
            assert!(!text.is_empty() && !text.ends_with('.'), "{text}");
        }
    });
}
