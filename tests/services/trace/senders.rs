//! The sender in a line about a received or dropped message is always the true one.
//!
//! Each message carries the id of its sender, and its label is made of it. Random programs send in
//! every way, under schedules with split turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use greenroom::policy::Simulated;
use greenroom::supervise::Restarts;
use greenroom::trace::{Event, EventKind, Level, MessageSource, Tracer, forwarding};
use greenroom::{Address, Context, Runtime, actor, sim, spawn};

use crate::support::{WATCH, within};

/// The index of the actor that has sent the message.
#[derive(Clone, Copy)]
struct From(usize);

const SENDERS: usize = 5;
const NAMES: [&str; SENDERS] = ["s0", "s1", "s2", "s3", "s4"];

/// Checks each event, and counts what happened to messages.
#[derive(Clone, Default)]
struct Check(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// The names of the actors by their ids.
    names: HashMap<u64, String>,
    wrong: Vec<String>,
    sent: u32,
    received: u32,
    dropped: u32,
}

impl Tracer for Check {
    fn event(&self, event: &Event<'_>) {
        let mut seen = self.0.lock().unwrap();
        match event.kind() {
            EventKind::Created { .. } => {
                seen.names.insert(event.id(), event.name().to_owned());
            }
            EventKind::Sent { message, .. } => {
                seen.sent += 1;
                seen.check(event, message, Some(event.id()));
            }
            EventKind::Forwarded { message, from, .. } => {
                seen.sent += 1;
                seen.check(event, message, Some(from));
            }
            EventKind::Received { message, from, .. } => {
                seen.received += 1;
                let MessageSource::Sender(from) = from else {
                    return seen.wrong.push(event.to_string());
                };
                seen.check(event, message, Some(from));
            }
            EventKind::Dropped { message, from, .. } => {
                seen.dropped += 1;
                seen.check(event, message, from);
            }
            _ => {}
        }
    }

    fn enabled(&self, level: Level) -> bool {
        level == Level::Object
    }
}

impl Seen {
    fn check(&mut self, event: &Event<'_>, message: &str, from: Option<u64>) {
        let name = from.and_then(|from| self.names.get(&from));
        if name.map(String::as_str) != Some(message) {
            let names = &self.names;
            self.wrong.push(format!("{event}, names {names:?}"));
        }
    }
}

/// Returns true once in `times` calls, on average.
fn one_in(times: u64) -> bool {
    sim::random().is_multiple_of(times)
}

/// Sends in a random way; stops at the first refusal.
async fn sends(cx: Context<()>, me: usize, to: Address<From>, first: u64) {
    let mapped = to.map(From);
    for _ in 0..sim::random() % 6 {
        let refused = match sim::random() % 8 {
            0 => to.tell(From(me)).is_err_and(|it| it.is_closed()),
            1 | 2 => to.send(From(me)).await.is_err(),
            3 => mapped.tell(me).is_err_and(|it| it.is_closed()),
            4 => mapped.send(me).await.is_err(),
            5 => to
                .reserve()
                .await
                .map(|permit| permit.send(From(me)))
                .is_err(),
            6 if first > 0 => {
                // Passed on for the first sender.
                let told = forwarding(first, || to.tell(From(0)));
                told.is_err_and(|it| it.is_closed())
            }
            _ => {
                // Accepted, in line, or given up.
                let mut send = Box::pin(to.send(From(me)));
                let polled = futures::poll!(&mut send);
                matches!(polled, std::task::Poll::Ready(Err(_)))
            }
        };
        if refused {
            break;
        }
        if one_in(3) {
            greenroom::yield_now().await;
        }
    }
    drop(cx);
}

/// Receives some messages, or all.
async fn receives(mut cx: Context<From>, most: u64) {
    for _ in 0..most {
        if cx.recv().await.is_none() {
            break;
        }
        if let Some(From(_)) = (one_in(4)).then(|| cx.try_recv()).flatten() {
            greenroom::yield_now().await;
        }
    }
}

async fn program() {
    let most = [0, 3, 1000][sim::random() as usize % 3];
    let mut receiver = actor(move |cx| receives(cx, most)).label(|from: &From| NAMES[from.0]);
    match sim::random() % 3 {
        0 => {}
        capacity => receiver = receiver.capacity(capacity as usize),
    }
    if one_in(3) {
        receiver = receiver.on_undelivered(drop);
    }
    let receiver = receiver.name("receiver");
    let receiver = match one_in(3) {
        // Each incarnation receives what the one before has left.
        true => receiver
            .restart(Restarts::always().intensity(2, WATCH))
            .spawn(),
        false => receiver.spawn(),
    };
    let mut first = 0;
    let mut senders = Vec::new();
    for (me, name) in NAMES.into_iter().enumerate() {
        let (to, known) = (receiver.address(), first);
        let sender = spawn!(move |cx: Context<()>| sends(cx, me, to, known), name = name);
        if me == 0 {
            first = sender.id();
        }
        senders.push(sender);
    }
    if one_in(4) {
        greenroom::yield_now().await;
        receiver.kill();
    }
    for sender in senders {
        sender.join().await.unwrap();
    }
    let _ = receiver.join().await;
}

#[test]
fn each_message_is_traced_with_its_own_sender_under_every_schedule() {
    let (mut received, mut dropped) = (0, 0);
    for seed in 0..400 {
        let seen = within(WATCH, move || {
            let check = Check::default();
            let builder = Runtime::builder().long_turns(None).tracer(check.clone());
            let runtime = builder.policy(Simulated::new(seed)).build().unwrap();
            runtime.block_on(program());
            drop(runtime);
            std::mem::take(&mut *check.0.lock().unwrap())
        });
        assert_eq!(seen.wrong, [""; 0], "seed {seed}");
        assert!(seen.received + seen.dropped <= seen.sent, "seed {seed}");
        received += seen.received;
        dropped += seen.dropped;
    }
    assert!(received > 500 && dropped > 100, "{received} {dropped}");
}

#[test]
fn each_message_is_traced_with_its_own_sender_on_threads() {
    for _round in 0..20 {
        let seen = within(WATCH, || {
            let check = Check::default();
            let runtime = Runtime::builder()
                .long_turns(None)
                .workers(3)
                .tracer(check.clone())
                .build();
            let runtime = runtime.unwrap();
            runtime.block_on(program());
            drop(runtime);
            std::mem::take(&mut *check.0.lock().unwrap())
        });
        assert_eq!(seen.wrong, [""; 0]);
    }
}

#[test]
fn a_tracer_does_not_change_the_schedule_of_a_simulation() {
    let order = |seed: u64, traced: bool| {
        within(WATCH, move || {
            let order = Arc::new(Mutex::new(Vec::new()));
            let noted = order.clone();
            let mut builder = Runtime::builder()
                .long_turns(None)
                .policy(Simulated::new(seed));
            if traced {
                builder = builder.tracer(Check::default());
            }
            let runtime = builder.build().unwrap();
            runtime.block_on(async {
                let notes = move |mut cx: Context<From>| async move {
                    while let Some(From(sender)) = cx.recv().await {
                        noted.lock().unwrap().push(sender);
                    }
                };
                let notes = actor(notes).capacity(2).spawn();
                for me in 0..SENDERS {
                    let to = notes.address();
                    spawn!(move |cx: Context<()>| sends(cx, me, to, 0)).detach();
                }
                notes.join().await.unwrap();
            });
            drop(runtime);
            let order = order.lock().unwrap();
            order.clone()
        })
    };
    for seed in 0..50 {
        assert_eq!(order(seed, false), order(seed, true), "seed {seed}");
    }
}
