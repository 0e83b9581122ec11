//! Children: actors that another actor owns, their results, and what a stop or an end does to them.

mod model;
mod trees;

use std::time::Duration;

use greenroom::{Address, Context, Fault, Handle, Reply, Runtime, UnhandledFault, actor, spawn};

use crate::support::{
    Gate, Home, Log, WATCH, in_every_home, keep_bombs_quiet, panic_of, poll_once, within,
};
use greenroom::policy::{Sharing, TaskInfo};

in_every_home!(
    the_result_of_a_child_is_a_message,
    a_stopped_parent_handles_what_was_accepted_then_stops_its_children,
    a_stop_drops_all_sources_but_the_results_of_children,
    a_parent_without_senders_does_what_a_stopped_one_does,
    a_parent_that_ends_in_another_way_stops_its_children,
    a_child_needs_no_other_sender,
    children_are_listed_until_their_results_arrive,
    stop_children_leaves_the_parent_open,
    a_child_of_a_closed_parent_is_stopped_at_once,
    no_actor_adopts_itself_or_an_ancestor,
    a_parent_that_is_read_elsewhere_receives_its_children,
    a_foreign_reader_of_a_killed_parent_is_not_left_waiting,
    a_killed_parent_that_is_read_elsewhere_stops_its_children,
);

type Result<T> = std::result::Result<T, Fault>;

#[derive(Debug, PartialEq)]
enum Message {
    Told(u32),
    Ended(u32),
    Lost,
}

fn ended(result: Result<u32>) -> Message {
    result.map_or(Message::Lost, Message::Ended)
}

/// Adds up what it is told.
async fn sum(mut cx: Context<u32>) -> u32 {
    let mut sum = 0;
    while let Some(number) = cx.recv().await {
        sum += number;
    }
    sum
}

async fn all(mut cx: Context<Message>) -> Vec<Message> {
    let mut all = Vec::new();
    while let Some(message) = cx.recv().await {
        all.push(message);
    }
    all
}

fn the_result_of_a_child_is_a_message(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let parent = home.spawn(actor(|mut cx: Context<Message>| async move {
            let (sums, panics) = (
                spawn!(sum(_)),
                spawn!(|_: Context<()>| async { panic!("bomb") }),
            );
            sums.tell(42).unwrap();
            sums.stop();
            let killed = spawn!(sum(_));
            killed.kill();
            cx.adopt(sums, ended);
            cx.adopt(panics, |result: Result<()>| {
                assert_eq!(result.unwrap_err().to_string(), "panicked: bomb");
                Message::Lost
            });
            cx.adopt(killed, ended);
            // This address keeps the parent open until all results are there.
            let _myself = cx.address();
            let results = [cx.recv().await, cx.recv().await, cx.recv().await];
            results.map(Option::unwrap)
        }));
        let results = parent.join().await.unwrap();
        let lost = results.iter().filter(|result| **result == Message::Lost);
        assert_eq!(lost.count(), 2);
        assert!(results.contains(&Message::Ended(42)));
    });
}

fn a_stopped_parent_handles_what_was_accepted_then_stops_its_children(home: &Home) {
    home.block_on(async {
        let (stopped, gate) = (Log::default(), Gate::default());
        let (log, opened) = (stopped.clone(), gate.clone());
        let parent = home.spawn(actor(|mut cx: Context<Message>| async move {
            for number in 1..=3 {
                let log = log.clone();
                let child = spawn!(move |cx: Context<u32>| async move {
                    let sum = sum(cx).await;
                    log.add(number);
                    sum
                });
                child.tell(number).unwrap();
                cx.adopt(child, ended);
            }
            opened.wait().await;
            let accepted = [cx.recv().await, cx.recv().await];
            (accepted, log.len(), all(cx).await)
        }));
        parent.tell(Message::Told(1)).unwrap();
        parent.tell(Message::Told(2)).unwrap();
        parent.stop();
        gate.open();
        let (accepted, early, mut results) = parent.join().await.unwrap();
        assert_eq!(accepted, [Some(Message::Told(1)), Some(Message::Told(2))]);
        assert_eq!(early, 0, "no child was stopped before");
        results.sort_by_key(|result| match result {
            Message::Ended(sum) => *sum,
            _ => 0,
        });
        assert_eq!(results, [1, 2, 3].map(Message::Ended));
        let mut stopped = stopped.take();
        stopped.sort();
        assert_eq!(stopped, [1, 2, 3]);
    });
}

#[test]
fn children_are_stopped_youngest_first() {
    // One worker that shares one queue runs the children in the order in which they are woken.
    let runtime = Runtime::builder()
        .workers(1)
        .policy(Sharing::default())
        .build()
        .unwrap();
    runtime.block_on(async {
        for by_parent in [false, true] {
            let order = Log::default();
            let log = order.clone();
            let parent = spawn!(move |mut cx: Context<Message>| async move {
                for number in 1..=5 {
                    let log = log.clone();
                    let child = spawn!(move |mut cx: Context<u32>| async move {
                        cx.recv().await;
                        log.add(number);
                        number
                    });
                    cx.adopt(child, ended);
                }
                // The children wait for messages before they are stopped.
                while let Some(Message::Told(_)) = cx.recv().await {
                    greenroom::yield_now().await;
                }
                if by_parent {
                    cx.stop_children();
                } else {
                    cx.stop();
                }
                all(cx).await;
            });
            for _ in 0..5 {
                parent.tell(Message::Told(0)).unwrap();
            }
            parent.tell(Message::Lost).unwrap();
            parent.join().await.unwrap();
            assert_eq!(order.take(), [5, 4, 3, 2, 1]);
        }
    });
}

fn a_stop_drops_all_sources_but_the_results_of_children(home: &Home) {
    home.block_on(async {
        let parent = home.spawn(actor(|mut cx: Context<Message>| async move {
            cx.adopt(spawn!(sum(_)), ended);
            cx.send_after(Duration::ZERO, Message::Told(1)).detach();
            cx.attach(futures::stream::repeat_with(|| Message::Told(2)))
                .detach();
            cx.on_return(async { 3 }, |number| Message::Told(number.unwrap()));
            cx.stop();
            all(cx).await
        }));
        assert_eq!(parent.join().await.unwrap(), [Message::Ended(0)]);
    });
}

fn a_parent_without_senders_does_what_a_stopped_one_does(home: &Home) {
    home.block_on(async {
        let parent = home.spawn(actor(|mut cx: Context<Message>| async move {
            cx.adopt(spawn!(sum(_)), ended);
            cx.send_after(Duration::from_millis(1), Message::Told(1))
                .detach();
            all(cx).await
        }));
        // The timer keeps the parent open, its child does not.
        let all = parent.join().await.unwrap();
        assert_eq!(all, [Message::Told(1), Message::Ended(0)]);
    });
}

fn a_parent_that_ends_in_another_way_stops_its_children(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for how in 0..3 {
            let (children, ready) = (Log::default(), Gate::default());
            let (log, is_ready) = (children.clone(), ready.clone());
            let parent = home.spawn(actor(move |mut cx: Context<Message>| async move {
                for _ in 0..2 {
                    let child = spawn!(sum(_));
                    log.add(child.address());
                    cx.adopt(child, ended);
                }
                is_ready.open();
                match how {
                    0 => {}
                    1 => panic!("bomb"),
                    _ => assert!(cx.recv().await.is_none()),
                }
            }));
            ready.wait().await;
            if how == 2 {
                parent.kill();
            }
            assert_eq!(parent.join().await.is_ok(), how == 0);
            for child in children.take() {
                assert_eq!(child.ended().await, greenroom::End::Returned);
            }
        }
    });
}

fn a_child_needs_no_other_sender(home: &Home) {
    home.block_on(async {
        let parent = home.spawn(actor(|mut cx: Context<Message>| async move {
            let child = spawn!(sum(_));
            let weak = child.downgrade();
            cx.adopt(child, ended);
            while let Some(Message::Told(number)) = cx.recv().await {
                weak.tell(number).unwrap();
            }
            cx.try_recv()
        }));
        parent.tell(Message::Told(40)).unwrap();
        parent.tell(Message::Told(2)).unwrap();
        parent.stop();
        // The loop has received the result.
        assert_eq!(parent.join().await.unwrap(), None);
    });
}

fn children_are_listed_until_their_results_arrive(home: &Home) {
    home.block_on(async {
        let parent = home.spawn(actor(|mut cx: Context<Message>| async move {
            assert_eq!(cx.children().len(), 0);
            let (first, second) = (spawn!(sum(_), name = "first"), spawn!(sum(_)));
            let ids = [first.id(), second.id()];
            let address = first.address();
            cx.adopt(first, ended);
            cx.adopt(second, ended);
            let listed: Vec<TaskInfo> = cx.children().collect();
            let names = [Some("first".to_owned()), None];
            assert!(listed.iter().map(|child| child.id()).eq(ids));
            assert!(
                listed
                    .iter()
                    .map(|child| child.name().map(Into::into))
                    .eq(names)
            );
            address.stop();
            address.closed().await;
            assert_eq!(cx.children().len(), 2, "the result was not received");
            let _myself = cx.address();
            assert_eq!(cx.recv().await, Some(Message::Ended(0)));
            assert!(cx.children().map(|child| child.id()).eq([ids[1]]));
        }));
        parent.join().await.unwrap();
    });
}

fn stop_children_leaves_the_parent_open(home: &Home) {
    home.block_on(async {
        let parent = home.spawn(actor(|mut cx: Context<Message>| async move {
            cx.stop_children();
            for _ in 0..3 {
                cx.adopt(spawn!(sum(_)), ended);
            }
            cx.stop_children();
            let later = spawn!(sum(_));
            let address = later.address();
            cx.adopt(later, ended);
            let _myself = cx.address();
            for _ in 0..3 {
                assert_eq!(cx.recv().await, Some(Message::Ended(0)));
            }
            assert!(!address.is_closed(), "a child that was adopted later");
        }));
        parent.join().await.unwrap();
    });
}

fn a_child_of_a_closed_parent_is_stopped_at_once(home: &Home) {
    home.block_on(async {
        let parent = home.spawn(actor(|mut cx: Context<Message>| async move {
            cx.stop();
            assert_eq!(cx.recv().await, None);
            cx.adopt(spawn!(sum(_)), ended);
            all(cx).await
        }));
        assert_eq!(parent.join().await.unwrap(), [Message::Ended(0)]);
    });
}

/// An actor to which any actor can be given as a child.
type Adopter = Handle<Adoption, ()>;

enum Adoption {
    Child(Box<Adopter>, Reply<std::result::Result<(), String>>),
    Ended,
}

async fn adopter(mut cx: Context<Adoption>) {
    while let Some(message) = cx.recv().await {
        let Adoption::Child(child, reply) = message else {
            continue;
        };
        let adopted = cx.try_adopt(*child, |_| Adoption::Ended);
        reply.send(adopted.map_err(|error| {
            let text = error.to_string();
            error.into_inner().detach();
            text
        }));
    }
}

async fn adopt(parent: &Address<Adoption>, child: Adopter) -> std::result::Result<(), String> {
    let child = Box::new(child);
    parent
        .ask(|reply| Adoption::Child(child, reply))
        .await
        .unwrap()
}

fn no_actor_adopts_itself_or_an_ancestor(home: &Home) {
    home.block_on(async {
        let names = ["a", "b", "c", "d"];
        let [a, b, c, d] = names.map(|name| home.spawn(actor(adopter).name(name)));
        let (a_address, b_address, c_address) = (a.address(), b.address(), c.address());
        assert_eq!(adopt(&b_address, c).await, Ok(()));
        assert_eq!(adopt(&a_address, b).await, Ok(()));
        let number = a.id();
        let refused = adopt(&c_address, a).await.unwrap_err();
        let text = format!(
            "\"c\" #{} cannot adopt \"a\" #{number}, which is one of its ancestors",
            c_address.id()
        );
        assert_eq!(refused, text);
        let itself = home.spawn(actor(adopter).name("itself"));
        let address = itself.address();
        let refused = adopt(&address, itself).await.unwrap_err();
        assert_eq!(
            refused,
            format!("\"itself\" #{} cannot adopt itself", address.id())
        );
        // Others may still be adopted anywhere in the tree.
        assert_eq!(adopt(&c_address, d).await, Ok(()));
        a_address.stop();
        c_address.closed().await;
    });
}

fn a_parent_that_is_read_elsewhere_receives_its_children(home: &Home) {
    home.block_on(async {
        let (give, given) = futures::channel::oneshot::channel();
        let parent = home.spawn(actor(|cx: Context<Message>| async move {
            drop(give.send(cx));
            std::future::pending::<()>().await
        }));
        let mut cx = given.await.unwrap();
        cx.adopt(home.spawn(actor(sum)), ended);
        parent.stop();
        assert_eq!(cx.recv().await, Some(Message::Ended(0)));
        assert_eq!(cx.recv().await, None);
        parent.kill();
        parent.closed().await;
    });
}

fn a_foreign_reader_of_a_killed_parent_is_not_left_waiting(home: &Home) {
    home.block_on(async {
        let (give, given) = futures::channel::oneshot::channel();
        let parent = home.spawn(actor(|cx: Context<Message>| async move {
            drop(give.send(cx));
            std::future::pending::<()>().await
        }));
        let mut cx = given.await.unwrap();
        let gate = Gate::default();
        let waits = gate.clone();
        let stays = home.spawn(actor(|cx: Context<u32>| async move {
            waits.wait().await;
            sum(cx).await
        }));
        cx.adopt(stays, ended);
        parent.stop();
        let mut received = Box::pin(cx.recv());
        assert!(poll_once(&mut received).is_pending());
        parent.kill();
        assert_eq!(received.await, None);
        gate.open();
    });
}

fn a_killed_parent_that_is_read_elsewhere_stops_its_children(home: &Home) {
    home.block_on(async {
        for waits in [true, false] {
            let (give, given) = futures::channel::oneshot::channel();
            let parent = home.spawn(actor(|cx: Context<Message>| async move {
                drop(give.send(cx));
                std::future::pending::<()>().await
            }));
            let mut cx = given.await.unwrap();
            let child = home.spawn(actor(sum));
            let seen = child.downgrade();
            cx.adopt(child, ended);
            parent.kill();
            let received = if waits {
                cx.recv().await
            } else {
                cx.try_recv()
            };
            assert_eq!(received, None);
            seen.closed().await;
            drop(cx);
        }
    });
}

#[test]
fn adoption_of_oneself_panics_and_is_an_error_for_try_adopt() {
    keep_bombs_quiet();
    let text = panic_of(|| {
        greenroom::run(async {
            let parent = spawn!(|mut cx: Context<Handle<(), ()>>| async move { cx.recv().await });
            drop(parent);
            let mut itself: Context<()> = own_context().await;
            let handle = HANDLE.with(|handle| handle.take().unwrap());
            itself.adopt(handle, |_| ());
        })
    });
    assert!(text.0.ends_with("cannot adopt itself"), "{}", text.0);
}

thread_local!(static HANDLE: std::cell::RefCell<Option<Handle<(), ()>>> = const { std::cell::RefCell::new(None) });

/// Returns the context of an actor whose handle is in `HANDLE`.
async fn own_context() -> Context<()> {
    let (give, given) = futures::channel::oneshot::channel();
    let handle = spawn!(|cx: Context<()>| async move { drop(give.send(cx)) });
    HANDLE.with(|own| *own.borrow_mut() = Some(handle));
    given.await.unwrap()
}

#[test]
fn a_panic_while_a_result_becomes_a_message_is_reported_and_removes_the_child() {
    keep_bombs_quiet();
    within(WATCH, || {
        let heard = Log::default();
        let log = heard.clone();
        let on_fault = move |fault: &UnhandledFault<'_>| log.add(fault.is_source);
        let runtime = Runtime::builder()
            .workers(1)
            .on_fault(on_fault)
            .build()
            .unwrap();
        let parent = actor(|mut cx: Context<Message>| async move {
            cx.adopt(spawn!(sum(_)), |_| panic!("bomb in a closure"));
            cx.adopt(spawn!(sum(_)), ended);
            cx.stop();
            let first = cx.recv().await;
            assert_eq!((first, cx.recv().await), (Some(Message::Ended(0)), None));
            cx.children().len()
        });
        let parent = parent.on(&runtime).spawn();
        assert_eq!(runtime.block_on(parent.join()).unwrap(), 0);
        assert_eq!(heard.take(), [true]);
    });
}
