//! The current turn of this thread, if any: whose it is, what it may handle, and its notes.
//!
//! A note is in a thread-local, so it costs no read-modify-write and touches no cache line that
//! senders write. A turn notes that it has woken its own task. An actor's turn also notes that
//! `recv` waits, so that its end makes the actor dormant in one step. Handled messages are counted
//! here as well, from whichever context they come. Turns nest where user code drives another
//! executor. A handler that does not get the context of its actor is noted apart from the turns, so
//! that an ask finds out with one look.
//!
//! # Invariants
//! - RUN-1: a task or actor does not end before its turn does.
//! - RUN-2: a turn is the innermost of its thread from its start to its end, except for turns
//!   nested in it. So the innermost turn is on the stack.
//! - RUN-3: an actor's turn has the reader of its cell. A task's turn has none, and no context
//!   belongs to it.
#![expect(unsafe_code, reason = "pointers to the current turn; see RUN-1")]

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::task::Waker;

use super::header::Header;
use super::runnable::{cell_of, info_of_plain};
use super::waits::{NotedWait, WaitsFor, add_wait};
use crate::contain::{KeptWaker, is_in_counted_call};
use crate::info::TaskInfo;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::global::AtomicU64 as GlobalU64;
use crate::sync::{CachePadded, mutant};
use crate::tracer::{Subject, Tracer};

/// The default number of messages in a turn: worth a turn, and no burst accumulates in one actor.
pub(crate) const BATCH: u32 = 32;

/// The note that the turn has woken its own task or actor.
pub(crate) const WOKEN: u8 = 1;
/// The note that `recv` waits in this turn.
pub(crate) const RECEIVING: u8 = 2;
/// The note that the turn has handled a batch.
pub(crate) const SPENT: u8 = 4;
/// The note that replies were lost while the turn unwound.
pub(crate) const LOST: u8 = 8;
/// The note that the turn has noted what it waits for.
pub(crate) const NOTED: u8 = 16;

/// A turn in progress, on the stack of its thread.
pub(crate) struct CurrentTurn {
    /// The task or actor, as its runnable's raw pointer.
    of: NonNull<()>,
    /// The reader of the actor's context (RUN-3).
    reader: NonNull<()>,
    /// The number of [`terminations`] at the beginning of the turn, or `u64::MAX`.
    terminations: u64,
    /// The number of messages that the turn may handle.
    batch: u32,
    /// The number of additional messages that it may handle then, if nothing else waits.
    more: Cell<u32>,
    /// The number of messages that it has handled before those of which some are left.
    before: Cell<u32>,
    /// The number of messages left.
    left: Cell<u32>,
    /// A byte, since each note is stored as one: a wider load just after the store would have to
    /// wait for it.
    notes: Cell<u8>,
}

crate::sync::thread_local! {
    /// The innermost turn.
    static RUN: Cell<Option<NonNull<CurrentTurn>>> = const { Cell::new(None) };
}
crate::sync::thread_local! {
    /// The number of messages left to a thread that has no turn.
    static LEFT: Cell<u32> = const { Cell::new(BATCH) };
}
crate::sync::thread_local! {
    /// The number of the actor of whose handlers one without a context is polled here, or 0.
    static WITHOUT_CONTEXT: Cell<u64> = const { Cell::new(0) };
}

impl CurrentTurn {
    /// Creates the turn of a task, given its runnable's raw pointer.
    #[inline]
    pub(crate) fn of_task(of: NonNull<()>) -> Self {
        CurrentTurn::new(of, NonNull::dangling(), (BATCH, 0), 0)
    }

    /// Creates the turn of an actor, given its runnable's raw pointer and the reader of its
    /// context.
    ///
    /// `batches` are the number of messages that the turn may handle, and of additional ones if
    /// nothing else waits then. `terminations` is their number when the actor was known not to be
    /// terminated; if it is `None`, the actor's flags are checked before each message.
    ///
    /// # Safety
    /// (RUN-3) `reader` is the reader of the cell.
    #[inline]
    pub(crate) unsafe fn of_actor(
        of: NonNull<()>,
        reader: NonNull<()>,
        batches: (u32, u32),
        terminations: Option<u64>,
    ) -> Self {
        CurrentTurn::new(of, reader, batches, terminations.unwrap_or(u64::MAX))
    }

    #[inline]
    fn new(
        of: NonNull<()>,
        reader: NonNull<()>,
        (batch, more): (u32, u32),
        terminations: u64,
    ) -> Self {
        CurrentTurn {
            of,
            reader,
            terminations,
            batch,
            more: Cell::new(more),
            before: Cell::new(0),
            left: Cell::new(batch),
            notes: Cell::new(0),
        }
    }

    /// Begins the turn. It lasts until the guard is dropped.
    ///
    /// # Safety
    /// (RUN-1) The task or actor does not end before that. (RUN-2) The caller drops the guard, in its
    /// own call and after all guards of later turns.
    #[inline(always)]
    pub(crate) unsafe fn enter(&self) -> Entered<'_> {
        let outer = RUN.try_with(|run| run.replace(Some(NonNull::from(self))));
        Entered {
            outer: outer.unwrap_or(None),
            _turn: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn notes(&self) -> u8 {
        self.notes.get()
    }

    /// Returns the number of messages that the turn has handled.
    #[inline]
    pub(crate) fn handled(&self) -> u32 {
        let others = self.batch.wrapping_sub(self.left.get());
        self.before.get().wrapping_add(others)
    }

    pub(crate) fn reader(&self) -> NonNull<()> {
        self.reader
    }

    #[inline]
    pub(crate) fn note(&self, note: u8) {
        self.notes.set(self.notes.get() | note);
    }

    #[inline]
    fn is_undisturbed(&self) -> bool {
        self.terminations == terminations()
    }

    /// Returns whether another message may be handled, as far as that is known without a read of
    /// the actor's flags.
    #[inline]
    pub(crate) fn may_handle(&self) -> bool {
        self.left.get() > 0 && self.is_undisturbed()
    }

    /// Counts a handled message.
    #[inline]
    pub(crate) fn spend(&self) {
        spend_of(&self.left);
    }
}

/// Restores the outer turn as the innermost when it is dropped.
#[must_use = "the turn ends when this is dropped"]
pub(crate) struct Entered<'a> {
    outer: Option<NonNull<CurrentTurn>>,
    _turn: PhantomData<&'a CurrentTurn>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        let _ = RUN.try_with(|run| run.set(self.outer));
    }
}

/// Notes that a handler of this actor is polled, and that nothing receives with the actor's context
/// meanwhile. It holds until the guard is dropped.
#[inline]
pub(crate) fn poll_without_context(actor: u64) -> PollWithoutContext {
    let outer = WITHOUT_CONTEXT.try_with(|noted| noted.replace(actor));
    PollWithoutContext(outer.unwrap_or(0))
}

/// Restores what was noted before when it is dropped.
#[must_use = "the poll ends when this is dropped"]
pub(crate) struct PollWithoutContext(u64);

impl Drop for PollWithoutContext {
    #[inline]
    fn drop(&mut self) {
        let _ = WITHOUT_CONTEXT.try_with(|noted| noted.set(self.0));
    }
}

/// Returns whether a handler without a context is polled here, perhaps in a turn further out.
#[inline]
pub(crate) fn is_without_context() -> bool {
    WITHOUT_CONTEXT
        .try_with(Cell::get)
        .is_ok_and(|noted| noted != 0)
}

/// Returns whether a handler of this actor is polled without a context, in the actor's own turn.
pub(crate) fn is_own_without_context(actor: u64) -> bool {
    let noted = WITHOUT_CONTEXT.try_with(Cell::get);
    noted.is_ok_and(|noted| noted == actor) && actor_id() == actor
}

crate::sync::own_static! {
    /// The number of times that an actor of this process was killed, cancelled or stopped at once.
    /// While it does not change, a turn need not read the state word of its actor, which senders write.
    static TERMINATIONS: CachePadded<AtomicU64> = CachePadded(AtomicU64::new(0));
}

#[inline]
pub(crate) fn terminations() -> u64 {
    // Acquire pairs with the Release in `count_termination`: a termination that was counted is
    // seen.
    TERMINATIONS.0.load(Ordering::Acquire)
}

/// Counts that an actor was killed, cancelled or stopped at once.
pub(crate) fn count_termination() {
    let order = if mutant("termination_counted_relaxed") {
        Ordering::Relaxed
    } else {
        Ordering::Release
    };
    // Release pairs with the Acquire in `terminations`.
    TERMINATIONS.0.fetch_add(1, order);
}

/// Sets a note in this thread's innermost turn if that is the turn of `of`. Returns whether it is.
#[inline]
pub(crate) fn note(of: NonNull<()>, note: u8) -> bool {
    with_own(of, |run| run.note(note)).is_some()
}

/// Clears a note in this thread's innermost turn if that is the turn of `of`.
#[inline]
pub(crate) fn unnote(of: NonNull<()>, note: u8) {
    with_own(of, |run| run.notes.set(run.notes.get() & !note));
}

/// Returns the reader of the context of the actor `of`, if this thread's innermost turn is that
/// actor's.
#[inline]
pub(crate) fn reader_of(of: NonNull<()>) -> Option<NonNull<()>> {
    with_own(of, CurrentTurn::reader)
}

/// Returns whether this thread's innermost turn is that of `of`, and no actor was terminated since
/// it began.
#[inline]
pub(crate) fn is_undisturbed(of: NonNull<()>) -> bool {
    with_own(of, CurrentTurn::is_undisturbed) == Some(true)
}

/// Returns whether this thread has handled as many messages as it may at a time. The count then
/// starts again.
///
/// `is_alone` returns whether nothing else waits for the thread: if so, a turn may be extended
/// once.
#[inline]
pub(crate) fn is_spent(is_alone: impl FnOnce() -> bool) -> bool {
    let is_spent = with_left(|left, batch| {
        let is_spent = left.get() == 0;
        if is_spent {
            left.set(batch);
        }
        is_spent
    });
    if is_spent != Some(true) {
        return false;
    }
    let Some(run) = innermost() else {
        return true;
    };
    run.note(SPENT);
    run.before.set(run.before.get().wrapping_add(run.batch));
    // A turn alone on its thread goes on once, which saves a way through the queue.
    let more = run.more.replace(0);
    let goes_on = more > 0 && is_alone();
    if goes_on {
        // Some of `more` are left now, and not of another batch.
        let before = run.before.get().wrapping_add(more);
        run.before.set(before.wrapping_sub(run.batch));
        run.left.set(more);
    }
    !goes_on
}

/// Counts a handled message.
#[inline]
pub(crate) fn spend() {
    with_left(|left, _| spend_of(left));
}

/// Subtracts one message. Saturates, since a sender's waker may have handled messages meanwhile.
#[inline]
fn spend_of(left: &Cell<u32>) {
    left.set(left.get().saturating_sub(1));
}

/// Calls `f` with the number of messages left, and the number that were allowed.
#[inline(always)]
fn with_left<R>(f: impl FnOnce(&Cell<u32>, u32) -> R) -> Option<R> {
    match innermost() {
        Some(run) => Some(f(&run.left, run.batch)),
        None => LEFT.try_with(|left| f(left, BATCH)).ok(),
    }
}

/// Calls `f` with this thread's innermost turn, if that is the turn of `of`.
#[inline(always)]
pub(crate) fn with_own<R>(of: NonNull<()>, f: impl FnOnce(&CurrentTurn) -> R) -> Option<R> {
    innermost().filter(|run| run.of == of).map(f)
}

/// Returns the innermost turn. The caller uses it only within its own call, in which the turn does
/// not end.
#[inline(always)]
fn innermost<'a>() -> Option<&'a CurrentTurn> {
    let run = RUN.try_with(Cell::get).ok().flatten();
    // SAFETY: (RUN-2) the turn is in progress, further down this stack.
    run.map(|run| unsafe { run.as_ref() })
}

/// Returns the innermost turn's task or actor, as its runnable's raw pointer.
pub(crate) fn innermost_turn() -> Option<NonNull<()>> {
    innermost().map(|run| run.of)
}

/// Notes that a reply was lost in the innermost turn, and returns its actor, as its runnable's raw
/// pointer. Returns `None` if this thread runs no actor.
pub(crate) fn note_loss() -> Option<NonNull<()>> {
    let run = innermost()?;
    cell_of(run.of)?;
    run.note(LOST);
    Some(run.of)
}

/// Calls `f` with the cell of the actor that this thread runs, if it runs one.
fn with_cell<R>(f: impl FnOnce(NonNull<Header>, &Header) -> R) -> Option<R> {
    let cell = cell_of(innermost()?.of)?;
    // SAFETY: (RUN-1) this is its turn.
    Some(f(cell, unsafe { cell.as_ref() }))
}

/// Returns the actor whose turn this thread runs, or `None` outside turns of actors.
///
/// It is for code that does not get the actor's [`Context`](crate::Context), such as a panic hook
/// or a logger. A drop of an actor's state after its last turn is outside its turns, and so is a
/// job of [`unblock`](crate::unblock()).
///
/// ```
/// use greenroom::{Context, current_actor, spawn};
///
/// fn log(text: &str) -> String {
///     current_actor().map_or_else(|| text.into(), |actor| format!("{actor}: {text}"))
/// }
///
/// async fn clerk(_cx: Context<()>) -> String {
///     log("opens")
/// }
///
/// greenroom::run(async {
///     let clerk = spawn!(clerk(_), name = "clerk");
///     let id = clerk.id();
///     assert_eq!(clerk.join().await.unwrap(), format!("\"clerk\" #{id}: opens"));
///     assert_eq!(log("closes"), "closes");
/// });
/// ```
///
/// The chapter on [panic hooks](crate::docs::guide::panic_hooks) has a program.
pub fn current_actor() -> Option<TaskInfo> {
    // SAFETY: (RUN-1) this is its turn.
    with_cell(|cell, header| unsafe { (header.vtable.info)(cell) })
}

/// Returns whether greenroom catches a panic of the code that this thread runs.
///
/// The panic hook of the process runs before a panic is caught, also if it then ends nothing but a
/// task. A hook asks this to tell such a panic from one that ends the program:
///
/// | it is | in |
/// |---|---|
/// | true | a turn of a task or an actor, also while that waits in `block_on` |
/// | true | anything else on a thread that greenroom has started, such as a job of [`unblock`](crate::unblock()) or of a [market](crate::market), or a call of a [`Hosted`](crate::Hosted) value |
/// | true | what greenroom calls on a thread of the program, and catches: drops of messages, results and state, and functions such as [`on_fault`](crate::Builder::on_fault) |
/// | true | a run of a [simulation](crate::sim), whose panic is its failure |
/// | false | the future of [`block_on`](crate::Runtime::block_on) and [`run`](crate::run()) on a thread of the program, outside a turn: its panic goes on to the caller |
/// | false | a function of [`Address::map`](crate::Address::map) there: its panic goes on to the sender |
/// | false | the function of a waker there, although greenroom catches its panic |
/// | false | anything else on a thread of the program |
///
/// A waker is called too often to note that, and that of an executor does not panic.
///
/// Code of the program may catch a panic before greenroom does. Two kinds of panics abort the
/// process, although this is true: a second one, in a drop while the first one unwinds, and one in
/// the drop of a thread-local. In a program that is built with `panic = "abort"` this is always
/// false.
///
/// ```
/// use greenroom::is_contained;
///
/// greenroom::run(async {
///     assert!(!is_contained()); // a panic here would end the program
///     assert!(greenroom::spawn(async { is_contained() }).await);
/// });
/// ```
///
/// The chapter on [panic hooks](crate::docs::guide::panic_hooks) has a program.
pub fn is_contained() -> bool {
    cfg!(panic = "unwind") && (innermost().is_some() || is_in_counted_call())
}

/// Returns a waker of the actor that this thread runs, if any.
pub(crate) fn actor_waker() -> Option<KeptWaker> {
    with_cell(|cell, _| {
        // SAFETY: (RUN-1) this is its turn.
        let waker = unsafe { Header::waker(cell) };
        KeptWaker::new(&waker)
    })
}

/// Returns the number of the actor that this thread runs, or 0.
pub(crate) fn actor_id() -> u64 {
    with_cell(|_, header| header.id()).unwrap_or(0)
}

/// Returns what events of this thread are about.
pub(crate) fn subject() -> Subject {
    let Some(of) = innermost_turn() else {
        return Subject::default();
    };
    // SAFETY: (RUN-1) this is its turn.
    unsafe {
        match cell_of(of) {
            Some(cell) => (cell.as_ref().vtable.subject)(cell),
            None => Subject::of_task(&info_of_plain(of)),
        }
    }
}

/// Calls `f` with the tracer of the actor that this thread runs. Returns whether there is one.
pub(crate) fn with_tracer(f: &mut dyn FnMut(&dyn Tracer)) -> bool {
    // SAFETY: (RUN-1) this is its turn.
    let tracer = with_cell(|cell, _| unsafe { Header::hooks(cell) }.tracer()).flatten();
    tracer.inspect(|tracer| f(*tracer)).is_some()
}

/// Whether waits are noted in this process, as a number.
static NOTES_WAITS: GlobalU64 = GlobalU64::new(0);

/// Notes waits from now on.
pub(crate) fn note_waits() {
    // Relaxed: what begins in such a runtime comes after this. It publishes nothing.
    NOTES_WAITS.store(1, Ordering::Relaxed);
}

/// Notes that the task of this waker waits for an actor. The caller has left exactly one waker for
/// this wait.
#[inline]
pub(crate) fn note_wait_for(waker: &Waker, for_what: WaitsFor, to: impl FnOnce() -> u64) {
    // Relaxed: as above.
    if NOTES_WAITS.load(Ordering::Relaxed) != 0 {
        note_wait_of_turn(waker, NotedWait { to: to(), for_what });
    }
}

#[cold]
#[inline(never)]
fn note_wait_of_turn(waker: &Waker, wait: NotedWait) {
    // What an earlier turn has left here may be of a task whose memory another one has now.
    let first = innermost().filter(|run| run.notes() & NOTED == 0);
    first.inspect(|run| run.note(NOTED));
    add_wait(waker, wait, first.is_some());
}
