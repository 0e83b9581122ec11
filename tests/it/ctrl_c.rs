//! Ctrl-C as a future; each test signals a process of its own.

use std::process::Stdio;

use greenroom::{Context, Runtime, ctrl_c, spawn};

use crate::child::{alone, command, ignore_interrupts, interrupt, is_for};
use crate::support::{Gate, WATCH, drive, poll_here, poll_once, within};

#[test]
fn everybody_who_waits_is_woken_by_it_and_the_process_goes_on() {
    alone(
        "ctrl_c::everybody_who_waits_is_woken_by_it_and_the_process_goes_on",
        || {
            let runtime = Runtime::builder().workers(2).build().unwrap();
            runtime.block_on(async {
                let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(ctrl_c())).collect();
                for wait in &mut waiting {
                    assert!(poll_here(wait).await.is_pending());
                }
                interrupt();
                for wait in waiting {
                    wait.await.unwrap();
                }
            });
        },
    );
}

#[test]
fn one_that_came_before_the_first_poll_does_not_count() {
    alone(
        "ctrl_c::one_that_came_before_the_first_poll_does_not_count",
        || {
            let runtime = Runtime::builder().workers(1).build().unwrap();
            runtime.block_on(async {
                // This one sees the first.
                let mut first = Box::pin(ctrl_c());
                assert!(poll_here(&mut first).await.is_pending());
                let mut unpolled = Box::pin(ctrl_c());
                interrupt();
                first.await.unwrap();
                assert!(poll_here(&mut unpolled).await.is_pending());
                // Nobody waits for this one but `unpolled`, and then for the next one `last`.
                interrupt();
                unpolled.await.unwrap();
                let mut last = Box::pin(ctrl_c());
                assert!(poll_here(&mut last).await.is_pending());
                interrupt();
                last.await.unwrap();
            });
        },
    );
}

#[test]
fn it_needs_no_runtime_and_may_be_given_up() {
    alone("ctrl_c::it_needs_no_runtime_and_may_be_given_up", || {
        let mut given_up = Box::pin(ctrl_c());
        assert!(poll_once(&mut given_up).is_pending());
        drop(given_up);
        let mut wait = Box::pin(ctrl_c());
        assert!(poll_once(&mut wait).is_pending());
        interrupt();
        drive(wait).unwrap();
    });
}

#[test]
fn a_program_stops_in_order() {
    alone("ctrl_c::a_program_stops_in_order", || {
        let sum = greenroom::run(async {
            let ready = Gate::default();
            let opens = ready.clone();
            let counter = spawn!(|mut cx: Context<u32>| async move {
                let mut sum = 0;
                while let Some(n) = cx.recv().await {
                    sum += n;
                }
                sum
            });
            let address = counter.address();
            // It works on until it is stopped.
            let busy = greenroom::spawn(async move {
                while address.tell(1).is_ok() {
                    opens.open();
                    greenroom::yield_now().await;
                }
            });
            let mut stop = Box::pin(ctrl_c());
            assert!(poll_here(&mut stop).await.is_pending());
            ready.wait().await;
            interrupt();
            stop.await.unwrap();
            counter.stop();
            busy.await;
            counter.join().await.unwrap()
        });
        assert!(sum > 0);
    });
}

#[test]
fn a_process_that_never_asked_is_ended_by_it() {
    use std::os::unix::process::ExitStatusExt;
    const TEST: &str = "ctrl_c::a_process_that_never_asked_is_ended_by_it";
    if is_for(TEST) {
        // Made, but not polled: nothing has changed.
        let _unpolled = ctrl_c();
        interrupt();
        std::thread::park();
    }
    within(WATCH, || {
        let mut child = command(TEST)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGINT), "{status}");
    });
}

#[test]
fn a_process_that_ignores_it_gets_it_from_the_first_call_on() {
    alone(
        "ctrl_c::a_process_that_ignores_it_gets_it_from_the_first_call_on",
        || {
            ignore_interrupts();
            let mut wait = Box::pin(ctrl_c());
            interrupt();
            assert!(poll_once(&mut wait).is_pending());
            interrupt();
            drive(wait).unwrap();
        },
    );
}

#[test]
fn a_waiting_task_does_not_hold_up_the_shutdown() {
    alone(
        "ctrl_c::a_waiting_task_does_not_hold_up_the_shutdown",
        || {
            let runtime = Runtime::builder().workers(1).build().unwrap();
            let mut task = runtime.spawn(async { ctrl_c().await });
            runtime.block_on(async { assert!(poll_here(&mut task).await.is_pending()) });
            drive(runtime.shutdown());
            assert!(drive(task.fallible()).is_none());
            // The signal is still caught, for whoever comes.
            let mut wait = Box::pin(ctrl_c());
            assert!(poll_once(&mut wait).is_pending());
            interrupt();
            drive(wait).unwrap();
        },
    );
}
