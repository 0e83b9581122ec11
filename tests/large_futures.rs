//! Large futures and closures: each way to spawn one fits on a stack of the default size.
//!
//! Apart from the other tests, so that the checks run it in a release build, too. An overflow ends the
//! process, so each way has a child process: this binary again.
#![forbid(unsafe_code)]

use std::future::Future;
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

use futures::FutureExt;
use futures::task::SpawnExt;
use greenroom::looper::Controller;
use greenroom::market::{Job, Market};
use greenroom::spool::Spool;
use greenroom::supervise::{Restarts, Supervisor};
use greenroom::{
    Actor, Builder, Context, Detached, Handle, Pinned, Reply, Runtime, actor, concurrently, retry,
    sequentially, spawn, try_concurrently, unblock, yield_now,
};

/// The size of a future, in bytes, that each way takes.
const LARGE: usize = if cfg!(any(greenroom_poisoned, greenroom_tsan)) {
    // Sanitizers need several times the stack.
    20 << 10
} else if cfg!(debug_assertions) {
    256 << 10
} else {
    512 << 10
};

/// The size where the request of the user is copied often in a debug build.
const LESS: usize = LARGE / if cfg!(debug_assertions) { 2 } else { 1 };

/// The size of a closure that the caller itself copies often in a release build: where it may be given
/// back by value, or as the compiler divides the code.
const HALF: usize = if LARGE > 256 << 10 { 256 << 10 } else { LARGE };

/// The environment variable that names the way for which the process was started.
const WAY: &str = "GREENROOM_TEST_WAY";

fn large() -> impl Future<Output = u8> + Send + 'static {
    sized::<LARGE>()
}

async fn sized<const SIZE: usize>() -> u8 {
    let mut bytes = [1; SIZE];
    black_box(&mut bytes);
    yield_now().await;
    black_box(&mut bytes);
    bytes[SIZE / 2]
}

/// Creates a closure as large as the futures.
fn large_closure() -> impl FnOnce() -> u8 + Clone + Send + 'static {
    let bytes = [1; LARGE];
    move || black_box(&bytes)[LARGE / 2]
}

/// Creates a closure of half the size, if that is much.
fn half_closure() -> impl FnOnce() -> u8 + Clone + Send + 'static {
    let bytes = [1; HALF];
    move || black_box(&bytes)[HALF / 2]
}

async fn served(mut cx: Context<Reply<u8>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(large().await);
    }
}

/// An actor with a large future for each message.
struct Handles;

impl Actor for Handles {
    type Message = Reply<u8>;

    async fn handle(&mut self, reply: Reply<u8>, _cx: &mut Context<Reply<u8>>) {
        reply.send(large().await);
    }
}

/// An actor with a large future for each message, one of which gets the context.
struct Declared;

greenroom::handlers! {
    impl Declared as DeclaredAddress, DeclaredMessage {
        async fn without_context(&mut self) -> u8 {
            large().await
        }

        async fn with_context(&mut self, _cx: &mut Context<DeclaredMessage>) -> u8 {
            large().await
        }
    }
}

/// Runs a future on a worker. The future is boxed here, on a thread with room for it.
fn on_worker<Fut>(options: fn(Builder) -> Builder, future: fn() -> Fut)
where
    Fut: Future<Output = u8> + Send + 'static,
{
    let caller = std::thread::Builder::new().stack_size(64 << 20);
    let caller = caller.spawn(move || {
        let runtime = options(Runtime::builder().workers(2)).build().unwrap();
        assert_eq!(runtime.block_on(runtime.spawn(future().boxed())), 1);
    });
    caller.unwrap().join().unwrap();
}

/// A name, and a program that ends well if its stacks are large enough.
type Way = (&'static str, fn());

/// Makes a list of ways, of which each runs on a worker of a runtime with these options.
macro_rules! ways {
    ($list:ident, $options:expr; $($name:ident $body:block)+) => {
        const $list: &[Way] = &[$((stringify!($name), || on_worker($options, || async $body))),+];
    };
}

ways! { LARGE_ONES, |builder| builder;
    spawned { spawn(large()).await }
    spawned_on_a_runtime { Runtime::current().spawn(large()).await }
    spawned_by_futures {
        let (sender, receiver) = futures::channel::oneshot::channel();
        let large = large().map(|value| sender.send(value).unwrap());
        SpawnExt::spawn(&Runtime::current(), large).unwrap();
        receiver.await.unwrap()
    }
    pinned { Runtime::current().spawn_pinned("pinned").unwrap().spawn(large).await }
    pinned_closure {
        let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
        let closure = large_closure();
        pinned.spawn(|| async { closure() }).await
    }
    actor_closure { spawn!(|_cx: Context<()>| large()).join().await.unwrap() }
    actor_function {
        async fn given(_cx: Context<()>, bytes: [u8; LARGE / 2]) -> u8 {
            yield_now().await;
            black_box(bytes)[0]
        }
        spawn!(given(_, [1; LARGE / 2])).join().await.unwrap()
    }
    actor_on_runtime {
        let runtime = Runtime::current();
        spawn!(|_cx: Context<()>| large(), on = &runtime).join().await.unwrap()
    }
    actor_pinned {
        let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
        spawn!(|_cx: Context<()>| large(), on = &pinned).join().await.unwrap()
    }
    actor_detached { spawn!(|_cx: Context<()>| large(), on = Detached).join().await.unwrap() }
    actor_restarted {
        let restarts = Restarts::default();
        spawn!(|_cx: Context<()>| large(), restart = restarts).join().await.unwrap()
    }
    actor_supervised {
        let tree = Supervisor::builder().spawn().unwrap();
        let child = tree.start(actor(served)).unwrap();
        child.ask(|reply| reply).await.unwrap()
    }
    actor_supervised_with_restarts {
        let tree = Supervisor::builder().spawn().unwrap();
        let child = tree.start(actor(served).restart(Restarts::default())).unwrap();
        child.ask(|reply| reply).await.unwrap()
    }
    actor_split {
        let (_address, split) = actor(|_cx: Context<()>| large()).split();
        split.await.unwrap()
    }
    actor_incarnation {
        let outer = spawn!(async |mut cx: Context<()>| cx.incarnation(|_cx| large()).await.unwrap());
        outer.join().await.unwrap()
    }
    actor_value { spawn!(Handles).ask(|reply| reply).await.unwrap() }
    actor_with_handlers { DeclaredAddress::from(spawn!(Declared)).without_context().await.unwrap() }
    actor_with_handlers_and_context {
        DeclaredAddress::from(spawn!(Declared)).with_context().await.unwrap()
    }
    looper {
        let controller = Controller::builder().build().unwrap();
        controller.looper().spawn(large()).unwrap().await.unwrap()
    }
    looper_with_a_lock {
        let controller = Controller::builder().build().unwrap();
        let lock = controller.lock();
        let looper = controller.looper();
        looper.with(lock.exclusive()).spawn(|_| large()).unwrap().await.unwrap()
    }
    looper_closure {
        let controller = Controller::builder().build().unwrap();
        controller.looper().post(large_closure()).unwrap().await.unwrap()
    }
    looper_world {
        let controller = Controller::builder().build().unwrap();
        let closure = large_closure();
        controller.stop_the_world(|_| closure()).unwrap().await.unwrap()
    }
    market {
        let market = Market::<()>::builder().build().unwrap();
        market.try_offer(Job::new(large_closure())).unwrap().await.unwrap()
    }
    market_offer {
        let market = Market::<()>::builder().build().unwrap();
        let Ok(job) = market.offer(Job::new(half_closure())).await else {
            panic!("the market is open")
        };
        job.await.unwrap()
    }
    concurrently_one_in_a_list { concurrently(vec![large()]).await[0] }
    concurrently_in_an_array {
        concurrently([sized::<{ LARGE / 2 }>(), sized::<{ LARGE / 2 }>()]).await[1]
    }
    concurrently_in_a_list {
        concurrently(vec![sized::<{ LARGE / 2 }>(), sized::<{ LARGE / 2 }>()]).await[1]
    }
    concurrently_in_a_tuple {
        concurrently((sized::<{ LARGE / 2 }>(), sized::<{ LARGE / 2 }>())).await.1
    }
    concurrently_many_in_a_tuple {
        const PART: usize = LARGE / 8;
        concurrently((
            sized::<PART>(), sized::<PART>(), sized::<PART>(), sized::<PART>(),
            sized::<PART>(), sized::<PART>(), sized::<PART>(), sized::<PART>(),
        )).await.7
    }
    concurrently_to_the_first_fault {
        let part = async || Ok::<_, ()>(sized::<{ LESS / 2 }>().await);
        try_concurrently((part(), part())).await.unwrap().1
    }
    concurrently_to_the_first_fault_of_an_array {
        let part = async || Ok::<_, ()>(sized::<{ LESS / 2 }>().await);
        try_concurrently([part(), part()]).await.unwrap()[1]
    }
    sequential {
        let requests = (0..2).map(|_| async { Ok::<_, ()>(sized::<LESS>().await) });
        sequentially(requests).await.unwrap()[1]
    }
    retried {
        let intervals = greenroom::time::RetryIntervals::exponential(Duration::from_millis(1), Duration::from_millis(1));
        retry(&intervals, async || Ok::<_, ()>(large().await)).await.unwrap()
    }
    local_on_a_stage {
        // `std`'s threads have stacks of the same size.
        let on_stage = || {
            let stage = Pinned::here();
            stage.block_on(stage.spawn_local(large()))
        };
        unblock(move || std::thread::spawn(on_stage).join().unwrap()).await
    }
    actor_on_a_stage {
        let on_stage = || {
            let stage = Pinned::here();
            stage.block_on(spawn!(|_cx: Context<()>| large(), on = &stage).join()).unwrap()
        };
        unblock(move || std::thread::spawn(on_stage).join().unwrap()).await
    }
    hosted_call {
        let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
        let hosted = pinned.host(|| ()).await.unwrap();
        let closure = large_closure();
        hosted.with(|()| closure()).await.unwrap()
    }
    hosted_call_that_changes {
        let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
        let hosted = pinned.host(|| ()).await.unwrap();
        let closure = large_closure();
        hosted.with_mut(|()| closure()).await.unwrap()
    }
    hosted_by_a_closure {
        let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
        let hosted = pinned.host(half_closure()).await.unwrap();
        hosted.with(|&value| value).await.unwrap()
    }
    hosted_value {
        let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
        let hosted = pinned.host(|| [1; LARGE]).await.unwrap();
        hosted.with(|value: &[u8; LARGE]| value[1]).await.unwrap()
    }
    blocking { unblock(large_closure()).await }
    spool_worker {
        async fn worker(mut cx: Context<((), Reply<u8>)>) {
            while let Some(((), reply)) = cx.recv().await {
                reply.send(large().await);
            }
        }
        let workers = |_| -> Handle<((), Reply<u8>), ()> { spawn!(worker(_)) };
        let spool = Spool::builder(workers).workers(1).spawn().unwrap();
        spool.ask(()).await.unwrap()
    }
    refused_task {
        let over = Runtime::builder().workers(1).build().unwrap();
        over.shutdown().await;
        over.spawn(large()).fallible().await.map_or(1, |_| 0)
    }
    refused_actor {
        let over = Runtime::builder().workers(1).build().unwrap();
        over.shutdown().await;
        u8::from(spawn!(|_cx: Context<()>| large(), on = &over).join().await.is_err())
    }
    blocked_on { Runtime::current().block_on(large()) }
}

ways! { DEEP, |builder| builder.stack_size(32 << 20);
    worker { deep() }
    worker_that_took_a_place {
        let runtime = Runtime::current();
        // The second worker is held, so another thread takes the place of this one.
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel();
        spawn(async move { begin.send(()).unwrap(); held.recv().unwrap_err() }).detach();
        begun.recv().unwrap();
        let result = runtime.block_on(spawn(async { deep() }));
        drop(hold);
        result
    }
    pinned_thread {
        Runtime::current().spawn_pinned("pinned").unwrap().spawn(|| async { deep() }).await
    }
    detached_actor {
        spawn!(|_cx: Context<()>| async { deep() }, on = Detached).join().await.unwrap()
    }
    blocking_thread { unblock(deep).await }
}

/// Takes 4 to 12 KiB of stack a level.
fn recurse(levels: usize) -> usize {
    let level = black_box([levels; 512]);
    match levels {
        0 => 0,
        _ => recurse(levels - 1) + level[1] / levels,
    }
}

/// Takes more than 4 MiB of stack: twice the default.
fn deep() -> u8 {
    u8::from(recurse(1024) == 1024)
}

/// Runs each way in a child process, or this one in a child process.
fn each_ends_well(ways: &[Way]) {
    if let Ok(name) = std::env::var(WAY) {
        let way = ways.iter().find(|(way, _)| *way == name);
        return way.unwrap().1();
    }
    let test = std::thread::current().name().unwrap().to_owned();
    let mut failed = String::new();
    for (way, _) in ways {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", &test]).env(WAY, way);
        let ended = child.env_remove("RUST_MIN_STACK").output().unwrap();
        if !ended.status.success() {
            let (out, err) = (&ended.stdout, &ended.stderr);
            let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
            failed += &format!("{way}: {}\n{out}{err}", ended.status);
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn a_large_future_fits_on_a_stack_of_the_default_size_by_every_way_to_spawn() {
    each_ends_well(LARGE_ONES);
}

#[test]
fn every_thread_of_a_runtime_has_a_stack_of_the_size_that_was_set() {
    each_ends_well(DEEP);
}
