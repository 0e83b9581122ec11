//! The front of an actor's cell: what addresses and the context see of it.
//!
//! It knows the messages, and neither the future nor the home: what is behind it is reached through
//! the header's table. The invariants are those of [`cell`](super::cell).
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see A1 to A4 in cell.rs"
)]

use std::any::type_name;
use std::mem::{ManuallyDrop, offset_of};
use std::ptr::NonNull;
use std::task::{Poll, RawWaker, RawWakerVTable, Waker};

use super::id;
use super::reader::Reader;
use crate::error::{Fault, TellError};
use crate::mailbox::{Doom, Flags, Mailbox, Wake, wake_foreign};
use crate::sync::UnsafeCell;
use crate::sync::atomic::Ordering;
use crate::task::{COUNT_MAX, Header, Label, Passage, TaskInfo, VTable, as_run, run};
use crate::waiters::Waiters;

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
pub(super) struct Options {
    pub(super) name: Option<Box<str>>,
    pub(super) capacity: Option<usize>,
    pub(super) priority: u8,
}

impl<M> Core<M> {
    pub(super) fn new(vtable: &'static VTable, traced: bool, options: Options) -> Self {
        let label = Label::new(id::next(), options.priority, traced);
        Core {
            mailbox: Mailbox::new(options.capacity, options.name),
            // The addresses, the handle, and the cell's own (A4).
            header: Header::new(vtable, label, 3),
        }
    }

    /// The core whose header this is.
    ///
    /// # Safety
    /// (A1) It is the header of a cell of an actor with such messages.
    pub(super) unsafe fn of(header: NonNull<Header>) -> NonNull<Self> {
        // SAFETY: (A1) the header is that far in it.
        unsafe { header.byte_sub(offset_of!(Self, header)).cast() }
    }

    /// The header of a core.
    ///
    /// # Safety
    /// It is alive.
    pub(super) unsafe fn header_of(core: NonNull<Self>) -> NonNull<Header> {
        // SAFETY: (A1) as above.
        unsafe { core.byte_add(offset_of!(Self, header)).cast() }
    }

    pub(super) fn pointer(&self) -> NonNull<Header> {
        // SAFETY: it is borrowed.
        unsafe { Self::header_of(NonNull::from(self)) }
    }

    pub(super) fn as_run(&self) -> NonNull<()> {
        as_run(self.pointer())
    }

    /// What the context reads from; the caller is that context.
    #[inline]
    pub(super) fn reader(&self) -> NonNull<UnsafeCell<Reader<M>>> {
        let reader = run::reader_of(self.as_run()).unwrap_or_else(|| {
            // SAFETY: (A2) whoever has `&self` holds a reference; the context calls.
            unsafe { (self.header.vtable.reader)(self.pointer()) }
        });
        reader.cast()
    }

    /// Notes that `recv` waits for a message, if `waker` is this actor's own and it is this thread
    /// that runs it: then the end of the run does the rest in one step. Otherwise says false.
    pub(super) fn receive_in_run(&self, waker: &Waker) -> bool {
        self.is_own(waker) && run::note(self.as_run(), run::RECEIVING)
    }

    /// Whether it wakes this actor.
    #[inline]
    pub(super) fn is_own(&self, waker: &Waker) -> bool {
        std::ptr::eq(waker.data(), self.pointer().as_ptr().cast())
            && std::ptr::eq(waker.vtable(), &WAKER)
    }

    /// `recv` waits no more: the next message need wake nobody for it.
    #[inline]
    pub(super) fn stop_receiving(&self) {
        run::unnote(self.as_run(), run::RECEIVING);
        if self.mailbox.peek().has(Flags::RECEIVING.or(Flags::FOREIGN)) {
            self.mailbox.wait_no_more();
        }
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.mailbox.name().map(|name| &***name)
    }

    pub(super) fn info(&self) -> TaskInfo {
        let name = self.mailbox.name().cloned();
        TaskInfo::of_actor(self.header.id(), name, self.header.priority())
    }

    /// What it was made with; nobody has seen it.
    pub(super) fn into_options(self) -> Options {
        let (capacity, name) = self.mailbox.into_options();
        Options {
            capacity,
            name,
            priority: self.header.priority(),
        }
    }

    /// Who waits for its end.
    pub(super) fn ended(&self) -> &Waiters {
        self.mailbox.ended_made()
    }

    /// Whether it is to be dropped and handles no more.
    #[inline]
    pub(super) fn is_doomed(&self) -> bool {
        !run::is_undisturbed(self.as_run()) && self.mailbox.doom_of().is_some()
    }

    /// Passes on what a step of the mailbox has woken.
    #[inline]
    pub(super) fn pass_on(&self, wake: Wake) {
        match wake {
            Wake::Nobody => {}
            // SAFETY: scheduled just now; whoever has `&self` holds a reference (A2).
            Wake::Actor => unsafe { (self.header.vtable.schedule)(self.pointer()) },
            Wake::Foreign(waker) => wake_foreign(waker),
            Wake::Both(waker) => self.wake_both(waker),
        }
    }

    #[cold]
    fn wake_both(&self, waker: Waker) {
        self.pass_on(Wake::Actor);
        wake_foreign(waker);
    }

    pub(super) fn tell(&self, message: M) -> Result<(), TellError<M>> {
        let wake = self.mailbox.tell(message)?;
        self.trace(|| Passage::Sent(type_name::<M>()));
        self.pass_on(wake);
        Ok(())
    }

    /// Tells the home what becomes of a message, if it wants to know.
    pub(super) fn trace(&self, passage: impl FnOnce() -> Passage) {
        if self.header.is_traced() {
            // SAFETY: (A2) whoever has `&self` holds a reference.
            unsafe { (self.header.vtable.trace)(self.pointer(), passage()) };
        }
    }

    /// The same for a `send` that was polled; `before` is the key of its place if it has waited, `now`
    /// if it waits.
    pub(super) fn trace_send<E>(
        &self,
        before: Option<usize>,
        now: Option<usize>,
        sent: &Poll<Result<Wake, E>>,
    ) {
        let name = type_name::<M>();
        match (before, now, sent) {
            (None, _, Poll::Ready(Ok(_))) => self.trace(|| Passage::Sent(name)),
            (None, Some(key), Poll::Pending) => self.trace(|| Passage::AwaitsRoom(name, key)),
            (Some(key), _, Poll::Ready(Ok(_))) => self.trace(|| Passage::Accepted(key)),
            (Some(key), _, Poll::Ready(Err(_))) => self.trace(|| Passage::GivenUp(key)),
            _ => {}
        }
    }

    pub(super) fn close(&self) {
        self.pass_on(self.mailbox.close());
    }

    pub(super) fn doom(&self, doom: Doom) {
        let wake = self.mailbox.doom(doom);
        // Before the drops, which may be user code: what comes after one of them is after the kill.
        run::tell_of_doom();
        self.undelivered(self.mailbox.refuse());
        self.pass_on(wake);
    }

    /// # Safety
    /// The actor has ended, its result is of this type, and the caller alone may ask for it, once.
    pub(super) unsafe fn take_result<T>(&self) -> Result<T, Fault> {
        let mut result: Option<Result<T, Fault>> = None;
        // SAFETY: (A3) the caller's duty.
        unsafe { (self.header.vtable.take_result)(self.pointer(), (&raw mut result).cast()) };
        result.expect("the result is kept for the one who may ask")
    }

    /// # Safety
    /// As in `take_result`.
    pub(super) unsafe fn drop_result(&self) {
        // SAFETY: (A3) the caller's duty.
        unsafe { (self.header.vtable.drop_result)(self.pointer()) };
    }

    pub(super) fn undelivered(&self, messages: usize) {
        if messages > 0 {
            // SAFETY: (A2) whoever has `&self` holds a reference.
            unsafe { (self.header.vtable.undelivered)(self.pointer(), messages) };
        }
    }

    // -- counts -------------------------------------------------------------------------------

    pub(super) fn retain(&self) {
        self.header.retain();
    }

    /// # Safety
    /// The caller gives up a reference and does not use `core` afterwards.
    pub(super) unsafe fn release(core: NonNull<Core<M>>) {
        // SAFETY: (A2) held until here.
        unsafe { (core.as_ref().header.vtable.release)(Self::header_of(core)) };
    }

    pub(super) fn add_sender(&self) {
        // Relaxed: as in `retain`.
        if self.mailbox.senders.fetch_add(1, Ordering::Relaxed) > COUNT_MAX {
            std::process::abort();
        }
    }

    /// Adds an address out of none at hand; false if there is none left or the mailbox is closed.
    pub(super) fn revive_sender(&self) -> bool {
        if self.mailbox.peek().has(Flags::CLOSED) {
            return false;
        }
        let raise = |senders: u32| (senders > 0 && senders < COUNT_MAX).then(|| senders + 1);
        // Relaxed: as in `retain`; the count itself decides.
        self.mailbox
            .senders
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise)
            .is_ok()
    }

    /// Adds an address for the actor itself, also if there is none left and it has still to begin;
    /// false if the mailbox is closed.
    pub(super) fn add_own_sender(&self) -> bool {
        if self.revive_sender() {
            return true;
        }
        if !self.mailbox.peek().has(Flags::STARTING) || self.mailbox.peek().has(Flags::CLOSED) {
            return false;
        }
        // Zero, and nobody else raises it from there. The addresses have a reference again.
        self.retain();
        // Relaxed: as in `retain`.
        self.mailbox.senders.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Whether nobody can send to it any more.
    pub(super) fn is_closed(&self) -> bool {
        // Relaxed: a hint, and zero is final but for the actor's own sources.
        self.mailbox.peek().has(Flags::CLOSED) || self.mailbox.senders.load(Ordering::Relaxed) == 0
    }

    /// # Safety
    /// The caller gives up an address and does not use `core` afterwards.
    pub(super) unsafe fn drop_sender(core: NonNull<Core<M>>) {
        // SAFETY: (A2) the addresses' reference is held until the last one is gone.
        if unsafe { core.as_ref() }.count_sender_out() {
            // SAFETY: the addresses' common reference is given up.
            unsafe { Self::release(core) };
        }
    }

    /// Gives up an address of the actor, which the caller holds a reference to as well.
    pub(super) fn give_up_sender(&self) {
        if self.count_sender_out() {
            // SAFETY: (A2) the addresses' common reference, which is not the last one.
            unsafe { Self::release(NonNull::from(self)) };
        }
    }

    /// One address less; says whether that was the last one.
    fn count_sender_out(&self) -> bool {
        // AcqRel: what was done through the other addresses is done before the close.
        let last = self.mailbox.senders.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            self.pass_on(self.mailbox.abandon());
        }
        last
    }

    // -- the actor's own waker ----------------------------------------------------------------

    /// Its own run only notes it.
    pub(super) fn wake(&self) {
        if run::note(self.as_run(), run::WOKEN) {
            return;
        }
        self.pass_on(self.mailbox.wake());
    }

    /// The actor's waker without a reference of its own, for use while the cell is held.
    pub(super) fn waker(&self) -> ManuallyDrop<Waker> {
        let raw = RawWaker::new(self.pointer().as_ptr().cast(), &WAKER);
        // SAFETY: the table keeps the waker contract; it is never dropped, so needs no reference.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
    }
}

/// The table of every actor's waker. A static, since wakers are told by its address: a constant may
/// have several.
static WAKER: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: (A1, A2) the data of this waker is a cell's header, with a reference.
        unsafe { header(data).as_ref() }.retain();
        RawWaker::new(data, &WAKER)
    },
    // SAFETY: as above; the reference goes with the waker.
    |data| unsafe {
        let header = header(data);
        (header.as_ref().vtable.wake)(header);
        (header.as_ref().vtable.release)(header);
    },
    // SAFETY: as above.
    |data| unsafe {
        let header = header(data);
        (header.as_ref().vtable.wake)(header);
    },
    // SAFETY: as above; the reference goes with the waker.
    |data| unsafe {
        let header = header(data);
        (header.as_ref().vtable.release)(header);
    },
);

/// # Safety
/// `data` is that of an actor's waker.
unsafe fn header(data: *const ()) -> NonNull<Header> {
    // SAFETY: the caller's duty.
    unsafe { NonNull::new_unchecked(data.cast_mut()) }.cast()
}
