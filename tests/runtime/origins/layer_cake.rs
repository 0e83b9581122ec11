//! The promises of layer_cake's objects: creation, messages, waits, timers and callbacks.

use std::collections::{BTreeMap, HashSet};
use std::thread::{self, ThreadId};
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::sim::TestProbe;
use greenroom::time::{Instant, sleep, timeout};
use greenroom::{
    Actor, Address, AskError, Context, Detached, Fault, Refusal, RefusalKind, Reply, Runtime,
    SourceGuard, concurrently, sim, spawn,
};

use crate::support::on_workers;

const SEEDS: std::ops::Range<u64> = 0..20;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

async fn collect<M>(mut cx: Context<M>) -> Vec<M> {
    let mut all = Vec::new();
    while let Some(message) = cx.recv().await {
        all.push(message);
    }
    all
}

/// Returns the simulation whose timers fire exactly when they are due.
fn exact() -> Simulated {
    Simulated::new(0).timer_jitter(Duration::ZERO)
}

/// Answers with the thread that it runs on.
struct Locator;

impl Actor for Locator {
    type Message = Reply<ThreadId>;

    async fn handle(&mut self, reply: Reply<ThreadId>, _cx: &mut Context<Reply<ThreadId>>) {
        reply.send(thread::current().id());
    }
}

/// Does the same as a function.
async fn locate(mut cx: Context<Reply<ThreadId>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(thread::current().id());
    }
}

#[test]
fn functions_and_values_share_a_thread_or_have_threads_of_their_own() {
    on_workers(1, async {
        let pinned = Runtime::current().spawn_pinned("shared").unwrap();
        let mut threads = Vec::new();
        for [function, value] in [
            [spawn!(locate(_)).address(), spawn!(Locator).address()],
            [
                spawn!(locate(_), on = &pinned).address(),
                spawn!(Locator, on = &pinned).address(),
            ],
            [
                spawn!(locate(_), on = Detached).address(),
                spawn!(Locator, on = Detached).address(),
            ],
        ] {
            let of_function = function.ask(|reply| reply).await.unwrap();
            threads.push([of_function, value.ask(|reply| reply).await.unwrap()]);
        }
        assert_eq!(threads[0][0], threads[0][1], "on the only worker");
        assert_eq!(threads[1][0], threads[1][1], "on the pinned thread");
        let different: HashSet<_> = threads.into_iter().flatten().collect();
        assert_eq!(different.len(), 4, "each detached actor has its thread");
    });
}

/// A request with the address for its answers.
struct Question {
    number: u32,
    answers: Address<u32>,
}

/// Gives two answers to each question.
async fn double(mut cx: Context<Question>) {
    while let Some(Question { number, answers }) = cx.recv().await {
        answers.tell(number * 2).unwrap();
        answers.tell(number * 2 + 1).unwrap();
    }
}

#[test]
fn answers_go_to_the_address_in_a_request_and_not_to_its_sender() {
    sim::explore(SEEDS, |_| async {
        let (mut client, mut third) = (TestProbe::new("client"), TestProbe::new("third party"));
        let (double, for_third) = (spawn!(double(_)), third.address());
        let desk = spawn!(|mut cx: Context<Question>| async move {
            while let Some(mut question) = cx.recv().await {
                if question.number == 20 {
                    question.answers = for_third.clone();
                }
                double.tell(question).unwrap();
            }
        });
        for number in [10, 20, 30] {
            let answers = client.address();
            desk.tell(Question { number, answers }).unwrap();
        }
        for answer in [20, 21, 60, 61] {
            assert_eq!(client.expect().await, answer);
        }
        for answer in [40, 41] {
            assert_eq!(third.expect().await, answer);
        }
    });
}

#[derive(Debug)]
enum Note {
    Order(u32),
    Paid,
    Late,
}

/// Waits an hour for the payment and keeps the orders meanwhile. Returns whether it was paid, and
/// all orders in the order in which it handled them.
async fn shop(mut cx: Context<Note>) -> (bool, Vec<u32>) {
    let (mut kept, mut handled) = (Vec::new(), Vec::new());
    let limit = cx.send_after(HOUR, Note::Late);
    let is_paid = loop {
        match cx.recv().await.unwrap() {
            Note::Order(number) => kept.push(number),
            Note::Paid => break true,
            Note::Late => break false,
        }
    };
    drop(limit);
    handled.append(&mut kept);
    while let Some(note) = cx.recv().await {
        match note {
            Note::Order(number) => handled.push(number),
            other => panic!("the wait is over, but here is {other:?}"),
        }
    }
    (is_paid, handled)
}

#[test]
fn a_wait_for_one_kind_of_message_keeps_the_others_in_their_order() {
    sim::explore(SEEDS, |_| async {
        let (start, shop) = (Instant::now(), spawn!(shop(_)));
        (0..20).for_each(|number| shop.tell(Note::Order(number)).unwrap());
        shop.tell(Note::Paid).unwrap();
        (20..30).for_each(|number| shop.tell(Note::Order(number)).unwrap());
        let (is_paid, handled) = shop.join().await.unwrap();
        assert!(is_paid);
        assert!(handled.into_iter().eq(0..30));
        assert!(start.elapsed() < MINUTE, "the limit was cancelled");
    });
}

#[test]
fn a_timer_message_ends_a_wait_for_another_message() {
    sim::explore(SEEDS, |_| async {
        let (start, shop) = (Instant::now(), spawn!(shop(_)));
        (0..20).for_each(|number| shop.tell(Note::Order(number)).unwrap());
        let (is_paid, handled) = shop.join().await.unwrap();
        assert!(!is_paid);
        assert!(handled.into_iter().eq(0..20));
        assert_eq!(start.elapsed().as_secs(), HOUR.as_secs());
    });
}

#[test]
fn a_message_that_comes_after_a_time_limit_is_read_by_the_next_wait() {
    sim::explore(SEEDS, |_| async {
        let patient = spawn!(|mut cx: Context<u32>| async move {
            let start = Instant::now();
            let first = timeout(HOUR, cx.recv()).await.ok();
            let minutes = start.elapsed().as_secs() / 60;
            (first, minutes, timeout(HOUR, cx.recv()).await.ok())
        });
        sleep(HOUR + 30 * MINUTE).await;
        patient.tell(7).unwrap();
        let (first, minutes, second) = patient.join().await.unwrap();
        assert_eq!((first, minutes, second), (None, 60, Some(Some(7))));
    });
}

#[test]
fn messages_wait_in_the_mailbox_while_an_actor_awaits_an_answer() {
    sim::explore(SEEDS, |_| async {
        let slow = spawn!(|mut cx: Context<Reply<u32>>| async move {
            let reply = cx.recv().await.unwrap();
            sleep(HOUR).await;
            reply.send(42);
        });
        let asks = spawn!(|cx: Context<u32>| async move {
            let answer = slow.ask(|reply| reply).await;
            (answer, collect(cx).await)
        });
        for number in 0..20 {
            asks.tell(number).unwrap();
            sleep(MINUTE).await;
        }
        let (answer, read) = asks.join().await.unwrap();
        assert_eq!(answer, Ok(42));
        assert!(read.into_iter().eq(0..20));
    });
}

#[test]
fn each_kind_of_fault_reaches_its_asker_as_a_refusal_of_that_kind() {
    greenroom::run(async {
        type Question = (Option<RefusalKind>, Reply<()>);
        let refuser = spawn!(|mut cx: Context<Question>| async move {
            while let Some((kind, reply)) = cx.recv().await {
                match kind {
                    Some(kind) => reply.refuse(Refusal::of(kind, "on request")),
                    None => drop(reply),
                }
            }
        });
        for kind in [
            RefusalKind::Fault,
            RefusalKind::Aborted,
            RefusalKind::TimedOut,
            RefusalKind::Unavailable,
            RefusalKind::Busy,
            RefusalKind::Overloaded,
            RefusalKind::OutOfService,
            RefusalKind::ToBeConfirmed,
            RefusalKind::NotListening,
            RefusalKind::NotConnected,
            RefusalKind::NotAccepted,
        ] {
            match refuser.ask(|reply| (Some(kind), reply)).await {
                Err(AskError::Refused(refusal)) => assert_eq!(refusal.kind(), kind),
                other => panic!("{kind:?}: {other:?}"),
            }
        }
        let lost = refuser.ask(|reply| (None, reply)).await;
        assert!(matches!(lost, Err(AskError::NoReply(_))), "{lost:?}");
    });
}

#[test]
fn a_full_mailbox_returns_each_message_that_it_does_not_deliver() {
    // The room of a mailbox in layer_cake.
    const ROOM: u32 = 16_384;
    sim::explore(0..3, |_| async {
        let reader = spawn!(collect(_), capacity = ROOM as usize);
        let refused = (0..20_000).filter_map(|number| reader.tell(number).err());
        let returned = refused.map(|error| {
            assert!(error.is_full());
            error.into_inner()
        });
        assert!(returned.eq(ROOM..20_000));
        assert!(reader.join().await.unwrap().into_iter().eq(0..ROOM));
    });
}

enum Clock {
    Start(&'static str, Duration),
    Cancel(&'static str),
    Over(&'static str),
}

/// Has at most one timer of each name, and tells when one is over.
struct Timers {
    running: BTreeMap<&'static str, SourceGuard>,
    over: Address<&'static str>,
}

impl Actor for Timers {
    type Message = Clock;

    async fn handle(&mut self, message: Clock, cx: &mut Context<Clock>) {
        match message {
            Clock::Start(name, duration) => {
                let timer = cx.send_after(duration, Clock::Over(name));
                self.running.insert(name, timer);
            }
            Clock::Cancel(name) => drop(self.running.remove(name)),
            Clock::Over(name) => self.over.tell(name).unwrap(),
        }
    }
}

/// Spawns timers that tell the probe.
fn timers(probe: &TestProbe<&'static str>) -> greenroom::Handle<Clock, Timers> {
    let (running, over) = (BTreeMap::new(), probe.address());
    spawn!(Timers { running, over })
}

#[test]
fn starting_a_timer_again_resets_it() {
    sim::explore(SEEDS, |_| async {
        let mut probe = TestProbe::new("probe");
        let timers = timers(&probe);
        for _ in 0..5 {
            timers.tell(Clock::Start("idle", HOUR)).unwrap();
            probe.expect_no_message(40 * MINUTE).await;
        }
        probe.expect_no_message(19 * MINUTE).await;
        assert_eq!(probe.expect_within(2 * MINUTE).await, "idle");
        probe.expect_no_message(24 * HOUR).await;
    });
}

#[test]
fn starting_a_timer_again_leaves_those_of_other_names_running() {
    sim::explore(SEEDS, |_| async {
        let mut probe = TestProbe::new("probe");
        let timers = timers(&probe);
        timers.tell(Clock::Start("idle", HOUR)).unwrap();
        timers.tell(Clock::Start("whole", 2 * HOUR)).unwrap();
        probe.expect_no_message(30 * MINUTE).await;
        timers.tell(Clock::Start("idle", 2 * HOUR)).unwrap();
        probe.expect_no_message(89 * MINUTE).await;
        assert_eq!(probe.expect_within(2 * MINUTE).await, "whole");
        probe.expect_no_message(29 * MINUTE).await;
        assert_eq!(probe.expect_within(2 * MINUTE).await, "idle");
    });
}

#[test]
fn cancelling_a_timer_that_does_not_run_has_no_effect() {
    sim::explore(SEEDS, |_| async {
        let mut probe = TestProbe::new("probe");
        let timers = timers(&probe);
        for _ in 0..3 {
            // Not started at first, and over in the later rounds.
            timers.tell(Clock::Cancel("idle")).unwrap();
            timers.tell(Clock::Cancel("idle")).unwrap();
            timers.tell(Clock::Start("idle", HOUR)).unwrap();
            probe.expect_no_message(59 * MINUTE).await;
            assert_eq!(probe.expect_within(2 * MINUTE).await, "idle");
        }
    });
}

#[test]
fn timers_of_any_length_fire_exactly_when_they_are_due() {
    exact().explore(SEEDS, |_| async {
        let timed = spawn!(|mut cx: Context<u64>| async move {
            let start = Instant::now();
            let lengths = [0, 1, 50, 199, 200, 201, 249, 3_600_000];
            let _timers =
                lengths.map(|length| cx.send_after(Duration::from_millis(length), length));
            for length in lengths {
                assert_eq!(cx.recv().await, Some(length));
                assert_eq!(start.elapsed().as_millis(), length.into());
            }
        });
        timed.join().await.unwrap();
    });
}

#[test]
fn ticks_do_not_drift_although_each_of_them_may_be_late() {
    const LATE: Duration = Duration::from_millis(20);
    let options = Simulated::new(0).timer_jitter(LATE);
    options.explore(SEEDS, |_| async {
        let ticks = spawn!(|mut cx: Context<()>| async move {
            let start = Instant::now();
            let _timer = cx.send_every(SECOND, || ());
            for tick in 1..=1000 {
                cx.recv().await.unwrap();
                let due = SECOND * tick;
                let range = due..=due + 2 * LATE;
                assert!(range.contains(&start.elapsed()), "tick {tick}");
            }
        });
        ticks.join().await.unwrap();
    });
}

#[test]
fn a_busy_actor_gets_one_of_its_missed_ticks_and_the_next_on_schedule() {
    exact().explore(SEEDS, |_| async {
        let ticks = spawn!(|mut cx: Context<()>| async move {
            let start = Instant::now();
            let _timer = cx.send_every(HOUR, || ());
            sleep(10 * HOUR + 30 * MINUTE).await;
            for minutes in [630, 660, 720, 780] {
                cx.recv().await.unwrap();
                assert_eq!(start.elapsed().as_secs(), minutes * 60);
            }
        });
        ticks.join().await.unwrap();
    });
}

enum Desk {
    Request(u32, Reply<(u32, u32)>),
    /// The first result for the asker that is kept in the reply.
    First(Reply<(u32, u32)>, Result<u32, Fault>),
    /// The first result, and the second one.
    Second(Reply<(u32, u32)>, u32, Result<u32, Fault>),
}

/// Returns the number after that many hours.
async fn worker(_cx: Context<()>, number: u32, hours: u32) -> u32 {
    sleep(HOUR * hours).await;
    number
}

/// Has two workers for each request, one after the other. The replies are kept by the callbacks.
async fn desk(mut cx: Context<Desk>) {
    while let Some(message) = cx.recv().await {
        match message {
            Desk::Request(hours, reply) => {
                let first = spawn!(worker(_, hours * 10, hours));
                cx.on_join(first, |result| Desk::First(reply, result));
            }
            Desk::First(reply, result) => {
                let first = result.unwrap();
                let second = spawn!(worker(_, first + 1, 1));
                cx.on_join(second, move |result| Desk::Second(reply, first, result));
            }
            Desk::Second(reply, first, result) => reply.send((first, result.unwrap())),
        }
    }
}

#[test]
fn answers_that_come_out_of_order_reach_their_own_clients() {
    exact().explore(SEEDS, |_| async {
        let (start, desk) = (Instant::now(), spawn!(desk(_)));
        let request = async |hours| {
            let answer = desk.ask(|reply| Desk::Request(hours, reply)).await;
            (answer, start.elapsed().as_secs() / 3600)
        };
        let answers = concurrently([request(3), request(1), request(2)]).await;
        let expected = [(Ok((30, 31)), 4), (Ok((10, 11)), 2), (Ok((20, 21)), 3)];
        assert_eq!(answers, expected);
    });
}

/// Adds numbers until it gets `None`, and returns their sum.
async fn add(mut cx: Context<Option<u32>>) -> Result<u32, Refusal> {
    let mut sum = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Some(number) => sum += number,
            None => return Ok(sum),
        }
    }
    let why = "user or software interrupt";
    Err(Refusal::of(RefusalKind::Aborted, why))
}

#[test]
fn a_stopped_actor_can_return_that_it_was_aborted() {
    sim::explore(SEEDS, |_| async {
        let (ends, stopped) = (spawn!(add(_)), spawn!(add(_)));
        for actor in [&ends, &stopped] {
            (0..10).for_each(|number| actor.tell(Some(number)).unwrap());
        }
        ends.tell(None).unwrap();
        stopped.stop();
        assert_eq!(ends.join().await.unwrap(), Ok(45));
        let aborted = stopped.join().await.unwrap().unwrap_err();
        assert_eq!(aborted.kind(), RefusalKind::Aborted);
        assert_eq!(aborted.to_string(), "aborted (user or software interrupt)");
    });
}

/// What a company hears of its workers: how the one with this number has ended.
type Report = (u32, Result<u32, Fault>);

/// Adopts three workers, each with a context that comes back with its result, and stops them. Ends
/// with the value that it is told to abort with.
async fn company(mut cx: Context<Report>, abort_with: u32) -> (u32, Vec<u32>) {
    for number in 1..=3 {
        let forever = move |mut cx: Context<()>| async move {
            while cx.recv().await.is_some() {}
            number * 10
        };
        let name = format!("worker {number}");
        let child = spawn!(forever, name = name);
        cx.adopt(child, move |ended| (number, ended));
    }
    let _open = cx.address();
    let last = cx.children().last().unwrap();
    assert_eq!((cx.children().len(), last.name()), (3, Some("worker 3")));
    cx.stop_children();
    let mut contexts = Vec::new();
    while cx.children().len() > 0 {
        let (number, ended) = cx.recv().await.unwrap();
        assert_eq!(ended.unwrap(), number * 10);
        contexts.push(number);
        assert_eq!(cx.children().len(), 3 - contexts.len());
        assert!(
            cx.children()
                .all(|child| child.name() != Some(&format!("worker {number}")))
        );
    }
    (abort_with, contexts)
}

#[test]
fn a_parent_that_aborts_its_children_ends_with_the_value_it_has_remembered() {
    sim::explore(SEEDS, |_| async {
        let (value, mut contexts) = spawn!(company(_, 42)).join().await.unwrap();
        contexts.sort();
        assert_eq!((value, contexts), (42, vec![1, 2, 3]));
    });
}
