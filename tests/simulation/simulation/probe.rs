//! A probe: a test's expectations of the messages that are sent to it.

use std::time::Duration;

use greenroom::sim::TestProbe;
use greenroom::time::{Instant, sleep};
use greenroom::{Context, spawn};

use super::{SEEDS, run_of};
use crate::support::{drive, panic_of};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_probe_returns_its_messages_in_order() {
    for seed in SEEDS {
        run_of(seed, async {
            let mut probe = TestProbe::new("probe");
            let told = probe.address();
            spawn(async move {
                for n in 0..3 {
                    told.tell(n).unwrap();
                    sleep(SECOND).await;
                }
            })
            .detach();
            for n in 0..3 {
                assert_eq!(probe.expect().await, n);
            }
        });
    }
}

#[test]
fn a_probe_waits_exactly_as_long_as_requested() {
    run_of(1, async {
        let mut probe = TestProbe::new("probe");
        let (told, start) = (probe.address(), Instant::now());
        let tells = async move {
            sleep(SECOND * 10).await;
            told.tell(1).unwrap();
        };
        let tells = spawn(tells);
        probe.expect_no_message(SECOND * 9).await;
        assert_eq!(probe.expect_within(SECOND * 2).await, 1);
        assert!(start.elapsed() < SECOND * 11);
        tells.await;
    });
}

#[test]
fn a_failed_expectation_panics_with_its_location() {
    let said = |text: String| {
        assert!(text.contains(&format!(" at {}:", file!())), "{text}");
        text
    };
    let nothing = said({
        let expects = async { TestProbe::<u32>::new("probe").expect_within(SECOND).await };
        panic_of(|| run_of(1, expects)).0
    });
    assert!(nothing.contains("but none came within 1s"), "{nothing}");
    let something = said({
        let expects = async {
            let mut probe = TestProbe::new("probe");
            probe.tell(1).unwrap();
            probe.expect_no_message(SECOND).await;
        };
        panic_of(|| run_of(1, expects)).0
    });
    assert!(something.contains("but one came within 1s"), "{something}");
    let stopped = said({
        let expects = async {
            let mut probe = TestProbe::<u32>::new("probe");
            probe.stop();
            probe.expect().await
        };
        panic_of(|| run_of(1, expects)).0
    });
    assert!(stopped.contains("but the probe was stopped"), "{stopped}");
}

#[test]
fn messages_sent_before_a_probe_was_stopped_are_still_returned() {
    run_of(1, async {
        let mut probe = TestProbe::new("probe");
        probe.tell(1).unwrap();
        probe.stop();
        assert_eq!(probe.expect().await, 1);
        assert!(probe.tell(2).is_err());
    });
}

#[test]
fn a_probe_can_answer_in_place_of_an_actor() {
    for seed in SEEDS {
        run_of(seed, async {
            let mut store = TestProbe::new("store");
            let asks = store.address();
            let asker = spawn!(|_cx: Context<()>| async move {
                asks.ask(|reply: greenroom::Reply<u32>| reply)
                    .await
                    .unwrap()
            });
            store.expect().await.send(42);
            assert_eq!(asker.join().await.unwrap(), 42);
        });
    }
}

#[test]
fn a_probe_works_outside_a_simulation_in_real_time() {
    let mut probe = TestProbe::new("probe");
    probe.tell(1).unwrap();
    assert_eq!(drive(probe.expect()), 1);
    drive(probe.expect_no_message(Duration::from_millis(1)));
    let told = probe.address();
    let heard = greenroom::run(async move {
        spawn(async move { told.tell(2).unwrap() }).detach();
        probe.expect_within(SECOND * 60).await
    });
    assert_eq!(heard, 2);
}
