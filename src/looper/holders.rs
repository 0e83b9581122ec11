//! The holders of a lock: loopers, and guards that were carried out of their task.
//!
//! Each is found by its looper or by its ticket, without a look at the others. An exclusive one is
//! alone.

use std::collections::HashMap;

use slab::Slab;

use super::identity::Key;
use crate::sync::look;

/// Most locks never have a second holder.
#[derive(Default)]
pub(super) enum Holders {
    #[default]
    None,
    One(Hold),
    /// All of them are shared. There are many until none is left.
    Many(Box<Many>),
}

#[derive(Default)]
pub(super) struct Many {
    /// The key is one less than the ticket.
    holds: Slab<Hold>,
    /// The latest hold of each looper.
    keys: HashMap<Key, usize>,
}

/// The lock in the hands of a looper, or of guards that were carried out of their task.
pub(super) struct Hold {
    looper: Key,
    /// The looper has let go of the lock. Only guards hold it.
    has_left: bool,
    /// Tells the holds of a lock apart. The next one may have it again.
    pub(super) ticket: u32,
    /// The number of tasks and guards that use the value.
    pub(super) pins: u32,
    pub(super) is_exclusive: bool,
    /// The looper keeps the lock until it is unlocked.
    pub(super) is_kept: bool,
    /// The looper has unlocked it while its task uses the value.
    pub(super) is_given_up: bool,
}

impl Hold {
    pub(super) fn new(looper: Key, pins: u32, is_exclusive: bool, is_kept: bool) -> Self {
        Hold {
            looper,
            has_left: false,
            ticket: 1,
            pins,
            is_exclusive,
            is_kept,
            is_given_up: false,
        }
    }

    /// Returns the looper, or `None` if only guards hold the lock.
    pub(super) fn looper(&self) -> Option<Key> {
        (!self.has_left).then_some(self.looper)
    }

    /// Takes the lock from its looper. Returns the ticket if nothing uses the lock; otherwise the
    /// last guard releases it.
    pub(super) fn let_go(&mut self) -> Option<u32> {
        self.has_left = true;
        (self.pins == 0).then_some(self.ticket)
    }

    /// Notes that a guard was dropped. Returns whether nothing holds the lock any more.
    fn unpin(&mut self) -> bool {
        self.pins -= 1;
        self.pins == 0 && !self.is_kept
    }
}

impl Holders {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Holders::None)
    }

    /// Returns whether one more holder can be added.
    pub(super) fn has_room(&self, is_exclusive: bool) -> bool {
        match self {
            Holders::None => true,
            Holders::One(hold) => !is_exclusive && !hold.is_exclusive,
            Holders::Many(_) => !is_exclusive,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Hold> + Clone {
        let (one, many) = match self {
            Holders::None => (None, None),
            Holders::One(hold) => (Some(hold), None),
            Holders::Many(many) => (None, Some(many.holds.iter())),
        };
        let many = many.into_iter().flatten().map(|(_, hold)| hold);
        one.into_iter().chain(many).inspect(|_| look())
    }

    /// Returns the hold of a looper that has not let go.
    pub(super) fn of(&mut self, looper: Key) -> Option<&mut Hold> {
        let hold = match self {
            Holders::None => None,
            Holders::One(hold) => Some(hold),
            Holders::Many(many) => many.holds.get_mut(*many.keys.get(&looper)?),
        };
        look();
        hold.filter(|hold| hold.looper() == Some(looper))
    }

    /// Adds a hold, and gives it a ticket.
    pub(super) fn add(&mut self, hold: Hold) {
        *self = match std::mem::take(self) {
            Holders::None => Holders::One(hold),
            Holders::One(first) => {
                let mut many = Many::default();
                many.add(first);
                many.add(hold);
                Holders::Many(Box::new(many))
            }
            Holders::Many(mut many) => {
                many.add(hold);
                Holders::Many(many)
            }
        };
    }

    /// Notes that a guard was dropped, and removes its hold if that was the last use. Returns
    /// whether it was.
    pub(super) fn unpin(&mut self, ticket: u32) -> bool {
        look();
        let is_over = match self {
            Holders::One(hold) => hold.ticket == ticket && hold.unpin(),
            Holders::Many(many) => many.holds.get_mut(place(ticket)).is_some_and(Hold::unpin),
            Holders::None => false,
        };
        if is_over {
            self.forget(ticket);
        }
        is_over
    }

    /// Removes a hold.
    pub(super) fn remove(&mut self, ticket: u32) {
        self.forget(ticket);
    }

    fn forget(&mut self, ticket: u32) {
        let is_last = match self {
            Holders::None => true,
            Holders::One(hold) => hold.ticket == ticket,
            Holders::Many(many) => many.remove(place(ticket)),
        };
        if is_last {
            *self = Holders::None;
        }
    }
}

/// Returns the key of the hold with this ticket.
fn place(ticket: u32) -> usize {
    ticket as usize - 1
}

impl Many {
    fn add(&mut self, hold: Hold) {
        let (looper, entry) = (hold.looper, self.holds.vacant_entry());
        let key = entry.key();
        let ticket = u32::try_from(key + 1).expect("fewer than 2^32 holders fit into memory");
        entry.insert(Hold { ticket, ..hold });
        self.keys.insert(looper, key);
    }

    /// Removes a hold. Returns whether it was the last one.
    fn remove(&mut self, key: usize) -> bool {
        let removed = self.holds.try_remove(key).map(|hold| hold.looper);
        // The looper may have a later hold.
        if let Some(looper) = removed
            && self.keys.get(&looper) == Some(&key)
        {
            self.keys.remove(&looper);
        }
        self.holds.is_empty()
    }
}
