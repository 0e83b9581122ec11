//! The program that benches/way.sh follows: `way WAY` goes one way of a message.
//!
//! callgrind forgets all costs where `begin` is called, and writes them to a file where `end` is called.
//! Everything runs on one worker, and each way was gone before. So no file is entered for another
//! thread, or because something is made for the first time.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use greenroom::supervise::Restarts;
use greenroom::{Context, Reply, Runtime, spawn, yield_now};

/// A deadline that is never reached.
const NEVER: Duration = Duration::from_secs(3600);
/// The message before the one that is followed.
const BEFORE: u32 = 0;
/// The message that is followed.
const FOLLOWED: u32 = 1;
/// The message after it.
const AFTER: u32 = 2;

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    let runtime = Runtime::builder().workers(1).endless_waits(false).build();
    let runtime = runtime.expect("a thread can be started");
    match way.as_str() {
        "tell" => follow(&runtime, tell(true)),
        "receive" => follow(&runtime, tell(false)),
        "ask" => follow(&runtime, ask()),
        "turn" => follow(&runtime, turn(false)),
        "restart" => follow(&runtime, turn(true)),
        _ => panic!("usage: way tell|receive|ask|turn|restart"),
    }
    runtime.block_on(runtime.shutdown());
}

/// Runs `way` as a task on the worker, while no other thread runs code of greenroom.
fn follow(runtime: &Runtime, way: impl Future<Output = ()> + Send + 'static) {
    let ((start, started), (finish, finished)) = (channel(), channel());
    let task = runtime.spawn(async move {
        // The worker waits here until `spawn` has returned.
        started.recv().expect("it is started");
        way.await;
        finish.send(()).expect("it is awaited");
    });
    start.send(()).expect("the task waits for it");
    finished.recv().expect("the way does not panic");
    runtime.block_on(task);
}

/// What follows is on the way.
#[inline(never)]
fn begin() {
    std::hint::black_box(());
}

/// What follows is not on the way.
#[inline(never)]
fn end() {
    std::hint::black_box(());
}

/// Lets the actors that are ready run until they wait.
async fn let_them_wait() {
    yield_now().await;
    yield_now().await;
}

/// Sends a message to an actor that waits. The way is the call, or what comes between it and the
/// handling of the message.
async fn tell(is_call: bool) {
    let actor = spawn!(move |mut cx: Context<u32>| async move {
        while let Some(message) = cx.recv().await {
            if message == FOLLOWED && !is_call {
                end();
            }
        }
    });
    let address = actor.address();
    let_them_wait().await;
    address.tell(BEFORE).expect("the actor lives");
    let_them_wait().await;
    if is_call {
        begin();
    }
    let told = address.tell(FOLLOWED);
    if is_call {
        end();
    } else {
        begin();
    }
    told.expect("the actor lives");
    let_them_wait().await;
    drop(address);
    actor.join().await.expect("no panic");
}

/// Calls a function, which is on the way if the message is the one that is followed.
fn call<T>(message: u32, function: impl FnOnce() -> T) -> T {
    if message != FOLLOWED {
        return function();
    }
    begin();
    let result = function();
    end();
    result
}

/// Asks an actor that waits. The way are the polls of the ask and its drop, and the reply.
async fn ask() {
    let actor = spawn!(|mut cx: Context<(u32, Reply<u32>)>| async move {
        while let Some((message, reply)) = cx.recv().await {
            call(message, || reply.send(message));
        }
    });
    let address = actor.address();
    for message in [BEFORE, FOLLOWED] {
        let mut ask = pin!(None);
        let answer = poll_fn(|cx| {
            call(message, || {
                if ask.is_none() {
                    ask.set(Some(address.ask(|reply| (message, reply)).timeout(NEVER)));
                }
                ask.as_mut().as_pin_mut().expect("just made").poll(cx)
            })
        });
        assert_eq!(answer.await, Ok(message));
        call(message, || ask.set(None));
    }
    drop(address);
    actor.join().await.expect("no panic");
}

/// How often the actor below has started.
static STARTS: AtomicU32 = AtomicU32::new(0);

/// Receives up to the message after the one that is followed. Each message before panics, if any does.
async fn receive(mut cx: Context<u32>, panics: bool) {
    STARTS.fetch_add(1, Ordering::Relaxed);
    while let Some(message) = cx.recv().await {
        match message {
            FOLLOWED => begin(),
            AFTER => end(),
            _ => {}
        }
        assert!(!panics || message == AFTER, "as it should");
    }
}

/// Sends an actor one message after the other. The way begins where the actor handles a message, and
/// ends where it handles the next one. If `panics`, it is restarted in between.
async fn turn(panics: bool) {
    // The hook of `std` prints, which is not on the way.
    std::panic::set_hook(Box::new(|_| ()));
    let actor = match panics {
        true => spawn!(receive(_, true), restart = Restarts::on_fault()),
        false => spawn!(receive(_, false)),
    };
    let address = actor.address();
    for message in [BEFORE, FOLLOWED, AFTER] {
        let_them_wait().await;
        address.tell(message).expect("the actor lives");
    }
    let_them_wait().await;
    drop(address);
    actor.join().await.expect("no panic");
    let starts = STARTS.load(Ordering::Relaxed);
    assert_eq!(starts, if panics { 3 } else { 1 });
}
