//! What a model answers.

use std::collections::VecDeque;

use super::history::a_second;
use super::parsed::{ParsedFirst, ParsedVersion};
use super::{
    ActorFacts, ActorState, BadLine, Figures, Followed, LoggedLine, Model, PROTOCOL, Program,
    Series, ServiceTable, TextId, escape,
};

impl Model {
    /// Returns what the first line has said.
    pub fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// Returns whether the program knows this of its actors, such as `waits`.
    pub fn knows(&self, feature: &str) -> bool {
        let features = self.program.iter().flat_map(|program| &program.features);
        features.into_iter().any(|known| known == feature)
    }

    /// Returns whether the first snapshot is complete.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns all actors, in no order.
    pub fn actors(&self) -> &[ActorFacts] {
        &self.actors
    }

    /// Returns the actor of a number, if it is alive.
    pub fn actor(&self, id: u64) -> Option<&ActorFacts> {
        let index = *self.indices.get(&id)?;
        self.actors.get(index as usize)
    }

    /// Returns the text of a number.
    pub fn text(&self, id: TextId) -> &str {
        self.texts.get(id)
    }

    /// Returns the name and the number of an actor, such as `cart #7`, or only its number.
    pub fn label(&self, id: u64) -> String {
        match self.actor(id) {
            Some(actor) => format!("{} #{id}", self.text(actor.name)),
            None => format!("#{id}"),
        }
    }

    /// Returns the figures of the runtime.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Returns the rates of the runtime.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Returns what services and packages show.
    pub fn sections(&self) -> &[ServiceTable] {
        &self.sections
    }

    /// Returns the log, the oldest line first.
    pub fn log(&self) -> &VecDeque<LoggedLine> {
        &self.log
    }

    /// Returns the figures of the actor that is looked at.
    pub fn followed(&self) -> Option<&Followed> {
        self.followed.as_ref()
    }

    /// Returns how many refreshes there were.
    pub fn refreshes(&self) -> u32 {
        self.tick
    }

    /// Returns the messages of an actor in the last refresh, a second.
    pub fn message_rate(&self, actor: &ActorFacts) -> u64 {
        a_second(self.recent(actor, actor.messages_since), self.interval_ms)
    }

    /// Returns the messages that an actor handles a second, over the last refreshes. `None` if that is not
    /// known: of an actor that has just come or got its first message, or if the program does not count.
    pub fn handling_rate(&self, actor: &ActorFacts) -> Option<f64> {
        let now = self.tick.saturating_sub(1);
        let (messages, since) = actor.trend.handled(now, actor.mailbox)?;
        let ago = now.saturating_sub(since) as usize;
        let begin = self.moments.iter().rev().nth(ago)?;
        let ms = self.at_ms.saturating_sub(*begin);
        let is_known = ms > 0 && self.knows("counting");
        is_known.then(|| messages as f64 * 1_000.0 / ms as f64)
    }

    /// Returns the share of the last refresh in which an actor was busy, in thousandths.
    pub fn busy_share(&self, actor: &ActorFacts) -> u64 {
        let busy_us = self.recent(actor, actor.busy_us_since);
        busy_us.checked_div(self.interval_ms).unwrap_or(0)
    }

    /// Returns how long a turn of an actor takes: the mean of the last refresh, or of all.
    pub fn mean_turn_us(&self, actor: &ActorFacts) -> u64 {
        let turns = self.recent(actor, actor.turns_since);
        let recent = self.recent(actor, actor.busy_us_since).checked_div(turns);
        recent
            .or_else(|| actor.busy_us.checked_div(actor.turns))
            .unwrap_or(0)
    }

    /// Returns how long an actor has had no turn.
    pub fn still_ms(&self, actor: &ActorFacts) -> u64 {
        self.at_ms.saturating_sub(actor.still_since_ms)
    }

    /// Returns how long the present turn of an actor has taken, with the worker that runs it.
    pub fn turn_now(&self, id: u64) -> Option<(usize, u64)> {
        let workers = self.figures.workers.iter().enumerate();
        let mut runs = workers.filter_map(|(at, worker)| Some((at, worker.runs.as_ref()?)));
        let (worker, runs) = runs.find(|(_, runs)| runs.id == id)?;
        Some((worker, runs.for_us))
    }

    /// Returns by how many messages a mailbox grows each second, if it does.
    pub fn growth(&self, actor: &ActorFacts) -> Option<u64> {
        let growth = actor.trend.growth(self.tick.saturating_sub(1))?;
        Some(a_second(growth.into(), self.interval_ms.max(1)))
    }

    /// Returns how many refreshes ago an actor had its last fault, if the console has seen one.
    pub fn faulted_ago(&self, actor: &ActorFacts) -> Option<u32> {
        let is_seen = actor.faulted_tick > 0;
        is_seen.then(|| self.tick.saturating_sub(1 + actor.faulted_tick))
    }

    /// Returns the states of an actor in the last refreshes, the oldest first.
    pub fn states(&self, actor: &ActorFacts) -> impl Iterator<Item = ActorState> + use<> {
        actor.trail.states(self.tick.saturating_sub(1))
    }

    /// Returns the length of the last refresh.
    pub fn interval_ms(&self) -> u64 {
        self.interval_ms
    }

    /// Returns a count if it is of the last refresh.
    pub(super) fn recent(&self, actor: &ActorFacts, since: u32) -> u64 {
        let is_recent = actor.sent_tick + 1 == self.tick;
        if is_recent { since.into() } else { 0 }
    }
}

/// Returns for how many seconds a message waits in a mailbox: by Little's law, the messages that wait
/// divided by those handled a second. Infinite if none is handled, `None` if none waits or the rate is not
/// known.
pub fn mailbox_wait(waiting: u64, rate: Option<f64>) -> Option<f64> {
    rate.filter(|_| waiting > 0)
        .map(|rate| waiting as f64 / rate)
}

/// Reads the first line.
pub(super) fn first(line: &[u8]) -> Result<Program, BadLine> {
    // The other fields of another version may be others.
    let ParsedVersion { protocol } = parse(line)?;
    if protocol != PROTOCOL {
        return Err(BadLine::Protocol(protocol));
    }
    let first: ParsedFirst = parse(line)?;
    Ok(Program {
        greenroom: escape(&first.greenroom),
        pid: first.pid,
        features: first.features,
    })
}

/// Parses a line.
pub(super) fn parse<'a, T: serde::Deserialize<'a>>(line: &'a [u8]) -> Result<T, BadLine> {
    serde_json::from_slice(line).map_err(|error| BadLine::Unclear(escape(&error.to_string())))
}
