//! What every cell begins with: the table of what can be done to it without knowing its types.
//!
//! A cell is one allocation that holds a future and whatever belongs to it. The executor runs it
//! through this table and keeps a list of live cells through `links`; it never learns what the cell
//! is for.

use std::cell::Cell;
use std::ptr::NonNull;

use super::home::Passage;
use super::info::TaskInfo;
use crate::sync::atomic::{AtomicU32, Ordering};

/// More references than this and the process is aborted, as `Arc` does: a program that forgets two
/// thousand million of them must not reach zero by counting on.
pub(crate) const COUNT_MAX: u32 = i32::MAX as u32;

/// The first field of every cell (`repr(C)`), so that a pointer to either is a pointer to both.
pub struct Header {
    pub(crate) vtable: &'static VTable,
    pub(crate) links: Links,
    /// Which list the cell is in; written once, before the cell can be run.
    pub(crate) shard: Cell<u16>,
    /// For the scheduling policy: 0 is the lowest.
    pub(crate) priority: u8,
    /// Whether its home is told of each message.
    pub(crate) traced: bool,
    /// How many hold the cell; whoever gives up the last reference frees it.
    pub(crate) refs: AtomicU32,
}

impl Header {
    pub(crate) fn new(vtable: &'static VTable, priority: u8, traced: bool, refs: u32) -> Self {
        Header {
            vtable,
            links: Links::default(),
            shard: Cell::new(0),
            priority,
            traced,
            refs: AtomicU32::new(refs),
        }
    }

    /// Adds a reference. The caller holds one, or the lock of the list that the cell is in.
    pub(crate) fn retain(&self) {
        // Relaxed: the reference or list that this comes from keeps the cell.
        if self.refs.fetch_add(1, Ordering::Relaxed) > COUNT_MAX {
            std::process::abort();
        }
    }
}

/// A cell's place in the list of live cells; read and written under the lock of that list only.
#[derive(Default)]
pub(crate) struct Links {
    pub(crate) previous: Cell<Option<NonNull<Header>>>,
    pub(crate) next: Cell<Option<NonNull<Header>>>,
}

/// What can be done to a cell.
///
/// # Safety
/// The pointer is to a cell with this table that is not freed yet, and the caller has what the entry
/// names: a reference, the one runnable, or the right to the result.
pub(crate) struct VTable {
    /// Runs the cell once. The caller owns its one runnable, and keeps what its home is of.
    pub(crate) run: unsafe fn(NonNull<Header>),
    /// Gives up the cell's one runnable: what is in the cell is cancelled on this thread.
    pub(crate) discard: unsafe fn(NonNull<Header>),
    /// Puts the cell on the queue of its home. The caller has just made it scheduled and holds a
    /// reference.
    pub(crate) schedule: unsafe fn(NonNull<Header>),
    /// Wakes it, for anything but a message. The caller holds a reference.
    pub(crate) wake: unsafe fn(NonNull<Header>),
    /// Asks it to end by itself. The caller holds a reference.
    pub(crate) stop: unsafe fn(NonNull<Header>),
    /// Has it cancelled at its next suspension. The caller holds a reference.
    pub(crate) cancel: unsafe fn(NonNull<Header>),
    /// Gives up a reference; the last one frees the memory.
    pub(crate) release: unsafe fn(NonNull<Header>),
    /// Moves the result to `*out` (of the cell's result type). The cell has ended; called once.
    pub(crate) take_result: unsafe fn(NonNull<Header>, out: *mut ()),
    /// Drops the result that nobody wants any more. The cell has ended; called once.
    pub(crate) drop_result: unsafe fn(NonNull<Header>),
    /// What may be known of it. The caller holds a reference, or its one runnable.
    pub(crate) info: unsafe fn(NonNull<Header>) -> TaskInfo,
    /// Tells its home something that nobody else is there to hear of.
    pub(crate) undelivered: unsafe fn(NonNull<Header>, messages: usize),
    /// Tells its home what becomes of a message, if it is traced. The caller holds a reference.
    pub(crate) trace: unsafe fn(NonNull<Header>, Passage),
    /// How many messages wait in its mailbox. The caller holds a reference.
    pub(crate) waiting: unsafe fn(NonNull<Header>) -> usize,
}
