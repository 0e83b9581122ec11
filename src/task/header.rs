//! What every cell has: the table of what can be done to it without knowing its types.
//!
//! A cell is one allocation that holds a future and whatever belongs to it. The executor runs it
//! through this table and keeps a list of live cells; it never learns what the cell is for.
//!
//! # Invariants
//! - HEADER-1: the data of a cell's waker is the pointer to its header, with a reference of the waker's.
#![expect(unsafe_code, reason = "a waker is a counted pointer; see HEADER-1")]

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::info::TaskInfo;
use super::live_index::LiveIndex;
use super::message_event::MessageEvent;
use crate::error::Fault;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{COUNT_MAX, Process};

/// What stands for a cell wherever its types are not known.
#[repr(C)]
pub struct Header {
    /// First, beside the word of the mailbox: each sender looks at it.
    label: Label,
    pub(crate) vtable: &'static VTable,
    /// How many hold the cell; whoever gives up the last reference frees it.
    pub(crate) refs: AtomicU32,
    /// Where the list of live cells has it; written once, before the cell can be run.
    pub(crate) live_index: Cell<Option<LiveIndex>>,
}

/// A number that no other cell of this process has, a priority, and whether the executor is told of each
/// message: 55, 8 and 1 bits.
#[derive(Clone, Copy)]
pub(crate) struct Label(u64);

impl Label {
    pub(crate) fn new(id: u64, priority: u8, is_traced: bool) -> Self {
        Label(id << 9 | u64::from(is_traced) << 8 | u64::from(priority))
    }
}

impl Header {
    pub(crate) fn new(vtable: &'static VTable, label: Label, refs: u32) -> Self {
        Header {
            label,
            vtable,
            refs: AtomicU32::new(refs),
            live_index: Cell::new(None),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.label.0 >> 9
    }

    /// For the scheduling policy: 0 is the lowest.
    pub(crate) fn priority(&self) -> u8 {
        self.label.0 as u8
    }

    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.label.0 & 1 << 8 != 0
    }

    /// Adds a reference. The caller holds one, or the lock of the list that the cell is in.
    pub(crate) fn retain(&self) {
        // Relaxed: the reference or list that this comes from keeps the cell.
        if self.refs.fetch_add(1, Ordering::Relaxed) > COUNT_MAX {
            std::process::abort();
        }
    }

    /// Returns the cell's waker without a reference of its own.
    ///
    /// # Safety
    /// It is used only while the cell is held, and never dropped.
    pub(crate) unsafe fn waker(cell: NonNull<Header>) -> ManuallyDrop<Waker> {
        let raw = RawWaker::new(cell.as_ptr().cast(), &WAKER);
        // SAFETY: the table keeps the waker contract; by the caller's promise no reference is needed.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
    }

    /// Returns whether the waker is one of this cell.
    #[inline]
    pub(crate) fn is_woken_by(cell: NonNull<Header>, waker: &Waker) -> bool {
        std::ptr::eq(waker.data(), cell.as_ptr().cast()) && std::ptr::eq(waker.vtable(), &WAKER)
    }
}

/// The table of every cell's waker. A static, since wakers are told by its address: a constant may
/// have several.
static WAKER: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: (HEADER-1) the reference is the waker's.
        unsafe { header_of(data).as_ref() }.retain();
        RawWaker::new(data, &WAKER)
    },
    // SAFETY: (HEADER-1) the reference goes with the waker.
    |data| unsafe {
        let header = header_of(data);
        (header.as_ref().vtable.wake)(header);
        (header.as_ref().vtable.release)(header);
    },
    // SAFETY: (HEADER-1) the reference is the waker's.
    |data| unsafe {
        let header = header_of(data);
        (header.as_ref().vtable.wake)(header);
    },
    // SAFETY: (HEADER-1) the reference goes with the waker.
    |data| unsafe {
        let header = header_of(data);
        (header.as_ref().vtable.release)(header);
    },
);

/// # Safety
/// (HEADER-1) The data are those of a cell's waker.
unsafe fn header_of(data: *const ()) -> NonNull<Header> {
    // SAFETY: by the caller's promise, so it is not null.
    unsafe { NonNull::new_unchecked(data.cast_mut()) }.cast()
}

/// What a sender does to an actor, to be done later.
#[derive(Clone, Copy)]
pub(crate) enum Deed {
    /// The message there, of the cell's type, comes into the place that was reserved for it.
    Message(NonNull<()>),
    /// The mailbox is closed.
    Close,
    /// An address is given up.
    Leave,
}

/// Does it.
pub(crate) type Delivery = Box<dyn FnOnce() + Send>;

/// What can be seen of a cell at a moment.
pub(crate) struct Look {
    /// How many messages wait in its mailbox.
    pub(crate) mailbox: usize,
    /// It is neither run nor scheduled.
    pub(crate) is_dormant: bool,
    /// Its result may still be asked for.
    pub(crate) has_handle: bool,
}

/// What can be done to a cell.
///
/// # Safety
/// The pointer is to a cell with this table that is not freed yet, and the caller has what the entry
/// names: a reference, the one runnable, or the right to the result.
pub(crate) struct VTable {
    /// Runs the cell once. The caller owns its one runnable, and keeps what its executor is of.
    pub(crate) run: unsafe fn(NonNull<Header>),
    /// Gives up the cell's one runnable: what is in the cell is cancelled on this thread.
    pub(crate) discard: unsafe fn(NonNull<Header>),
    /// Puts the cell on the queue of its executor. The caller has just made it scheduled and holds a
    /// reference.
    pub(crate) schedule: unsafe fn(NonNull<Header>),
    /// Wakes it, for anything but a message. The caller holds a reference.
    pub(crate) wake: unsafe fn(NonNull<Header>),
    /// Asks it to end by itself. The caller holds a reference.
    pub(crate) stop: unsafe fn(NonNull<Header>),
    /// Has it cancelled at its next suspension. The caller holds a reference.
    pub(crate) cancel: unsafe fn(NonNull<Header>),
    /// Drops what it was sent, after `cancel`. The caller holds a reference.
    pub(crate) refuse: unsafe fn(NonNull<Header>),
    /// Gives up a reference; the last one frees the memory.
    pub(crate) release: unsafe fn(NonNull<Header>),
    /// Moves the result to `*out` (of the cell's result type). The cell has ended; called once.
    pub(crate) take_result: unsafe fn(NonNull<Header>, out: *mut ()),
    /// Drops the result that nobody wants any more. The cell has ended; called once.
    pub(crate) drop_result: unsafe fn(NonNull<Header>),
    /// What may be known of it. The caller holds a reference, or its one runnable.
    pub(crate) info: unsafe fn(NonNull<Header>) -> TaskInfo,
    /// Tells its executor something that nobody else is there to hear of.
    pub(crate) undelivered: unsafe fn(NonNull<Header>, messages: usize),
    /// Tells its executor of a fault beside its future. The caller holds a reference.
    pub(crate) report: unsafe fn(NonNull<Header>, &Fault),
    /// Tells its executor what becomes of a message, if it is traced. The caller holds a reference.
    pub(crate) trace: unsafe fn(NonNull<Header>, MessageEvent),
    /// Returns what does this later. The caller holds a reference, and has given away what it is done with.
    pub(crate) delivery: unsafe fn(NonNull<Header>, Deed) -> Delivery,
    /// What can be seen of it at a moment. The caller holds a reference.
    pub(crate) look: unsafe fn(NonNull<Header>) -> Look,
    /// The process that has the threads of its executor. The caller holds a reference.
    pub(crate) process: unsafe fn(NonNull<Header>) -> Process,
    /// What its context reads from, of the cell's type. The caller is that context.
    pub(crate) reader: unsafe fn(NonNull<Header>) -> NonNull<()>,
}
