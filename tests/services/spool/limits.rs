//! The parameters of a spool, and what is wrong with bad ones.

use super::*;

use greenroom::spool::{SpoolBuilder, SpoolError};
use greenroom::{Overflow, SpawnProblem};

fn builder() -> SpoolBuilder<Job, usize> {
    Spool::builder(work)
}

fn text(builder: SpoolBuilder<Job, usize>) -> String {
    let error = builder.spawn().unwrap_err();
    assert!(matches!(error, SpoolError::Parameters(_)));
    error.to_string()
}

#[test]
fn all_workers_are_made_at_the_start() {
    everywhere(|| async {
        let made = Made::default();
        let spool = Spool::builder(noting(&made)).spawn().unwrap();
        let numbers: Vec<_> = made.take().into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(spool.status().idle, 8);
        let own = Spool::builder(noting(&made)).workers(3);
        let _own = own.spawn().unwrap();
        assert_eq!(made.len(), 3);
    });
}

#[test]
fn a_parameter_out_of_range_is_an_error_with_its_value_and_the_limit() {
    everywhere(|| async {
        let nanos = Duration::from_nanos;
        let table = [
            (
                builder().workers(0),
                "(count=0, size=None, responsiveness=5.0), stand_down=30.0): count=0 is less than 1",
            ),
            (
                builder().workers(1_048_577),
                "(count=1048577, size=None, responsiveness=5.0), stand_down=30.0): \
                 count=1048577 is more than 1048576",
            ),
            (
                builder().capacity(0),
                "(count=8, size=0, responsiveness=5.0), stand_down=30.0): size=0 is less than 1",
            ),
            (
                builder().responsiveness(nanos(499_999_999)),
                "(count=8, size=None, responsiveness=0.499999999), stand_down=30.0): \
                 responsiveness=0.499999999 is less than 0.5",
            ),
            (
                builder().responsiveness(Duration::ZERO),
                "(count=8, size=None, responsiveness=0.0), stand_down=30.0): \
                 responsiveness=0.0 is less than 0.5",
            ),
            (
                builder().stand_down(nanos(99_999_999)),
                "(count=8, size=None, responsiveness=5.0), stand_down=0.099999999): \
                 stand_down=0.099999999 is less than 0.1",
            ),
            (
                builder().stand_down(Duration::ZERO),
                "(count=8, size=None, responsiveness=5.0), stand_down=0.0): \
                 stand_down=0.0 is less than 0.1",
            ),
            (
                builder().busy_pass_rate(0).capacity(7),
                "(count=8, size=7, responsiveness=5.0), stand_down=30.0): \
                 busy_pass_rate=0 is less than 1",
            ),
            (
                builder().queue_timeout(Duration::ZERO).stand_down(None),
                "(count=8, size=None, responsiveness=5.0), stand_down=None): \
                 queue_timeout=0.0 is not more than 0",
            ),
            (
                builder().overflow(Overflow::Wait),
                "(count=8, size=None, responsiveness=5.0), stand_down=30.0): \
                 overflow=Wait, but a spool refuses what it has no room for",
            ),
        ];
        for (builder, expected) in table {
            let expected = format!("unexpected parameters {expected}");
            assert_eq!(text(builder), expected);
        }
    });
}

#[test]
fn nothing_is_made_for_bad_parameters() {
    everywhere(|| async {
        let made = Made::default();
        let bad = Spool::builder(noting(&made)).busy_pass_rate(0);
        assert!(bad.spawn().is_err());
        assert_eq!(made.len(), 0);
    });
}

#[test]
fn the_limits_themselves_are_allowed() {
    everywhere(|| async {
        let least = builder()
            .workers(1)
            .capacity(1)
            .responsiveness(seconds(0.5))
            .busy_pass_rate(1)
            .stand_down(seconds(0.1))
            .queue_timeout(Duration::from_nanos(1));
        assert_eq!(least.spawn().unwrap().ask(Job::Say).await, Ok(0));
        let greatest = builder()
            .capacity(usize::MAX)
            .responsiveness(Duration::MAX)
            .busy_pass_rate(u32::MAX)
            .stand_down(Duration::MAX)
            .queue_timeout(Duration::MAX)
            .retries(u32::MAX);
        let spool = greatest.spawn().unwrap();
        assert_eq!(spool.ask(Job::Say).await, Ok(0));
        assert_eq!(cause(spool.ask(Job::Drop).await), AskCause::ReplyDropped);
        spool.stop();
        assert_eq!(spool.join().await.unwrap_err().kind(), RefusalKind::Aborted);
    });
}

#[test]
fn none_switches_a_limit_off() {
    simulated(|| async {
        let spool = builder()
            .workers(1)
            .capacity(None)
            .responsiveness(None)
            .stand_down(None)
            .queue_timeout(None);
        let spool = spool.spawn().unwrap();
        let slow = post(&spool, Job::Take(seconds(1e6)));
        let waiting: Vec<_> = (0..1000).map(|_| post(&spool, Job::Say)).collect();
        assert_eq!(slow.await, Ok(0));
        for answer in waiting {
            assert_eq!(answer.await, Ok(0));
        }
        assert_eq!(spool.status().refused(), 0);
        assert!(spool.status().average > seconds(9e5));
        assert_eq!(spool.ask(Job::Say).await, Ok(0));
    });
}

#[test]
fn a_spool_needs_a_runtime() {
    let error = builder().spawn().unwrap_err();
    assert_eq!(error, SpoolError::Spawn(SpawnProblem::NoRuntime));
    assert_eq!(error.to_string(), SpawnProblem::NoRuntime.to_string());
}

#[test]
fn a_runtime_that_shuts_down_starts_no_spool() {
    within(WATCH, || {
        struct Starts(Log<Option<SpoolError>>);
        impl Drop for Starts {
            fn drop(&mut self) {
                self.0.add(builder().workers(1).spawn().err());
            }
        }
        let log = Log::default();
        let runtime = Runtime::builder()
            .workers(1)
            .on_fault(|_| {})
            .build()
            .unwrap();
        let starts = Starts(log.clone());
        runtime.block_on(async move {
            greenroom::spawn(async move {
                let _starts = starts;
                std::future::pending::<()>().await;
            })
            .detach();
            yield_now().await;
        });
        drop(runtime);
        let errors = log.take();
        let [Some(error)] = &errors[..] else {
            panic!("{errors:?}");
        };
        assert!(matches!(error, SpoolError::Spawn(_)), "{error}");
    });
}

#[test]
fn a_bad_resize_changes_nothing() {
    everywhere(|| async {
        let own = spool(2);
        let error = own.resize(0).unwrap_err();
        assert!(matches!(error, SpoolError::Parameters(_)));
        let text = "unexpected parameters of `resize`: count=0 is less than 1";
        assert_eq!(error.to_string(), text);
        let error = own.resize(1_048_577).unwrap_err();
        let text = "unexpected parameters of `resize`: count=1048577 is more than 1048576";
        assert_eq!(error.to_string(), text);
        assert_eq!(own.status().idle, 2);
        let external = Spool::<Job, usize>::external().spawn().unwrap();
        let error = external.resize(3).unwrap_err();
        assert!(error.to_string().contains("join from outside"), "{error}");
    });
}

#[test]
fn debug_shows_the_parameters_and_never_blocks() {
    everywhere(|| async {
        let named = builder().name("textures").capacity(3);
        assert_eq!(
            format!("{named:?}"),
            "SpoolBuilder { name: Some(\"textures\"), workers: 8, capacity: Some(3), \
             responsiveness: Some(5s), busy_pass_rate: 10, stand_down: Some(30s), .. }",
        );
        let spool = named.spawn().unwrap();
        assert!(format!("{spool:?}").contains("textures"), "{spool:?}");
        assert_eq!(spool.name(), Some("textures"));
        assert_eq!(spool.address().name(), Some("textures"));
        // The reply that a worker has asks the spool whether it is wanted.
        let kept = Replies::default();
        let answer = post(&spool, Job::Forward(kept.clone()));
        wait_for(&spool, |it| it.busy == 1).await;
        while kept.lock().unwrap().is_empty() {
            yield_now().await;
        }
        let reply = kept.lock().unwrap().pop().unwrap();
        assert_eq!(format!("{reply:?}"), "Reply { wanted: true }");
        drop(answer);
        assert_eq!(format!("{reply:?}"), "Reply { wanted: false }");
    });
}
