//! The ledger of durable jobs, outside of their file: what was put is done, and what was appended stays.

use std::collections::BTreeMap;
use std::io::BufRead;

/// A line that the process `queue` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// A job was put: the store has said so.
    Put(u64),
    /// A job runs for the last time, if its end is stored.
    Done(u64),
    /// An event was appended: the store has said so.
    Event(u64),
    /// The journal was opened, and has so many events.
    Opened(u64),
}

impl Fact {
    pub fn line(self) -> String {
        match self {
            Fact::Put(number) => format!("put {number}\n"),
            Fact::Done(number) => format!("done {number}\n"),
            Fact::Event(number) => format!("event {number}\n"),
            Fact::Opened(number) => format!("opened {number}\n"),
        }
    }

    pub fn read(line: &str) -> Option<Fact> {
        let (word, number) = line.split_once(' ')?;
        let number = number.parse().ok()?;
        Some(match word {
            "put" => Fact::Put(number),
            "done" => Fact::Done(number),
            "event" => Fact::Event(number),
            "opened" => Fact::Opened(number),
            _ => return None,
        })
    }
}

/// A set of numbers, of which those of each life are near each other.
#[derive(Default)]
struct NumberSet(BTreeMap<u64, Vec<u64>>);

impl NumberSet {
    /// Adds a number, and returns whether it is new.
    fn add(&mut self, number: u64) -> bool {
        let bits = self.0.entry(number >> 32).or_default();
        let (word, bit) = ((number as u32 / 64) as usize, 1 << (number % 64));
        if bits.len() <= word {
            bits.resize(word + 1, 0);
        }
        let is_new = bits[word] & bit == 0;
        bits[word] |= bit;
        is_new
    }

    /// Returns how many of these are not in the other set, and the first one.
    fn without(&self, other: &NumberSet) -> (u64, Option<u64>) {
        let (mut count, mut first) = (0, None);
        for (life, bits) in &self.0 {
            for (word, own) in bits.iter().enumerate() {
                let theirs = other.0.get(life).and_then(|bits| bits.get(word));
                let missing = own & !theirs.copied().unwrap_or_default();
                count += u64::from(missing.count_ones());
                if missing != 0 && first.is_none() {
                    let bit = u64::from(missing.trailing_zeros());
                    first = Some((life << 32) + word as u64 * 64 + bit);
                }
            }
        }
        (count, first)
    }
}

/// What was written in all lives.
#[derive(Default)]
pub struct JobLedger {
    put: NumberSet,
    done: NumberSet,
    /// How often a job was put, and done for the first time.
    pub puts: u64,
    pub jobs: u64,
    /// How often a job was done that was done before.
    pub again: u64,
    /// The last event that was appended.
    events: u64,
    sentences: Vec<String>,
}

impl JobLedger {
    /// Reads what a life has written. A line that a kill has cut is no line.
    pub fn read(&mut self, lines: impl BufRead) {
        for line in lines.lines().map_while(Result::ok) {
            match Fact::read(&line) {
                Some(fact) => self.add(fact),
                None => self.sentences.push(format!("queue: {line:?} is no line")),
            }
        }
    }

    fn add(&mut self, fact: Fact) {
        match fact {
            Fact::Put(number) => {
                self.puts += 1;
                if !self.put.add(number) {
                    self.sentences
                        .push(format!("queue: job {number} was put twice"));
                }
            }
            Fact::Done(number) => match self.done.add(number) {
                true => self.jobs += 1,
                false => self.again += 1,
            },
            Fact::Event(number) => {
                if number != self.events + 1 {
                    let text = format!("queue: event {number} is behind {}", self.events);
                    self.sentences.push(text);
                }
                self.events = number;
            }
            Fact::Opened(number) => {
                // The last one may be stored, though its append was not answered.
                if number < self.events || number > self.events + 1 {
                    let events = self.events;
                    self.sentences.push(format!(
                        "queue: the journal has {number} events, and {events} were appended"
                    ));
                }
                self.events = number;
            }
        }
    }

    /// Returns what is wrong when all jobs are to be done.
    pub fn uneven(&self) -> Vec<String> {
        let mut sentences = self.sentences.clone();
        if let (count, Some(first)) = self.put.without(&self.done) {
            sentences.push(format!(
                "queue: {count} jobs were put and not done, of which {first} is the first"
            ));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::{Fact, JobLedger};

    const LIFE: u64 = 1 << 32;

    fn ledger(facts: &[Fact]) -> JobLedger {
        let mut ledger = JobLedger::default();
        let lines: String = facts.iter().map(|fact| fact.line()).collect();
        ledger.read(lines.as_bytes());
        ledger
    }

    #[test]
    fn a_job_that_is_done_in_a_later_life_is_even() {
        use Fact::{Done, Event, Opened, Put};
        let ledger = ledger(&[
            Opened(0),
            Put(LIFE + 7),
            Event(1),
            Event(2),
            Put(LIFE + 100),
            Done(LIFE + 7),
            // A kill: the third event was stored, and its append not answered.
            Opened(3),
            Event(4),
            Done(LIFE + 7),
            Done(LIFE + 100),
            Done(2 * LIFE),
        ]);
        assert_eq!(ledger.uneven(), Vec::<String>::new());
        assert_eq!((ledger.puts, ledger.jobs, ledger.again), (2, 3, 1));
    }

    #[test]
    fn a_job_that_was_put_and_is_not_done_is_named() {
        use Fact::{Done, Put};
        let ledger = ledger(&[
            Put(LIFE + 1),
            Done(LIFE + 1),
            Put(LIFE + 70),
            Put(LIFE + 99),
        ]);
        let first = LIFE + 70;
        let sentence =
            format!("queue: 2 jobs were put and not done, of which {first} is the first");
        assert_eq!(ledger.uneven(), [sentence]);
    }

    #[test]
    fn an_event_that_was_appended_and_is_gone_is_named() {
        let ledger = ledger(&[Fact::Opened(0), Fact::Event(1), Fact::Opened(0)]);
        let sentence = "queue: the journal has 0 events, and 1 were appended";
        assert_eq!(ledger.uneven(), [sentence]);
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let mut ledger = JobLedger::default();
        ledger.read("put 1\nfoo\n".as_bytes());
        assert_eq!(ledger.uneven().len(), 2);
    }
}
