//! Deadlines that drops and `block_on` wait for while a shutdown cancels tasks.

use std::time::Duration;

use futures::channel::oneshot;
use greenroom::time::sleep;
use greenroom::{Context, Runtime, actor};

use crate::support::{Drops, Gate, Home, WATCH, drive, in_every_home, until, within};

in_every_home!(a_drop_may_wait_for_a_deadline_while_its_task_is_cancelled);

/// A value whose drop takes a moment, like that of a connection that sends a last message.
struct Slow(#[expect(dead_code, reason = "counted by its drop")] crate::support::Dropped);

impl Drop for Slow {
    fn drop(&mut self) {
        drive(sleep(Duration::from_millis(2)));
    }
}

fn a_drop_may_wait_for_a_deadline_while_its_task_is_cancelled(home: &Home) {
    let drops = Drops::default();
    let slow = || Slow(drops.one());
    let (one, other, third) = (slow(), slow(), slow());
    let task = home.spawn_task(async move {
        let _slow = one;
        std::future::pending::<()>().await;
    });
    let state = home.spawn(actor(|_cx: Context<Slow>| async move {
        let _slow = other;
        std::future::pending::<()>().await;
    }));
    let deaf = home.spawn(actor(|cx: Context<Slow>| async move {
        let _cx = cx;
        std::future::pending::<()>().await;
    }));
    assert!(deaf.tell(third).is_ok());
    // All three have begun before this task runs.
    home.block_on(home.spawn_task(async {}));
    let report = home.block_on(home.runtime.shutdown());
    assert_eq!(report.left_behind, 0, "{report:?}");
    assert_eq!(drops.count(), 3);
    drop((task, state, deaf));
}

#[test]
fn a_deadline_in_block_on_fires_after_the_workers_have_ended() {
    within(WATCH, || {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let begun = Gate::default();
            let here = begun.clone();
            runtime
                .spawn(async move {
                    here.open();
                    Runtime::current().block_on(sleep(Duration::from_millis(20)));
                })
                .detach();
            begun.pass();
            // There is no actor to wait for, so the workers end at once, and their timers with
            // them.
            let report = drive(runtime.shutdown());
            assert_eq!(report.left_behind, 0, "{report:?}");
        }
    });
}

/// Two tasks wait in `block_on`, the second for the end of the first. The first continues when the
/// workers have ended, and suspends; it must be dropped nevertheless.
#[test]
fn a_task_that_a_displaced_thread_pushes_after_the_workers_is_dropped() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let ((go, gone), (end, ended)) = (oneshot::channel::<()>(), oneshot::channel::<()>());
        let begun = [Gate::default(), Gate::default()];
        let [here, there] = begun.clone();
        runtime
            .spawn(async move {
                let _end = end;
                here.open();
                Runtime::current().block_on(gone).unwrap();
                greenroom::yield_now().await;
                std::future::pending::<()>().await;
            })
            .detach();
        runtime
            .spawn(async move {
                there.open();
                assert!(Runtime::current().block_on(ended).is_err());
            })
            .detach();
        begun.iter().for_each(Gate::pass);
        let own = runtime.clone();
        let shutting = std::thread::spawn(move || drive(own.shutdown()));
        // The shutdown has begun when it refuses tasks; the idle workers end then.
        until(|| drive(runtime.spawn(async {}).fallible()).is_none());
        go.send(()).unwrap();
        let report = shutting.join().unwrap();
        assert_eq!(report.left_behind, 0, "{report:?}");
    });
}
