//! What is known of one actor.

use super::parsed::{ParsedActor, ParsedWait};
use super::texts::{TextId, Texts};
use super::trend::{ActorState, StateTrail, Trend};

/// What an actor waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsOn {
    /// The answer of an actor.
    Answer(u64),
    /// Room in the mailbox of an actor.
    Room(u64),
    /// The end of an actor.
    End(u64),
    /// Something that a future has noted, such as a timer.
    Noted(TextId),
    /// Something that nothing has noted.
    Other,
}

impl WaitsOn {
    /// Returns the actor that it depends on.
    pub fn of(self) -> Option<u64> {
        match self {
            WaitsOn::Answer(id) | WaitsOn::Room(id) | WaitsOn::End(id) => Some(id),
            WaitsOn::Noted(_) | WaitsOn::Other => None,
        }
    }

    fn parsed(wait: &ParsedWait<'_>, texts: &mut Texts) -> Self {
        match (&*wait.on, wait.of) {
            ("answer", Some(id)) => WaitsOn::Answer(id),
            ("room", Some(id)) => WaitsOn::Room(id),
            ("end", Some(id)) => WaitsOn::End(id),
            _ if !wait.what.is_empty() => WaitsOn::Noted(texts.number(&wait.what)),
            _ => WaitsOn::Other,
        }
    }
}

/// What is known of an actor.
///
/// There may be 100 000 of them, so this is small: texts are numbers, and counts that no mailbox reaches
/// have four bytes.
#[derive(Debug, Clone, Default)]
pub struct ActorFacts {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: TextId,
    /// Its function, or its type.
    pub function: TextId,
    /// Where it was spawned.
    pub spawned_at: TextId,
    /// The thread, or the kind of thread, that runs it.
    pub thread: TextId,
    /// Its last fault.
    pub fault: TextId,
    /// The state of its machine.
    pub machine: TextId,
    /// Its key.
    pub key: TextId,
    /// The names by which it is registered, in one text.
    pub names: TextId,
    /// The groups of which it is a member, in one text.
    pub groups: TextId,
    /// The actor that has spawned it.
    pub parent: Option<u64>,
    /// What it does.
    pub state: ActorState,
    /// Whether a message would wake it.
    pub awaits_message: bool,
    /// Whether its handle exists.
    pub has_handle: bool,
    /// Whether its busy time is measured, and not a sample.
    pub is_measured: bool,
    /// The messages that wait.
    pub mailbox: u32,
    /// The most that its mailbox takes; `u32::MAX` if there is no bound.
    pub capacity: u32,
    /// The most that have waited.
    pub highest: u32,
    /// How often it was restarted.
    pub restarts: u32,
    /// The messages that gave way to newer ones.
    pub displaced: u32,
    /// The number of its addresses.
    pub addresses: u32,
    /// The messages that it has handled.
    pub messages: u64,
    /// The turns that it has had.
    pub turns: u64,
    /// Its busy time: measured, or estimated from its sampled turns.
    pub busy_us: u64,
    /// The longest of its turns, or of those that were sampled.
    pub longest_us: u32,
    /// What else it waits for, beside messages.
    pub waits: Box<[WaitsOn]>,

    /// Messages, turns and busy time in the refresh in which it was last sent.
    pub(super) messages_since: u32,
    pub(super) turns_since: u32,
    pub(super) busy_us_since: u32,
    /// The refresh in which it was last sent.
    pub(super) sent_tick: u32,
    /// The refresh in which it last had a fault, or 0.
    pub(super) faulted_tick: u32,
    /// Since when it has had no turn, in Unix time.
    pub(super) still_since_ms: u64,
    /// Whether it is new in this refresh, or has moved.
    pub(super) has_moved: bool,
    pub(super) trail: StateTrail,
    pub(super) trend: Trend,
}

impl ActorFacts {
    /// Reads what a line says.
    pub(super) fn parsed(line: &ParsedActor<'_>, texts: &mut Texts) -> Self {
        let awaits = |wait: &&ParsedWait<'_>| wait.on == "message";
        let others = line.waits.iter().filter(|wait| !awaits(wait));
        let sampled = &line.sampled;
        let estimate = || {
            let turn = sampled.busy_us.checked_div(sampled.turns).unwrap_or(0);
            turn.saturating_mul(line.turns)
        };
        ActorFacts {
            id: line.id,
            name: texts.number(&line.name),
            function: texts.number(&line.function),
            spawned_at: texts.number(&line.spawned_at),
            thread: texts.number(&line.thread),
            fault: texts.number(&line.fault),
            machine: texts.number(&line.machine),
            key: texts.number(&line.key),
            names: texts.number(&line.names.join(", ")),
            groups: texts.number(&line.groups.join(", ")),
            parent: line.parent,
            state: ActorState::of(&line.state),
            awaits_message: line.waits.iter().any(|wait| awaits(&wait)),
            has_handle: line.handle,
            is_measured: line.busy_us.is_some(),
            mailbox: small(line.mailbox),
            capacity: line.capacity.map_or(u32::MAX, small),
            highest: small(line.highest),
            restarts: small(line.restarts),
            displaced: small(line.displaced),
            addresses: small(line.addresses),
            messages: line.messages,
            turns: line.turns,
            busy_us: line.busy_us.unwrap_or_else(estimate),
            longest_us: small(line.longest_us.unwrap_or(sampled.longest_us)),
            waits: others.map(|wait| WaitsOn::parsed(wait, texts)).collect(),
            has_moved: true,
            ..ActorFacts::default()
        }
    }

    /// Takes over what was known of the same actor, and what has happened since.
    pub(super) fn follow(&mut self, old: &ActorFacts, tick: u32) {
        // Whatever else is sent in the same refresh adds to it.
        let is_same_refresh = old.sent_tick == tick;
        let add = |since: u32, new: u64, old: u64| {
            let before = if is_same_refresh { since } else { 0 };
            before.saturating_add(small(new.saturating_sub(old)))
        };
        self.messages_since = add(old.messages_since, self.messages, old.messages);
        self.turns_since = add(old.turns_since, self.turns, old.turns);
        // An estimate of all turns jumps with each sample, so these turns are as long as the others.
        let mean = self.busy_us.checked_div(self.turns).unwrap_or(0);
        let busy_us = match self.is_measured {
            true => old.busy_us,
            false => mean.saturating_mul(old.turns),
        };
        self.busy_us_since = add(old.busy_us_since, self.busy_us, busy_us);
        self.still_since_ms = old.still_since_ms;
        if !self.has_moved_since(old) {
            self.has_moved = old.has_moved;
        }
        self.trail = old.trail;
        self.trend = old.trend;
        let handled = small(self.messages.saturating_sub(old.messages));
        self.trend.note(tick, old.mailbox, self.mailbox, handled);
        self.faulted_tick = old.faulted_tick;
        if self.has_faulted_since(old) {
            self.faulted_tick = tick;
        }
    }

    /// Returns whether it has had a fault since this was known.
    pub(super) fn has_faulted_since(&self, old: &ActorFacts) -> bool {
        self.restarts > old.restarts || !self.fault.is_empty() && self.fault != old.fault
    }

    /// Returns whether it has had a turn since this was known, or waits for something else.
    fn has_moved_since(&self, old: &ActorFacts) -> bool {
        (self.turns, self.messages) != (old.turns, old.messages)
            || self.state != old.state
            || self.waits != old.waits
    }

    /// Returns whether it waits, but not for a message.
    pub fn is_blocked(&self) -> bool {
        self.state == ActorState::Waiting && !self.awaits_message && !self.waits.is_empty()
    }

    /// Returns whether its mailbox has no room.
    pub fn is_full(&self) -> bool {
        self.capacity != u32::MAX && self.mailbox >= self.capacity
    }

    /// Returns all texts, to number them anew.
    pub(super) fn texts_mut(&mut self) -> impl Iterator<Item = &mut TextId> {
        let noted = self.waits.iter_mut().filter_map(|wait| match wait {
            WaitsOn::Noted(what) => Some(what),
            _ => None,
        });
        let own = [
            &mut self.name,
            &mut self.function,
            &mut self.spawned_at,
            &mut self.thread,
            &mut self.fault,
            &mut self.machine,
            &mut self.key,
            &mut self.names,
            &mut self.groups,
        ];
        own.into_iter().chain(noted)
    }
}

/// Returns a number in four bytes, or the greatest one.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
