//! What the turn of this thread waits for: noted by its pending futures, until the turn has ended.
//!
//! A future of greenroom that waits for an actor notes that in each poll that is pending. At the
//! end of the turn the notes are all that the future of the task may still wait for, as far as
//! greenroom knows. Nothing is noted unless a runtime of this process reports waits that never end.
//!
//! # Invariants
//! - WAITS-1: the notes of a thread are of one waker and of one turn, those of the last note.
//!   Others are dropped by then. So notes may be missing, but none is of another task. A wait
//!   may be noted twice, or still be noted when it was dropped.

use std::cell::Cell;
use std::fmt;
use std::task::Waker;

/// What an actor is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WaitsFor {
    Answer,
    /// Room in its mailbox.
    Room,
    /// Its end.
    End,
    /// Something that is no actor.
    Other(&'static str),
}

/// Displays what follows the name of the actor in a path of waits.
impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitsFor::Answer => "",
            WaitsFor::Room => " (for room)",
            WaitsFor::End => " (for its end)",
            WaitsFor::Other(what) => what,
        })
    }
}

/// A wait for the actor with this number, or for no actor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NotedWait {
    pub(crate) to: u64,
    pub(crate) for_what: WaitsFor,
}

/// The waits of a task at the end of its last turn.
#[derive(Clone, Copy)]
pub struct NotedWaits {
    waits: [NotedWait; NotedWaits::MAX],
    len: u8,
}

impl NotedWaits {
    /// The maximum number of waits. A task with more is taken for one that something else may wake.
    const MAX: usize = 4;

    pub(crate) const NONE: Self = NotedWaits {
        waits: [NotedWait {
            to: 0,
            for_what: WaitsFor::Answer,
        }; Self::MAX],
        len: 0,
    };

    fn add(&mut self, wait: NotedWait) {
        if let Some(free) = self.waits.get_mut(usize::from(self.len)) {
            *free = wait;
            self.len += 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[NotedWait] {
        &self.waits[..usize::from(self.len)]
    }
}

crate::sync::thread_local! {
    /// The address of the waker's data, and the waits of its task.
    static WAITS: Cell<(usize, NotedWaits)> = const { Cell::new((0, NotedWaits::NONE)) };
}

/// Adds a wait to the notes of this waker, or to none if it `is_first` of its turn.
pub(super) fn add_wait(waker: &Waker, wait: NotedWait, is_first: bool) {
    let own = waker.data().addr();
    let _ = WAITS.try_with(|waits| {
        let (of, mut noted) = waits.get();
        if is_first || of != own {
            noted = NotedWaits::NONE;
        }
        noted.add(wait);
        waits.set((own, noted));
    });
}

/// Takes the notes of the task whose waker has this data.
pub(crate) fn take_waits(of: usize) -> NotedWaits {
    let taken = WAITS.try_with(|waits| match waits.get() {
        (noted, waits_of) if noted == of => {
            waits.set((0, NotedWaits::NONE));
            waits_of
        }
        _ => NotedWaits::NONE,
    });
    taken.unwrap_or(NotedWaits::NONE)
}
