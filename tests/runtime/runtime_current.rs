//! Which runtime is current, and where no runtime is current.

use greenroom::{Context, Runtime, spawn};

use crate::support::{WATCH, drive, panic_of, within};

/// Returns a runtime whose threads have this name.
pub fn named(name: &str) -> Runtime {
    Runtime::builder()
        .workers(1)
        .thread_name(name)
        .build()
        .unwrap()
}

/// Returns the name of the current runtime.
pub fn current() -> String {
    let text = format!("{:?}", Runtime::current());
    text.split('"').nth(1).unwrap().to_owned()
}

#[test]
fn no_runtime_is_current_on_a_bare_thread() {
    within(WATCH, || {
        let _runtime = named("a");
        assert!(Runtime::try_current().is_none());
        for text in [
            panic_of(|| drop(Runtime::current())),
            panic_of(|| drop(greenroom::spawn(async {}))),
            panic_of(|| drop(spawn!(|_cx: Context<()>| async {}))),
            panic_of(|| drop(spawn!(|_cx: Context<()>| async {}, name = "lost"))),
        ] {
            let (text, file, _) = text;
            assert!(
                text.contains("no greenroom runtime is current on this thread"),
                "{text}"
            );
            assert_eq!(file, file!(), "the panic must have the caller's location");
        }
    });
}

#[test]
fn a_panic_of_spawn_has_the_callers_line_and_names_the_actor() {
    within(WATCH, || {
        let call = || spawn!(|_cx: Context<()>| async {}, name = "lost");
        let here = line!() - 1;
        let (text, file, line) = panic_of(|| drop(call()));
        assert!(text.contains("\"lost\""), "{text}");
        assert_eq!(file, file!());
        assert_eq!(line, here);
    });
}

#[test]
fn the_runtime_that_runs_a_task_actor_call_or_closure_is_current() {
    within(WATCH, || {
        let (a, b) = (named("a"), named("b"));
        let pinned = b.spawn_pinned("pinned").unwrap();
        a.block_on(async {
            assert_eq!(current(), "a");
            assert_eq!(greenroom::spawn(async { current() }).await, "a");
            assert_eq!(b.spawn(async { current() }).await, "b");
            assert_eq!(greenroom::unblock(current).await, "a");
            assert_eq!(
                b.spawn(async { greenroom::unblock(current).await }).await,
                "b"
            );
            assert_eq!(pinned.spawn(|| async { current() }).await, "b");
            let hosted = pinned.host(current).await.unwrap();
            assert_eq!(hosted.with(|made_in| made_in.clone()).await.unwrap(), "b");
            assert_eq!(hosted.with(|_| current()).await.unwrap(), "b");
            let here = spawn!(|_cx: Context<()>| async { current() });
            let there = spawn!(|_cx: Context<()>| async { current() }, on = &b);
            let on_pinned = spawn!(|_cx: Context<()>| async { current() }, on = &pinned);
            assert_eq!(here.join().await.unwrap(), "a");
            assert_eq!(there.join().await.unwrap(), "b");
            assert_eq!(on_pinned.join().await.unwrap(), "b");
            assert_eq!(current(), "a");
        });
        assert!(Runtime::try_current().is_none());
    });
}

#[test]
fn the_runtime_of_a_task_is_current_while_a_shutdown_drops_the_task() {
    struct SaysWhere(std::sync::mpsc::Sender<Option<String>>);
    impl Drop for SaysWhere {
        fn drop(&mut self) {
            let runtime = Runtime::try_current();
            let _ = self.0.send(runtime.map(|runtime| format!("{runtime:?}")));
        }
    }
    within(WATCH, || {
        let (send, places) = std::sync::mpsc::channel();
        let a = named("a");
        let pinned = a.spawn_pinned("pinned").unwrap();
        let (one, two) = (SaysWhere(send.clone()), SaysWhere(send));
        let mut on_worker = a.spawn(async move {
            let _says = one;
            std::future::pending::<()>().await;
        });
        let mut on_pinned = pinned.spawn(move || async move {
            let _says = two;
            std::future::pending::<()>().await;
        });
        a.block_on(async {
            assert!(crate::support::poll_here(&mut on_worker).await.is_pending());
            assert!(crate::support::poll_here(&mut on_pinned).await.is_pending());
        });
        drop(a);
        let told: Vec<_> = places.try_iter().collect();
        assert_eq!(told.len(), 2);
        for place in told {
            assert!(
                place.is_some_and(|place| place.contains("\"a\"")),
                "runtime `a` is current in the drop"
            );
        }
    });
}

#[test]
fn an_explicit_runtime_is_used_instead_of_the_current_one() {
    within(WATCH, || {
        let (a, b) = (named("a"), named("b"));
        let actor = spawn!(|_cx: Context<()>| async { current() }, on = &b);
        assert_eq!(drive(actor.join()).unwrap(), "b");
        let on_b = a.block_on(async { spawn!(|_cx: Context<()>| async { current() }, on = &b) });
        assert_eq!(drive(on_b.join()).unwrap(), "b");
        assert_eq!(drive(b.spawn(async { current() })), "b");
    });
}
