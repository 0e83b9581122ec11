//! Thread-locals of the user on a runtime's threads: they are dropped last, and may hold or use the
//! runtime.

use std::any::Any;
use std::cell::RefCell;
use std::time::Duration;

use greenroom::{Context, Detached, Runtime, actor, unblock};

use crate::support::{Gate, OpenOnDrop, WATCH, drive, inside, within};

thread_local!(static KEPT: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) });

/// Keeps the value in a thread-local of the calling thread.
fn keep(value: impl Any) {
    KEPT.with_borrow_mut(|kept| kept.push(Box::new(value)));
}

/// Builds a runtime with one worker, and returns it with a clone that does not count as an owner.
fn runtime(grace: Duration) -> (Runtime, Runtime) {
    let builder = Runtime::builder().workers(1).grace(grace);
    let runtime = builder.build().unwrap();
    let uncounted = runtime.block_on(async { Runtime::current() });
    (runtime, uncounted)
}

/// Calls a closure when it is dropped.
pub struct OnDrop<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Calls the job on a thread started by the runtime. Returns a value that keeps that thread from
/// ending before the runtime does.
type Place = fn(&Runtime, Job) -> Box<dyn Any>;

/// A place of each kind.
const PLACES: [(&str, Place); 9] = [
    ("worker", |runtime, job| {
        drive(runtime.spawn(async { job() }));
        Box::new(())
    }),
    ("pinned thread", |runtime, job| {
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        drive(pinned.spawn(|| async { job() }));
        Box::new(pinned)
    }),
    ("pinned thread that ends", |runtime, job| {
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        drive(pinned.spawn(|| async { job() }));
        Box::new(())
    }),
    ("detached actor", |runtime, job| {
        let done = Gate::default();
        let tells = done.clone();
        let begin = |mut cx: Context<()>| async move {
            job();
            tells.open();
            cx.recv().await;
        };
        let actor = inside(runtime, || actor(begin).on(Detached).spawn());
        done.pass();
        Box::new(actor)
    }),
    ("detached actor that ends", |runtime, job| {
        let begin = |_cx: Context<()>| async { job() };
        let actor = inside(runtime, || actor(begin).on(Detached).spawn());
        drive(actor.join()).unwrap();
        Box::new(())
    }),
    ("blocking call", |runtime, job| {
        drive(runtime.spawn(async { unblock(job).await }));
        Box::new(())
    }),
    ("worker that has waited", |runtime, job| {
        let waits = || Runtime::current().block_on(async {});
        drive(runtime.spawn(async move {
            waits();
            job();
        }));
        Box::new(())
    }),
    ("worker in the place of one that waits", |runtime, job| {
        let waits = || Runtime::current().block_on(greenroom::spawn(async { job() }));
        drive(runtime.spawn(async move { waits() }));
        Box::new(())
    }),
    ("worker that is left behind", |runtime, job| {
        let (begun, go) = (Gate::default(), Gate::default());
        let (begins, waits) = (begun.clone(), go.clone());
        let stays = runtime.spawn(async move {
            job();
            begins.open();
            waits.pass();
        });
        begun.pass();
        stays.detach();
        Box::new(OpenOnDrop(go))
    }),
];

/// Runs the scenario with a new runtime of one worker, and an uncounted clone, for each kind of
/// thread. The shutdown has this grace where all threads end.
fn at_each_place(
    grace: Duration,
    scenario: impl Fn(&str, Place, Runtime, Runtime) + Send + 'static,
) {
    within(WATCH, move || {
        for (name, place) in PLACES {
            eprintln!("{name}");
            let grace = if left_behind(name) == 0 {
                grace
            } else {
                Duration::ZERO
            };
            let (runtime, uncounted) = runtime(grace);
            scenario(name, place, runtime, uncounted);
        }
    });
}

/// Returns how many threads a shutdown leaves behind if it waits for all thread-locals.
fn left_behind(name: &str) -> usize {
    usize::from(name == "worker that is left behind")
}

#[test]
fn thread_locals_may_hold_the_last_clone() {
    at_each_place(WATCH, |name, place, runtime, uncounted| {
        let gone = Gate::default();
        let opens = OpenOnDrop(gone.clone());
        let job = Box::new(move || keep((runtime, opens)));
        let stays = place(&uncounted, job);
        let report = drive(uncounted.shutdown());
        assert_eq!(report.left_behind, left_behind(name));
        drop(stays);
        gone.pass();
    });
}

#[test]
fn thread_locals_may_use_the_runtime() {
    at_each_place(WATCH, |name, place, _runtime, uncounted| {
        let gone = Gate::default();
        let (opens, own) = (gone.clone(), uncounted.clone());
        let uses = OnDrop(move || {
            let task = own.spawn(async {});
            own.block_on(async { task.fallible().await });
            drive(own.spawn(async {}).fallible());
            own.run_until_quiescent();
            assert!(Runtime::try_current().is_none());
            opens.open();
        });
        let stays = place(&uncounted, Box::new(|| keep(uses)));
        let report = drive(uncounted.shutdown());
        assert_eq!(report.left_behind, left_behind(name));
        drop(stays);
        gone.pass();
    });
}

#[test]
fn a_thread_that_awaits_the_shutdown_in_a_thread_local_is_left_behind() {
    at_each_place(Duration::ZERO, |_, place, _runtime, uncounted| {
        let gone = Gate::default();
        let (opens, own) = (gone.clone(), uncounted.clone());
        let awaits = OnDrop(move || {
            assert_eq!(drive(own.shutdown()).left_behind, 1);
            opens.open();
        });
        let stays = place(&uncounted, Box::new(|| keep(awaits)));
        assert_eq!(drive(uncounted.shutdown()).left_behind, 1);
        drop(stays);
        gone.pass();
    });
}

#[test]
fn only_a_thread_whose_thread_local_blocks_is_left_behind() {
    within(WATCH, || {
        let (runtime, _uncounted) = runtime(Duration::ZERO);
        let (go, gone) = (Gate::default(), Gate::default());
        let (waits, opens) = (go.clone(), gone.clone());
        let stuck = OnDrop(move || {
            waits.pass();
            opens.open();
        });
        drive(runtime.spawn(async { keep(stuck) }));
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let dropped = Gate::default();
        let opens = OpenOnDrop(dropped.clone());
        drive(pinned.spawn(|| async { keep(opens) }));
        assert_eq!(drive(runtime.shutdown()).left_behind, 1);
        assert!(dropped.is_open() && !gone.is_open());
        go.open();
        gone.pass();
    });
}

#[test]
fn threads_of_two_runtimes_may_hold_the_last_clones_of_each_other() {
    within(WATCH, || {
        // Threads that live until the shutdown.
        for (_, place) in &PLACES[..2] {
            let ((one, of_one), (two, of_two)) = (runtime(Duration::ZERO), runtime(Duration::ZERO));
            let gates = [(); 2].map(|()| Gate::default());
            let [first, second] = gates.clone().map(OpenOnDrop);
            let stay = [
                place(&of_one, Box::new(|| keep((two, first)))),
                place(&of_two, Box::new(|| keep((one, second)))),
            ];
            let other = of_two.clone();
            let thread = std::thread::spawn(move || drive(other.shutdown()));
            drive(of_one.shutdown());
            thread.join().unwrap();
            drop(stay);
            gates.iter().for_each(Gate::pass);
        }
    });
}

#[test]
fn a_thread_local_of_a_thread_with_a_stage_may_hold_the_last_clone() {
    within(WATCH, || {
        for stage_first in [true, false] {
            let (runtime, _uncounted) = runtime(Duration::ZERO);
            let gone = Gate::default();
            let opens = OpenOnDrop(gone.clone());
            std::thread::spawn(move || {
                thread_local!(static STAGE: RefCell<Option<greenroom::Stage>> = const { RefCell::new(None) });
                let stage = runtime.pinned_here();
                stage.spawn(std::future::pending::<()>).detach();
                if stage_first {
                    STAGE.set(Some(stage));
                    keep((runtime, opens));
                } else {
                    keep((runtime, opens));
                    STAGE.set(Some(stage));
                }
            })
            .join()
            .unwrap();
            assert!(gone.is_open());
        }
    });
}

#[test]
fn a_thread_local_of_the_calling_thread_may_hold_the_last_clone() {
    within(WATCH, || {
        let (runtime, uncounted) = runtime(Duration::ZERO);
        let gone = Gate::default();
        let opens = OpenOnDrop(gone.clone());
        let mut kept = Some((runtime, opens));
        // Cancelled, and so dropped, by the shutdown.
        let keeps = OnDrop(move || keep(kept.take()));
        let waits = Gate::default();
        let begun = waits.clone();
        let task = uncounted.spawn(async move {
            let _keeps = keeps;
            begun.open();
            std::future::pending::<()>().await;
        });
        waits.pass();
        task.detach();
        drive(uncounted.shutdown());
        gone.pass();
    });
}
