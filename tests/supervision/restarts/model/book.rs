//! What is known of one run of the model, and the judgement about it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom::time::Instant;
use greenroom::{AskCause, AskError, Fault};

use super::{Name, Rules, SENDERS};

/// More than the steps of a simulation and the units of its timers take.
const BRIEF: Duration = Duration::from_millis(10);

/// What became of a letter.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    Received,
    Answered,
    Panicked(String),
    Undelivered,
}

/// How an incarnation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Returned(u64),
    Panicked(String),
}

#[derive(Clone, Default)]
pub struct Book(Arc<Mutex<Pages>>);

#[derive(Default)]
pub struct Pages {
    /// The letters in the order in which they were received or undelivered.
    seen: Vec<Name>,
    fates: HashMap<Name, Fate>,
    pub accepted: Vec<Name>,
    pub answers: Vec<(Name, Result<Name, AskError>)>,
    /// The number of incarnations and of contexts elsewhere.
    alive: usize,
    begun: Vec<Instant>,
    ended: Vec<(Instant, Outcome)>,
    /// Whether a call that had the context was dropped.
    pub gives_up: bool,
    /// The tasks that have a context.
    pub holders: Vec<greenroom::Task<()>>,
}

impl Book {
    pub fn with<R>(&self, f: impl FnOnce(&mut Pages) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enters a letter that was received or is undelivered.
    pub fn see(&self, name: Name, fate: Fate) {
        let before = self.with(|pages| {
            pages.seen.push(name);
            pages.fates.insert(name, fate)
        });
        assert_eq!(before, None, "{name:?} is seen once");
    }

    pub fn change(&self, name: Name, fate: Fate) {
        self.with(|pages| pages.fates.insert(name, fate));
    }

    /// Begins an incarnation, and returns its number.
    pub fn begin(&self) -> (u64, Alive) {
        let (alive, number) = self.with(|pages| {
            pages.begun.push(Instant::now());
            (pages.alive, pages.begun.len() - 1)
        });
        assert_eq!(alive, 0, "incarnation {number} overlaps with another one");
        (number as u64, Alive::new(self))
    }

    pub fn end(&self, outcome: Outcome) {
        self.with(|pages| pages.ended.push((Instant::now(), outcome)));
    }

    /// Panics. At depth 0 that ends the incarnation.
    pub fn fail(&self, depth: u32, text: &str) -> ! {
        if depth == 0 {
            self.end(Outcome::Panicked(text.to_owned()));
        }
        panic!("{text}");
    }
}

/// A right to the reading end: while it lives, no incarnation may begin.
pub struct Alive(Book);

impl Alive {
    pub fn new(book: &Book) -> Alive {
        book.with(|pages| pages.alive += 1);
        Alive(book.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.with(|pages| pages.alive -= 1);
    }
}

/// What the judgement needs to know besides.
pub struct Judged {
    pub rules: Rules,
    pub killed: bool,
}

impl Judged {
    pub fn judge(&self, pages: &Pages, result: Result<u64, Fault>) {
        assert_eq!(pages.alive, 0);
        judge_letters(pages);
        self.judge_answers(pages);
        self.judge_restarts(pages);
        self.judge_end(pages, result);
    }

    fn judge_answers(&self, pages: &Pages) {
        for (name, answer) in &pages.answers {
            let fate = pages.fates.get(name);
            let is_right = match (fate, answer) {
                (Some(Fate::Answered), Ok(answered)) => answered == name,
                (None, Err(AskError::Closed(_))) => true,
                (Some(Fate::Undelivered), Err(AskError::NoReply(_))) => true,
                // The letter was in hand.
                (Some(Fate::Received), Err(AskError::NoReply(detail))) => {
                    self.killed && *detail.why() == AskCause::Killed
                        || pages.gives_up && *detail.why() == AskCause::ReplyDropped
                }
                (Some(Fate::Panicked(text)), Err(AskError::NoReply(detail))) => {
                    // A plain task that runs an incarnation has no place for the text.
                    let is_elsewhere =
                        *detail.why() == AskCause::ReplyDropped && !text.starts_with("bomb at 0 ");
                    is_elsewhere || *detail.why() == AskCause::Panicked(text.clone())
                }
                _ => false,
            };
            assert!(is_right, "{name:?}: {fate:?}, and {answer:?}");
        }
    }

    fn judge_restarts(&self, pages: &Pages) {
        // An actor that was killed early has none.
        let restarted = pages.begun.get(1..).unwrap_or_default();
        for (next, (ended, _)) in restarted.iter().zip(&pages.ended) {
            assert!(*next >= *ended + self.rules.delay, "it came too early");
        }
        let restarts = self.rules.restarts as usize;
        if self.rules.delay.is_zero() {
            for more in restarted.windows(restarts.saturating_add(1)) {
                let within = more[restarts] - more[0];
                assert!(within + BRIEF >= self.rules.window, "they came too often");
            }
        }
    }

    fn judge_end(&self, pages: &Pages, result: Result<u64, Fault>) {
        let last = pages.ended.last().map(|(_, outcome)| outcome);
        let all_ended = pages.ended.len() == pages.begun.len();
        match result {
            Err(Fault::Killed) => return assert!(self.killed),
            Ok(number) => assert_eq!(Some(&Outcome::Returned(number)), last),
            Err(fault) => {
                let text = fault.to_string();
                let text = text.strip_prefix("panicked: ").unwrap_or(&text);
                assert_eq!(Some(&Outcome::Panicked(text.to_owned())), last);
            }
        }
        assert!(all_ended, "the last incarnation has ended");
        let leaves = pages.fates.values().any(|fate| *fate == Fate::Undelivered);
        let is_wanted = self.rules.always || matches!(last, Some(Outcome::Panicked(_)));
        if leaves && is_wanted && !self.killed {
            let restarts = pages.begun.len() as u64 - 1;
            let limit = self.rules.limit.unwrap_or(u64::MAX);
            let most = u64::from(self.rules.restarts).min(limit);
            assert!(restarts >= most, "{restarts} restarts of {most}");
        }
    }
}

fn judge_letters(pages: &Pages) {
    for sender in 0..SENDERS {
        let of_sender = |names: &[Name]| -> Vec<u32> {
            let names = names.iter().filter(|(from, _)| *from == sender);
            names.map(|(_, number)| *number).collect()
        };
        let (seen, accepted) = (of_sender(&pages.seen), of_sender(&pages.accepted));
        assert_eq!(seen, accepted, "of the sender {sender}");
    }
}
