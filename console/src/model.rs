//! What is known of a program, from the lines that it sends.
//!
//! A model does no input or output. It is right after each [refresh](Applied::Refreshed), and in between
//! it has a part of the next one. No text in it has control characters.

mod facts;
mod history;
mod parsed;
mod queries;
mod texts;
mod trend;

use std::collections::{HashMap, VecDeque};
use std::fmt;

pub use facts::{ActorFacts, WaitsOn};
pub use history::{Followed, Series};
pub use parsed::{BlockingFigures, Figures, RunsNow, WorkerFigures};
pub use texts::{TextId, Texts, escape};
pub use trend::{ActorState, TRAIL};

use parsed::{
    ParsedActor, ParsedCell, ParsedEnd, ParsedEnded, ParsedHead, ParsedLog, ParsedSection,
    ParsedTick,
};
pub use queries::mailbox_wait;
use queries::{first, parse};
use trend::{REACH, Trend};

/// The version of the protocol that is understood.
pub const PROTOCOL: u64 = 1;

/// The lines of the log that are kept.
const LOG_MAX: usize = 1000;

/// Fewer texts than these are never numbered anew.
const TEXTS_MIN: usize = 10_000;

/// What a line has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// A part of a refresh.
    Part,
    /// A refresh is complete: it can be drawn.
    Refreshed,
    /// The program ends, for this reason.
    Ends(String),
}

/// Why a line is not part of the model. The connection is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadLine {
    /// The program speaks another version.
    Protocol(u64),
    /// Lines were lost before this one.
    Gap {
        /// The number that should have come.
        expected: u64,
        /// The number that came.
        came: u64,
    },
    /// It is no line of the protocol.
    Unclear(String),
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadLine::Protocol(version) => write!(
                f,
                "the program speaks version {version} of the protocol, and this console speaks \
                 version {PROTOCOL}: use the console of the program's version"
            ),
            BadLine::Gap { expected, came } => {
                write!(f, "line {expected} was lost: line {came} came")
            }
            BadLine::Unclear(why) => write!(f, "a line was not understood: {why}"),
        }
    }
}

impl std::error::Error for BadLine {}

/// What the first line says.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The version of greenroom.
    pub greenroom: String,
    /// The number of its process.
    pub pid: u64,
    /// What is known of its actors: `counting`, `waits`, `observer`.
    pub features: Vec<String>,
}

/// What a service or a package shows.
#[derive(Debug, Clone)]
pub struct ServiceTable {
    /// Its name.
    pub name: String,
    /// The heads of its columns.
    pub columns: Vec<String>,
    /// Its cells, by row.
    pub rows: Vec<Vec<String>>,
}

/// A line of the log.
#[derive(Debug, Clone)]
pub struct LoggedLine {
    /// When it was, if the program says so, or the refresh before; in Unix time.
    pub at_ms: u64,
    /// `error`, `warning`, or another word.
    pub level: String,
    /// What it says.
    pub text: String,
    /// The actor that it is about.
    pub actor: Option<u64>,
}

/// The turns of an actor, and since when it has had none.
#[derive(Debug)]
struct StillSince {
    turns: u64,
    since_ms: u64,
}

impl StillSince {
    fn of(actor: &ActorFacts) -> (u64, Self) {
        let (turns, since_ms) = (actor.turns, actor.still_since_ms);
        (actor.id, StillSince { turns, since_ms })
    }
}

/// What is known of a program.
#[derive(Debug, Default)]
pub struct Model {
    program: Option<Program>,
    seq: u64,
    /// Whether the first snapshot is complete.
    is_whole: bool,
    actors: Vec<ActorFacts>,
    /// Where each actor is in `actors`.
    indices: HashMap<u64, u32>,
    texts: Texts,
    /// The number of texts after they were last numbered anew.
    texts_then: usize,
    /// The numbers of the actors that this refresh has sent.
    sent: Vec<u64>,
    /// Those that have had a fault in it, and those that the program has logged something of.
    faulted: Vec<u64>,
    logged: Vec<u64>,
    figures: Figures,
    series: Series,
    sections: Vec<ServiceTable>,
    log: VecDeque<LoggedLine>,
    /// Since when each actor of this process had stood still when it was last known.
    earlier: Option<(u64, HashMap<u64, StillSince>)>,
    /// The process of the last numbered fault, and that number.
    last_fault: Option<(u64, u64)>,
    /// The number of the present refresh: that of the last complete one, and 1.
    tick: u32,
    at_ms: u64,
    /// When the last refreshes were, as far as trends reach back.
    moments: VecDeque<u64>,
    /// How long the last refresh took.
    interval_ms: u64,
    followed: Option<Followed>,
}

impl Model {
    /// Begins a connection: its first line follows. The log stays.
    pub fn begin(&mut self) {
        self.forget();
        self.program = None;
        self.seq = 0;
    }

    /// Applies a line.
    ///
    /// # Errors
    /// The line is none of the protocol, or not the next one. The model is as it was.
    pub fn apply(&mut self, line: &[u8]) -> Result<Applied, BadLine> {
        if self.program.is_none() {
            self.program = Some(first(line)?);
            return Ok(Applied::Part);
        }
        let head: ParsedHead<'_> = parse(line)?;
        let expected = self.seq + 1;
        if head.seq != expected {
            let came = head.seq;
            return Err(BadLine::Gap { expected, came });
        }
        let applied = self.apply_event(&head.event, line)?;
        self.seq = head.seq;
        Ok(applied)
    }

    fn apply_event(&mut self, event: &str, line: &[u8]) -> Result<Applied, BadLine> {
        match event {
            "reset" => self.forget(),
            "actor" => {
                let parsed: ParsedActor<'_> = parse(line)?;
                let facts = ActorFacts::parsed(&parsed, &mut self.texts);
                self.put(facts);
            }
            "ended" => self.remove(parse::<ParsedEnded>(line)?.id),
            "runtime" => self.figures = parse(line)?,
            "section" => self.put_section(parse(line)?),
            "log" => {
                let fault: ParsedLog = parse(line)?;
                if self.takes_fault(fault.number) {
                    let at_ms = fault.at_ms.unwrap_or(self.at_ms);
                    self.note_at(at_ms, &fault.level, &fault.text, fault.actor);
                }
                self.logged.extend(fault.actor);
            }
            "tick" => {
                self.refresh(parse::<ParsedTick>(line)?.at_ms);
                return Ok(Applied::Refreshed);
            }
            "end" => return Ok(Applied::Ends(escape(&parse::<ParsedEnd>(line)?.why))),
            // An event of a later version.
            _ => {}
        }
        Ok(Applied::Part)
    }

    /// Notes the number of a fault. Returns whether the fault has not come before: after a break of the
    /// connection the program says again what it keeps.
    fn takes_fault(&mut self, number: Option<u64>) -> bool {
        let (Some(number), Some(program)) = (number, &self.program) else {
            return true;
        };
        let last = match self.last_fault {
            Some((pid, last)) if pid == program.pid => last,
            _ => 0,
        };
        self.last_fault = Some((program.pid, last.max(number)));
        number > last
    }

    /// Forgets all but the log, and since when actors stand still. What is known of the present connection
    /// stays.
    fn forget(&mut self) {
        let earlier = match &self.program {
            Some(program) if self.is_whole => {
                let actors = self.actors.iter();
                Some((program.pid, actors.map(StillSince::of).collect()))
            }
            _ => self.earlier.take(),
        };
        let log = std::mem::take(&mut self.log);
        let followed = self.followed.take().map(|followed| followed.id);
        *self = Model {
            program: self.program.take(),
            seq: self.seq,
            log,
            earlier,
            last_fault: self.last_fault,
            tick: self.tick,
            at_ms: self.at_ms,
            followed: followed.map(Followed::new),
            ..Model::default()
        };
    }

    /// Puts an actor that was sent.
    fn put(&mut self, mut facts: ActorFacts) {
        facts.sent_tick = self.tick;
        self.sent.push(facts.id);
        let Some(&index) = self.indices.get(&facts.id) else {
            facts.trend = Trend::new(self.tick, facts.mailbox);
            if let Some(since) = self.stands_still_since(&facts) {
                (facts.still_since_ms, facts.has_moved) = (since, false);
            }
            self.indices.insert(facts.id, self.actors.len() as u32);
            self.actors.push(facts);
            return;
        };
        let old = &mut self.actors[index as usize];
        facts.follow(old, self.tick);
        let has_faulted = facts.has_faulted_since(old);
        *old = facts;
        if has_faulted {
            self.faulted.push(old.id);
        }
    }

    /// Returns since when an actor stands still that was known before a break, and has had no turn in it.
    fn stands_still_since(&self, facts: &ActorFacts) -> Option<u64> {
        let (pid, actors) = self.earlier.as_ref()?;
        let is_same = self.program.as_ref()?.pid == *pid;
        let earlier = actors.get(&facts.id).filter(|_| is_same)?;
        // A program that does not count has no turns.
        let has_waited = facts.turns > 0 && earlier.turns == facts.turns;
        has_waited.then_some(earlier.since_ms)
    }

    /// Notes the fault of an actor, if it is alive and the program has not said it.
    fn note_fault(&mut self, id: u64) {
        let Some(actor) = self.actor(id).filter(|_| !self.logged.contains(&id)) else {
            return;
        };
        let restarts = actor.restarts;
        let name = self.texts.get(actor.name);
        let mut text = format!("{name} #{id} has failed (restart {restarts})");
        if !actor.fault.is_empty() {
            text += &format!(": {}", self.texts.get(actor.fault));
        }
        self.note("error", &text, Some(id));
    }

    fn remove(&mut self, id: u64) {
        let Some(index) = self.indices.remove(&id) else {
            return;
        };
        self.actors.swap_remove(index as usize);
        if let Some(moved) = self.actors.get(index as usize) {
            self.indices.insert(moved.id, index);
        }
    }

    fn put_section(&mut self, section: ParsedSection) {
        let cells = |row: Vec<ParsedCell>| {
            let cells = row.into_iter().map(|cell| match cell {
                ParsedCell::Text(text) => escape(&text),
                ParsedCell::Number(number) => number.to_string(),
                ParsedCell::Flag(flag) => flag.to_string(),
                ParsedCell::Other(_) => "..".to_owned(),
            });
            cells.collect()
        };
        let table = ServiceTable {
            name: escape(&section.name),
            columns: section.columns.iter().map(|text| escape(text)).collect(),
            rows: section.rows.into_iter().map(cells).collect(),
        };
        match self.sections.iter_mut().find(|old| old.name == table.name) {
            Some(old) => *old = table,
            None => self.sections.push(table),
        }
    }

    /// Adds a line to the log, which the program or the console says.
    pub fn note(&mut self, level: &str, text: &str, actor: Option<u64>) {
        self.note_at(self.at_ms, level, text, actor);
    }

    fn note_at(&mut self, at_ms: u64, level: &str, text: &str, actor: Option<u64>) {
        if self.log.len() == LOG_MAX {
            self.log.pop_front();
        }
        self.log.push_back(LoggedLine {
            at_ms,
            level: escape(level),
            text: escape(text),
            actor,
        });
    }

    /// Completes a refresh.
    fn refresh(&mut self, at_ms: u64) {
        for id in std::mem::take(&mut self.faulted) {
            self.note_fault(id);
        }
        self.logged.clear();
        let interval = at_ms.saturating_sub(self.at_ms);
        self.interval_ms = if self.is_whole { interval } else { 0 };
        for id in self.sent.drain(..) {
            let Some(&index) = self.indices.get(&id) else {
                continue;
            };
            let actor = &mut self.actors[index as usize];
            actor.trail.note(self.tick, actor.state);
            if std::mem::take(&mut actor.has_moved) {
                actor.still_since_ms = at_ms;
            }
        }
        self.at_ms = at_ms;
        self.series.refresh(&self.figures, self.interval_ms);
        if self.moments.len() > REACH {
            self.moments.pop_front();
        }
        self.moments.push_back(at_ms);
        self.tick += 1;
        if let Some(mut followed) = self.followed.take() {
            if let Some(actor) = self.actor(followed.id) {
                let messages = self.recent(actor, actor.messages_since);
                followed.put(actor.mailbox.into(), messages);
            }
            self.followed = Some(followed);
        }
        self.is_whole = true;
        self.earlier = None;
        if self.texts.len() > TEXTS_MIN + 2 * self.texts_then {
            self.number_anew();
        }
    }

    /// Drops the texts of actors that have ended.
    fn number_anew(&mut self) {
        let old = std::mem::take(&mut self.texts);
        for actor in &mut self.actors {
            for id in actor.texts_mut() {
                *id = self.texts.number(old.get(*id));
            }
        }
        self.texts_then = self.texts.len();
    }

    /// Keeps the figures of an actor from now on, or of none.
    pub fn follow(&mut self, id: Option<u64>) {
        if self.followed.as_ref().map(|followed| followed.id) != id {
            self.followed = id.map(Followed::new);
        }
    }
}
