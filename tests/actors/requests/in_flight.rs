//! Owned requests, and requests whose answers are messages of the asker.

use std::task::Poll;
use std::time::Duration;

use greenroom::{
    Address, AskDetail, AskError, Context, Reply, Runtime, UnhandledFault, actor, concurrently,
    sim, spawn,
};

use crate::support::{Gate, Home, Log, WATCH, in_every_home, keep_bombs_quiet, poll_once, within};

const HOUR: Duration = Duration::from_secs(3600);

enum Adder {
    Add(u32),
    Sum(Reply<u32>),
}

async fn adder(mut cx: Context<Adder>) {
    let mut sum = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Adder::Add(number) => sum += number,
            Adder::Sum(reply) => reply.send(sum),
        }
    }
}

/// Keeps all replies until it is stopped. Returns how many there are then, and how many of them are
/// wanted.
async fn keeper(mut cx: Context<Reply<u32>>) -> (usize, usize) {
    let mut replies = Vec::new();
    while let Some(reply) = cx.recv().await {
        replies.push(reply);
    }
    let wanted = replies.iter().filter(|reply| reply.is_wanted()).count();
    (replies.len(), wanted)
}

type Answer = Result<u32, AskError>;

in_every_home!(
    a_request_is_sent_by_its_first_poll,
    a_request_that_is_dropped_is_given_up,
    a_request_outlives_the_address_that_made_it,
    a_request_waits_for_room_and_passes_maps,
    answers_are_messages_while_the_actor_reads_on,
    a_request_in_flight_is_not_overtaken,
    a_request_that_fails_is_a_message_too,
    a_stopped_actor_drops_its_requests_and_sends_no_new_ones,
    thousands_of_requests_may_be_in_flight,
    requests_in_flight_wait_for_room_in_order,
    a_request_that_was_polled_before_may_be_put_in_flight,
    a_reply_that_its_question_settles_is_a_message_too,
);

fn a_request_is_sent_by_its_first_poll(home: &Home) {
    home.block_on(async {
        let adder = home.spawn(actor(adder));
        let (mut early, late) = (adder.request(Adder::Sum), adder.request(Adder::Sum));
        let polled = poll_once(&mut early);
        adder.tell(Adder::Add(42)).unwrap();
        let early = match polled {
            Poll::Ready(answer) => answer,
            Poll::Pending => early.await,
        };
        assert_eq!(early, Ok(0));
        assert_eq!(late.await, Ok(42));
    });
}

fn a_request_that_is_dropped_is_given_up(home: &Home) {
    home.block_on(async {
        let keeper = home.spawn(actor(keeper));
        let mut requests: Vec<_> = (0..3).map(|_| keeper.request(|reply| reply)).collect();
        assert!(poll_once(&mut requests[0]).is_pending());
        assert!(poll_once(&mut requests[1]).is_pending());
        // The third one was never sent.
        drop(requests.split_off(1));
        keeper.stop();
        assert_eq!(keeper.join().await.unwrap(), (2, 1));
        let ended = requests.pop().unwrap().await;
        assert_eq!(ended, Err(AskError::NoReply(AskDetail::default())));
    });
}

fn a_request_outlives_the_address_that_made_it(home: &Home) {
    home.block_on(async {
        let adder = home.spawn(actor(adder));
        let request = adder.request(Adder::Sum);
        let join = adder.join();
        // The request keeps the actor open, and may be moved into a task.
        assert_eq!(home.spawn_task(request).await, Ok(0));
        join.await.unwrap();
    });
}

fn a_request_waits_for_room_and_passes_maps(home: &Home) {
    home.block_on(async {
        let gate = Gate::default();
        let opened = gate.clone();
        let waits = actor(|cx| async move {
            opened.wait().await;
            adder(cx).await;
        });
        let waits = home.spawn(waits.capacity(1));
        waits.tell(Adder::Add(1)).unwrap();
        let mapped: Address<Reply<u32>> = waits.map(Adder::Sum);
        let mut requests = [mapped.request(|reply| reply), waits.request(Adder::Sum)];
        assert!(
            requests
                .iter_mut()
                .all(|request| poll_once(request).is_pending())
        );
        drop(mapped);
        gate.open();
        assert_eq!(concurrently(requests).await, [Ok(1), Ok(1)]);
    });
}

fn answers_are_messages_while_the_actor_reads_on(home: &Home) {
    enum Message {
        Go,
        Answer(Answer),
    }
    home.block_on(async {
        let keeper = home.spawn(actor(|mut cx: Context<Reply<u32>>| async move {
            let replies = [cx.recv().await.unwrap(), cx.recv().await.unwrap()];
            for (number, reply) in (1..).zip(replies) {
                reply.send(number);
            }
        }));
        let address = keeper.address();
        let asker = home.spawn(actor(|mut cx: Context<Message>| async move {
            let mut seen = Vec::new();
            while let Some(message) = cx.recv().await {
                seen.push(match message {
                    // The first answer comes only after the second request.
                    Message::Go => {
                        cx.on_answer(address.request(|reply| reply), Message::Answer);
                        0
                    }
                    Message::Answer(answer) => answer.unwrap(),
                });
            }
            seen
        }));
        asker.tell(Message::Go).unwrap();
        asker.tell(Message::Go).unwrap();
        // The requests in flight keep the asker open, which has no other address.
        let mut seen = asker.join().await.unwrap();
        seen[2..].sort();
        assert_eq!(seen, [0, 0, 1, 2]);
    });
}

fn a_request_in_flight_is_not_overtaken(home: &Home) {
    home.block_on(async {
        let adder = home.spawn(actor(adder));
        let address = adder.address();
        let asker = home.spawn(actor(|mut cx: Context<Answer>| async move {
            for number in 1..=3 {
                cx.on_answer(address.request(Adder::Sum), |answer| answer);
                address.tell(Adder::Add(number)).unwrap();
            }
            let mut sums = Vec::new();
            while let Some(answer) = cx.recv().await {
                sums.push(answer.unwrap());
            }
            sums.sort();
            sums
        }));
        assert_eq!(asker.join().await.unwrap(), [0, 1, 3]);
    });
}

fn a_request_that_fails_is_a_message_too(home: &Home) {
    home.block_on(async {
        let dead = home.spawn(actor(adder));
        dead.stop();
        let address = dead.address();
        dead.join().await.unwrap();
        let asker = home.spawn(actor(|mut cx: Context<Answer>| async move {
            cx.on_answer(address.request(Adder::Sum), |answer| answer);
            let mut answers = Vec::new();
            while let Some(answer) = cx.recv().await {
                answers.push(answer);
            }
            answers
        }));
        let closed = Err(AskError::Closed(AskDetail::default()));
        assert_eq!(asker.join().await.unwrap(), [closed]);
    });
}

fn a_stopped_actor_drops_its_requests_and_sends_no_new_ones(home: &Home) {
    home.block_on(async {
        let keeper = home.spawn(actor(keeper));
        let address = keeper.address();
        let asker = home.spawn(actor(|mut cx: Context<Answer>| async move {
            cx.on_answer(address.request(|reply| reply), |answer| answer);
            cx.stop();
            cx.on_answer(address.request(|reply| reply), |answer| answer);
            assert!(cx.recv().await.is_none());
        }));
        asker.join().await.unwrap();
        keeper.stop();
        assert_eq!(keeper.join().await.unwrap(), (1, 0));
    });
}

fn thousands_of_requests_may_be_in_flight(home: &Home) {
    let many = home.many(10_000) as u32;
    home.block_on(async move {
        let keeper = home.spawn(actor(move |mut cx: Context<Reply<u32>>| async move {
            let mut replies = Vec::new();
            for _ in 0..many {
                replies.push(cx.recv().await.unwrap());
            }
            // The last one is answered first.
            for (number, reply) in (0..many).zip(replies.into_iter().rev()) {
                reply.send(number);
            }
        }));
        let address = keeper.address();
        let asker = home.spawn(actor(move |mut cx: Context<Answer>| async move {
            for _ in 0..many {
                cx.on_answer(address.request(|reply| reply), |answer| answer);
            }
            let mut seen = vec![false; many as usize];
            while let Some(answer) = cx.recv().await {
                let seen = &mut seen[answer.unwrap() as usize];
                assert!(!std::mem::replace(seen, true));
            }
            seen
        }));
        assert!(asker.join().await.unwrap().into_iter().all(|seen| seen));
    });
}

fn requests_in_flight_wait_for_room_in_order(home: &Home) {
    home.block_on(async {
        let gate = Gate::default();
        let opened = gate.clone();
        let full = home.spawn(
            actor(|mut cx: Context<(u32, Reply<u32>)>| async move {
                opened.wait().await;
                let mut numbers = Vec::new();
                while let Some((number, reply)) = cx.recv().await {
                    numbers.push(number);
                    reply.send(number);
                }
                numbers
            })
            .capacity(2),
        );
        let address = full.address();
        let asker = home.spawn(actor(|mut cx: Context<Answer>| async move {
            for number in 0..5 {
                let request = address.request(move |reply| (number, reply));
                let request = match number {
                    2 => request.timeout(HOUR),
                    _ => request,
                };
                cx.on_answer(request, |answer| answer);
            }
            gate.open();
            drop(address);
            let mut sum = 0;
            while let Some(answer) = cx.recv().await {
                sum += answer.unwrap();
            }
            sum
        }));
        assert_eq!(asker.join().await.unwrap(), 10);
        assert_eq!(full.join().await.unwrap(), [0, 1, 2, 3, 4]);
    });
}

fn a_request_that_was_polled_before_may_be_put_in_flight(home: &Home) {
    home.block_on(async {
        let keeper = home.spawn(actor(|mut cx: Context<Reply<u32>>| async move {
            let reply = cx.recv().await.unwrap();
            cx.recv().await;
            reply.send(42);
        }));
        let mut request = keeper.request(|reply| reply);
        assert!(poll_once(&mut request).is_pending());
        let asker = home.spawn(actor(|mut cx: Context<Answer>| async move {
            cx.on_answer(request, |answer| answer);
            cx.recv().await
        }));
        keeper.stop();
        assert_eq!(asker.join().await.unwrap(), Some(Ok(42)));
    });
}

fn a_reply_that_its_question_settles_is_a_message_too(home: &Home) {
    home.block_on(async {
        let adder = home.spawn(actor(adder));
        let address = adder.address();
        let asker = home.spawn(actor(|mut cx: Context<Answer>| async move {
            let answered = address.request(|reply| {
                reply.send(42);
                Adder::Add(1)
            });
            cx.on_answer(answered, |answer| answer);
            let lost = address.request(|_reply: Reply<u32>| Adder::Add(2));
            cx.on_answer(lost, |answer| answer);
            cx.on_answer(address.request(Adder::Sum), |answer| answer);
            let mut answers = Vec::new();
            while let Some(answer) = cx.recv().await {
                answers.push(answer);
            }
            answers
        }));
        let lost = Err(AskError::NoReply(AskDetail::default()));
        assert_eq!(asker.join().await.unwrap(), [Ok(42), lost, Ok(3)]);
    });
}

#[test]
fn a_request_in_flight_with_a_timeout_ends_in_time_and_is_no_deadlock() {
    /// Asks the other actor once. Returns the answer, and the reply of the other one.
    async fn pen_friend(mut cx: Context<Letter>) -> (Vec<Answer>, Vec<Reply<u32>>) {
        let (mut answers, mut kept) = (Vec::new(), Vec::new());
        while let Some(letter) = cx.recv().await {
            match letter {
                Letter::Ask(other) => {
                    let request = other.request(Letter::Question).timeout(HOUR);
                    cx.on_answer(request, Letter::Answer);
                }
                Letter::Question(reply) => kept.push(reply),
                Letter::Answer(answer) => {
                    answers.push(answer);
                    cx.stop();
                }
            }
        }
        (answers, kept)
    }
    enum Letter {
        Ask(Address<Letter>),
        Question(Reply<u32>),
        Answer(Answer),
    }
    within(WATCH, || {
        for seed in 0..20 {
            let policy = greenroom::policy::Simulated::new(seed);
            let runtime = Runtime::builder().policy(policy).detect_deadlocks(true);
            runtime.build().unwrap().block_on(async {
                let friends = [spawn!(pen_friend(_)), spawn!(pen_friend(_))];
                friends[0].tell(Letter::Ask(friends[1].address())).unwrap();
                friends[1].tell(Letter::Ask(friends[0].address())).unwrap();
                let [first, second] = friends.map(greenroom::Handle::join);
                let (first, second) = (first.await.unwrap(), second.await.unwrap());
                assert_eq!(first.0, [Err(AskError::TimedOut)]);
                assert_eq!(second.0, [Err(AskError::TimedOut)]);
            });
        }
    });
}

#[test]
fn a_request_in_flight_that_is_never_answered_ends_as_a_deadlock() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(2)
            .detect_deadlocks(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let keeper = spawn!(keeper(_));
            let address = keeper.address();
            let asker = spawn!(move |mut cx: Context<Answer>| async move {
                cx.on_answer(address.request(|reply| reply), |answer| answer);
                cx.recv().await
            });
            let answer = asker.join().await.unwrap();
            assert!(
                matches!(answer, Some(Err(AskError::Deadlock(_)))),
                "{answer:?}"
            );
        });
    });
}

#[test]
fn a_request_with_a_timeout_ends_as_an_ask_does() {
    sim::explore(0..20, |_| async {
        let keeper = spawn!(keeper(_));
        let patient = keeper.request(|reply| reply).timeout(HOUR);
        let impatient = keeper.request(|reply| reply).timeout(HOUR / 2);
        let start = greenroom::time::Instant::now();
        assert_eq!(impatient.await, Err(AskError::TimedOut));
        // The time counts from the first poll.
        assert_eq!(patient.await, Err(AskError::TimedOut));
        assert!(start.elapsed() >= HOUR * 3 / 2);
        keeper.stop();
        assert_eq!(keeper.join().await.unwrap(), (2, 0));
    });
}

#[test]
fn a_panic_while_an_answer_becomes_a_message_is_reported() {
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
        let adder = actor(adder).on(&runtime).spawn();
        let asker = actor(move |mut cx: Context<Answer>| async move {
            cx.on_answer(adder.request(Adder::Sum), |_| panic!("bomb in a closure"));
            cx.on_answer(adder.request(Adder::Sum), |answer| answer);
            let answer = cx.recv().await;
            // A panic of the question is one of the caller.
            let request = adder.request(|_: Reply<u32>| panic!("bomb in a question"));
            cx.on_answer(request, |answer| answer);
            answer
        });
        let asker = asker.on(&runtime).spawn();
        let fault = runtime.block_on(asker.join()).unwrap_err();
        assert_eq!(fault.to_string(), "panicked: bomb in a question");
        assert_eq!(heard.take(), [true]);
    });
}
