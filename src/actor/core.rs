//! The front of an actor's cell: what addresses and the context see of it.
//!
//! It knows the messages, and neither the future nor the home: what is behind it is reached through
//! the header's table. The invariants are those of [`cell`](super::cell).
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see A1 to A4 in cell.rs"
)]

use std::any::type_name;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Poll, RawWaker, RawWakerVTable, Waker};

use super::context::Reader;
use super::id;
use crate::error::{Fault, TellError};
use crate::mailbox::{Doom, Flags, Mailbox, Wake, wake_foreign};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::task::{COUNT_MAX, Header, Passage, TaskInfo, VTable, as_run, run};
use crate::waiters::Waiters;

/// The front of a cell.
#[repr(C)]
pub(crate) struct Core<M> {
    pub(super) header: Header,
    /// What senders write is as far as can be from what the actor reads for every message: in
    /// another cache line, mostly.
    pub(super) mailbox: Mailbox<M>,
    pub(super) id: u64,
    /// One word; who is told of the actor shares it.
    name: Option<Arc<Box<str>>>,
    /// Who waits for the end of the actor.
    pub(super) ended: Waiters,
    /// How many messages a turn may handle; zero once the actor is doomed: it handles no more.
    batch: AtomicU32,
    /// How many more this turn may handle.
    left: AtomicU32,
    /// What the context alone uses, wherever that is; here, since a future is as large as two contexts.
    pub(super) reader: UnsafeCell<Reader<M>>,
}

/// The options of an actor that the cell keeps.
pub(super) struct Options {
    pub(super) name: Option<Box<str>>,
    pub(super) capacity: Option<usize>,
    pub(super) priority: u8,
}

impl<M> Core<M> {
    pub(super) fn new(vtable: &'static VTable, batch: u32, traced: bool, options: Options) -> Self {
        Core {
            // The addresses, the handle, and the cell's own (A4).
            header: Header::new(vtable, options.priority, traced, 3),
            batch: AtomicU32::new(batch),
            left: AtomicU32::new(0),
            reader: UnsafeCell::new(Reader::EMPTY),
            id: id::next(),
            name: options.name.map(Arc::new),
            ended: Waiters::new(),
            mailbox: Mailbox::new(options.capacity),
        }
    }

    /// Notes that `recv` waits for a message, if `waker` is this actor's own and it is this thread
    /// that runs it: then the end of the run does the rest in one step. Otherwise says false.
    pub(super) fn receive_in_run(&self, waker: &Waker) -> bool {
        let own =
            waker.data() == std::ptr::from_ref(self).cast() && std::ptr::eq(waker.vtable(), &WAKER);
        own && run::note(as_run(self.pointer()), run::RECEIVING)
    }

    /// `recv` waits no more: the next message need wake nobody for it.
    pub(super) fn stop_receiving(&self) {
        run::unnote(as_run(self.pointer()), run::RECEIVING);
        if self.mailbox.peek().has(Flags::RECEIVING.or(Flags::FOREIGN)) {
            self.mailbox.wait_no_more();
        }
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref().map(|name| &**name)
    }

    pub(super) fn info(&self) -> TaskInfo {
        TaskInfo::of_actor(self.id, self.name.clone(), self.header.priority)
    }

    /// What it was made with.
    pub(super) fn into_options(self) -> Options {
        Options {
            capacity: self.mailbox.capacity(),
            priority: self.header.priority,
            // Nobody has seen it, so this is the only one.
            name: self.name.and_then(Arc::into_inner),
        }
    }

    /// How many messages a turn may handle; zero: none, the actor is to be dropped.
    pub(super) fn batch(&self) -> u32 {
        // Relaxed: whoever must see a kill was told of it by other means.
        self.batch.load(Ordering::Relaxed)
    }

    /// Another run begins; called by that.
    pub(super) fn begin_turn(&self) {
        self.set_left(self.batch());
    }

    pub(super) fn left(&self) -> u32 {
        // Relaxed: it only says when to let others run.
        self.left.load(Ordering::Relaxed)
    }

    pub(super) fn set_left(&self, left: u32) {
        // Relaxed: as above.
        self.left.store(left, Ordering::Relaxed);
    }

    pub(super) fn pointer(&self) -> NonNull<Header> {
        NonNull::from(self).cast()
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
        if self.header.traced {
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
        // Relaxed: as in `batch`.
        self.batch.store(0, Ordering::Relaxed);
        let (wake, undelivered) = self.mailbox.doom(doom);
        self.undelivered(undelivered);
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
        unsafe { (core.as_ref().header.vtable.release)(core.cast()) };
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
        if run::note(as_run(self.pointer()), run::WOKEN) {
            return;
        }
        self.pass_on(self.mailbox.wake());
    }

    /// The actor's waker without a reference of its own, for use while the cell is held.
    pub(super) fn waker(&self) -> ManuallyDrop<Waker> {
        let raw = RawWaker::new(std::ptr::from_ref(self).cast(), &WAKER);
        // SAFETY: the table keeps the waker contract; it is never dropped, so needs no reference.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
    }
}

/// The table of every actor's waker. A static, since wakers are told by its address: a constant may
/// have several.
static WAKER: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: (A1, A2) the data of this waker is a cell with a reference.
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
