//! One pointer to something that can be run once: all that an executor ever handles.
//!
//! There are three kinds: a plain task (async-task's runnable); a *cell*, anything that begins with a
//! [`Header`], such as an actor; and a job, which never waits. The pointer's lowest bits tell them apart.
//!
//! # Invariants
//! - R1: a `Runnable` is the only one of its task or cell; it is run or discarded exactly once.
//! - R2: async-task's headers, [`Header`] and [`Table`] hold pointers, so bits 0 and 1 are free.
//! - R3: a cell or job stays allocated while a runnable of it exists.
#![expect(
    unsafe_code,
    reason = "the kind is packed into the pointer; see R1 to R3"
)]

use std::cell::Cell;
use std::ptr::NonNull;
use std::task::Waker;

use super::header::Header;
use super::info::TaskInfo;
use super::job::Table;

const CELL: usize = 1;
const JOB: usize = 2;
const KIND: usize = CELL | JOB;

/// A task or actor that is ready to run, once: what a [policy](crate::policy::Policy) handles.
///
/// A call of a [`Hosted`](crate::Hosted) value is a task, too. Dropping it cancels the task or actor instead.
pub struct Runnable(NonNull<()>);

// SAFETY: (R1) the one owner of the right to run. A task or cell whose future is `!Send` is given
// only to executors that keep it on its thread; a job is `Send`.
unsafe impl Send for Runnable {}

impl Runnable {
    pub(crate) fn from_task(task: async_task::Runnable) -> Self {
        let raw = task.into_raw();
        debug_assert_eq!(raw.addr().get() & KIND, 0);
        Runnable(raw)
    }

    /// # Safety
    /// The caller owns the one right to run the cell (R1) and the cell lives until then (R3).
    pub(crate) unsafe fn from_cell(cell: NonNull<Header>) -> Self {
        Runnable(cell.cast::<()>().map_addr(|addr| addr | CELL))
    }

    /// # Safety
    /// The caller owns the one right to run the job (R1), which lives until then (R3).
    pub(crate) unsafe fn from_job(job: NonNull<Table>) -> Self {
        Runnable(job.cast::<()>().map_addr(|addr| addr | JOB))
    }

    /// Runs it once: the future is polled on this thread.
    pub(crate) fn run(self) {
        match self.open() {
            Kind::Task(task) => {
                task.run();
            }
            // SAFETY: (R1) `self` is consumed; (R3) the cell is alive.
            Kind::Cell(cell) => unsafe { (cell.as_ref().vtable.run)(cell) },
            // SAFETY: as for a cell.
            Kind::Job(job) => unsafe { (job.as_ref().run)(job) },
        }
    }

    /// Which task or actor it is.
    pub fn info(&self) -> TaskInfo {
        match self.cell() {
            None => TaskInfo::of_task(self.key()),
            // SAFETY: (R3) the cell is alive.
            Some(cell) => unsafe { (cell.as_ref().vtable.info)(cell) },
        }
    }

    /// The priority that an actor was given; 0, the lowest, by default and for a plain task.
    pub fn priority(&self) -> u8 {
        // SAFETY: (R3) the cell is alive.
        self.cell()
            .map_or(0, |cell| unsafe { cell.as_ref() }.priority)
    }

    /// The cell, if it is one.
    fn cell(&self) -> Option<NonNull<Header>> {
        NonNull::new(without(self.0, CELL)).filter(|_| self.key().is_cell())
    }

    pub(crate) fn key(&self) -> Key {
        Key(self.0.addr().get())
    }

    pub(crate) fn into_raw(self) -> NonNull<()> {
        std::mem::ManuallyDrop::new(self).0
    }

    /// # Safety
    /// `raw` came from [`Runnable::into_raw`] and is turned back once.
    pub(crate) unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Runnable(raw)
    }

    fn open(self) -> Kind {
        let raw = self.into_raw();
        match raw.addr().get() & KIND {
            // SAFETY: (R2) the bit was added to a non-null pointer.
            CELL => Kind::Cell(unsafe { NonNull::new_unchecked(without(raw, CELL)) }),
            // SAFETY: as above.
            JOB => Kind::Job(unsafe { NonNull::new_unchecked(without(raw, JOB)) }),
            // SAFETY: (R1, R2) without a bit it came from `async_task::Runnable::into_raw`.
            _ => Kind::Task(unsafe { async_task::Runnable::from_raw(raw) }),
        }
    }
}

/// The pointer that `kind` was added to.
fn without<T>(raw: NonNull<()>, kind: usize) -> *mut T {
    raw.as_ptr().map_addr(|addr| addr & !kind).cast()
}

/// What identifies a task or cell while it lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(usize);

impl Key {
    pub(crate) fn of_cell(cell: NonNull<Header>) -> Self {
        Key(cell.addr().get() | CELL)
    }

    /// Of the task that this waker, async-task's own, would wake.
    pub(crate) fn of_task(waker: &Waker) -> Self {
        Key(waker.data().addr())
    }

    /// It tells what it names from all of its kind that live at the same time.
    pub(crate) fn number(self) -> u64 {
        self.0 as u64
    }

    /// Of the plain task that is dropped on this thread instead of being run, if any.
    pub(crate) fn dropped() -> Option<Key> {
        DROPPED.try_with(Cell::get).ok().flatten()
    }

    pub(crate) fn is_cell(self) -> bool {
        self.0 & CELL != 0
    }
}

crate::sync::thread_local! {
    static DROPPED: Cell<Option<Key>> = const { Cell::new(None) };
}

enum Kind {
    Task(async_task::Runnable),
    Cell(NonNull<Header>),
    Job(NonNull<Table>),
}

impl std::fmt::Debug for Runnable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Runnable").field(&self.info()).finish()
    }
}

impl Drop for Runnable {
    fn drop(&mut self) {
        let kind = match Runnable(self.0).open() {
            // SAFETY: (R1) dropped once; (R3) the cell is alive.
            Kind::Cell(cell) => return unsafe { (cell.as_ref().vtable.discard)(cell) },
            kind => kind,
        };
        let outer = DROPPED.try_with(|dropped| dropped.replace(Some(self.key())));
        match kind {
            Kind::Job(job) => {
                // SAFETY: as for a cell.
                unsafe { (job.as_ref().discard)(job) };
            }
            task => drop(task),
        }
        let _ = DROPPED.try_with(|dropped| dropped.set(outer.ok().flatten()));
    }
}
