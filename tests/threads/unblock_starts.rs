//! `unblock` where the system starts no thread.

use greenroom::time::sleep;
use greenroom::{Runtime, task_local, unblock};

use crate::child::{ThreadLimit, alone};
use crate::support::{Gate, drive, poll_once, until};

task_local!(static REQUEST: u32);

#[test]
fn a_call_on_the_thread_of_its_caller_does_not_see_the_values_there() {
    const NAME: &str =
        "unblock_starts::a_call_on_the_thread_of_its_caller_does_not_see_the_values_there";
    alone(NAME, || {
        let Some(limit) = ThreadLimit::new(NAME) else {
            return;
        };
        let runtime = Runtime::builder().workers(1).build().unwrap();
        limit.forbid();
        let call = || (std::thread::current().id(), REQUEST.get());
        let seen = runtime.block_on(REQUEST.scope(1, async { unblock(call).await }));
        assert_eq!(seen, (std::thread::current().id(), None));
        limit.allow();
    });
}

#[test]
fn a_start_is_tried_again_although_the_thread_of_the_timers_did_not_start_once() {
    const NAME: &str = "unblock_starts::a_start_is_tried_again_although_the_thread_of_the_timers_did_not_start_once";
    alone(NAME, || {
        let Some(limit) = ThreadLimit::new(NAME) else {
            return;
        };
        let (begun, gate) = (Gate::default(), Gate::default());
        let (tells, waits) = (begun.clone(), gate.clone());
        let busy = unblock(move || {
            tells.open();
            waits.pass();
        });
        begun.pass();
        limit.forbid();
        // Neither a second thread starts, nor that which would try again.
        let mut second = unblock(|| 2);
        limit.allow();
        drive(sleep(std::time::Duration::from_millis(1)));
        limit.forbid();
        let mut third = unblock(|| 3);
        assert!(poll_once(&mut second).is_pending() && poll_once(&mut third).is_pending());
        limit.allow();
        // The first thread is busy until both have run.
        assert_eq!((drive(second), drive(third)), (2, 3));
        gate.open();
        drive(busy);
        until(|| poll_once(&mut unblock(|| ())).is_ready());
    });
}
