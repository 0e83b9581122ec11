//! Values of tasks: where they are in scope, and who inherits them.

use std::future::{pending, poll_fn};
use std::task::Poll;

use greenroom::looper::Controller;
use greenroom::market::{Job, Market};
use greenroom::{
    Context, LocalUnset, Reply, Runtime, TaskLocals, TaskSet, actor, concurrently, inherit,
    task_local, unblock, yield_now,
};

use crate::support::{Gate, Home, Log, WATCH, drive, in_every_home, panic_of, poll_once, within};

task_local! {
    /// The number of a request.
    static REQUEST: u32;
    static USER: String
}

in_every_home!(
    a_value_is_in_scope_in_each_poll_of_its_future_alone,
    scopes_nest_and_the_innermost_is_found,
    a_task_has_the_values_only_if_it_inherits_them,
    a_set_passes_on_what_inherits,
    an_actor_with_the_option_has_the_values_in_all_incarnations,
    values_are_in_scope_while_the_future_is_dropped,
);

fn a_value_is_in_scope_in_each_poll_of_its_future_alone(home: &Home) {
    let own = |number| {
        REQUEST.scope(number, async move {
            for _ in 0..5 {
                assert_eq!(REQUEST.get(), Some(number));
                yield_now().await;
            }
        })
    };
    home.block_on(async {
        let tasks = (0..10).map(|number| home.spawn_task(own(number)));
        for task in tasks.collect::<Vec<_>>() {
            task.await;
        }
        concurrently((own(20), own(21), async {
            for _ in 0..5 {
                assert_eq!(REQUEST.get(), None);
                yield_now().await;
            }
        }))
        .await;
    });
}

fn scopes_nest_and_the_innermost_is_found(home: &Home) {
    let inner = USER.scope("eve".to_owned(), async {
        yield_now().await;
        let before = REQUEST.get();
        let nested = REQUEST
            .scope(2, async { (REQUEST.get(), USER.get()) })
            .await;
        (
            before,
            nested,
            REQUEST.sync_scope(3, || REQUEST.get()),
            REQUEST.get(),
        )
    });
    let outer = REQUEST.scope(1, inner);
    let eve = Some("eve".to_owned());
    let expected = (Some(1), (Some(2), eve), Some(3), Some(1));
    assert_eq!(home.block_on(home.spawn_task(outer)), expected);
}

fn a_task_has_the_values_only_if_it_inherits_them(home: &Home) {
    let runtime = home.runtime.clone();
    home.block_on(home.spawn_task(REQUEST.scope(7, async move {
        let read = || async {
            yield_now().await;
            REQUEST.get()
        };
        assert_eq!(runtime.spawn(read()).await, None);
        let inherits = runtime.spawn(USER.scope("eve".to_owned(), inherit(read())));
        assert_eq!(inherits.await, Some(7));
        // Without any value, nothing is inherited.
        #[expect(
            clippy::async_yields_async,
            reason = "the future is made within, and runs outside"
        )]
        let none = TaskLocals::default().scope(async { inherit(read()) }).await;
        assert_eq!(runtime.spawn(none).await, None);
    })));
}

fn a_set_passes_on_what_inherits(home: &Home) {
    home.block_on(REQUEST.scope(7, async {
        let mut set = TaskSet::new();
        set.spawn_on(&home.runtime, inherit(async { REQUEST.get() }));
        assert_eq!(set.next().await.unwrap().unwrap(), Some(7));
    }));
}

async fn clerk(mut cx: Context<Reply<Option<u32>>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(REQUEST.get());
        assert_ne!(cx.incarnation_number(), 0, "bomb in the first incarnation");
    }
}

fn an_actor_with_the_option_has_the_values_in_all_incarnations(home: &Home) {
    home.block_on(REQUEST.scope(7, async {
        let clerk = home.spawn(actor(clerk).restart(Default::default()).inherit());
        for _ in 0..3 {
            assert_eq!(clerk.ask(|reply| reply).await, Ok(Some(7)));
        }
        clerk.stop();
        clerk.join().await.unwrap();
    }));
}

/// Notes the value in its drop.
struct NoteValue(Log<Option<u32>>);

impl Drop for NoteValue {
    fn drop(&mut self) {
        self.0.add(REQUEST.get());
    }
}

fn values_are_in_scope_while_the_future_is_dropped(home: &Home) {
    let log = Log::default();
    let note = NoteValue(log.clone());
    let task = home.spawn_task(REQUEST.scope(7, async move {
        let _note = note;
        pending::<()>().await;
    }));
    home.block_on(async {
        yield_now().await;
        task.cancel().await;
    });
    assert_eq!(log.take(), [Some(7)]);
    assert_eq!(REQUEST.get(), None);
}

#[test]
fn jobs_have_the_values_by_request() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        runtime.block_on(REQUEST.scope(7, async {
            let values = TaskLocals::current();
            let read = move || values.clone().run(|| REQUEST.get());
            assert_eq!(unblock(|| REQUEST.get()).await, None);
            assert_eq!(unblock(read.clone()).await, Some(7));
            let market = Market::<()>::builder().build().unwrap();
            let job = market.offer(Job::new(read.clone())).await.unwrap();
            assert_eq!(job.await.unwrap(), Some(7));
            let controller = Controller::builder().build().unwrap();
            let posted = controller.looper().post(read).unwrap();
            assert_eq!(posted.await.unwrap(), Some(7));
            controller.shutdown().await;
            drop(market);
        }));
    });
}

/// Reads the value twice, in two polls.
async fn read_twice() -> [Option<u32>; 2] {
    let first = REQUEST.get();
    yield_now().await;
    [first, REQUEST.get()]
}

/// Waits in a task with a value, for another task and for what calls this.
async fn wait_in_a_task(runtime: &Runtime) {
    let (begun, gate) = (Gate::default(), Gate::default());
    let (tells, waits, own) = (begun.clone(), gate.clone(), runtime.clone());
    let waiting = runtime.spawn(REQUEST.scope(1, async move {
        let other = own.spawn(read_twice());
        let read = own.block_on(async {
            tells.open();
            waits.wait().await;
            (other.await, read_twice().await)
        });
        (read, REQUEST.get())
    }));
    begun.wait().await;
    assert_eq!((REQUEST.get(), USER.get().as_deref()), (None, Some("eve")));
    gate.open();
    let (none, own) = ([None; 2], [Some(1); 2]);
    assert_eq!(waiting.await, ((none, own), Some(1)));
}

#[test]
fn a_task_that_waits_shows_its_values_to_no_other() {
    let waits = |runtime: &Runtime| {
        runtime.block_on(USER.scope("eve".to_owned(), wait_in_a_task(runtime)));
    };
    Home::simulate(waits);
    within(WATCH, move || waits(&Home::workers(1).runtime));
}

#[test]
fn a_shutdown_within_a_scope_shows_its_values_to_no_task() {
    let log = Log::default();
    let (simulated, threads) = (log.clone(), log.clone());
    let leave = |runtime: &Runtime, log: Log<Option<u32>>| {
        let note = NoteValue(log);
        runtime
            .spawn(async move {
                let _note = note;
                pending::<()>().await;
            })
            .detach();
    };
    Home::simulate(move |runtime| {
        leave(runtime, simulated.clone());
        REQUEST.sync_scope(1, || drive(runtime.shutdown()));
    });
    within(WATCH, move || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        leave(&runtime, threads);
        REQUEST.sync_scope(1, || drop(runtime));
    });
    let seen = log.take();
    assert!(
        !seen.is_empty() && seen.iter().all(Option::is_none),
        "{seen:?}"
    );
}

#[test]
fn a_stage_shows_the_values_of_its_thread_to_no_task() {
    within(WATCH, || {
        let home = Home::workers(1);
        let stage = home.runtime.pinned_here();
        let (first, second) = (stage.spawn_local(read_twice()), Log::default());
        let note = NoteValue(second.clone());
        stage
            .spawn_local(async move {
                let _note = note;
                pending::<()>().await;
            })
            .detach();
        REQUEST.sync_scope(1, || {
            stage.run_ready();
            let own = stage.block_on(async { (first.await, read_twice().await) });
            assert_eq!(own, ([None; 2], [Some(1); 2]));
            drop(stage);
        });
        assert_eq!(second.take(), [None]);
    });
}

#[test]
fn a_value_that_is_not_set_is_an_error() {
    let here = line!() + 1;
    let (text, file, line) = panic_of(|| REQUEST.with(|number| *number));
    assert_eq!(
        (&*text, &*file, line),
        (&*LocalUnset.to_string(), file!(), here)
    );
    assert_eq!(REQUEST.try_with(|number| *number), Err(LocalUnset));
}

#[test]
fn a_panic_leaves_the_scope() {
    let mut panics = Box::pin(REQUEST.scope(7, async {
        assert_eq!(REQUEST.get(), None, "bomb in a scope");
    }));
    panic_of(|| poll_once(&mut panics).is_ready());
    assert_eq!(REQUEST.get(), None);
    panic_of(|| REQUEST.sync_scope(7, || assert_eq!(REQUEST.get(), None)));
    assert_eq!(REQUEST.get(), None);
}

#[test]
fn a_value_may_be_read_while_it_is_read() {
    let both = REQUEST.sync_scope(7, || {
        REQUEST.with(|outer| {
            (
                *outer,
                REQUEST.sync_scope(8, || REQUEST.get()),
                REQUEST.get(),
            )
        })
    });
    assert_eq!(both, (7, Some(8), Some(7)));
}

#[test]
fn a_scope_works_on_any_executor() {
    let scoped = REQUEST.scope(7, async {
        let task = spawn_elsewhere(inherit(async { REQUEST.get() }));
        poll_fn(|_| Poll::Ready(())).await;
        task.join().unwrap()
    });
    assert_eq!(futures::executor::block_on(scoped), Some(7));
}

fn spawn_elsewhere<F>(future: F) -> std::thread::JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    std::thread::spawn(move || drive(future))
}
