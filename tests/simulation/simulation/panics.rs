//! The end of a simulated runtime after a `block_on` in it has panicked.

use greenroom::policy::Simulated;
use greenroom::{Runtime, yield_now};

use crate::support::{Drops, WATCH, panic_of, poll_once, within};

fn simulated(seed: u64) -> Runtime {
    let policy = Simulated::new(seed).steps(100);
    Runtime::builder().policy(policy).build().unwrap()
}

#[test]
fn a_future_that_took_too_many_steps_does_not_hang_the_runtime() {
    within(WATCH, || {
        for seed in 0..20 {
            let (runtime, drops) = (simulated(seed), Drops::default());
            let state = drops.one();
            runtime
                .spawn(async move {
                    let _state = state;
                    std::future::pending::<()>().await;
                })
                .detach();
            let restless = async {
                loop {
                    yield_now().await;
                }
            };
            let (text, ..) = panic_of(|| runtime.block_on::<_>(restless));
            assert!(
                text.starts_with("the run did not end within 100 steps"),
                "{text}"
            );
            drop(runtime);
            assert_eq!(drops.count(), 1);
        }
    });
}

#[test]
fn a_stuck_future_that_wakes_itself_in_its_drop_does_not_hang_the_runtime() {
    /// Wakes its last waker in its drop.
    #[derive(Default)]
    struct WakesInDrop(Option<std::task::Waker>);

    impl Future for WakesInDrop {
        type Output = ();

        fn poll(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<()> {
            self.0 = Some(cx.waker().clone());
            std::task::Poll::Pending
        }
    }

    impl Drop for WakesInDrop {
        fn drop(&mut self) {
            self.0.take().unwrap().wake();
        }
    }

    within(WATCH, || {
        for seed in 0..20 {
            let runtime = simulated(seed);
            let (text, ..) = panic_of(|| runtime.block_on(WakesInDrop::default()));
            assert!(text.starts_with("deadlock: main waits"), "{text}");
            let report = runtime.block_on(runtime.shutdown());
            assert_eq!((report.ended, report.cancelled), (0, 0));
            let mut end = Box::pin(runtime.quiescent());
            assert!(poll_once(&mut end).is_ready());
        }
    });
}
