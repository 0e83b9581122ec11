//! The list of all futures and streams of the crate. A test finds those that it lacks.

use crate::tidy::{code_of, is_test, root, sources};

/// How a future or a stream of the crate is tested, if a user may drop it.
enum Tested {
    /// By this test of `dropped_waits.rs`.
    By(&'static str),
    /// It is part of another one, which a user has.
    Within(&'static str),
    /// Only greenroom polls it, until it is over.
    Own,
    /// Users write it.
    OfUsers,
}
use Tested::{By, OfUsers, Own, Within};

/// Each place where a future or a stream is made: `impl Future for`, `impl Stream for`, `-> impl
/// Future` and a public `async fn`.
#[rustfmt::skip]
const PLACES: &[(&str, Tested)] = &[
    ("actor/address.rs closed", By("the_end_of_an_actor")),
    ("actor/address.rs ended", By("the_end_of_an_actor")),
    ("actor/address.rs send", Within("SendFuture")),
    ("actor/ask.rs Answer", By("questions")),
    ("actor/ask.rs Ask", By("questions")),
    ("actor/context/recv.rs Recv", By("messages")),
    ("actor/context/recv.rs Context", By("messages")),
    ("actor/context.rs recv", Within("Recv")),
    ("actor/flat.rs flat", Within("Ask")),
    ("actor/flat.rs flat", Within("Request")),
    ("actor/guarded.rs GuardedFuture", Own),
    ("actor/handle.rs Join", By("the_end_of_an_actor")),
    ("actor/incarnation.rs incarnation", By("messages")),
    ("actor/lifecycle.rs Attempt", Within("incarnation")),
    ("actor/lifecycle.rs Large", Own),
    ("actor/permit.rs reserve", By("room")),
    ("actor/request.rs Request", By("questions")),
    ("actor/restart/restarting.rs Restarting", Own),
    ("actor/sending.rs SendFuture", By("room")),
    ("actor/source.rs NextItem", Within("Recv")),
    ("actor/sources/returns.rs caught", Within("Recv")),
    ("actor/spawn/inherit.rs InheritingActor", Own),
    ("actor/spawn/tokio.rs ActorTask", Own),
    ("actor/split.rs Split", By("actors_of_other_executors")),
    ("actor/unsent.rs send", Within("SendFuture")),
    ("actor/values.rs WithoutContext", OfUsers),
    ("actor/values.rs handle", OfUsers),
    ("actor/values.rs started", OfUsers),
    ("actor/values.rs stopped", OfUsers),
    ("actor/weak_address.rs closed", By("the_end_of_an_actor")),
    ("actor/weak_address.rs send", Within("SendFuture")),
    ("looper/controller.rs shutdown", By("loopers")),
    ("looper/handle.rs close", By("loopers")),
    ("looper/job.rs Posted", By("loopers")),
    ("looper/lane.rs Lane", Own),
    ("looper/lock.rs close", By("loopers")),
    ("looper/lock.rs close", By("loopers")),
    ("machine/definition.rs on", OfUsers),
    ("machine/definition.rs started", OfUsers),
    ("market/handle.rs EndOf", Within("drain")),
    ("market/handle.rs drain", By("markets")),
    ("market/handle.rs offer", By("markets")),
    ("market/handle.rs stopped", By("markets")),
    ("market/job.rs JobHandle", By("markets")),
    ("pinned/handle.rs host", By("hosted_values")),
    ("pinned/handle.rs try_host", By("hosted_values")),
    ("pinned/hosted.rs call", Within("with")),
    ("pinned/hosted.rs with", By("hosted_values")),
    ("pinned/hosted.rs with_mut", By("hosted_values")),
    ("registry/group/broadcast.rs send_all", By("room")),
    ("registry/group/watch.rs GroupWatch", By("names")),
    ("registry/group/watch.rs next", By("names")),
    ("registry/keyed/entering.rs Entering", By("keyed_actors")),
    ("registry/keyed.rs ask", Within("Entering")),
    ("registry/keyed.rs ended", By("keyed_actors")),
    ("registry/keyed.rs get_or_spawn", Within("Entering")),
    ("registry/keyed.rs serve", Within("ended")),
    ("registry/wait.rs Wait", By("names")),
    ("registry/wait.rs wait", Within("Wait")),
    ("registry/wait.rs wait_timeout", Within("Wait")),
    ("registry/wait.rs wait_until_free", Within("Wait")),
    ("request/concurrently.rs AllOf", Within("Concurrently")),
    ("request/concurrently.rs Concurrently", By("several_futures")),
    ("request/concurrently.rs Indexed", Within("Concurrently")),
    ("request/concurrently.rs concurrently", Within("Concurrently")),
    ("request/concurrently.rs try_concurrently", Within("Concurrently")),
    ("request/race.rs Alternative", Within("Race")),
    ("request/race.rs AnyOf", Within("Race")),
    ("request/race.rs FirstOk", By("several_futures")),
    ("request/race.rs Race", By("several_futures")),
    ("request/retry.rs Retry", By("several_futures")),
    ("request/sequentially.rs Sequentially", By("several_futures")),
    ("request/until.rs RunUntil", By("several_futures")),
    ("runtime/handle.rs yield_now", By("tasks_and_their_runtime")),
    ("runtime/quiescence.rs Quiescent", Within("quiescent")),
    ("runtime/quiescence.rs quiescent", By("tasks_and_their_runtime")),
    ("runtime/shutdown.rs Closed", Within("shutdown")),
    ("runtime/shutdown.rs shutdown", By("a_shutdown_of_a_runtime")),
    ("runtime/watch.rs Watch", By("tasks_and_their_runtime")),
    ("runtime/watch.rs next", By("tasks_and_their_runtime")),
    ("runtime/worker_thread.rs DrivenWorker", By("a_driver_that_returns_keeps_no_waker")),
    ("signal.rs ctrl_c", By("signals")),
    ("signal.rs terminate", By("signals")),
    ("sim/probe.rs NextMessage", Within("expect")),
    ("sim/probe.rs expect", By("actors_of_other_executors")),
    ("sim/probe.rs expect_no_message", By("actors_of_other_executors")),
    ("sim/probe.rs expect_within", By("actors_of_other_executors")),
    ("spool/handle.rs join", By("spools_and_supervisors")),
    ("spool/handle.rs send", Within("SendFuture")),
    ("spool/handle.rs serve", By("spools_and_supervisors")),
    ("supervise/supervisor.rs join", By("spools_and_supervisors")),
    ("task/job.rs HostedJob", Within("with")),
    ("task/plain.rs FallibleTask", By("tasks_and_their_runtime")),
    ("task/plain.rs Task", By("tasks_and_their_runtime")),
    ("task/plain.rs cancel", By("tasks_and_their_runtime")),
    ("task/plain.rs fallible", By("tasks_and_their_runtime")),
    ("task_local.rs LocalScope", By("several_futures")),
    ("task_set.rs TaskSet", By("tasks_and_their_runtime")),
    ("task_set.rs next", By("tasks_and_their_runtime")),
    ("task_set.rs shutdown", By("tasks_and_their_runtime")),
    ("task_set/future.rs SetFuture", Own),
    ("time.rs Sleep", By("timers")),
    ("time.rs Timeout", By("timers")),
    ("time/interval.rs Interval", By("timers")),
    ("time/interval.rs tick", By("timers")),
    ("waiters.rs Until", Within("closed")),
];

/// Returns the places of the sources, as [`PLACES`] has them.
fn places() -> Vec<String> {
    let mut places = Vec::new();
    for path in sources().into_iter().filter(|path| !is_test(path)) {
        let file = path
            .strip_prefix(root())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let code = code_of(&path);
        let name = |from: usize| {
            let is_name = |c: &char| c.is_alphanumeric() || *c == '_';
            let name: String = code[from..].chars().take_while(is_name).collect();
            format!("{file} {name}")
        };
        for implemented in [" Future for ", " Stream for "] {
            let found = code.match_indices(implemented);
            places.extend(found.map(|(at, text)| name(at + text.len())));
        }
        places.extend(
            code.match_indices("pub async fn ")
                .map(|(at, text)| name(at + text.len())),
        );
        for (at, _) in code.match_indices("-> impl Future<") {
            let function = code[..at]
                .rfind("fn ")
                .expect("a type that a function returns");
            places.push(name(function + "fn ".len()));
        }
    }
    places
}

#[test]
fn each_future_of_the_crate_is_listed_with_its_test() {
    let (mut made, mut unknown) = (places(), Vec::new());
    for (place, _) in PLACES {
        match made.iter().position(|it| it == place) {
            Some(at) => drop(made.remove(at)),
            None => unknown.push(place),
        }
    }
    assert_eq!(made, [""; 0], "futures that are not in the list");
    assert_eq!(
        unknown, [&""; 0],
        "what is in the list is not in the sources"
    );
    let own = include_str!("../dropped_waits.rs");
    for (place, tested) in PLACES {
        match tested {
            By(test) => assert!(own.contains(&format!("fn {test}(")), "{place}: no {test}"),
            Within(outer) => {
                let is_it = |(place, tested): &(&str, Tested)| {
                    place.ends_with(&format!(" {outer}")) && matches!(tested, By(_))
                };
                assert!(PLACES.iter().any(is_it), "{place}: no test of {outer}");
            }
            Own | OfUsers => {}
        }
    }
}
