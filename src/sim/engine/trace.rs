//! The trace of a simulation: which task ran, which message it sent or received, and when in
//! virtual time.
//!
//! Events of the last steps are kept as values and formatted on request only. All events, including
//! those that are not kept, go into a fingerprint. It contains nothing that differs between
//! machines: no address, no number of the process, no name of a type.

use std::collections::VecDeque;
use std::fmt::{self, Write};

use crate::instant::Instant;
use crate::runtime::deadlock::Who;
use crate::task::MessageInfo;

/// How many events are kept for each step of the trace, on average.
const EVENTS_A_STEP: usize = 16;
/// How many events of one step are shown.
const SHOWN_A_STEP: usize = 12;

pub(crate) struct Trace {
    events: VecDeque<SimEvent>,
    /// The number of steps for which events are kept.
    steps: usize,
    fingerprint: u64,
}

struct SimEvent {
    step: u64,
    at: Instant,
    who: Who,
    what: What,
}

/// An event in a step, or between two steps.
pub(crate) enum What {
    Runs,
    Spawns(Who),
    Wakes(Who),
    Sends(TracedMessage, Who),
    /// A message that was sent before is put into the mailbox.
    Arrives(TracedMessage, Who),
    AwaitsRoom(TracedMessage, Who),
    GivesUp(Who),
    Displaces(TracedMessage, Who),
    Receives(TracedMessage, Who),
    FromSource(MessageInfo),
    Ends(Who),
    Notes(String),
}

/// A message: its number in the run, and what the trace shows of it.
#[derive(Clone)]
pub(crate) struct TracedMessage {
    pub(crate) number: u64,
    pub(crate) info: MessageInfo,
}

impl Trace {
    pub(crate) fn new(steps: usize) -> Self {
        Trace {
            events: VecDeque::new(),
            steps,
            fingerprint: 0,
        }
    }

    pub(crate) fn add(&mut self, step: u64, at: Instant, who: &Who, what: What) {
        let (kind, number, other) = what.numbers();
        let words = [step, at.nanos(), who.number(), kind, number, other];
        // FNV-1a, a word at a time.
        for word in words {
            self.fingerprint = (self.fingerprint ^ word).wrapping_mul(0x0100_0000_01b3);
            self.fingerprint ^= self.fingerprint >> 29;
        }
        if self.steps == 0 {
            return;
        }
        let keep = self.steps as u64;
        while let Some(oldest) = self.events.front()
            && (oldest.step.saturating_add(keep) <= step
                || self.events.len() >= self.steps.saturating_mul(EVENTS_A_STEP))
        {
            self.events.pop_front();
        }
        let who = who.clone();
        self.events.push_back(SimEvent {
            step,
            at,
            who,
            what,
        });
    }

    /// Returns a hash of all events: the same for the same run on any machine.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Formats the last steps, one line for each.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from("  step          time  task: events\n");
        let mut events = self.events.iter().peekable();
        while let Some(first) = events.next() {
            let at = first.at.duration_since(Instant::ZERO);
            let (seconds, micros) = (at.as_secs(), at.subsec_micros());
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{:>6} {seconds:>6}.{micros:06}  {}",
                first.step, first.who
            );
            let same = |next: &&SimEvent| {
                (next.step, next.who.number()) == (first.step, first.who.number())
            };
            let (mut parts, mut last) = (vec![first.what.to_string()], &first.what);
            while let Some(SimEvent { who, what, .. }) = events.next_if(same) {
                match what {
                    What::Ends(ended) if ended.number() == who.number() => {
                        parts.push("ends".into());
                    }
                    // A message usually arrives when it is sent, and wakes its receiver.
                    _ if what.follows(last) => {}
                    _ => parts.push(what.to_string()),
                }
                last = what;
            }
            let more = parts.len().saturating_sub(SHOWN_A_STEP);
            parts.truncate(SHOWN_A_STEP);
            parts.retain(|part| !part.is_empty());
            if more > 0 {
                parts.push(format!("and {more} more events"));
            }
            let _ = match parts.is_empty() {
                true => writeln!(text, " runs"),
                false => writeln!(text, ": {}", parts.join(", ")),
            };
        }
        text
    }
}

impl What {
    /// Returns whether this event is the arrival of the message just sent, or the wake-up of its
    /// receiver.
    fn follows(&self, before: &What) -> bool {
        if let (What::Sends(sent, _), What::Arrives(arrived, _)) = (before, self) {
            return sent.number == arrived.number;
        }
        matches!((before, self), (What::Sends(_, to) | What::Arrives(_, to), What::Wakes(woken))
            if to.number() == woken.number())
    }

    /// Returns a number for the kind of event, one for the message, and one for the other task.
    fn numbers(&self) -> (u64, u64, u64) {
        match self {
            What::Runs => (1, 0, 0),
            What::Spawns(who) => (2, 0, who.number()),
            What::Wakes(who) => (3, 0, who.number()),
            What::Sends(message, to) => (4, message.number, to.number()),
            What::AwaitsRoom(message, to) => (5, message.number, to.number()),
            What::GivesUp(to) => (6, 0, to.number()),
            What::Receives(message, from) => (7, message.number, from.number()),
            What::FromSource(_) => (8, 0, 0),
            What::Ends(who) => (9, 0, who.number()),
            What::Notes(_) => (11, 0, 0),
            What::Arrives(message, to) => (10, message.number, to.number()),
            What::Displaces(message, to) => (12, message.number, to.number()),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Runs => Ok(()),
            What::Spawns(who) => write!(f, "spawns {who}"),
            What::Wakes(who) => write!(f, "wakes {who}"),
            What::Sends(message, to) => write!(f, "sends {message} to {to}"),
            What::Arrives(message, to) => write!(f, "{message} arrives at {to}"),
            What::AwaitsRoom(message, to) => write!(f, "waits to send {message} to {to}"),
            What::GivesUp(to) => write!(f, "gives up sending to {to}"),
            What::Displaces(message, to) => write!(f, "displaces {message} at {to}"),
            What::Receives(message, from) => write!(f, "gets {message} from {from}"),
            What::FromSource(info) => write!(f, "gets {info} from a source of its own"),
            What::Ends(who) => write!(f, "{who} ends"),
            What::Notes(text) => write!(f, "notes {text:?}"),
        }
    }
}

impl fmt::Display for TracedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {}", self.number, self.info)
    }
}
