//! What a look finds, without the time until it: here no thread looks by itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use futures::channel::oneshot;
use futures::future::{join, select};
use futures::{FutureExt, StreamExt};

use crate::{ActorWait, Address, Builder, Context, Handle, Reply, Runtime, spawn};

type Job = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Makes the message that runs this future in the actor.
fn job(future: impl Future<Output = ()> + Send + 'static) -> Job {
    Box::new(move || Box::pin(future))
}

/// Makes the message that replies at once.
fn replies(reply: Reply<()>) -> Job {
    job(async move { reply.send(()) })
}

async fn runs(mut cx: Context<Job>) {
    while let Some(job) = cx.recv().await {
        job().await;
    }
}

fn runtime_of(builder: Builder) -> (Runtime, Receiver<String>) {
    let (warn, warned) = channel();
    let builder = builder.workers(2).endless_waits(true);
    let builder = builder.on_warning(move |warning| warn.send(warning.to_string()).unwrap());
    (builder.build().unwrap(), warned)
}

fn runtime() -> (Runtime, Receiver<String>) {
    runtime_of(Runtime::builder())
}

fn actor(runtime: &Runtime, name: &str) -> Handle<Job, ()> {
    spawn!(runs(_), name = name, on = runtime)
}

/// Looks when nothing runs any more. Returns the texts of the warnings, and whether there are other
/// waits, which the next look may report.
fn look(runtime: &Runtime) -> (Vec<String>, bool) {
    let inner = &runtime.inner;
    loop {
        // A worker may still be about to rise or to park, and ends the look that it meets.
        if !inner.scheduler.has_uncounted()
            && inner.until_silence().is_some()
            && let Some(found) = inner.find_silent()
        {
            let texts = found.warnings.iter().map(ToString::to_string).collect();
            let suspects = found.suspects.is_some();
            inner.inc_activity();
            inner.act_on(found);
            inner.dec_activity();
            return (texts, suspects);
        }
        thread::yield_now();
    }
}

/// Returns what is reported when nothing runs any more.
fn found(runtime: &Runtime) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let (texts, has_suspects) = look(runtime);
        found.extend(texts);
        if !has_suspects {
            return found;
        }
    }
}

/// Waits until nothing runs.
fn settle(runtime: &Runtime) {
    runtime.run_until_quiescent();
}

/// Makes `a` ask `b`, which asks `a` before it replies; `a` waits for `others`, too.
fn ask_each_other(a: &Address<Job>, b: &Address<Job>, other: impl Future + Send + 'static) {
    let (own, peer) = (a.clone(), b.clone());
    let asks = job(async move {
        let back = own.clone();
        let question = |reply: Reply<()>| {
            job(async move {
                let _ = back.ask(replies).await;
                reply.send(());
            })
        };
        let ask = peer.ask(question);
        select(ask, Box::pin(other)).await;
    });
    a.tell(asks).unwrap();
}

#[test]
fn actors_that_ask_each_other_are_found_once() {
    let (runtime, _warned) = runtime();
    let (a, b) = (actor(&runtime, "a"), actor(&runtime, "b"));
    ask_each_other(&a, &b, std::future::pending::<()>());
    settle(&runtime);
    let texts = found(&runtime);
    assert_eq!(texts.len(), 1, "{texts:?}");
    let path = format!(
        r#""a" #{0} → "b" #{1} → "a" #{0}; "a" #{0}"#,
        a.id(),
        b.id()
    );
    assert!(texts[0].contains(&path), "{texts:?}");
    assert!(texts[0].contains("silence/tests.rs:"), "{texts:?}");
    // Something happens, and nothing new is found.
    runtime.block_on(runtime.spawn(async {}));
    assert_eq!(found(&runtime), [""; 0]);
}

#[test]
fn an_actor_with_a_waker_elsewhere_is_not_found() {
    let (runtime, _warned) = runtime();
    let (a, b) = (actor(&runtime, "a"), actor(&runtime, "b"));
    let (wake, woken) = oneshot::channel::<()>();
    ask_each_other(&a, &b, woken);
    settle(&runtime);
    assert_eq!(found(&runtime), [""; 0]);
    drop(wake);
}

#[test]
fn actors_that_wait_for_room_in_each_other_are_found() {
    let (runtime, _warned) = runtime();
    let full = |name| {
        let actor = spawn!(runs(_), name = name, capacity = 1, on = &runtime);
        settle(&runtime);
        actor
    };
    let (a, b) = (full("a"), full("b"));
    let (begin, begun) = oneshot::channel::<()>();
    let begun = begun.shared();
    for (actor, other) in [(&a, &b), (&b, &a)] {
        let (other, begun) = (other.address(), begun.clone());
        let sends = job(async move {
            let _ = begun.await;
            let _ = other.send(job(async {})).await;
        });
        actor.tell(sends).unwrap();
        settle(&runtime);
        // The mailbox is full from now on.
        actor.tell(job(async {})).unwrap();
    }
    settle(&runtime);
    assert_eq!(found(&runtime), [""; 0]);
    begin.send(()).unwrap();
    drop(begun);
    settle(&runtime);
    let texts = found(&runtime).concat();
    assert!(texts.contains("(for room)"), "{texts}");
}

#[test]
fn actors_that_wait_for_each_others_end_are_found() {
    let (runtime, _warned) = runtime();
    let (a, b) = (actor(&runtime, "a"), actor(&runtime, "b"));
    for (actor, other) in [(&a, &b), (&b, &a)] {
        let other = other.address();
        actor
            .tell(job(async move { other.closed().await }))
            .unwrap();
    }
    settle(&runtime);
    let texts = found(&runtime).concat();
    assert!(texts.contains("(for its end)"), "{texts}");
}

#[test]
fn an_actor_that_asks_itself_is_reported_by_the_turn_that_does_so() {
    let (runtime, warned) = runtime();
    let a = actor(&runtime, "a");
    let own = a.address();
    let asks = job(async move { drop(own.ask(replies).await) });
    a.tell(asks).unwrap();
    let text = warned.recv().unwrap();
    assert!(
        text.starts_with("an actor waits for itself: \"a\" #"),
        "{text}"
    );
    settle(&runtime);
    assert_eq!(found(&runtime), [""; 0], "it was reported");
}

#[test]
fn an_actor_that_receives_while_it_asks_itself_is_not_reported() {
    async fn both(mut cx: Context<Reply<()>>) {
        let own = cx.address();
        let _first = cx.recv().await;
        let second = async {
            if let Some(reply) = cx.recv().await {
                // Another turn, in which it waits for both.
                crate::yield_now().await;
                reply.send(());
            }
        };
        join(second, own.ask(|reply| reply)).await.1.unwrap();
    }
    let (runtime, warned) = runtime();
    let both = spawn!(both(_), on = &runtime);
    let (reply, _answer) = Reply::pair();
    both.tell(reply).unwrap();
    runtime.block_on(both.join()).unwrap();
    drop(runtime);
    assert_eq!(warned.iter().collect::<Vec<_>>(), [""; 0]);
}

/// Joins the actor on a thread of its own, beside another future. Returns when the thread waits.
fn join_beside(
    runtime: &Runtime,
    actor: Handle<Job, ()>,
    other: impl Future<Output = ()> + Send + 'static,
) {
    let (waits, waiting) = channel();
    let runtime = runtime.clone();
    thread::spawn(move || {
        runtime.block_on(async {
            waits.send(()).unwrap();
            select(actor.join(), Box::pin(other)).await;
        });
    });
    waiting.recv().unwrap();
}

async fn keeps_itself(mut cx: Context<Job>) {
    let own = cx.address();
    let other = own.clone();
    while let Some(job) = cx.recv().await {
        job().await;
    }
    drop((own, other));
}

#[test]
fn a_join_of_an_actor_that_keeps_its_own_address_is_found() {
    let (runtime, _warned) = runtime();
    let keeper = spawn!(keeps_itself(_), name = "keeper", on = &runtime);
    settle(&runtime);
    let id = keeper.id();
    join_beside(&runtime, keeper, std::future::pending());
    let texts = found(&runtime);
    let path = format!("block_on → \"keeper\" #{id} (for its end)");
    assert!(texts[0].contains(&path), "{texts:?}");
    assert!(texts[0].contains("its own context has made"), "{texts:?}");
}

#[test]
fn a_join_that_is_not_all_that_a_thread_waits_for_is_not_found() {
    let (runtime, _warned) = runtime();
    let keeper = spawn!(keeps_itself(_), on = &runtime);
    let (_wake, woken) = oneshot::channel::<()>();
    join_beside(&runtime, keeper, woken.map(drop));
    assert_eq!(found(&runtime), [""; 0]);
}

#[test]
fn a_join_that_was_dropped_in_the_turn_that_polled_it_is_not_found() {
    let (runtime, _warned) = runtime();
    let keeper = spawn!(keeps_itself(_), on = &runtime);
    settle(&runtime);
    let (waits, waiting) = channel();
    let (_wake, woken) = oneshot::channel::<()>();
    let caller = runtime.clone();
    thread::spawn(move || {
        caller.block_on(async {
            select(keeper.join(), std::future::ready(())).await;
            waits.send(()).unwrap();
            woken.await
        })
    });
    waiting.recv().unwrap();
    assert!(look(&runtime).1, "it looks as if it joined");
    assert_eq!(found(&runtime), [""; 0]);
}

#[test]
fn an_ask_that_was_dropped_in_the_turn_that_polled_it_is_not_found() {
    let (runtime, _warned) = runtime();
    let (a, b) = (actor(&runtime, "a"), actor(&runtime, "b"));
    let (own, peer) = (a.address(), b.address());
    let (_wake, woken) = oneshot::channel::<()>();
    let gives_up = job(async move {
        let back = own;
        let question = |reply: Reply<()>| {
            job(async move {
                let _ = back.ask(replies).await;
                reply.send(());
            })
        };
        select(peer.ask(question), std::future::ready(())).await;
        let _ = woken.await;
    });
    a.tell(gives_up).unwrap();
    settle(&runtime);
    assert!(look(&runtime).1, "it looks as if it asked");
    assert_eq!(found(&runtime), [""; 0]);
}

#[test]
fn a_join_that_is_polled_twice_beside_another_wait_is_not_found() {
    let (runtime, _warned) = runtime();
    let keeper = spawn!(keeps_itself(_), on = &runtime);
    settle(&runtime);
    let (waits, waiting) = channel();
    let (_send, mut events) = futures::channel::mpsc::unbounded::<()>();
    let caller = runtime.clone();
    thread::spawn(move || {
        caller.block_on(async {
            let mut join = keeper.join();
            select(&mut join, std::future::ready(())).await;
            waits.send(()).unwrap();
            select(&mut join, events.next()).await;
        });
    });
    waiting.recv().unwrap();
    assert!(look(&runtime).1, "two notes, and two wakers");
    assert_eq!(found(&runtime), [""; 0]);
}

#[test]
fn a_look_that_has_reported_is_followed_by_no_other() {
    let (runtime, _warned) = runtime();
    let (a, b) = (actor(&runtime, "a"), actor(&runtime, "b"));
    ask_each_other(&a, &b, std::future::pending::<()>());
    settle(&runtime);
    assert!(look(&runtime).1);
    assert_eq!(look(&runtime).0.len(), 1);
    assert_eq!(runtime.inner.until_silence(), None);
}

#[test]
fn a_join_of_an_actor_that_has_another_address_is_not_found() {
    let (runtime, _warned) = runtime();
    let keeper = spawn!(keeps_itself(_), on = &runtime);
    settle(&runtime);
    let other = keeper.address();
    join_beside(&runtime, keeper, std::future::pending());
    assert_eq!(found(&runtime), [""; 0]);
    drop(other);
}

#[test]
fn a_join_of_an_actor_with_a_waker_elsewhere_is_not_found() {
    async fn listens(mut cx: Context<Job>, woken: oneshot::Receiver<()>) {
        let _own = cx.address();
        select(Box::pin(cx.recv()), woken).await;
    }
    let (runtime, _warned) = runtime();
    let (_wake, woken) = oneshot::channel();
    let listens = spawn!(listens(_, woken), on = &runtime);
    settle(&runtime);
    join_beside(&runtime, listens, std::future::pending());
    assert_eq!(found(&runtime), [""; 0]);
}

#[test]
fn a_join_is_not_found_while_something_may_have_an_address_that_the_context_has_made() {
    let (runtime, _warned) = runtime();
    let keeper = spawn!(keeps_itself(_), on = &runtime);
    settle(&runtime);
    join_beside(&runtime, keeper, std::future::pending());
    // A task that waits.
    let (_wake, woken) = oneshot::channel::<()>();
    let task = runtime.spawn(woken);
    settle(&runtime);
    assert_eq!(found(&runtime), [""; 0]);
    drop(task);
    // An actor that waits for something else.
    let (end, ended) = oneshot::channel::<()>();
    let other = actor(&runtime, "other");
    other.tell(job(ended.map(drop))).unwrap();
    settle(&runtime);
    assert_eq!(found(&runtime), [""; 0]);
    end.send(()).unwrap();
    settle(&runtime);
    assert_eq!(found(&runtime).len(), 1);
}

#[test]
fn nothing_is_found_while_a_timer_is_armed_or_something_keeps_the_runtime_alive() {
    let (runtime, _warned) = runtime();
    let (a, b) = (actor(&runtime, "a"), actor(&runtime, "b"));
    ask_each_other(&a, &b, std::future::pending::<()>());
    settle(&runtime);
    let keep = runtime.keep_alive();
    assert_eq!(runtime.inner.until_silence(), None);
    assert!(runtime.inner.find_silent().is_none());
    drop(keep);
    let (begin, begun) = channel::<()>();
    let (begins, has_begun) = channel();
    let job = move || {
        begins.send(()).unwrap();
        begun.recv()
    };
    let blocks = runtime.spawn(async { crate::unblock(job).await });
    has_begun.recv().unwrap();
    assert!(runtime.inner.find_silent().is_none());
    begin.send(()).unwrap();
    runtime.block_on(blocks).unwrap();
    let sleeps = runtime.spawn(crate::time::sleep(std::time::Duration::from_secs(3600)));
    assert_eq!(found(&runtime), [""; 0]);
    drop(sleeps);
    settle(&runtime);
    assert_eq!(found(&runtime).len(), 1);
}

#[test]
fn asks_that_another_runtime_may_answer_are_not_found() {
    let (runtime, _warned) = runtime_of(Runtime::builder().around_threads(|run| run()));
    let (a, b) = (actor(&runtime, "a"), actor(&runtime, "b"));
    ask_each_other(&a, &b, std::future::pending::<()>());
    settle(&runtime);
    assert_eq!(found(&runtime), [""; 0]);
}

#[test]
fn actors_of_pinned_threads_are_found() {
    let (runtime, _warned) = runtime();
    let pinned = runtime.spawn_pinned("host").unwrap();
    let a = spawn!(runs(_), name = "a", on = &pinned);
    let b = actor(&runtime, "b");
    ask_each_other(&a, &b, std::future::pending::<()>());
    settle(&runtime);
    assert_eq!(found(&runtime).len(), 1);
}

#[test]
fn an_actor_with_a_weak_address_elsewhere_is_not_found() {
    let (runtime, _warned) = runtime();
    let (a, b) = (actor(&runtime, "a"), actor(&runtime, "b"));
    let weak = a.downgrade();
    ask_each_other(&a, &b, std::future::pending::<()>());
    settle(&runtime);
    assert_eq!(found(&runtime), [""; 0]);
    drop(weak);
    runtime.block_on(runtime.spawn(async {}));
    assert_eq!(found(&runtime).len(), 1);
}

#[test]
fn an_actor_with_more_waits_than_are_noted_is_not_found() {
    let (runtime, _warned) = runtime();
    let (a, b) = (actor(&runtime, "a"), actor(&runtime, "b"));
    let ends: Vec<_> = (0..4).map(|_| b.address()).collect();
    let all = async move { futures::future::join_all(ends.iter().map(Address::closed)).await };
    ask_each_other(&a, &b, all);
    settle(&runtime);
    assert_eq!(found(&runtime), [""; 0]);
}

#[test]
fn what_an_earlier_call_of_the_thread_has_noted_is_forgotten() {
    let (runtime, _warned) = runtime();
    let keeper = || spawn!(keeps_itself(_), on = &runtime);
    let [first, second] = [keeper(), keeper()];
    settle(&runtime);
    let (waits, waiting) = channel();
    let (_wake, woken) = oneshot::channel::<()>();
    let caller = runtime.clone();
    thread::spawn(move || {
        // The last poll of the first call notes a wait, and the second call has one more waker.
        caller.block_on(select(first.join(), std::future::ready(())));
        caller.block_on(async {
            waits.send(()).unwrap();
            select(second.join(), woken).await;
        });
    });
    waiting.recv().unwrap();
    assert_eq!(found(&runtime), [""; 0]);
}

#[test]
fn with_a_driver_waits_are_noted_and_not_reported() {
    struct Parks;
    impl crate::Driver for Parks {
        fn drive(&self, _worker: Pin<&mut dyn Future<Output = ()>>) {}

        fn sleep_until(&self, _at: std::time::Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            unreachable!("no worker is driven")
        }
    }
    let (runtime, _warned) = runtime_of(Runtime::builder().driver(Parks));
    let (a, b) = (actor(&runtime, "a"), actor(&runtime, "b"));
    ask_each_other(&a, &b, std::future::pending::<()>());
    settle(&runtime);
    assert_eq!(runtime.inner.until_silence(), None);
    let report = runtime.report();
    let asks = |actor: &crate::TaskReport| matches!(actor.waits[..], [ActorWait::Answer(_)]);
    assert!(report.iter().all(asks), "{report:?}");
}
