//! The ledger of a process life: what becomes of each message, and what those who ask were told.
//!
//! A message has a [`Letter`], which its book counts once when it is made, and once when it is dropped. So
//! a message that is lost without a trace, or that is handled twice, makes the book uneven.

use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::AskError;

use crate::report::Tallies;

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was dropped before anyone had it in hand. Only a question is, if that was refused.
    Dropped,
    /// It was in hand when its actor panicked or was killed.
    Lost,
    Handled,
    /// It came back to its sender.
    Refused,
    Displaced,
    Undelivered,
}

const FATES: [(Fate, &str); 6] = [
    (Fate::Dropped, "dropped"),
    (Fate::Lost, "lost"),
    (Fate::Handled, "handled"),
    (Fate::Refused, "refused"),
    (Fate::Displaced, "displaced"),
    (Fate::Undelivered, "undelivered"),
];

/// What one who asks was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskOutcome {
    Answered,
    /// The question was not handled.
    Refused,
    /// The question is lost or undelivered.
    NoReply,
    /// Nothing in time, whatever becomes of the question.
    TimedOut,
}

const TOLD: usize = 4;

/// The counts of a part of a process.
pub struct Book {
    name: &'static str,
    /// Of messages, and of questions.
    sent: [AtomicU64; 2],
    fates: [[AtomicU64; FATES.len()]; 2],
    told: [AtomicU64; TOLD],
    /// How many messages may have been lost in hand: by panics and kills that were injected.
    faults: AtomicU64,
    /// How many messages came out of order.
    disorder: AtomicU64,
}

impl Book {
    pub const fn new(name: &'static str) -> Self {
        Book {
            name,
            sent: [const { AtomicU64::new(0) }; 2],
            fates: [const { [const { AtomicU64::new(0) }; FATES.len()] }; 2],
            told: [const { AtomicU64::new(0) }; TOLD],
            faults: AtomicU64::new(0),
            disorder: AtomicU64::new(0),
        }
    }

    /// Makes the letter of a message.
    pub fn message(&'static self) -> Letter {
        self.letter(false)
    }

    /// Makes the letter of a question, which is asked.
    pub fn question(&'static self) -> Letter {
        self.letter(true)
    }

    fn letter(&'static self, is_question: bool) -> Letter {
        add(&self.sent[usize::from(is_question)], 1);
        Letter {
            book: self,
            is_question,
            fate: Fate::Dropped,
        }
    }

    /// Counts what one who asks was told.
    pub fn told(&self, told: AskOutcome) {
        add(&self.told[told as usize], 1);
    }

    /// Counts the outcome of an ask.
    pub fn asked<T>(&self, outcome: &Result<T, AskError>) {
        self.told(match outcome {
            Ok(_) => AskOutcome::Answered,
            Err(AskError::NoReply(_)) => AskOutcome::NoReply,
            Err(AskError::TimedOut) => AskOutcome::TimedOut,
            Err(_) => AskOutcome::Refused,
        });
    }

    /// Counts faults that are injected, each of which may lose a message in hand.
    pub fn fault(&self, messages: u64) {
        add(&self.faults, messages);
    }

    /// Counts a message that came out of order.
    pub fn out_of_order(&self) {
        add(&self.disorder, 1);
    }

    pub fn read(&self) -> Totals {
        // What was sent is read last, so that what was counted meanwhile is no surplus of fates.
        let fates = self.fates.each_ref().map(|it| it.each_ref().map(get));
        let told = self.told.each_ref().map(get);
        Totals {
            name: self.name,
            fates,
            told,
            faults: get(&self.faults),
            disorder: get(&self.disorder),
            sent: self.sent.each_ref().map(get),
        }
    }
}

fn add(count: &AtomicU64, more: u64) {
    // Relaxed: counts are compared after the end of all that counts.
    count.fetch_add(more, Ordering::Relaxed);
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// The right to tell what becomes of a message.
#[must_use = "a letter that is dropped counts as dropped"]
pub struct Letter {
    book: &'static Book,
    is_question: bool,
    fate: Fate,
}

impl Letter {
    /// Takes the message in hand. If it is dropped there, it is lost.
    pub fn take(&mut self) {
        self.fate = Fate::Lost;
    }

    pub fn handled(self) {
        self.end(Fate::Handled);
    }

    pub fn refused(self) {
        self.end(Fate::Refused);
    }

    pub fn displaced(self) {
        self.end(Fate::Displaced);
    }

    pub fn undelivered(self) {
        self.end(Fate::Undelivered);
    }

    fn end(mut self, fate: Fate) {
        self.fate = fate;
    }

    pub fn book(&self) -> &'static Book {
        self.book
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        let fates = &self.book.fates[usize::from(self.is_question)];
        add(&fates[self.fate as usize], 1);
    }
}

/// The counts of a book at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    name: &'static str,
    sent: [u64; 2],
    fates: [[u64; FATES.len()]; 2],
    told: [u64; TOLD],
    faults: u64,
    disorder: u64,
}

impl Totals {
    /// Returns how many messages and questions were sent.
    pub fn sent(&self) -> u64 {
        self.sent.iter().sum()
    }

    /// Adds the counts to those of other books.
    pub fn add_to(&self, tallies: &mut Tallies) {
        let mut add = |name: &str, count| *tallies.entry(name.to_owned()).or_default() += count;
        add(self.name, self.sent());
        add("sent", self.sent[0]);
        add("asked", self.sent[1]);
        for (fate, name) in FATES {
            let of_fate = self.fates[0][fate as usize] + self.fates[1][fate as usize];
            // A question that was dropped unhandled was refused.
            let name = if fate == Fate::Dropped {
                "refused"
            } else {
                name
            };
            add(name, of_fate);
        }
        add("timed out", self.told[AskOutcome::TimedOut as usize]);
        add("faults", self.faults);
    }

    /// Returns a sentence for each rule that the counts break, at a moment when no message is under
    /// way.
    pub fn uneven(&self) -> Vec<String> {
        let [messages, questions] = self.fates;
        let count = |fates: &[u64; FATES.len()], fate: Fate| fates[fate as usize];
        let mut sentences = Vec::new();
        let mut check = |is_so: bool, what: &str| {
            if !is_so {
                sentences.push(format!("{}: {what}: {self:?}", self.name));
            }
        };
        for (sent, fates) in self.sent.iter().zip(&self.fates) {
            let sum = fates.iter().sum::<u64>();
            check(*sent == sum, "not each that was sent has one fate");
        }
        let dropped = count(&messages, Fate::Dropped);
        check(dropped == 0, "messages vanished");
        let refused = count(&questions, Fate::Refused);
        check(refused == 0, "a question came back");
        let lost = count(&messages, Fate::Lost) + count(&questions, Fate::Lost);
        check(lost <= self.faults, "more were lost than by faults");
        check(self.disorder == 0, "messages came out of order");
        let sum = self.told.iter().sum::<u64>();
        check(sum == self.sent[1], "not each who asked was told");
        // One who was told nothing in time does not know which of these his question is.
        let late = self.told[AskOutcome::TimedOut as usize];
        for (told, fates) in [
            (AskOutcome::Answered, &[Fate::Handled][..]),
            (AskOutcome::Refused, &[Fate::Dropped, Fate::Displaced]),
            (AskOutcome::NoReply, &[Fate::Lost, Fate::Undelivered]),
        ] {
            let told_so = self.told[told as usize];
            let are_so = fates.iter().map(|&fate| count(&questions, fate)).sum();
            let agrees = told_so <= are_so && are_so <= told_so + late;
            check(agrees, &format!("{told:?} does not agree with {fates:?}"));
        }
        sentences
    }
}

#[cfg(test)]
mod tests;
