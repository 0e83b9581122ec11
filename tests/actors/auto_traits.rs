//! Which public types and futures are `Send`, `Sync`, `Unpin`, `UnwindSafe` and `RefUnwindSafe`. A
//! change here is a breaking change.

use std::cell::Cell;
use std::future::{Ready, ready};
use std::marker::{PhantomData, PhantomPinned};
use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use greenroom::machine::{Ended, Machine, Next};
use greenroom::policy::{
    Policy, Polling, Prioritized, Runnable, Setup, Sharing, Simulated, Stealing, TaskInfo,
};
use greenroom::registry::{
    Broadcast, Group, GroupWatch, JoinError, KeyError, Keyed, KeyedAskError, KeyedTellError,
    LookupError, Name, RegisterError,
};
use greenroom::request::{First, Retry, Sequentially};
use greenroom::sim::{Failure, Run, RunProblem, TestProbe};
use greenroom::supervise::{Restartable, Restarts};
use greenroom::time::{
    Instant, Interval, IntervalsError, MissedTicks, RetryIntervals, Sleep, TimedOut, sleep, timeout,
};
use greenroom::{
    ActorBuilder, ActorStatus, Address, AdoptError, Answer, Ask, AskCause, AskDetail, AskError,
    BuildError, Builder, Changes, Context, Current, Deadlock, Detached, End, Fault, FlatError,
    Handle, HostFault, Hosted, Join, KeepAlive, Overflow, Panic, Permit, Pinned, Refusal,
    RefusalKind, Reply, Request, Runtime, SendError, ShutdownReport, SourceGuard, SpawnError,
    SpawnProblem, Stage, Stats, Task, TaskBuilder, TaskLocals, TaskSet, TellError, UnhandledFault,
    Unsent, UrgentError, Watch, WeakAddress, WorkerStats, actor, concurrently, try_concurrently,
};

use crate::support::{WATCH, drive, within};

/// A stand-in for a type that reports which traits the type implements.
struct Probe<T: ?Sized>(PhantomData<T>);

fn of<T: ?Sized>() -> Probe<T> {
    Probe(PhantomData)
}

fn of_value<T>(_: &T) -> Probe<T> {
    Probe(PhantomData)
}

/// The probe of what a function returns, which may be a type without a name.
fn of_result<A, T>(_: impl FnOnce(A) -> T) -> Probe<T> {
    Probe(PhantomData)
}

// The inherent method is found if its bound holds, otherwise the trait's method.
macro_rules! askable {
    ($($auto:ident, $method:ident, $otherwise:ident;)+) => {$(
        trait $otherwise {
            fn $method(&self) -> bool {
                false
            }
        }
        impl<T: ?Sized> $otherwise for Probe<T> {}
        impl<T: ?Sized + $auto> Probe<T> {
            fn $method(&self) -> bool {
                true
            }
        }
    )+};
}
askable! {
    Send, is_send, NotSend;
    Sync, is_sync, NotSync;
    Unpin, is_unpin, NotUnpin;
    UnwindSafe, is_unwind_safe, NotUnwindSafe;
    RefUnwindSafe, is_ref_unwind_safe, NotRefUnwindSafe;
}

/// Evaluates to the probe's answers, in the order `Send`, `Sync`, `Unpin`.
macro_rules! found {
    ($probe:expr) => {{
        let probe = $probe;
        (probe.is_send(), probe.is_sync(), probe.is_unpin())
    }};
}

/// Rows of expectations and types; `-` means no.
macro_rules! table {
    ($($send:tt $sync:tt $unpin:tt : $($type:ty),+;)+) => {$($(
        assert_eq!(
            found!(of::<$type>()),
            (table!(@ $send), table!(@ $sync), table!(@ $unpin)),
            "{}",
            stringify!($type),
        );
    )+)+};
    (@ -) => { false };
    (@ $yes:ident) => { true };
}

/// A message that is `Send` but not `Sync`, as messages may be.
type Message = Cell<u32>;
/// A message that is neither.
type Local = Rc<u32>;
type Question = fn(Reply<Message>) -> Message;

#[test]
fn the_probes_tell_yes_from_no() {
    table! {
        Send Sync Unpin: u32, String;
        Send - Unpin: Cell<u32>;
        - - Unpin: Rc<u32>, *const u32;
        - Sync Unpin: std::sync::MutexGuard<'static, u32>;
        Send Sync -: PhantomPinned;
    }
}

#[test]
fn addresses_and_handles_are_send_and_sync_if_their_messages_are_send() {
    table! {
        Send Sync Unpin: Address<Message>, WeakAddress<Message>;
        Send Sync Unpin: Handle<Message, Message>, Join<Message, Message>;
        - - Unpin: Address<Local>, WeakAddress<Local>;
        - - Unpin: Handle<Local, u32>, Handle<u32, Local>, Join<Local, u32>, Join<u32, Local>;
    }
}

#[test]
fn sets_of_tasks_are_send_and_sync_as_their_values_are() {
    table! {
        Send Sync Unpin: TaskSet<u32>, TaskBuilder, TaskLocals;
        Send - Unpin: TaskSet<Message>;
        - - Unpin: TaskSet<Local>;
    }
}

#[test]
fn contexts_replies_and_builders_are_send_if_their_contents_are() {
    table! {
        Send Sync Unpin: Context<Message>, Reply<Message>;
        - - Unpin: Context<Local>, Reply<Local>;
        Send Sync Unpin: ActorBuilder<Local, fn(), Local, Current>, Current, Detached;
        Send - Unpin: ActorBuilder<u32, Message, Local, Current>;
        - - Unpin: ActorBuilder<u32, Local, Local, Current>;
        Send Sync Unpin: SourceGuard, Interval, MissedTicks;
    }
    let received = of_result(|cx: &'static mut Context<Message>| cx.recv());
    assert_eq!(found!(received), (true, true, true));
    let received = of_result(|cx: &'static mut Context<Local>| cx.recv());
    assert_eq!(found!(received), (false, false, true));
}

#[test]
fn policies_and_stats_are_send_and_sync_and_runnables_are_send() {
    table! {
        Send Sync Unpin: Stealing, Polling, Sharing, Prioritized, TaskInfo, Setup;
        Send - Unpin: Runnable, <Stealing as Policy>::Worker;
        Send Sync Unpin: KeepAlive, Stats, WorkerStats, ActorStatus, Watch, Changes;
    }
}

#[test]
fn a_split_actor_is_send_if_its_function_and_future_are() {
    type Ran<A, T> = ActorBuilder<Message, A, Ready<T>>;
    let split = of_result(|actor: Ran<Message, Message>| actor.split().1);
    assert_eq!(found!(split), (true, true, true));
    let split = of_result(|actor: Ran<Local, u32>| actor.split().1);
    assert_eq!(found!(split), (false, true, true));
    let split = of_result(|actor: Ran<u32, Local>| actor.split().1);
    assert_eq!(found!(split), (false, true, true));
}

#[test]
fn a_restartable_actor_is_send_if_its_parts_are() {
    table! {
        Send Sync Unpin: Restarts<Local>, Restartable<Local, u32, Ready<Local>>;
        Send - Unpin: Restartable<u32, Message, Ready<u32>>;
        - - Unpin: Restartable<u32, Local, Ready<u32>>;
    }
    fn future_of<M, A, F, On>(_: ActorBuilder<M, A, F, On>) -> Probe<F> {
        Probe(PhantomData)
    }
    macro_rules! restarted {
        ($message:ty, $actor:ty, $output:ty) => {
            found!(of_result(
                |(it, rules): (
                    ActorBuilder<$message, $actor, Ready<$output>>,
                    Restarts<$output>
                )| future_of(it.restart(rules))
            ))
        };
    }
    assert_eq!(restarted!(Message, u32, u32), (true, true, true));
    assert_eq!(restarted!(u32, Message, u32), (true, false, true));
    assert_eq!(restarted!(u32, u32, Message), (true, false, true));
    assert_eq!(restarted!(u32, Local, u32), (false, false, true));
    assert_eq!(restarted!(u32, u32, Local), (false, false, true));
}

#[test]
fn a_call_that_lends_a_context_is_send_if_its_future_is() {
    let (_, lends) = actor(|mut cx: Context<Message>| async move {
        let plain = found!(of_value(&cx.incarnation(|_cx| ready(1)))).0;
        let local = found!(of_value(&cx.incarnation(|_cx| ready(Rc::new(1))))).0;
        (plain, local)
    })
    .split();
    assert_eq!(drive(lends).unwrap(), (true, false));
}

#[test]
fn send_and_ask_futures_are_send_if_their_messages_are() {
    table! {
        Send Sync Unpin: Unsent<'static, u32>;
        Send - Unpin: Unsent<'static, Message>;
        Send Sync Unpin: Permit<Message>, Answer<Message>;
        - - Unpin: Permit<Local>, Answer<Local>;
        Send - Unpin: Request<Message>, Request<Local>;
        Send Sync Unpin: Ask<'static, u32, Message, fn(Reply<Message>) -> u32>;
        Send - Unpin: Ask<'static, Message, Message, Question>;
        - - Unpin: Ask<'static, u32, Local, fn(Reply<Local>) -> u32>;
        - - Unpin: Ask<'static, u32, u32, Local>;
    }
    let sent = of_result(|(to, message): (&'static Address<u32>, u32)| to.send(message));
    assert_eq!(found!(sent), (true, true, true));
    let sent = of_result(|(to, message): (&'static Address<Message>, Message)| to.send(message));
    assert_eq!(found!(sent), (true, false, true));
    let sent = of_result(|(to, message): (&'static Address<Local>, Local)| to.send(message));
    assert_eq!(found!(sent), (false, false, true));
}

type Outcome = Result<u32, ()>;
type Pair<F> = (F, Ready<u32>);
type Retried<F> = Retry<fn() -> F, F, fn(&()) -> bool>;

#[test]
fn requests_are_send_if_their_futures_are() {
    table! {
        Send Sync Unpin: Retried<Ready<Outcome>>;
        Send Sync Unpin: Sequentially<u32, Ready<Outcome>, u32>;
        - - Unpin: Sequentially<Local, Ready<Outcome>, u32>, Retried<Ready<Result<Local, ()>>>;
    }
    let all = (true, true, true);
    assert_eq!(found!(of_result(concurrently::<Pair<Ready<u32>>>)), all);
    assert_eq!(found!(of_result(concurrently::<Vec<Ready<u32>>>)), all);
    assert_eq!(
        found!(of_result(try_concurrently::<[Ready<Outcome>; 2]>)),
        all
    );
    let only_unpin = (false, false, true);
    assert_eq!(
        found!(of_result(concurrently::<Pair<Ready<Local>>>)),
        only_unpin
    );
    assert_eq!(
        found!(of_result(concurrently::<Vec<Ready<Local>>>)),
        only_unpin
    );
}

#[test]
fn runtimes_tasks_and_pinned_threads_may_be_shared() {
    table! {
        Send Sync Unpin: Runtime, Builder, ShutdownReport, Pinned, Hosted<Local>, Hosted<Message>;
        - - Unpin: Stage;
        Send Sync Unpin: Task<Message>;
        Send Sync Unpin: Task<PhantomPinned>, Reply<PhantomPinned>;
        - Sync Unpin: Task<Local>;
        Send Sync Unpin: Sleep, TimedOut, Instant;
    }
    let fallible = of_result(|task: Task<Message>| task.fallible());
    assert_eq!(found!(fallible), (true, true, true));
    let fallible = of_result(|task: Task<Local>| task.fallible());
    assert_eq!(found!(fallible), (false, true, true));
    let limited = of_result(|future: Sleep| timeout(Duration::MAX, future));
    assert_eq!(found!(limited), (true, true, true));
    let limited = of_result(|future: Ready<Local>| timeout(Duration::MAX, future));
    assert_eq!(found!(limited), (false, false, true));
}

#[test]
fn names_are_send_and_sync_and_a_wait_is_as_its_address() {
    table! {
        Send Sync Unpin: Name<Local>, Group<Local>, GroupWatch<Local>, Broadcast;
        Send Sync Unpin: Keyed<Message, Message>, KeyedTellError<u32>, KeyError, KeyedAskError;
        Send Sync Unpin: LookupError, RegisterError, JoinError;
    }
    let wait = of_result(|name: &'static Name<Message>| name.wait());
    assert_eq!(found!(wait), (true, true, true));
}

/// A machine with these types.
struct Typed<A, S, V>(A, PhantomData<fn() -> (S, V)>);

impl<A: Send, S: Send + Sync, V: Send> Machine for Typed<A, S, V> {
    type State = S;
    type Message = Message;
    type Value = V;

    async fn on(&mut self, _: &S, message: Message, _: &mut Context<Message>) -> Next<Self> {
        Next::Ignore(message)
    }
}

#[test]
fn machines_are_sync_if_their_parts_are() {
    table! {
        Send Sync Unpin: Ended<Typed<u32, u32, u32>>;
        Send - Unpin: Ended<Typed<Message, u32, u32>>;
        Send - Unpin: Ended<Typed<u32, u32, Message>>, Next<Typed<u32, u32, u32>>;
    }
}

#[test]
fn simulation_results_are_send_if_their_values_are() {
    table! {
        Send Sync Unpin: Simulated, Failure, RunProblem, Run<u32>;
        Send - Unpin: Run<Message>, TestProbe<Message>, TestProbe<u32>;
        - - Unpin: Run<Local>;
    }
}

#[test]
fn errors_are_send_if_their_values_are() {
    table! {
        Send Sync Unpin: AskError, AskDetail, AskCause, End;
        Send Sync Unpin: AdoptError<Message, Message>, Deadlock, BuildError, Fault, Panic, HostFault, SpawnProblem;
        Send Sync Unpin: Overflow, UrgentError;
        Send Sync Unpin: UnhandledFault<'static>, SpawnError<u32>;
        Send Sync Unpin: TellError<u32>, SendError<u32>, FlatError<u32>, First<u32>, IntervalsError;
        Send Sync Unpin: Refusal, RefusalKind, RetryIntervals;
        Send - Unpin: TellError<Message>, SendError<Message>, SpawnError<Message>;
        Send - Unpin: FlatError<Message>;
        - - Unpin: TellError<Local>, SendError<Local>, FlatError<Local>, SpawnError<Local>;
    }
}

/// State that a panic may leave half changed.
type Torn = Cell<&'static mut u32>;

/// Rows of types that are both `UnwindSafe` and `RefUnwindSafe`, or neither.
macro_rules! unwinds {
    ($($safe:tt : $($type:ty),+;)+) => {$($(
        let probe = of::<$type>();
        assert_eq!(
            (probe.is_unwind_safe(), probe.is_ref_unwind_safe()),
            (table!(@ $safe), table!(@ $safe)),
            "{}",
            stringify!($type),
        );
    )+)+};
}

/// Evaluates to the probe's answers, in the order `UnwindSafe`, `RefUnwindSafe`.
macro_rules! are_safe {
    ($probe:expr) => {{
        let probe = $probe;
        (probe.is_unwind_safe(), probe.is_ref_unwind_safe())
    }};
}

#[test]
fn library_types_are_unwind_safe_whatever_messages_they_carry() {
    unwinds! {
        Safe: Runtime, KeepAlive, Pinned, Stage, Hosted<Torn>, Task<Torn>;
        Safe: Address<Torn>, WeakAddress<Torn>, Handle<Torn, Torn>, Join<Torn, Torn>;
        Safe: Context<Torn>, Reply<Torn>, SourceGuard;
        Safe: Name<Torn>, Group<Torn>, LookupError, RegisterError, JoinError;
        Safe: Keyed<u32, Torn>, KeyError, KeyedAskError;
        Safe: Permit<Torn>, Request<Torn>, Answer<Torn>;
        Safe: Ask<'static, Torn, Torn, Torn>;
        Safe: Sleep, Interval, Instant, MissedTicks, TimedOut;
        Safe: ShutdownReport, Stats, WorkerStats, ActorStatus, TaskInfo, Runnable, Current, Detached;
        Safe: Watch, Changes;
        Safe: AskError, AskDetail, AskCause, End, AdoptError<Torn, Torn>, Deadlock, Fault, Panic, HostFault, SpawnProblem, Refusal, RefusalKind;
        Safe: Overflow, UrgentError;
        Safe: RetryIntervals, IntervalsError, First<u32>;
        Safe: Retried<Ready<Outcome>>;
        Safe: Sequentially<u32, Ready<Outcome>, u32>;
        Safe: UnhandledFault<'static>, Failure, RunProblem, Simulated;
        // Values that carry user data or an `io::Error` are as unwind-safe as that data;
        // `io::Error` is neither.
        -: Torn, TellError<Torn>, SendError<Torn>, SpawnError<Torn>;
        -: ActorBuilder<u32, Torn, u32, Current>, Run<Torn>, BuildError;
        Safe: TellError<u32>, SendError<u32>, SpawnError<u32>, Run<u32>;
        Safe: ActorBuilder<u32, u32, u32, Current>;
    }
    let safe = (true, true);
    let received = of_result(|cx: &'static mut Context<Torn>| cx.recv());
    assert_eq!(are_safe!(received), safe);
    let wait = of_result(|name: &'static Name<Torn>| name.wait());
    assert_eq!(are_safe!(wait), safe);
    let fallible = of_result(|task: Task<Torn>| task.fallible());
    assert_eq!(are_safe!(fallible), safe);
    let sent = of_result(|(to, message): (&'static Address<Torn>, Torn)| to.send(message));
    assert_eq!(are_safe!(sent), safe);
    let split = of_result(|actor: ActorBuilder<Torn, Torn, Ready<Torn>>| actor.split().1);
    assert_eq!(are_safe!(split), safe);
    let limited = of_result(|future: Sleep| timeout(Duration::MAX, future));
    assert_eq!(are_safe!(limited), safe);
    let limited = of_result(|future: Ready<Torn>| timeout(Duration::MAX, future));
    assert_eq!(are_safe!(limited), (false, false));
    assert_eq!(are_safe!(of_result(concurrently::<Pair<Ready<u32>>>)), safe);
    // A list of futures is shared with their wakers.
    let listed = of_result(concurrently::<Vec<Ready<u32>>>);
    assert_eq!(are_safe!(listed), (false, false));
}

#[test]
fn an_address_still_works_after_a_panic_was_caught_beside_it() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let last = actor(async |mut cx: Context<Message>| cx.recv().await);
        let last = last.on(&runtime).spawn();
        let panics = catch_unwind(|| -> () {
            let _uses = (&runtime, last.is_closed());
            std::panic::resume_unwind(Box::new("before the message"))
        });
        assert!(panics.is_err());
        assert!(catch_unwind(|| last.tell(Message::new(1)).is_ok()).unwrap());
        let last = runtime.block_on(last.join()).unwrap();
        assert_eq!(last.map(Cell::into_inner), Some(1));
    });
}

#[test]
fn futures_of_async_functions_are_send() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        macro_rules! sent {
            ($($future:expr),+ $(,)?) => {$(
                assert!(found!(of_value(&$future)).0, "{}", stringify!($future));
            )+};
        }
        sent![
            greenroom::yield_now(),
            greenroom::ctrl_c(),
            greenroom::unblock(|| 1),
            sleep(Duration::ZERO),
            timeout(Duration::ZERO, std::future::pending::<Message>()),
            runtime.shutdown(),
            runtime.spawn(async { 1 }).cancel(),
            runtime.spawn(async { 1 }).fallible(),
            // The value stays on its thread, so neither it nor its inputs need be `Send`.
            pinned.host(|| Rc::new(1)),
            pinned.try_host(|| Ok::<_, Message>(Rc::new(1))),
        ];
        let handle = actor(async |_cx: Context<Message>| ()).on(&runtime).spawn();
        sent![
            handle.closed(),
            handle.send(Message::new(1)),
            handle.ask(|_reply: Reply<Message>| Message::new(1)),
        ];
        let hosted = runtime.block_on(pinned.host(|| Rc::new(1))).unwrap();
        sent![hosted.with(|_| Message::new(1)), hosted.with_mut(|_| 1)];
        sent![handle.join()];
    });
}

#[test]
fn contexts_and_replies_may_be_held_across_an_await_on_a_worker() {
    within(WATCH, || {
        // Compiles only if contexts, replies and all futures used here may be held across an await.
        async fn holds_all(mut cx: Context<Reply<Message>>, other: Address<Reply<Message>>) {
            let weak = cx.downgrade();
            while let Some(reply) = cx.recv().await {
                let asked = other
                    .ask(|inner| inner)
                    .timeout(Duration::from_secs(60))
                    .await;
                let _ = weak.upgrade().map(|own| own.id());
                reply.send(asked.unwrap());
                other.send(cx.recv().await.unwrap()).await.unwrap();
                other.closed().await;
            }
        }
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let echo = actor(async |mut cx: Context<Reply<Message>>| {
            cx.recv().await.unwrap().send(Message::new(7));
            cx.recv().await.unwrap().send(Message::new(8));
        });
        let echo = echo.on(&runtime).spawn().address();
        let handle = actor(|cx| holds_all(cx, echo)).on(&runtime).spawn();
        runtime.block_on(async {
            assert_eq!(handle.ask(|reply| reply).await.unwrap().get(), 7);
            assert_eq!(handle.ask(|reply| reply).await.unwrap().get(), 8);
            handle.join().await.unwrap();
        });
    });
}
