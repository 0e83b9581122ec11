//! The header of every cell: its reference count, and the table of operations that do not know its
//! types.
//!
//! A cell is one allocation with a future and everything that belongs to it. The executor runs a
//! cell through this table and keeps a list of live cells. It never learns what a cell is for.
//!
//! # Invariants
//! - HEADER-1: the data of a cell's waker is the pointer to its header. The waker owns one
//!   reference.
//! - HEADER-2: a holder of a reference may use the cell. The release of the last one frees it.
#![expect(
    unsafe_code,
    reason = "a waker is a counted pointer; see HEADER-1, HEADER-2"
)]

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::hooks::TaskHooks;
use super::key::LiveIndex;
use super::sampled::SampledTurns;
use crate::info::{TaskInfo, TypeNames};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{COUNT_MAX, acquire, mutant};
use crate::tracer::Subject;

/// The part of a cell that code without its types uses.
#[repr(C)]
pub struct Header {
    /// The first field, next to the mailbox's state word: every sender reads it.
    label: Label,
    pub(crate) vtable: &'static VTable,
    /// The number of references; the thread that releases the last one frees the cell.
    pub(crate) refs: AtomicU32,
    /// The cell's index in the list of live cells; written once, before the cell can be run.
    pub(crate) live_index: Cell<Option<LiveIndex>>,
}

/// A number that no other cell of this process has, its marks, and a priority: 51, 5 and 8 bits.
#[derive(Clone, Copy)]
pub(crate) struct Label(u64);

impl Label {
    /// The mark of a cell whose executor traces each message: in a simulation, or for a tracer of the
    /// user. The latter alone also sets `Flags::TRACED`.
    pub(crate) const TRACED: u8 = 1;
    /// The mark of a cell whose executor knows where it was spawned.
    pub(crate) const LOCATED: u8 = 2;
    /// The mark of a cell whose executor notes what it waits for.
    pub(crate) const NOTED: u8 = 4;
    /// The mark of a cell whose mailbox conflates. The other marks are those of its executor.
    pub(crate) const CONFLATES: u8 = 8;
    /// The mark of a cell whose executor does not count what it does.
    pub(crate) const UNCOUNTED: u8 = 16;

    pub(crate) fn new(id: u64, priority: u8, marks: u8) -> Self {
        Label((id << 13) | (u64::from(marks) << 8) | u64::from(priority))
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
        self.label.0 >> 13
    }

    /// Returns the priority for the scheduling policy; 0 is the lowest.
    pub(crate) fn priority(&self) -> u8 {
        self.label.0 as u8
    }

    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.label.0 & (u64::from(Label::TRACED) << 8) != 0
    }

    /// Returns whether the mailbox conflates.
    #[inline]
    pub(crate) fn conflates(&self) -> bool {
        self.label.0 & (u64::from(Label::CONFLATES) << 8) != 0
    }

    /// Returns whether messages are traced, or the mailbox conflates.
    #[inline]
    pub(crate) fn is_traced_or_conflates(&self) -> bool {
        self.label.0 & (u64::from(Label::TRACED | Label::CONFLATES) << 8) != 0
    }

    /// Returns whether the executor traces the cell, or knows where it was spawned.
    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        self.label.0 & (u64::from(Label::TRACED | Label::LOCATED) << 8) != 0
    }

    /// Returns whether the executor notes what the cell waits for.
    #[inline]
    pub(crate) fn is_noted(&self) -> bool {
        self.label.0 & (u64::from(Label::NOTED) << 8) != 0
    }

    /// Returns whether turns are counted.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        self.label.0 & (u64::from(Label::UNCOUNTED) << 8) == 0
    }

    /// Returns whether the end of a turn does more or less than to count it.
    #[inline]
    pub(crate) fn is_noted_or_uncounted(&self) -> bool {
        self.label.0 & (u64::from(Label::NOTED | Label::UNCOUNTED) << 8) != 0
    }

    /// Adds a reference. The caller holds one, or the lock of the list that contains the cell.
    pub(crate) fn retain(&self) {
        // Relaxed: the caller's reference, or the list, keeps the cell alive.
        if self.refs.fetch_add(1, Ordering::Relaxed) > COUNT_MAX {
            std::process::abort();
        }
    }

    /// Releases a reference; the last one frees the cell.
    ///
    /// # Safety
    /// The caller holds the reference, and does not use the cell afterwards.
    pub(crate) unsafe fn release(cell: NonNull<Header>) {
        // SAFETY: (HEADER-2) the caller's reference.
        let header = unsafe { cell.as_ref() };
        let (refs, free) = (&header.refs, header.vtable.free);
        let order = if mutant("cell_released_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the fence below: every use of the cell happens before it is freed.
        if refs.fetch_sub(1, order) == 1 {
            if !mutant("cell_freed_without_fence") {
                acquire(|order| refs.load(order));
            }
            // SAFETY: (HEADER-2) it was the last reference.
            unsafe { free(cell) };
        }
    }

    /// Returns the hooks of the cell's executor.
    ///
    /// # Safety
    /// The caller holds a reference during `'a`, or the cell's run.
    pub(crate) unsafe fn hooks<'a>(cell: NonNull<Header>) -> &'a dyn TaskHooks {
        // SAFETY: (HEADER-2) the reference keeps the cell, and with it the executor.
        unsafe { (cell.as_ref().vtable.hooks)(cell).as_ref() }
    }

    /// Returns a waker of the cell that owns no reference.
    ///
    /// # Safety
    /// It is used only while the cell is alive, and never dropped.
    pub(crate) unsafe fn waker(cell: NonNull<Header>) -> ManuallyDrop<Waker> {
        let raw = RawWaker::new(cell.as_ptr().cast(), &WAKER);
        // SAFETY: the table keeps the waker contract; by the caller's promise no reference is
        // needed.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
    }

    /// Returns whether the waker belongs to this cell.
    #[inline]
    pub(crate) fn is_woken_by(cell: NonNull<Header>, waker: &Waker) -> bool {
        std::ptr::eq(waker.data(), cell.as_ptr().cast()) && std::ptr::eq(waker.vtable(), &WAKER)
    }
}

/// The table of every cell's waker. A static, since wakers are compared by its address: a constant
/// may have several.
static WAKER: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: (HEADER-1) the waker's reference.
        unsafe { header_of(data).as_ref() }.retain();
        RawWaker::new(data, &WAKER)
    },
    // SAFETY: (HEADER-1) the waker's reference, which is released with the waker.
    |data| unsafe {
        let header = header_of(data);
        (header.as_ref().vtable.wake)(header);
        Header::release(header);
    },
    // SAFETY: (HEADER-1) the waker's reference.
    |data| unsafe {
        let header = header_of(data);
        (header.as_ref().vtable.wake)(header);
    },
    // SAFETY: (HEADER-1) the waker's reference, which is released with the waker.
    |data| unsafe {
        let header = header_of(data);
        Header::release(header);
    },
);

/// Returns the header that a waker's data points to.
///
/// # Safety
/// (HEADER-1) `data` is the data of a cell's waker.
unsafe fn header_of(data: *const ()) -> NonNull<Header> {
    // SAFETY: by the caller's promise, so it is not null.
    unsafe { NonNull::new_unchecked(data.cast_mut()) }.cast()
}

/// A deferred action of a sender on an actor.
#[derive(Clone, Copy)]
pub(crate) enum SenderAction {
    /// Puts the message behind the pointer, of the cell's message type, with the permit reserved for
    /// it.
    Message(NonNull<()>),
    /// The same for an urgent message.
    Urgent(NonNull<()>),
    /// Closes the mailbox, so that the actor ends by itself.
    Stop,
    /// Drops an address.
    Leave,
}

/// A closure that carries out a [`SenderAction`].
pub(crate) type Delivery = Box<dyn FnOnce() + Send>;

/// How a cell is ended from outside.
#[derive(Clone, Copy)]
pub(crate) enum Ending {
    /// It is asked to end by itself.
    Stop,
    /// It is cancelled at its next suspension.
    Cancel,
    /// After `Cancel`: its messages are dropped, since it may never be suspended.
    Refuse,
}

/// A snapshot of a cell.
pub(crate) struct Look {
    /// The number of messages in the mailbox.
    pub(crate) mailbox: usize,
    /// The cell neither runs nor is scheduled.
    pub(crate) is_dormant: bool,
    /// It waits for a message, perhaps among other things.
    pub(crate) is_receiving: bool,
    /// The result may still be requested.
    pub(crate) has_handle: bool,
    /// The number of addresses.
    pub(crate) addresses: usize,
    /// The number of incarnations that have ended.
    pub(crate) incarnation: u64,
    /// The number of messages that were displaced.
    pub(crate) displaced: u64,
    /// The numbers of turns, as the cell counts them, and of messages. Zero if they are not counted.
    pub(crate) turns: u64,
    pub(crate) messages: u64,
    /// The largest number of messages that were in the mailbox.
    pub(crate) highest: usize,
    pub(crate) sampled: SampledTurns,
    /// The capacity of the mailbox, if it has one.
    pub(crate) capacity: Option<usize>,
    /// The text of the last panic, and the name of the state, if they were noted.
    pub(crate) fault: Option<Arc<str>>,
    pub(crate) state: Option<&'static str>,
    /// The number of the cell that owns this one.
    pub(crate) parent: Option<u64>,
    /// The name of the only thread that runs it, if it is bound to one.
    pub(crate) thread: Option<Arc<str>>,
    /// The number of references besides those of the cell, its handle, its addresses and its
    /// context: wakers and weak addresses, for example. One more if another task receives, since
    /// that one may have any wakers.
    pub(crate) others: u32,
}

impl Look {
    /// Adds the samples that the list of live cells has of the cell, and how often its count of turns
    /// has begun anew.
    pub(crate) fn add_samples(&mut self, samples: Option<(SampledTurns, u32)>) {
        if let Some((sampled, anew)) = samples {
            self.turns = self.turns.wrapping_add(u64::from(anew) << 32);
            self.sampled = sampled;
        }
    }
}

/// Returns whether this waker wakes a cell.
#[inline]
pub(super) fn is_waker(waker: &Waker) -> bool {
    std::ptr::eq(waker.vtable(), &WAKER)
}

/// Returns a snapshot of the cell that this waker wakes, or `None` if it wakes something else.
pub(crate) fn look_at(waker: &Waker) -> Option<Look> {
    if !is_waker(waker) {
        return None;
    }
    // SAFETY: (HEADER-1) the waker's reference.
    unsafe {
        let header = header_of(waker.data());
        Some((header.as_ref().vtable.look)(header))
    }
}

/// The operations on a cell.
///
/// # Safety
/// The pointer is to a cell with this table that was not freed. The caller owns what the entry
/// names: a reference, the one runnable, or the right to the result.
pub(crate) struct VTable {
    /// Runs one turn of the cell. The caller owns its one runnable, and keeps the executor alive
    /// (EXECUTOR-1).
    pub(crate) run: unsafe fn(NonNull<Header>),
    /// Gives up the cell's one runnable: cancels the cell on this thread.
    pub(crate) discard: unsafe fn(NonNull<Header>),
    /// Puts the cell on the queue of its executor. The caller has just made it scheduled and holds
    /// a reference.
    pub(crate) schedule: unsafe fn(NonNull<Header>),
    /// Wakes the cell for any reason but a message. The caller holds a reference.
    pub(crate) wake: unsafe fn(NonNull<Header>),
    /// Ends the cell so. The caller holds a reference.
    pub(crate) end: unsafe fn(NonNull<Header>, Ending),
    /// Frees the cell. The last reference was released.
    pub(crate) free: unsafe fn(NonNull<Header>),
    /// Moves the result to `out`, an `Option` of the cell's result type, or drops it if `out` is
    /// null. The cell has ended; called once.
    pub(crate) take_result: unsafe fn(NonNull<Header>, out: *mut ()),
    /// Returns the cell's identity. The caller holds a reference, or its one runnable.
    pub(crate) info: unsafe fn(NonNull<Header>) -> TaskInfo,
    /// Returns the names of the cell's types. An actor without a name is called after them.
    pub(crate) types: fn() -> TypeNames,
    /// Returns what events of this cell are about. The caller holds a reference.
    pub(crate) subject: unsafe fn(NonNull<Header>) -> Subject,
    /// Returns a closure that carries out the action later. The caller holds a reference, and has
    /// given up what the action consumes.
    pub(crate) delivery: unsafe fn(NonNull<Header>, SenderAction) -> Delivery,
    /// Returns a snapshot of the cell. The caller holds a reference.
    pub(crate) look: unsafe fn(NonNull<Header>) -> Look,
    /// Returns the hooks of the cell's executor, for as long as a reference is held. The caller holds
    /// one.
    pub(crate) hooks: unsafe fn(NonNull<Header>) -> NonNull<dyn TaskHooks>,
    /// Returns the reader of the cell's context, of the cell's type. The caller is that context.
    pub(crate) reader: unsafe fn(NonNull<Header>) -> NonNull<()>,
}
