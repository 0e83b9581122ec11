//! The front of an actor's cell: what addresses and the context see of it.
//!
//! It knows the messages, and neither the future nor the executor: what is behind it is reached through
//! the header's table. The invariants are those of [`cell`](super::cell).
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see CELL-1 to CELL-4 in cell.rs"
)]

use std::marker::PhantomData;
use std::mem::{ManuallyDrop, offset_of};
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::task::{Poll, Waker};

use super::id;
use crate::contain::Panic;
use crate::error::{Fault, TellError};
use crate::mailbox::{Flags, Mailbox, Termination, Wake, wake_foreign};
use crate::sync::{Process, mutant};
use crate::task::{Header, Label, Look, MessageEvent, MessageInfo, TaskInfo, VTable, as_run, run};

/// The front of a cell.
///
/// What senders write, in the first bytes, is a cache line away from what the actor reads for every message: the
/// end of the cell, and of its future what is not its arguments. Of what is here it reads nothing then.
#[repr(C)]
pub(crate) struct Core<M> {
    pub(super) mailbox: Mailbox<M>,
    pub(super) header: Header,
}

/// The options of an actor that the cell keeps.
pub(super) struct ActorOptions {
    pub(super) name: Option<Box<str>>,
    pub(super) capacity: Option<usize>,
    pub(super) priority: u8,
}

impl<M> Core<M> {
    pub(super) fn new(vtable: &'static VTable, traced: bool, options: ActorOptions) -> Self {
        let label = Label::new(id::next(), options.priority, traced);
        Core {
            mailbox: Mailbox::new(options.capacity, options.name),
            // The addresses, the handle, and the cell's own (CELL-4).
            header: Header::new(vtable, label, 3),
        }
    }

    /// The core whose header this is.
    ///
    /// # Safety
    /// (CELL-1) It is the header of a cell of an actor with such messages.
    pub(super) unsafe fn of(header: NonNull<Header>) -> NonNull<Self> {
        // SAFETY: (CELL-1) the header is that far in it.
        unsafe { header.byte_sub(offset_of!(Self, header)).cast() }
    }

    /// The header of a core.
    ///
    /// # Safety
    /// It is alive.
    pub(super) unsafe fn header_of(core: NonNull<Self>) -> NonNull<Header> {
        // SAFETY: (CELL-1) the header is that far in it.
        unsafe { core.byte_add(offset_of!(Self, header)).cast() }
    }

    /// Gives a reference up; the last one frees the cell.
    ///
    /// # Safety
    /// The reference is the caller's, who does not use `core` afterwards.
    pub(super) unsafe fn release(core: NonNull<Core<M>>) {
        // SAFETY: (CELL-1, CELL-2) held until here.
        unsafe { (core.as_ref().header.vtable.release)(Self::header_of(core)) };
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.mailbox.name().map(|name| &***name)
    }

    pub(super) fn info(&self) -> TaskInfo {
        let name = self.mailbox.name().cloned();
        TaskInfo::of_actor(self.header.id(), name, self.header.priority())
    }

    pub(super) fn look(&self) -> Look {
        let flags = self.mailbox.state.peek();
        Look {
            mailbox: self.mailbox.len(),
            is_dormant: !flags.has(Flags::ACTIVE),
            has_handle: flags.has(Flags::JOINABLE),
        }
    }

    /// What it was made with; nobody has seen it.
    pub(super) fn into_options(self) -> ActorOptions {
        let (capacity, name) = self.mailbox.into_options();
        ActorOptions {
            capacity,
            name,
            priority: self.header.priority(),
        }
    }

    pub(super) fn retain(&self) {
        self.header.retain();
    }

    /// Whether `tell` and `send` refuse.
    pub(super) fn is_closed(&self) -> bool {
        self.mailbox.state.peek().has(Flags::CLOSED)
    }
}

/// A core that is held meanwhile, by a pointer that is good for the whole cell.
///
/// What reaches behind the core goes by way of this, and takes it by value: a reference to the core is good for
/// the core alone (CELL-1), and no function may free what it was given a reference to.
pub(super) struct At<'a, M> {
    core: NonNull<Core<M>>,
    _held: PhantomData<&'a Core<M>>,
}

impl<M> Clone for At<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for At<'_, M> {}

impl<M> Deref for At<'_, M> {
    type Target = Core<M>;

    fn deref(&self) -> &Core<M> {
        self.core()
    }
}

// SAFETY: (CELL-2) the core is shared by counting, and made for use from any thread.
unsafe impl<M: Send> Send for At<'_, M> {}
// SAFETY: (CELL-2) the core is shared by counting, and made for use from any thread.
unsafe impl<M: Send> Sync for At<'_, M> {}

impl<'a, M> At<'a, M> {
    /// # Safety
    /// (CELL-1) The pointer is good for the whole cell; (CELL-2) a reference is held for as long as `'a`.
    pub(super) unsafe fn new(core: NonNull<Core<M>>) -> Self {
        At {
            core,
            _held: PhantomData,
        }
    }

    pub(super) fn pointer(self) -> NonNull<Core<M>> {
        self.core
    }

    pub(super) fn core(self) -> &'a Core<M> {
        // SAFETY: (CELL-2) by the promise in `new`.
        unsafe { self.core.as_ref() }
    }

    pub(super) fn header(self) -> NonNull<Header> {
        // SAFETY: (CELL-2) by the promise in `new`.
        unsafe { Core::header_of(self.core) }
    }

    pub(super) fn as_run(self) -> NonNull<()> {
        as_run(self.header())
    }

    /// Notes that `recv` waits for a message, if `waker` is this actor's own and it is this thread
    /// that runs it: then the end of the run does the rest in one step. Otherwise says false.
    pub(super) fn receive_in_run(self, waker: &Waker) -> bool {
        self.is_own(waker) && run::note(self.as_run(), run::RECEIVING)
    }

    /// Whether it wakes this actor.
    #[inline]
    pub(super) fn is_own(self, waker: &Waker) -> bool {
        Header::is_woken_by(self.header(), waker)
    }

    /// `recv` waits no more: the next message need wake nobody for it.
    #[inline]
    pub(super) fn stop_receiving(self) {
        run::unnote(self.as_run(), run::RECEIVING);
        if self
            .mailbox
            .state
            .peek()
            .has(Flags::RECEIVING.or(Flags::FOREIGN))
        {
            self.mailbox.wait_no_more();
        }
    }

    /// Whether it is to be dropped and handles no more.
    #[inline]
    pub(super) fn is_terminated(self) -> bool {
        !run::is_undisturbed(self.as_run()) && self.mailbox.state.termination().is_some()
    }

    /// Passes on what a step of the mailbox has woken.
    #[inline]
    pub(super) fn pass_on(self, wake: Wake) {
        match wake {
            Wake::Nobody => {}
            // SAFETY: scheduled just now; (CELL-2) a reference is held.
            Wake::Actor => unsafe { (self.header.vtable.schedule)(self.header()) },
            Wake::Foreign(waker) => wake_foreign(waker),
            Wake::Both(waker) => self.wake_both(waker),
        }
    }

    #[cold]
    fn wake_both(self, waker: Waker) {
        self.pass_on(Wake::Actor);
        wake_foreign(waker);
    }

    pub(super) fn tell(self, message: M) -> Result<(), TellError<M>> {
        if self.header.is_traced() {
            return self.tell_traced(message);
        }
        let wake = self.mailbox.tell(message)?;
        self.pass_on(wake);
        Ok(())
    }

    /// Tells the executor what becomes of a message, if it wants to know.
    pub(super) fn trace(self, event: impl FnOnce() -> MessageEvent) {
        if self.header.is_traced() {
            // SAFETY: (CELL-2) a reference is held.
            unsafe { (self.header.vtable.trace)(self.header(), event()) };
        }
    }

    /// The same for a `send` that was polled: `message` if for the first time, `before` is the key of its place if
    /// it has waited, `now` if it waits.
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

    /// The process that has the threads of its executor.
    pub(super) fn process(self) -> Process {
        // SAFETY: (CELL-2) a reference is held.
        Process::of(|| unsafe { (self.header.vtable.process)(self.header()) })
    }

    pub(super) fn close(self) {
        self.pass_on(self.mailbox.close());
    }

    /// Has the actor dropped. What was sent to an actor that is killed is dropped now; else it is refused by the
    /// end or, if that does not come, by [`refuse`](At::refuse).
    pub(super) fn terminate(self, termination: Termination) {
        let told_first = mutant("termination_counted_before_it_is");
        if told_first {
            run::count_termination();
        }
        let (wake, mut messages) = self.mailbox.terminate(termination);
        if !told_first {
            run::count_termination();
        }
        self.undelivered(messages.len());
        if mutant("dropped_before_the_wake_up") {
            messages.clear();
        }
        self.pass_on(wake);
        // Only now: the drop of a message may wait for the end of the actor.
        if termination == Termination::Killed {
            self.mailbox.refuse_line();
        }
        messages.clear();
    }

    /// Kills it as a sender does, who may have sent something before.
    pub(super) fn kill(self) {
        self.observe();
        self.terminate(Termination::Killed);
    }

    /// Gives back what waits in line, and drops what was sent and not taken; the mailbox is closed.
    pub(super) fn refuse(self) {
        self.mailbox.refuse_line();
        self.undelivered(self.mailbox.drain().clear());
    }

    /// # Safety
    /// The actor has ended, its result is of this type, and the caller alone may ask for it, once.
    pub(super) unsafe fn take_result<T>(self) -> Result<T, Fault> {
        let mut result: Option<Result<T, Fault>> = None;
        // SAFETY: (CELL-3) the caller's duty.
        unsafe { (self.header.vtable.take_result)(self.header(), (&raw mut result).cast()) };
        result.expect("the result is kept for the one who may ask")
    }

    /// # Safety
    /// As in `take_result`.
    pub(super) unsafe fn drop_result(self) {
        // SAFETY: (CELL-3) the caller's duty.
        unsafe { (self.header.vtable.drop_result)(self.header()) };
    }

    /// Tells the executor of messages that were accepted and are not handled.
    pub(super) fn undelivered(self, messages: usize) {
        if messages > 0 {
            // SAFETY: (CELL-2) a reference is held.
            unsafe { (self.header.vtable.undelivered)(self.header(), messages) };
        }
    }

    /// Tells the executor of a panic beside the future of the actor, which goes on.
    pub(super) fn report(self, panic: Panic) {
        // SAFETY: (CELL-2) a reference is held.
        unsafe { (self.header.vtable.report)(self.header(), &Fault::Panicked(panic)) };
    }

    // -- counts -------------------------------------------------------------------------------

    /// Counts an address more, where there may be none; false if the mailbox is closed and `even_closed` is
    /// false.
    pub(super) fn revive_sender(self, even_closed: bool) -> bool {
        let revived = self.mailbox.revive_sender(even_closed);
        if revived == Some(true) {
            // The addresses have a reference again.
            self.retain();
        }
        revived.is_some()
    }

    /// Counts an address less.
    ///
    /// # Safety
    /// The caller gives that address up.
    pub(super) unsafe fn remove_sender(self) {
        if self.header.is_traced() && self.leaves_later() {
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { self.remove_sender_now() };
    }

    /// # Safety
    /// As in `remove_sender`.
    pub(super) unsafe fn remove_sender_now(self) {
        if self.mailbox.remove_sender() {
            if self.process().is_current() {
                self.pass_on(self.mailbox.abandon());
            }
            // SAFETY: (CELL-2) the addresses' common reference is given up.
            unsafe { Core::release(self.core) };
        }
    }

    /// The actor's waker without a reference of its own, for use while the cell is held.
    pub(super) fn waker(self) -> ManuallyDrop<Waker> {
        // SAFETY: (CELL-2) it is used while the cell is held, and never dropped.
        unsafe { Header::waker(self.header()) }
    }
}

/// A counted reference to a core, which may belong to any thread.
///
/// It keeps the cell's memory and nothing else: not the mailbox open, nor the actor alive.
#[repr(transparent)]
pub(super) struct Held<M>(NonNull<Core<M>>);

// SAFETY: (CELL-2) the core is shared by counting, and made for use from any thread.
unsafe impl<M: Send> Send for Held<M> {}
// SAFETY: (CELL-2) the core is shared by counting, and made for use from any thread.
unsafe impl<M: Send> Sync for Held<M> {}

// No user code runs in the middle of a change of the core, so no panic leaves one half made.
impl<M> UnwindSafe for Held<M> {}
impl<M> RefUnwindSafe for Held<M> {}

impl<M> Held<M> {
    /// # Safety
    /// The pointer is good for the whole cell (CELL-1), and the caller has a reference, which this takes over.
    pub(super) unsafe fn from_raw(core: NonNull<Core<M>>) -> Self {
        Held(core)
    }

    pub(super) fn at(&self) -> At<'_, M> {
        // SAFETY: (CELL-2) this holds a reference.
        unsafe { At::new(self.0) }
    }
}

impl<M> From<At<'_, M>> for Held<M> {
    fn from(core: At<'_, M>) -> Self {
        core.retain();
        Held(core.pointer())
    }
}

impl<M> Clone for Held<M> {
    fn clone(&self) -> Self {
        Held::from(self.at())
    }
}

impl<M> Deref for Held<M> {
    type Target = Core<M>;

    fn deref(&self) -> &Core<M> {
        self.at().core()
    }
}

impl<M> Drop for Held<M> {
    fn drop(&mut self) {
        // SAFETY: (CELL-2) the reference is given up.
        unsafe { Core::release(self.0) };
    }
}
