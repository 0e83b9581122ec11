//! The locks that a task needs, in the order in which they are taken.
//!
//! All sets of a controller are taken in the order of the locks' numbers.

use std::sync::Arc;

use super::place::Place;

/// A lock that a task needs, and how.
pub(super) struct Want {
    pub(super) place: Arc<Place>,
    pub(super) mode: Mode,
}

#[derive(Clone, Copy)]
pub(super) struct Mode {
    pub(super) is_exclusive: bool,
    /// The looper keeps the lock when the task has ended.
    pub(super) is_kept: bool,
    /// The looper holds the lock already.
    pub(super) is_held: bool,
}

#[derive(Default)]
pub(super) enum Wants {
    #[default]
    Nothing,
    One(Want),
    Many(Vec<Want>),
}

impl Wants {
    pub(super) fn push(&mut self, want: Want) {
        *self = match std::mem::take(self) {
            Wants::Nothing => Wants::One(want),
            Wants::One(first) => Wants::Many(vec![first, want]),
            Wants::Many(mut wants) => {
                wants.push(want);
                Wants::Many(wants)
            }
        };
    }

    /// Sorts the set into the order in which it is taken.
    pub(super) fn sort(&mut self) {
        if let Wants::Many(wants) = self {
            wants.sort_by_key(|want| want.place.identity.id);
        }
    }

    pub(super) fn as_slice(&self) -> &[Want] {
        match self {
            Wants::Nothing => &[],
            Wants::One(want) => std::slice::from_ref(want),
            Wants::Many(wants) => wants,
        }
    }

    /// Returns the number of guards that an owning task gets.
    pub(super) fn guards(&self) -> usize {
        let wants = self.as_slice().iter();
        wants.filter(|want| want.place.has_value()).count()
    }
}
