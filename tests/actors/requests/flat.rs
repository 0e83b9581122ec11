//! Flat asks: one `Result` of an ask whose answer is a `Result`.

use std::error::Error;
use std::fmt;

use greenroom::{Address, AskCause, Context, FlatError, Handle, actor};

use super::*;
use crate::support::{Home, in_every_home, keep_bombs_quiet};

#[derive(Debug, Clone, PartialEq, Eq)]
struct ByZero(ParentError);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ParentError;

impl fmt::Display for ParentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the divisor is 0")
    }
}

impl Error for ParentError {}

impl fmt::Display for ByZero {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("division by zero")
    }
}

impl Error for ByZero {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

type Divide = (u32, u32, Reply<Result<u32, ByZero>>);

/// Divides; loses the reply of a division by 13, and keeps that of a division by 14.
async fn divider(mut cx: Context<Divide>) {
    let mut kept = Vec::new();
    while let Some((a, b, reply)) = cx.recv().await {
        match b {
            13 => drop(reply),
            14 => kept.push(reply),
            _ => reply.send(a.checked_div(b).ok_or(ByZero(ParentError))),
        }
    }
}

fn spawned(home: &Home) -> Handle<Divide, ()> {
    home.spawn(actor(divider).name("divider"))
}

in_every_home!(
    a_flat_ask_returns_the_value_or_either_error,
    a_flat_request_does_what_a_flat_ask_does,
    an_answer_that_arrives_as_a_message_can_be_flattened,
);

fn a_flat_ask_returns_the_value_or_either_error(home: &Home) {
    let divider = spawned(home);
    home.block_on(async {
        let ask = |a, b| divider.ask(move |reply| (a, b, reply)).flat();
        assert_eq!(ask(84, 2).await, Ok(42));
        let by_zero = FlatError::Answer(ByZero(ParentError));
        assert_eq!(ask(84, 0).await, Err(by_zero));
        let lost = FlatError::Ask(AskError::NoReply(AskDetail::default()));
        assert_eq!(ask(84, 13).await, Err(lost));
        divider.stop();
        let Err(FlatError::Ask(AskError::Closed(detail))) = ask(84, 2).await else {
            panic!("it was stopped");
        };
        assert_eq!(detail.actor().map(|it| it.id()), Some(divider.id()));
    });
}

fn a_flat_request_does_what_a_flat_ask_does(home: &Home) {
    let divider = spawned(home);
    home.block_on(async {
        let all = [(8, 2), (9, 3)].map(|(a, b)| divider.request(move |reply| (a, b, reply)).flat());
        assert_eq!(try_concurrently(all).await, Ok(vec![4, 3]));
        let fails = [2, 0].map(|b| divider.request(move |reply| (8, b, reply)).flat());
        let error = FlatError::Answer(ByZero(ParentError));
        assert_eq!(
            try_concurrently(fails).await,
            Err(First { index: 1, error })
        );
    });
}

type Flat = Result<u32, FlatError<ByZero>>;

async fn asker(mut cx: Context<Flat>, divider: Address<Divide>) -> Vec<Flat> {
    for b in [2, 0, 13] {
        let request = divider.request(move |reply| (84, b, reply));
        cx.on_answer(request, FlatError::flatten);
    }
    let mut all = Vec::new();
    while let Some(answer) = cx.recv().await {
        all.push(answer);
    }
    all
}

fn an_answer_that_arrives_as_a_message_can_be_flattened(home: &Home) {
    let divider = spawned(home);
    let address = divider.address();
    let asker = home.spawn(actor(move |cx| asker(cx, address)));
    let all = home.block_on(asker.join()).unwrap();
    assert_eq!(all.len(), 3);
    assert!(all.contains(&Ok(42)));
    assert!(all.contains(&Err(FlatError::Answer(ByZero(ParentError)))));
    assert!(all.iter().any(|it| matches!(it, Err(FlatError::Ask(_)))));
}

#[test]
fn a_flat_ask_has_the_timeout_that_was_set_before() {
    sim::explore(SEEDS, |_| async {
        let divider = spawn!(divider(_));
        let ask = divider.ask(|reply| (1, 14, reply)).timeout(HOUR).flat();
        let start = Instant::now();
        assert_eq!(ask.await, Err(FlatError::Ask(AskError::TimedOut)));
        assert!((HOUR..HOUR + LATE).contains(&start.elapsed()));
    });
}

#[test]
fn a_flat_ask_has_the_cause_of_a_panic() {
    keep_bombs_quiet();
    sim::explore(SEEDS, |_| async {
        let fragile = spawn!(async |mut cx: Context<Reply<Result<(), ByZero>>>| {
            let _reply = cx.recv().await;
            panic!("bomb");
        });
        let ask = fragile.ask(|reply| reply).flat();
        let Err(FlatError::Ask(AskError::NoReply(detail))) = ask.await else {
            panic!("it has panicked");
        };
        assert_eq!(*detail.why(), AskCause::Panicked("bomb".into()));
        fragile.join().await.unwrap_err();
    });
}

#[test]
fn a_flat_error_has_the_text_and_the_source_of_the_error_in_it() {
    let answer = FlatError::Answer(ByZero(ParentError));
    assert_eq!(answer.to_string(), "division by zero");
    assert_eq!(answer.source().unwrap().to_string(), "the divisor is 0");
    let ask: FlatError<ByZero> = AskError::TimedOut.into();
    assert_eq!(ask.to_string(), AskError::TimedOut.to_string());
    assert!(ask.source().is_none());
}
