//! What actors had counted at an earlier look, so that the next one has their progress since.

use std::time::Duration;

use greenroom::ActorStatus;

/// The actors whose counts are kept at most: those with the most messages.
const KEPT: usize = 100_000;

/// The counts of actors at a look.
pub(super) struct CountBook {
    /// In the order of their ids.
    counts: Vec<ActorCounts>,
    /// All actors are in it. So any other one had counted nothing.
    is_complete: bool,
    most: usize,
}

/// What an actor has counted: at a look, or between two of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ActorCounts {
    id: u64,
    pub(super) messages: u64,
    pub(super) turns: u64,
    /// The time of its turns, if that is measured.
    pub(super) busy: Option<Duration>,
    /// The messages that wait: at a look, or the fewest of both.
    pub(super) mailbox: usize,
}

impl ActorCounts {
    fn of(actor: &ActorStatus) -> Self {
        ActorCounts {
            id: actor.task.id(),
            messages: actor.messages,
            turns: actor.turns,
            busy: actor.busy,
            mailbox: actor.mailbox,
        }
    }

    /// Returns what is more than before.
    fn since(self, before: Self) -> Self {
        let busy = |busy: Duration| busy.saturating_sub(before.busy.unwrap_or_default());
        ActorCounts {
            id: self.id,
            messages: self.messages.saturating_sub(before.messages),
            turns: self.turns.saturating_sub(before.turns),
            busy: self.busy.map(busy),
            mailbox: self.mailbox.min(before.mailbox),
        }
    }
}

impl Default for CountBook {
    fn default() -> Self {
        CountBook {
            counts: Vec::new(),
            is_complete: true,
            most: KEPT,
        }
    }
}

impl CountBook {
    /// Returns what an actor has counted since the noted look, or `None` if that is not known.
    pub(super) fn since(&self, actor: &ActorStatus) -> Option<ActorCounts> {
        self.progress(ActorCounts::of(actor))
    }

    /// Returns how many messages these actors have handled since the noted look, as far as is known.
    pub(super) fn messages_since(&self, actors: &[ActorStatus]) -> u64 {
        let messages = |actor| self.since(actor).map_or(0, |counts| counts.messages);
        actors.iter().map(messages).sum()
    }

    /// Notes the counts of all actors, in place of the earlier ones.
    pub(super) fn note(&mut self, actors: &[ActorStatus]) {
        self.keep(actors.iter().map(ActorCounts::of).collect());
    }

    fn progress(&self, now: ActorCounts) -> Option<ActorCounts> {
        let found = self.counts.binary_search_by_key(&now.id, |it| it.id);
        match found {
            Ok(index) => Some(now.since(self.counts[index])),
            Err(_) => self
                .is_complete
                .then_some(now.since(ActorCounts::default())),
        }
    }

    fn keep(&mut self, mut counts: Vec<ActorCounts>) {
        self.is_complete = counts.len() <= self.most;
        if !self.is_complete {
            let by_messages = |it: &ActorCounts| std::cmp::Reverse((it.messages, it.turns));
            counts.select_nth_unstable_by_key(self.most, by_messages);
            counts.truncate(self.most);
            counts.shrink_to_fit();
        }
        counts.sort_unstable_by_key(|it| it.id);
        self.counts = counts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(id: u64, messages: u64) -> ActorCounts {
        ActorCounts {
            id,
            messages,
            turns: messages,
            busy: Some(Duration::from_secs(messages)),
            mailbox: 0,
        }
    }

    #[test]
    fn an_actor_that_is_new_has_counted_all_since_the_last_look() {
        let mut book = CountBook::default();
        assert_eq!(book.progress(counts(1, 5)), Some(counts(1, 5)));
        book.keep(vec![counts(3, 10), counts(1, 5)]);
        assert_eq!(book.progress(counts(3, 17)), Some(counts(3, 7)));
        assert_eq!(book.progress(counts(1, 5)), Some(counts(1, 0)));
        assert_eq!(book.progress(counts(2, 4)), Some(counts(2, 4)));
    }

    #[test]
    fn a_book_that_is_full_keeps_the_actors_with_the_most_messages() {
        let mut book = CountBook {
            most: 2,
            ..CountBook::default()
        };
        book.keep(vec![counts(1, 5), counts(2, 1), counts(3, 9)]);
        assert_eq!(book.progress(counts(3, 10)), Some(counts(3, 1)));
        assert_eq!(book.progress(counts(1, 6)), Some(counts(1, 1)));
        // It is not known whether it is new.
        assert_eq!(book.progress(counts(2, 2)), None);
        book.keep(vec![counts(2, 2)]);
        assert_eq!(book.progress(counts(4, 1)), Some(counts(4, 1)));
    }
}
