//! The core of an actor's cell: the part that addresses and the context see.
//!
//! It knows the message type, but neither the future nor the executor, which it reaches through the
//! header's table. The invariants are those of [`cell`](super::cell).
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see CELL-1 to CELL-4 in cell.rs"
)]

use crate::sync::global::{AtomicU64, Ordering};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::{self, NonNull};
use std::task::{Poll, Waker};

use super::family::owner_of;
use crate::contain::Panic;
use crate::error::{Fault, FaultyPart, TellError, UnhandledFault};
use crate::mailbox::{Flags, LabelFn, Mailbox, MailboxOptions, Wake};
use crate::sync::Process;
use crate::task::{
    Header, Label, Look, MessageEvent, MessageInfo, SampledTurns, TaskHooks, TaskInfo, VTable,
    as_run, run,
};
use crate::tracer::Tracer;

/// The part of a cell that depends on its message type alone.
///
/// Senders write to its first bytes. An actor that receives a batch reads the end of the cell, and
/// the parts of its future that are not arguments. Those are a cache line away from the bytes that
/// senders write. While it receives a batch it does not read the core.
#[repr(C)]
pub(crate) struct Core<M> {
    pub(super) mailbox: Mailbox<M>,
    pub(super) header: Header,
}

/// The options of an actor that its cell needs.
pub(super) struct ActorOptions<M> {
    pub(super) mailbox: MailboxOptions<M>,
    pub(super) priority: u8,
    /// The function that names a message in a trace, which only a traced actor keeps.
    pub(super) label: Option<LabelFn<M>>,
}

impl<M> Core<M> {
    #[inline(always)]
    pub(super) fn new(vtable: &'static VTable, marks: u8, options: ActorOptions<M>) -> Self {
        let conflates = u8::from(options.mailbox.conflates()) * Label::CONFLATES;
        let label = Label::new(next_id(), options.priority, marks | conflates);
        Core {
            mailbox: Mailbox::new(options.mailbox),
            // Held by the addresses, the handle, and the cell itself (CELL-4).
            header: Header::new(vtable, label, 3),
        }
    }

    /// Returns the core with this header.
    ///
    /// # Safety
    /// (CELL-1) It is the header of an actor's cell with this message type.
    pub(super) unsafe fn of(header: NonNull<Header>) -> NonNull<Self> {
        // SAFETY: (CELL-1) the header has this offset in the cell.
        unsafe { header.byte_sub(offset_of!(Self, header)).cast() }
    }

    /// Returns the header of a core.
    ///
    /// # Safety
    /// The core is alive.
    pub(super) unsafe fn header_of(core: NonNull<Self>) -> NonNull<Header> {
        // SAFETY: (CELL-1) the header has this offset in the cell.
        unsafe { core.byte_add(offset_of!(Self, header)).cast() }
    }

    /// Gives up a reference. The last one frees the cell.
    ///
    /// # Safety
    /// The reference is the caller's, and the caller does not use `core` afterwards.
    pub(super) unsafe fn release(core: NonNull<Core<M>>) {
        // SAFETY: (CELL-1, CELL-2) the reference is held until here.
        unsafe { Header::release(Self::header_of(core)) };
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.mailbox.name().map(|name| &***name)
    }

    pub(super) fn info(&self) -> TaskInfo {
        let (header, name) = (&self.header, self.mailbox.name().cloned());
        TaskInfo::of_actor(header.id(), name, header.vtable.types, header.priority())
    }

    pub(super) fn look(&self) -> Look {
        // Acquire pairs with the Release of a waker that is dropped after a wake-up: then the flags
        // say so, too.
        let refs = self.header.refs.load(Ordering::Acquire);
        let flags = self.mailbox.state.peek();
        let addresses = self.mailbox.addresses();
        let has_context = !flags.has(Flags::CLOSED);
        let has_handle = flags.has(Flags::JOINABLE);
        // Its only loan has a reference, such as that of the supervision of this actor's restarts.
        let has_loan = flags.has(Flags::LENT) && !flags.has(Flags::RELENT);
        let known_extras = self.mailbox.known_extras();
        let known = [addresses > 0, has_handle, has_context, has_loan].map(u32::from);
        Look {
            mailbox: self.mailbox.len(),
            is_dormant: !flags.has(Flags::ACTIVE),
            is_receiving: flags.has(Flags::RECEIVING.or(Flags::FOREIGN)),
            has_handle,
            addresses,
            incarnation: known_extras.incarnations,
            displaced: known_extras.displaced,
            turns: 0,
            messages: 0,
            highest: 0,
            sampled: SampledTurns::default(),
            capacity: known_extras.capacity,
            fault: known_extras.panic,
            state: known_extras.state,
            parent: owner_of(self.header.id()),
            thread: None,
            others: refs.saturating_sub(1 + known.iter().sum::<u32>())
                + u32::from(flags.has(Flags::FOREIGN)),
        }
    }

    pub(super) fn retain(&self) {
        self.header.retain();
    }

    /// Returns whether `tell` and `send` refuse messages.
    pub(super) fn is_closed(&self) -> bool {
        self.mailbox.state.peek().has(Flags::CLOSED)
    }
}

/// A core that is borrowed from a counted reference, as a pointer that is valid for the whole cell.
///
/// Functions that reach beyond the core take a `CoreRef` by value. A reference to the core is valid for
/// the core alone (CELL-1), and no function may free the target of a reference argument.
pub(super) struct CoreRef<'a, M> {
    core: NonNull<Core<M>>,
    _held: PhantomData<&'a Core<M>>,
}

impl<M> Clone for CoreRef<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for CoreRef<'_, M> {}

impl<M> Deref for CoreRef<'_, M> {
    type Target = Core<M>;

    fn deref(&self) -> &Core<M> {
        self.core()
    }
}

// SAFETY: (CELL-2) the core is reference-counted and thread-safe.
unsafe impl<M: Send> Send for CoreRef<'_, M> {}
// SAFETY: (CELL-2) the core is reference-counted and thread-safe.
unsafe impl<M: Send> Sync for CoreRef<'_, M> {}

impl<'a, M> CoreRef<'a, M> {
    /// Creates a `CoreRef` from a pointer.
    ///
    /// # Safety
    /// (CELL-1) The pointer is valid for the whole cell; (CELL-2) a reference is held during `'a`.
    pub(super) unsafe fn new(core: NonNull<Core<M>>) -> Self {
        CoreRef {
            core,
            _held: PhantomData,
        }
    }

    pub(super) fn pointer(self) -> NonNull<Core<M>> {
        self.core
    }

    pub(super) fn core(self) -> &'a Core<M> {
        // SAFETY: (CELL-2) as promised in `new`.
        unsafe { self.core.as_ref() }
    }

    pub(super) fn header(self) -> NonNull<Header> {
        // SAFETY: (CELL-2) as promised in `new`.
        unsafe { Core::header_of(self.core) }
    }

    pub(super) fn as_run(self) -> NonNull<()> {
        as_run(self.header())
    }

    /// Notes in the current run that `recv` waits, so that the end of the run records it in one
    /// step. Returns false if `waker` is not this actor's, or if this thread does not run the
    /// actor.
    pub(super) fn receive_in_turn(self, waker: &Waker) -> bool {
        self.is_own(waker) && run::note(self.as_run(), run::RECEIVING)
    }

    /// Returns whether the waker wakes this actor.
    #[inline]
    pub(super) fn is_own(self, waker: &Waker) -> bool {
        Header::is_woken_by(self.header(), waker)
    }

    /// Ends the wait of `recv` in the current run. Returns whether the mailbox has noted it.
    #[inline]
    pub(super) fn stop_receiving(self) -> bool {
        run::unnote(self.as_run(), run::RECEIVING);
        let noted = Flags::RECEIVING.or(Flags::FOREIGN);
        self.mailbox.state.peek().has(noted)
    }

    /// Returns whether the actor was killed or cancelled, and so handles no more messages.
    #[inline]
    pub(super) fn is_terminated(self) -> bool {
        !run::is_undisturbed(self.as_run()) && self.mailbox.state.termination().is_some()
    }

    /// Wakes the tasks that a step of the mailbox has to wake.
    #[inline]
    pub(super) fn pass_on(self, wake: Wake) {
        if wake == Wake::Nobody {
            return;
        }
        if wake != Wake::Foreign {
            // SAFETY: the actor was made scheduled just now; (CELL-2) a reference is held.
            unsafe { (self.header.vtable.schedule)(self.header()) };
        }
        if wake != Wake::Actor {
            self.mailbox.wake_receiver();
        }
    }

    // Not inlined: so the argument is in memory, and the mailbox copies it from there.
    #[inline(never)]
    pub(super) fn tell(self, message: M) -> Result<(), TellError<M>> {
        if self.header.is_traced_or_conflates() {
            return self.tell_specially(message);
        }
        // SAFETY: an accepted message is forgotten in the next line.
        match unsafe { self.mailbox.tell_from(&message) } {
            Ok(wake) => {
                std::mem::forget(message);
                self.pass_on(wake);
                Ok(())
            }
            Err(why) => self.tell_refused(why, message),
        }
    }

    /// Returns the hooks that observe the actor and decide about it.
    fn hooks(self) -> &'a dyn TaskHooks {
        // SAFETY: (CELL-2) a reference is held.
        unsafe { Header::hooks(self.header()) }
    }

    /// Notes an event of a message, if the executor traces messages.
    pub(super) fn trace(self, event: impl FnOnce() -> MessageEvent) {
        if self.header.is_traced() {
            self.hooks().trace(self.info(), event());
        }
    }

    /// Returns the user's tracer, if there is one.
    pub(super) fn tracer(self) -> Option<&'a dyn Tracer> {
        self.hooks().tracer()
    }

    /// Reports the outcome of a poll of `send`. `message` is set on the first poll. `before` is the
    /// key of the entry if the sender waited before this poll, `now` if it waits after it.
    pub(super) fn trace_send<E>(
        self,
        message: Option<MessageInfo>,
        before: Option<usize>,
        now: Option<usize>,
        sent: &Poll<Result<Wake, E>>,
    ) {
        let message = message.unwrap_or(MessageInfo::of::<M>());
        match (before, now, sent) {
            (None, _, Poll::Ready(Ok(_))) => self.trace(|| MessageEvent::Sent(message)),
            (None, Some(key), Poll::Pending) => {
                self.trace(|| MessageEvent::AwaitsRoom(message, key))
            }
            (Some(key), _, Poll::Ready(Ok(_))) => self.trace(|| MessageEvent::Accepted(key)),
            (Some(key), _, Poll::Ready(Err(_))) => self.trace(|| MessageEvent::GivenUp(key)),
            _ => {}
        }
    }

    /// Returns the process that owns the threads of the actor's executor.
    pub(super) fn process(self) -> Process {
        Process::of(|| self.hooks().process())
    }

    /// Takes the actor's result.
    ///
    /// # Safety
    /// The actor has ended, its result has this type, and the caller alone may take the result,
    /// once.
    pub(super) unsafe fn take_result<T>(self) -> Result<T, Fault> {
        let mut result: Option<Result<T, Fault>> = None;
        // SAFETY: (CELL-3) guaranteed by the caller.
        unsafe { (self.header.vtable.take_result)(self.header(), (&raw mut result).cast()) };
        result.expect("the result is kept until it is taken")
    }

    /// Drops the actor's result.
    ///
    /// # Safety
    /// As in `take_result`.
    pub(super) unsafe fn drop_result(self) {
        // SAFETY: (CELL-3) guaranteed by the caller.
        unsafe { (self.header.vtable.take_result)(self.header(), ptr::null_mut()) };
    }

    /// Reports to the executor how many accepted messages were not handled.
    pub(super) fn count_undelivered(self, messages: usize) {
        self.hooks().undelivered(messages);
    }

    /// Notifies the executor of a restart.
    #[cold]
    pub(super) fn restarted(self, incarnation: u64, fault: Option<&Fault>) {
        if self.header.is_traced() {
            self.begins_anew(incarnation, fault);
        }
        self.hooks().restarted(&self.info(), incarnation, fault);
    }

    /// Reports a panic outside the actor's future to the executor.
    pub(super) fn report(self, panic: Panic, part: FaultyPart) {
        let fault = Fault::Panicked(panic);
        self.faulted(&fault, part);
        let info = self.info();
        let unhandled = UnhandledFault::of_actor(&info, &fault, Some(part));
        self.hooks().report(&unhandled);
    }

    // -- counts -------------------------------------------------------------------------------

    /// Counts an address that the context has made, or uncounts it.
    #[cold]
    pub(super) fn count_own_address(self, is_new: bool) {
        self.hooks().own_address(self.header.id(), is_new);
    }

    /// Counts another address, even if there was none. Returns false if the mailbox is closed and
    /// `even_closed` is false.
    pub(super) fn revive_sender(self, even_closed: bool) -> bool {
        let revived = self.mailbox.revive_sender(even_closed);
        if revived == Some(true) {
            // The addresses hold one reference together, from the first one on.
            self.retain();
        }
        revived.is_some()
    }

    /// Uncounts an address. In a simulation this takes effect after the earlier actions of the
    /// turn.
    ///
    /// # Safety
    /// The caller gives up that address.
    pub(super) unsafe fn remove_sender(self) {
        if self.header.is_traced() && self.leaves_later() {
            return;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.remove_sender_now() };
    }

    /// Uncounts an address now.
    ///
    /// # Safety
    /// As in `remove_sender`.
    pub(super) unsafe fn remove_sender_now(self) {
        if self.mailbox.remove_sender() {
            if self.process().is_current() {
                self.pass_on(self.mailbox.abandon());
            }
            // SAFETY: (CELL-2) gives up the addresses' common reference.
            unsafe { Core::release(self.core) };
        }
    }
}

/// A counted reference to a core, which any thread may hold.
///
/// It keeps the memory of the cell allocated. It keeps neither the mailbox open nor the actor
/// alive.
#[repr(transparent)]
pub(super) struct CoreArc<M>(NonNull<Core<M>>);

// SAFETY: (CELL-2) the core is reference-counted and thread-safe.
unsafe impl<M: Send> Send for CoreArc<M> {}
// SAFETY: (CELL-2) the core is reference-counted and thread-safe.
unsafe impl<M: Send> Sync for CoreArc<M> {}

// No user code runs during a change of the core, so a panic cannot leave it inconsistent.
impl<M> UnwindSafe for CoreArc<M> {}
impl<M> RefUnwindSafe for CoreArc<M> {}

impl<M> CoreArc<M> {
    /// Takes over a reference from a pointer.
    ///
    /// # Safety
    /// The pointer is valid for the whole cell (CELL-1), and the caller transfers a reference.
    pub(super) unsafe fn from_raw(core: NonNull<Core<M>>) -> Self {
        CoreArc(core)
    }

    pub(super) fn at(&self) -> CoreRef<'_, M> {
        // SAFETY: (CELL-2) this holds a reference.
        unsafe { CoreRef::new(self.0) }
    }
}

impl<M> From<CoreRef<'_, M>> for CoreArc<M> {
    fn from(core: CoreRef<'_, M>) -> Self {
        core.retain();
        CoreArc(core.pointer())
    }
}

impl<M> Clone for CoreArc<M> {
    fn clone(&self) -> Self {
        CoreArc::from(self.at())
    }
}

impl<M> Deref for CoreArc<M> {
    type Target = Core<M>;

    fn deref(&self) -> &Core<M> {
        self.at().core()
    }
}

impl<M> Drop for CoreArc<M> {
    fn drop(&mut self) {
        // SAFETY: (CELL-2) gives up the reference.
        unsafe { Core::release(self.0) };
    }
}

/// Returns an id that was not returned before.
///
/// Each thread reserves a range of ids, so that threads that spawn do not contend for the cache
/// line of the counter.
fn next_id() -> u64 {
    const RANGE: u64 = 1024;
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static OWN: Cell<(u64, u64)> = const { Cell::new((0, 0)) });
    // Relaxed: the RMW alone makes each range unique; it publishes nothing.
    let fresh = || NEXT.fetch_add(RANGE, Ordering::Relaxed);
    OWN.try_with(|own| {
        let (mut next, mut end) = own.get();
        if next == end {
            next = fresh();
            end = next + RANGE;
        }
        own.set((next + 1, end));
        next
    })
    .unwrap_or_else(|_| fresh())
}
