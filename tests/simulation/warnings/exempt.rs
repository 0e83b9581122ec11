//! Long turns of which no warning is given: those of an actor that is allowed to have them, or that
//! is alone on its pinned thread, and turns that take no time.

use greenroom::policy::Simulated;

use super::*;

#[test]
fn an_actor_that_is_alone_on_its_pinned_thread_is_not_reported() {
    within(WATCH, || {
        let (builder, warnings) = warning(Duration::ZERO);
        let runtime = builder.workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("one").unwrap();
        let other = runtime.spawn_pinned("two").unwrap();
        runtime.block_on(async {
            let alone = spawn!(answer(_), name = "alone", on = &pinned);
            keep_busy(&alone).await;
            alone.join().await.unwrap();
            assert_eq!(warnings.len(), 0);
            // It is reported as soon as something else has to wait. The thread is another one: the
            // last turn of the first actor may last until after its join.
            let shares = spawn!(answer(_), name = "shares", on = &other);
            keep_busy(&shares).await;
            let value = other.host(|| 1).await.unwrap();
            keep_busy(&shares).await;
            drop(value);
        });
        let long = long_turns(runtime, &warnings);
        let named: Vec<_> = long.iter().map(|turn| turn.task.called()).collect();
        assert_eq!(named, ["shares"]);
    });
}

#[test]
fn an_actor_that_ends_beside_another_one_on_its_pinned_thread_is_reported() {
    within(WATCH, || {
        let (builder, warnings) = warning(Duration::ZERO);
        let runtime = builder.workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("two").unwrap();
        let gate = Gate::default();
        let holds = gate.clone();
        let task = pinned.spawn(|| async move { holds.pass() });
        let ends = spawn!(|_cx: Context<()>| async {}, name = "ends", on = &pinned);
        let stays = spawn!(answer(_), name = "stays", on = &pinned);
        // Both wait for their first turn.
        gate.open();
        runtime.block_on(async {
            task.await;
            ends.join().await.unwrap();
            keep_busy(&stays).await;
        });
        drop((stays, pinned));
        let long = long_turns(runtime, &warnings);
        assert!(
            long.iter().any(|turn| turn.task.name() == Some("ends")),
            "{long:?}"
        );
    });
}

#[test]
fn an_actor_that_may_have_long_turns_is_not_reported() {
    within(WATCH, || {
        let (builder, warnings) = warning(Duration::ZERO);
        let runtime = builder.workers(2).build().unwrap();
        runtime.block_on(async {
            let allowed = spawn!(answer(_), name = "allowed", allow_long_turns);
            let other = spawn!(answer(_), name = "other");
            keep_busy(&allowed).await;
            keep_busy(&other).await;
            allowed.join().await.unwrap();
        });
        let long = long_turns(runtime, &warnings);
        let named: Vec<_> = long.iter().map(|turn| turn.task.called()).collect();
        assert_eq!(named, ["other"]);
    });
}

#[test]
fn an_actor_that_may_have_long_turns_is_no_reason_for_a_warning_of_held_workers() {
    within(WATCH, || {
        let (gate, log) = (Gate::default(), Log::default());
        let runtime = Runtime::builder()
            .workers(1)
            .long_turns(Duration::from_millis(1))
            .on_warning(opens(&gate, &log))
            .build()
            .unwrap();
        let burns = |_cx: Context<()>| async { burn(Duration::from_millis(5)) };
        let allowed = actor(burns).allow_long_turns().on(&runtime).spawn();
        runtime.block_on(allowed.join()).unwrap();
        // The next one is.
        let blocks = gate.clone();
        let blocks = actor(async move |_cx: Context<()>| blocks.pass());
        let blocks = blocks.name("blocks").on(&runtime).spawn();
        runtime.block_on(blocks.join()).unwrap();
        runtime.block_on(runtime.shutdown());
        drop(runtime);
        for warning in log.take() {
            let text = warning.to_string();
            assert!(text.contains("\"blocks\""), "{text}");
        }
    });
}

#[test]
fn a_simulation_reports_no_long_turn() {
    let (builder, warnings) = warning(Duration::ZERO);
    let runtime = builder.policy(Simulated::new(1)).build().unwrap();
    runtime.block_on(async {
        keep_busy(&spawn!(answer(_))).await;
        keep_busy(&spawn!(answer(_), allow_long_turns)).await;
    });
    assert_eq!(long_turns(runtime, &warnings).len(), 0);
}
