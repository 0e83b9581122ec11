//! What a supervisor refuses, and what its errors hold.

use std::time::Duration;

use greenroom::supervise::{Restarts, StartError, Strategy, Supervisor};
use greenroom::{Runtime, SpawnProblem, actor, spawn};

use super::{LONG, child};
use crate::support::{Log, drive, names};

/// Returns why nothing was spawned.
fn problem<A>(error: &StartError<A>) -> SpawnProblem {
    match error {
        StartError::Spawn(error) => error.problem(),
        _ => panic!("{error}"),
    }
}

#[test]
fn a_window_of_0_and_an_intensity_of_0_with_always_are_refused() {
    greenroom::run(async {
        let tree = Supervisor::builder().name("tree");
        let bad = tree.clone().intensity(3, Duration::ZERO);
        let error = bad.clone().spawn().unwrap_err();
        assert_eq!(problem(&error), SpawnProblem::ZeroWindow);
        let text = "the window of the intensity is 0 s, but must be longer";
        assert_eq!(error.to_string(), text);
        // The builder is as it was but for what is now corrected.
        let tree = error.into_inner().intensity(0, LONG).spawn().unwrap();
        let error = tree.supervisor(bad).unwrap_err();
        assert_eq!(problem(&error), SpawnProblem::ZeroWindow);

        let log = Log::default();
        let start = |restarts| {
            let log = log.clone();
            let child = actor(move |cx| child(cx, "a", log)).restart(restarts);
            tree.start(child)
                .map_err(|error| (problem(&error), error.to_string()))
        };
        let always = Restarts::always();
        let (why, text) = start(always.clone().intensity(0, LONG)).unwrap_err();
        assert_eq!(why, SpawnProblem::ZeroIntensity);
        let expected = "the intensity is 0 restarts, but must be at least 1 for `Restarts::always`";
        assert_eq!(text, expected);
        let (why, _) = start(always.intensity(1, Duration::ZERO)).unwrap_err();
        assert_eq!(why, SpawnProblem::ZeroWindow);
        start(Restarts::on_fault().intensity(0, LONG)).unwrap();
        assert_eq!(tree.children().len(), 1);
        tree.stop();
        tree.join().await.unwrap();
    });
}

#[test]
fn an_actor_of_another_tree_is_no_child() {
    greenroom::run(async {
        let log = Log::default();
        let tree = Supervisor::builder().name("tree").spawn().unwrap();
        let below = tree.supervisor(Supervisor::builder()).unwrap();
        let other = spawn!(child(_, "other", log.clone()), name = "other");
        let grandchild = super::start(&below, &log, "grandchild");
        for stranger in [&other.address(), &grandchild] {
            for error in [tree.restart(stranger), tree.stop_child(stranger)] {
                let error = error.unwrap_err();
                assert_eq!(error.actor().id(), stranger.id());
                assert_eq!(error.supervisor().name(), Some("tree"));
                let name = stranger.name().unwrap();
                let text = format!("{name} is not a child of tree, or has ended");
                assert_eq!(names(&error.to_string()), text);
            }
        }
        below.restart(&grandchild).unwrap();
    });
}

#[test]
fn nothing_is_started_without_a_runtime_or_on_one_that_has_ended() {
    let log = Log::default();
    let builder = Supervisor::builder().strategy(Strategy::OneForAll);
    let error = builder.clone().spawn().unwrap_err();
    assert_eq!(problem(&error), SpawnProblem::NoRuntime);

    let runtime = Runtime::builder().workers(1).build().unwrap();
    let tree = runtime.block_on(async { builder.spawn().unwrap() });
    let own = log.clone();
    let error = tree
        .start(actor(move |cx| child(cx, "a", own)))
        .unwrap_err();
    assert_eq!(problem(&error), SpawnProblem::NoRuntime);
    // The start of a child that was not spawned does not keep the tree from ending.
    let actor = error.into_inner();
    tree.stop();
    drive(tree.join()).unwrap();
    drop(actor);

    let (tree, late) = runtime.block_on(async {
        let tree = Supervisor::builder().spawn().unwrap();
        let report = runtime.shutdown().await;
        assert_eq!(report.cancelled, 0);
        let late = Supervisor::builder().spawn().unwrap_err();
        (tree, problem(&late))
    });
    assert_eq!(late, SpawnProblem::ShutDown);
    drive(tree.join()).unwrap();
}
