//! Pinned threads: their tasks stay on them, and when such a thread ends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;

use greenroom::{Context, Pinned, Runtime, spawn};

use crate::support::{Gate, Log, OpenOnDrop, WATCH, drive, poll_once, until, within};

fn runtime() -> Runtime {
    Runtime::builder().workers(1).build().unwrap()
}

fn here() -> ThreadId {
    std::thread::current().id()
}

/// Returns the id of the pinned thread.
fn thread_of(pinned: &Pinned) -> ThreadId {
    drive(pinned.spawn(|| async { here() }))
}

thread_local! {
    /// A guard that is dropped, and so opens its gate, when the thread ends.
    static END: RefCell<Option<OpenOnDrop>> = const { RefCell::new(None) };
}

/// Starts a pinned thread and returns a gate that its end opens.
fn ending(runtime: &Runtime) -> (Pinned, Gate) {
    let pinned = runtime.spawn_pinned("ending").unwrap();
    let gate = Gate::default();
    let opens = OpenOnDrop(gate.clone());
    drive(pinned.spawn(move || async move { END.with(|end| *end.borrow_mut() = Some(opens)) }));
    (pinned, gate)
}

#[test]
fn tasks_actors_and_values_are_made_polled_and_dropped_on_their_thread() {
    struct Here(Rc<Log<ThreadId>>);
    impl Drop for Here {
        fn drop(&mut self) {
            self.0.add(here());
        }
    }
    within(WATCH, || {
        let runtime = runtime();
        let pinned = runtime.spawn_pinned("sqlite").unwrap();
        let own = thread_of(&pinned);
        assert_ne!(own, here());
        assert_ne!(own, drive(runtime.spawn(async { here() })));
        let log = Log::default();
        let make = || {
            let log = log.clone();
            move || {
                log.add(here());
                Rc::new(Here(Rc::new(log)))
            }
        };
        let (of_task, of_actor) = (make(), make());
        drive(pinned.spawn(move || {
            let made = of_task();
            async move {
                for _ in 0..3 {
                    greenroom::yield_now().await;
                    made.0.add(here());
                }
            }
        }));
        let actor = spawn!(
            |mut cx: Context<()>| {
                let made = of_actor();
                async move {
                    while cx.recv().await.is_some() {
                        made.0.add(here());
                    }
                }
            },
            on = &pinned
        );
        (0..3).for_each(|_| actor.tell(()).unwrap());
        drive(actor.join()).unwrap();
        let hosted = drive(pinned.host(make())).unwrap();
        drive(hosted.with(|made| made.0.add(here()))).unwrap();
        drop(hosted);
        drive(pinned.spawn(|| async {}));
        let log = log.take();
        assert_eq!(log.len(), 5 + 5 + 3);
        assert!(
            log.iter().all(|thread| *thread == own),
            "{log:?} on {own:?}"
        );
    });
}

#[test]
fn a_pinned_thread_has_the_given_name() {
    within(WATCH, || {
        let name = || std::thread::current().name().map(str::to_owned);
        let runtime = runtime();
        for given in [
            "sqlite",
            "",
            "a name that is longer than what the system keeps",
        ] {
            let pinned = runtime.spawn_pinned(given).unwrap();
            let found = drive(pinned.spawn(move || async move { name() }));
            assert_eq!(found.as_deref(), Some(given));
            assert!(format!("{pinned:?}").contains(&format!("{given:?}")));
        }
    });
}

#[test]
fn tasks_of_one_sender_begin_in_order() {
    within(WATCH, || {
        let runtime = runtime();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let log = Log::default();
        for n in 0..1000 {
            let log = log.clone();
            pinned.spawn(move || async move { log.add(n) }).detach();
        }
        drive(pinned.spawn(|| async {}));
        assert_eq!(log.take(), (0..1000).collect::<Vec<_>>());
    });
}

#[test]
fn tasks_of_a_pinned_thread_share_its_thread_locals() {
    thread_local!(static SEEN: Cell<u32> = const { Cell::new(0) });
    within(WATCH, || {
        let runtime = runtime();
        let (one, other) = (
            runtime.spawn_pinned("one").unwrap(),
            runtime.spawn_pinned("other").unwrap(),
        );
        let count = || async { SEEN.with(|seen| seen.replace(seen.get() + 1)) };
        for n in 0..10 {
            assert_eq!(drive(one.spawn(count)), n);
        }
        assert_eq!(drive(other.spawn(count)), 0);
        assert_eq!(SEEN.with(Cell::get), 0);
    });
}

#[test]
fn a_pinned_task_may_await_tasks_of_its_own_and_other_threads() {
    within(WATCH, || {
        let runtime = runtime();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let own = pinned.clone();
        let sum = drive(pinned.spawn(move || async move {
            let local = Rc::new(1);
            let on_worker = greenroom::spawn(async { (2, here()) }).await;
            let on_own = own.spawn(|| async { (Rc::new(3), here()).1 }).await;
            assert_ne!(on_worker.1, here());
            assert_eq!(on_own, here());
            let blocking = greenroom::unblock(|| 4).await;
            *local + on_worker.0 + blocking
        }));
        assert_eq!(sum, 7);
    });
}

#[test]
fn a_pinned_task_is_woken_from_other_threads() {
    within(WATCH, || {
        let runtime = runtime();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        for _ in 0..500 {
            let gate = Gate::default();
            let waits = gate.clone();
            let mut task = pinned.spawn(move || async move { waits.wait().await });
            let _ = poll_once(&mut task);
            let opener = std::thread::spawn(move || gate.open());
            drive(task);
            opener.join().unwrap();
        }
    });
}

#[test]
fn a_pinned_thread_without_tasks_ends_with_its_last_clone() {
    within(WATCH, || {
        let runtime = runtime();
        let (pinned, ended) = ending(&runtime);
        let clones = [pinned.clone(), pinned.clone(), pinned.clone().clone()];
        drop(pinned);
        for clone in clones {
            assert_eq!(drive(clone.spawn(|| async { 42 })), 42);
            assert!(!ended.is_open());
        }
        ended.pass();
    });
}

/// Checks that a thread without clones lives on until the closure returned by `keep` is called.
fn kept_by(keep: impl FnOnce(&Pinned) -> Box<dyn FnOnce()> + Send + 'static) {
    within(WATCH, move || {
        let runtime = runtime();
        let (pinned, ended) = ending(&runtime);
        let give_up = keep(&pinned);
        let own = thread_of(&pinned);
        // A later task on the same thread shows that the thread does not end: it would have by
        // then.
        let last = pinned.spawn(|| async {
            greenroom::yield_now().await;
            here()
        });
        drop(pinned);
        assert_eq!(drive(last), own);
        assert!(!ended.is_open());
        give_up();
        ended.pass();
    });
}

#[test]
fn a_task_keeps_the_thread() {
    kept_by(|pinned| {
        let task = pinned.spawn(std::future::pending::<()>);
        Box::new(move || drop(task))
    });
}

#[test]
fn a_detached_task_keeps_the_thread_until_it_ends() {
    kept_by(|pinned| {
        let gate = Gate::default();
        let waits = gate.clone();
        pinned
            .spawn(move || async move { waits.wait().await })
            .detach();
        Box::new(move || gate.open())
    });
}

#[test]
fn an_actor_keeps_the_thread_until_it_ends() {
    kept_by(|pinned| {
        let actor = spawn!(
            |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} },
            on = pinned
        );
        Box::new(move || drop(actor))
    });
    kept_by(|pinned| {
        let actor = spawn!(|_cx: Context<()>| std::future::pending::<()>(), on = pinned);
        Box::new(move || actor.kill())
    });
}

#[test]
fn a_hosted_value_keeps_the_thread_until_its_last_clone_is_dropped() {
    kept_by(|pinned| {
        let hosted = drive(pinned.host(|| Rc::new(42))).unwrap();
        let clone = hosted.clone();
        drop(hosted);
        Box::new(move || {
            assert_eq!(drive(clone.with(|number| **number)).unwrap(), 42);
            drop(clone);
        })
    });
}

#[test]
fn a_clone_in_a_pinned_task_keeps_the_thread_until_the_task_ends() {
    kept_by(|pinned| {
        let (own, gate) = (pinned.clone(), Gate::default());
        let waits = gate.clone();
        pinned
            .spawn(move || async move {
                waits.wait().await;
                assert_eq!(own.spawn(|| async { 42 }).await, 42);
            })
            .detach();
        Box::new(move || gate.open())
    });
}

#[test]
fn addresses_and_wakers_of_ended_tasks_do_not_keep_the_thread() {
    within(WATCH, || {
        let runtime = runtime();
        let (pinned, ended) = ending(&runtime);
        let actor = spawn!(|_cx: Context<()>| async {}, on = &pinned);
        let (address, weak) = (actor.address(), actor.downgrade());
        drive(actor.join()).unwrap();
        let waker = Arc::new(std::sync::Mutex::new(None));
        let leaves = waker.clone();
        let task = pinned.spawn(move || {
            std::future::poll_fn(move |cx| {
                *leaves.lock().unwrap() = Some(cx.waker().clone());
                std::task::Poll::Ready(())
            })
        });
        drive(task);
        drop(pinned);
        ended.pass();
        waker.lock().unwrap().take().unwrap().wake();
        assert!(address.is_closed() && weak.tell(()).is_err());
    });
}

#[test]
fn a_pinned_thread_ends_with_its_runtime() {
    within(WATCH, || {
        let runtime = runtime();
        let (pinned, ended) = ending(&runtime);
        let task = pinned.spawn(std::future::pending::<()>);
        let hosted = drive(pinned.host(|| Rc::new(42))).unwrap();
        let actor = spawn!(
            |_cx: Context<()>| std::future::pending::<()>(),
            on = &pinned
        );
        drop(runtime);
        // The thread was joined, so its thread-locals are dropped.
        assert!(ended.is_open());
        assert!(drive(task.fallible()).is_none());
        assert!(drive(hosted.with(|_| ())).is_err());
        assert!(drive(actor.join()).is_err());
        drop((pinned, hosted));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn dropped_pinned_threads_leave_no_system_thread() {
    use crate::child::threads_named;
    within(WATCH, || {
        let runtime = runtime();
        for _ in 0..200 {
            let pinned = runtime.spawn_pinned("fleeting").unwrap();
            drive(pinned.spawn(|| async {}));
        }
        until(|| threads_named("fleeting") == 0);
        let many: Vec<_> = (0..50)
            .map(|_| runtime.spawn_pinned("fleeting").unwrap())
            .collect();
        until(|| threads_named("fleeting") == 50);
        let ran = Arc::new(AtomicUsize::new(0));
        for pinned in &many {
            let ran = ran.clone();
            drive(pinned.spawn(move || async move { ran.fetch_add(1, Ordering::SeqCst) }));
        }
        assert_eq!(ran.load(Ordering::SeqCst), 50);
        drop(runtime);
        until(|| threads_named("fleeting") == 0);
        drop(many);
    });
}

#[test]
fn the_last_clone_may_be_dropped_on_its_own_thread() {
    within(WATCH, || {
        let runtime = runtime();
        let (pinned, ended) = ending(&runtime);
        let gate = Gate::default();
        let (waits, own) = (gate.clone(), pinned.clone());
        pinned
            .spawn(move || async move {
                waits.wait().await;
                drop(own);
            })
            .detach();
        drop(pinned);
        gate.open();
        ended.pass();
    });
}

#[test]
fn a_thousand_pinned_actors_talk_to_one_on_the_workers() {
    within(WATCH, || {
        let runtime = runtime();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let sum = spawn!(
            |mut cx: Context<u32>| async move {
                let mut sum = 0;
                while let Some(n) = cx.recv().await {
                    sum += n;
                }
                sum
            },
            on = &runtime
        );
        let actors: Vec<_> = (0..1000)
            .map(|_| {
                let address = sum.address();
                spawn!(
                    |mut cx: Context<u32>| async move {
                        let local = Rc::new(Cell::new(0));
                        while let Some(n) = cx.recv().await {
                            local.set(local.get() + n);
                            address.send(n).await.unwrap();
                        }
                        local.get()
                    },
                    on = &pinned
                )
            })
            .collect();
        for actor in &actors {
            (1..=3).for_each(|n| actor.tell(n).unwrap());
        }
        for actor in actors {
            assert_eq!(drive(actor.join()).unwrap(), 6);
        }
        assert_eq!(drive(sum.join()).unwrap(), 6000);
    });
}
