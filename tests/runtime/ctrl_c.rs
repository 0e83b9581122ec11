//! Ctrl-C and SIGTERM as futures. Each test signals its own process.

use std::process::Stdio;

use greenroom::{Context, Runtime, ctrl_c, spawn};

use crate::child::{alone, command, ignore_interrupts, interrupt, is_for, terminate};
use crate::support::{Gate, WATCH, drive, poll_here, poll_once, within};

#[test]
fn an_interrupt_wakes_all_waiters_and_the_process_continues() {
    alone(
        "ctrl_c::an_interrupt_wakes_all_waiters_and_the_process_continues",
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
fn an_interrupt_before_the_first_poll_does_not_count() {
    alone(
        "ctrl_c::an_interrupt_before_the_first_poll_does_not_count",
        || {
            let runtime = Runtime::builder().workers(1).build().unwrap();
            runtime.block_on(async {
                // This future observes the first interrupt.
                let mut first = Box::pin(ctrl_c());
                assert!(poll_here(&mut first).await.is_pending());
                let mut unpolled = Box::pin(ctrl_c());
                interrupt();
                first.await.unwrap();
                assert!(poll_here(&mut unpolled).await.is_pending());
                // Only `unpolled` waits for this interrupt, and `last` for the next one.
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
fn ctrl_c_needs_no_runtime_and_can_be_dropped() {
    alone("ctrl_c::ctrl_c_needs_no_runtime_and_can_be_dropped", || {
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
fn an_interrupt_lets_a_program_stop_in_order() {
    alone("ctrl_c::an_interrupt_lets_a_program_stop_in_order", || {
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
            // The task keeps sending until the actor is stopped.
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
fn an_interrupt_ends_a_process_that_never_polled_ctrl_c() {
    use std::os::unix::process::ExitStatusExt;
    const TEST: &str = "ctrl_c::an_interrupt_ends_a_process_that_never_polled_ctrl_c";
    if is_for(TEST) {
        // Created but not polled: the disposition of the signal is unchanged.
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
fn a_process_that_ignored_interrupts_receives_them_after_the_first_poll() {
    alone(
        "ctrl_c::a_process_that_ignored_interrupts_receives_them_after_the_first_poll",
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
fn a_task_that_waits_for_ctrl_c_does_not_delay_the_shutdown() {
    alone(
        "ctrl_c::a_task_that_waits_for_ctrl_c_does_not_delay_the_shutdown",
        || {
            let runtime = Runtime::builder().workers(1).build().unwrap();
            let mut task = runtime.spawn(async { ctrl_c().await });
            runtime.block_on(async { assert!(poll_here(&mut task).await.is_pending()) });
            drive(runtime.shutdown());
            assert!(drive(task.fallible()).is_none());
            // The signal is still caught for later waiters.
            let mut wait = Box::pin(ctrl_c());
            assert!(poll_once(&mut wait).is_pending());
            interrupt();
            drive(wait).unwrap();
        },
    );
}

#[test]
fn a_termination_wakes_all_waiters_and_the_process_continues() {
    alone(
        "ctrl_c::a_termination_wakes_all_waiters_and_the_process_continues",
        || {
            let runtime = Runtime::builder().workers(2).build().unwrap();
            runtime.block_on(async {
                for _ in 0..3 {
                    let mut waiting: Vec<_> =
                        (0..10).map(|_| Box::pin(greenroom::terminate())).collect();
                    for wait in &mut waiting {
                        assert!(poll_here(wait).await.is_pending());
                    }
                    terminate();
                    for wait in waiting {
                        wait.await.unwrap();
                    }
                }
            });
        },
    );
}

#[test]
fn interrupts_and_terminations_are_told_apart() {
    alone("ctrl_c::interrupts_and_terminations_are_told_apart", || {
        let mut interrupted = Box::pin(ctrl_c());
        let mut terminated = Box::pin(greenroom::terminate());
        assert!(poll_once(&mut interrupted).is_pending());
        assert!(poll_once(&mut terminated).is_pending());
        terminate();
        drive(terminated).unwrap();
        assert!(poll_once(&mut interrupted).is_pending());
        interrupt();
        drive(interrupted).unwrap();
    });
}

#[test]
fn a_termination_ends_a_process_that_only_awaits_ctrl_c() {
    use std::os::unix::process::ExitStatusExt;
    const TEST: &str = "ctrl_c::a_termination_ends_a_process_that_only_awaits_ctrl_c";
    if is_for(TEST) {
        let mut wait = Box::pin(ctrl_c());
        assert!(poll_once(&mut wait).is_pending());
        terminate();
        std::thread::park();
    }
    within(WATCH, || {
        let quiet = || Stdio::null();
        let mut child = command(TEST)
            .stdout(quiet())
            .stderr(quiet())
            .spawn()
            .unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGTERM), "{status}");
    });
}
