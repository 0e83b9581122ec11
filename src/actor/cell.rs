//! An actor's cell: one allocation with its header, its mailbox and its future.
//!
//! The front, [`Core`], is what addresses and the context see; it does not know the future. What is
//! behind it is reached through the header's table. Every holder of a pointer counts in the header's `refs`; all
//! addresses together count once.
//!
//! # Invariants
//! - A1: a pointer to the core is a pointer to the header and to the cell (`repr(C)`).
//! - A2: whoever holds a reference may use the core; the last one frees the cell.
//! - A3: the run of the cell, from `begin` to `rest` or `end`, has the stage to itself; after
//!   `end` the one who takes or drops the result has.
//! - A4: a cell that has not ended holds a reference of its own, given up as the last step of its
//!   end. So a runnable needs none.
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see A1 to A4"
)]

use std::future::Future;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{Poll, RawWaker, RawWakerVTable, Waker};

use super::context::Context;
use super::held::Held;
use super::stage::Stage;
use super::{id, run};
use crate::contain::contain;
use crate::error::{Fault, TellError, Unjoined};
use crate::mailbox::{Doom, Flags, Mailbox, Rest, Wake, wake_foreign};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::task::{COUNT_MAX, CellHome, Header, Runnable, VTable};
use crate::waiters::Waiters;

/// The front of a cell.
#[repr(C)]
pub(crate) struct Core<M> {
    pub(super) header: Header,
    senders: AtomicU32,
    /// Counts the runs, so that `recv` sees where a new one begins. Written by the run only.
    turn: AtomicU32,
    pub(super) id: u64,
    name: Option<Box<Name>>,
    /// Who waits for the end of the actor.
    pub(super) ended: Waiters,
    pub(super) mailbox: Mailbox<M>,
}

/// Few actors have one, so that it costs the others one word and not two.
struct Name(Box<str>);

#[repr(C)]
struct Cell<M, H, A, Fut, T> {
    core: Core<M>,
    home: H,
    stage: UnsafeCell<Stage<Parts<M, A, Fut>, Fut, T>>,
}

/// The options of an actor that the cell keeps.
pub(super) struct Options {
    pub(super) name: Option<Box<str>>,
    pub(super) capacity: Option<usize>,
}

/// What an actor is made of, and how it begins when it is given its context.
pub(super) type Parts<M, A, Fut> = (A, fn(A, Context<M>) -> Fut);

/// What a new cell comes with: one address and the right to join, each with its reference.
///
/// The home keeps whatever is not `Send` on its thread.
pub(super) fn new<M, H, A, Fut>(
    home: H,
    parts: Parts<M, A, Fut>,
    options: Options,
) -> Result<NonNull<Core<M>>, (H, A, Options)>
where
    M: Send + 'static,
    H: CellHome,
    A: 'static,
    Fut: Future + 'static,
{
    let cell = Box::new(Cell {
        core: Core::new(
            Cell::<M, H, A, Fut, Fut::Output>::VTABLE,
            home.batch(),
            options,
        ),
        home,
        stage: UnsafeCell::new(Stage::Waiting(parts)),
    });
    let raw = NonNull::from(Box::leak(cell));
    let header = raw.cast::<Header>();
    // SAFETY: (A2) ours until it is scheduled.
    let cell = unsafe { raw.as_ref() };
    if !cell.home.enter(header) {
        // SAFETY: the box was leaked just now and nobody else has seen it.
        return Err(unsafe { Box::from_raw(raw.as_ptr()) }.take_apart());
    }
    // SAFETY: (R1) a new cell is scheduled, this is its runnable; (R3, A4) it has not ended.
    let runnable = unsafe { Runnable::from_cell(header) };
    // The references that go to the caller keep the cell meanwhile, however soon it ends.
    cell.home.schedule(runnable, false);
    Ok(raw.cast())
}

/// An actor that did not come to life: closed, ended, with `NotStarted` to be joined.
pub(super) fn stillborn<M, H, A, Fut>(home: H, actor: A, options: Options) -> NonNull<Core<M>>
where
    M: Send + 'static,
    H: CellHome,
    A: 'static,
    Fut: Future + 'static,
{
    contain(|| drop(actor));
    let core = Core::new(
        Cell::<M, H, A, Fut, Fut::Output>::VTABLE,
        home.batch(),
        options,
    );
    core.mailbox.end();
    // It has ended, so it holds no reference of its own (A4).
    core.header.refs.store(2, Ordering::Relaxed);
    let stage = UnsafeCell::new(Stage::Ended(Err(Fault::NotStarted)));
    let cell: Cell<M, H, A, Fut, Fut::Output> = Cell { core, home, stage };
    NonNull::from(Box::leak(Box::new(cell))).cast()
}

impl<M> Core<M> {
    fn new(vtable: &'static VTable, batch: u32, options: Options) -> Self {
        Core {
            // The addresses, the handle, and the cell's own (A4).
            header: Header::new(vtable, 3),
            senders: AtomicU32::new(1),
            turn: AtomicU32::new(0),
            id: id::next(),
            name: options.name.map(|name| Box::new(Name(name))),
            ended: Waiters::new(),
            mailbox: Mailbox::new(options.capacity, batch),
        }
    }

    /// Notes that `recv` waits for a message, if `waker` is this actor's own and it is this thread
    /// that runs it: then the end of the run does the rest in one step. Otherwise says false.
    pub(super) fn receive_in_run(&self, waker: &Waker) -> bool {
        let own = waker.data() == std::ptr::from_ref(self).cast()
            && std::ptr::eq(waker.vtable(), Self::WAKER);
        own && run::set_receiving(self.pointer(), true)
    }

    /// `recv` waits no more: the next message need wake nobody for it.
    pub(super) fn stop_receiving(&self) {
        run::set_receiving(self.pointer(), false);
        if self.mailbox.peek().has(Flags::RECEIVING.or(Flags::FOREIGN)) {
            self.mailbox.wait_no_more();
        }
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref().map(|name| &*name.0)
    }

    pub(super) fn turn(&self) -> u32 {
        // Relaxed: it only tells one run from the next.
        self.turn.load(Ordering::Relaxed)
    }

    pub(super) fn pointer(&self) -> NonNull<Header> {
        NonNull::from(self).cast()
    }

    /// Passes on what a step of the mailbox has woken.
    pub(super) fn pass_on(&self, wake: Wake) {
        match wake {
            Wake::Nobody => {}
            // SAFETY: scheduled just now; whoever has `&self` holds a reference (A2).
            Wake::Actor => unsafe { (self.header.vtable.schedule)(self.pointer(), false) },
            Wake::Foreign(waker) => wake_foreign(waker),
            Wake::Both(waker) => {
                self.pass_on(Wake::Actor);
                wake_foreign(waker);
            }
        }
    }

    pub(super) fn tell(&self, message: M) -> Result<(), TellError<M>> {
        self.mailbox.tell(message).map(|wake| self.pass_on(wake))
    }

    pub(super) fn close(&self) {
        self.pass_on(self.mailbox.close());
    }

    pub(super) fn doom(&self, doom: Doom) {
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
        if self.senders.fetch_add(1, Ordering::Relaxed) > COUNT_MAX {
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
        self.senders
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise)
            .is_ok()
    }

    /// Whether nobody has received yet; then `close_if_abandoned` is to follow.
    pub(super) fn is_starting(&self) -> bool {
        self.mailbox.peek().has(Flags::STARTING)
    }

    /// After the first receive: closes if the last address was given up before it.
    pub(super) fn close_if_abandoned(&self) {
        // Relaxed: ordered by the lock that `abandon` takes after the count, and `receive` took.
        if self.senders.load(Ordering::Relaxed) == 0 {
            self.close();
        }
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
        self.senders.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Whether nobody can send to it any more.
    pub(super) fn is_closed(&self) -> bool {
        // Relaxed: a hint, and zero is final but for the actor's own sources.
        self.mailbox.peek().has(Flags::CLOSED) || self.senders.load(Ordering::Relaxed) == 0
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
        let last = self.senders.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            self.pass_on(self.mailbox.abandon());
        }
        last
    }

    // -- the actor's own waker ----------------------------------------------------------------

    const WAKER: &'static RawWakerVTable = &RawWakerVTable::new(
        // SAFETY: (A1, A2) the data of this waker is a core with a reference.
        |data| unsafe {
            (*data.cast::<Core<M>>()).retain();
            RawWaker::new(data, Self::WAKER)
        },
        // SAFETY: as above; the reference goes with the waker.
        |data| unsafe {
            let core = NonNull::new_unchecked(data.cast_mut()).cast::<Core<M>>();
            core.as_ref().pass_on(core.as_ref().mailbox.wake());
            Self::release(core);
        },
        // SAFETY: as above.
        |data| unsafe {
            let core = &*data.cast::<Core<M>>();
            core.pass_on(core.mailbox.wake());
        },
        // SAFETY: as above.
        |data| unsafe { Self::release(NonNull::new_unchecked(data.cast_mut()).cast()) },
    );

    /// The actor's waker without a reference of its own, for use while the cell is held.
    fn waker(&self) -> ManuallyDrop<Waker> {
        let raw = RawWaker::new(std::ptr::from_ref(self).cast(), Self::WAKER);
        // SAFETY: the table keeps the waker contract; it is never dropped, so needs no reference.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
    }
}

impl<M, H, A, Fut> Cell<M, H, A, Fut, Fut::Output>
where
    M: Send + 'static,
    H: CellHome,
    A: 'static,
    Fut: Future + 'static,
{
    const VTABLE: &'static VTable = &VTable {
        run: Self::run,
        discard: Self::discard,
        schedule: Self::schedule,
        // SAFETY: (A1) and the caller's reference.
        stop: |cell| unsafe { cell.cast::<Core<M>>().as_ref() }.close(),
        // SAFETY: as above.
        cancel: |cell| unsafe { cell.cast::<Core<M>>().as_ref() }.doom(Doom::Cancelled),
        release: Self::release,
        take_result: Self::take_result,
        drop_result: Self::drop_result,
        // SAFETY: as above.
        undelivered: |cell, messages| unsafe {
            cell.cast::<Self>().as_ref().home.undelivered(messages);
        },
    };

    /// What a cell that nobody has seen was made of.
    fn take_apart(self) -> (H, A, Options) {
        let Cell { core, home, stage } = self;
        let stage = stage.into_inner();
        let Stage::Waiting((actor, _)) = stage else {
            unreachable!("it was never run")
        };
        let options = Options {
            name: core.name.map(|name| name.0),
            capacity: core.mailbox.capacity(),
        };
        (home, actor, options)
    }

    /// # Safety
    /// As [`VTable::run`].
    unsafe fn run(header: NonNull<Header>) {
        // SAFETY: (A1, A4) the cell has not ended.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        let core = &cell.core;
        if let Some(doom) = core.mailbox.begin() {
            return cell.end(Err(cell.fault(doom)));
        }
        // Relaxed, and no read-modify-write: only the run writes it.
        core.turn
            .store(core.turn().wrapping_add(1), Ordering::Relaxed);
        let waker = core.waker();
        let run = run::enter(header);
        let polled = cell.stage.with_mut(|stage| {
            let mut cx = std::task::Context::from_waker(&waker);
            // SAFETY: (A3) this is the run; (S1) the cell is never moved.
            unsafe { (*stage).poll(|(actor, begin)| begin(actor, Context::new(core)), &mut cx) }
        });
        let receiving = run.is_receiving();
        drop(run);
        match polled {
            Poll::Ready(result) => cell.end(result),
            Poll::Pending => match core.mailbox.rest(receiving) {
                Rest::Asleep => {}
                // SAFETY: scheduled again just now; this run's home outlives it.
                Rest::Again => unsafe { Self::schedule(header, true) },
                Rest::Drop => {
                    let doom = core.mailbox.doom_of().unwrap_or(Doom::Cancelled);
                    cell.end(Err(cell.fault(doom)));
                }
            },
        }
    }

    /// # Safety
    /// As [`VTable::discard`].
    unsafe fn discard(header: NonNull<Header>) {
        // SAFETY: (A1, A4) the cell has not ended.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        let doom = cell.core.mailbox.begin().unwrap_or(Doom::Cancelled);
        cell.end(Err(cell.fault(doom)));
    }

    /// # Safety
    /// As [`VTable::schedule`].
    unsafe fn schedule(header: NonNull<Header>, again: bool) {
        // SAFETY: (A2) the caller's reference or run; (R1) the cell was made scheduled by it.
        unsafe {
            let cell = header.cast::<Self>().as_ref();
            // The run has no reference: the cell may be gone before `schedule` returns.
            let _held = again.then(|| Held::from(&cell.core));
            cell.home.schedule(Runnable::from_cell(header), again);
        }
    }

    /// Why the actor has no result.
    fn fault(&self, doom: Doom) -> Fault {
        // SAFETY: (A3) called by the run.
        let begun = self.stage.with_mut(|stage| unsafe { (*stage).has_begun() });
        match doom {
            _ if !begun && self.home.is_closing() => Fault::NotStarted,
            Doom::Killed => Fault::Killed,
            Doom::Cancelled if begun => Fault::Cancelled,
            Doom::Cancelled => Fault::NotStarted,
        }
    }

    /// The end of the actor: its state is dropped on this thread, its result kept or reported.
    fn end(&self, result: Result<Fut::Output, Fault>) {
        let core = &self.core;
        // SAFETY: (A3) called by the run.
        self.stage.with_mut(|stage| unsafe { (*stage).clear() });
        core.pass_on(core.mailbox.close());
        core.undelivered(core.mailbox.drain());
        let home = &self.home;
        if let Err(Fault::Cancelled | Fault::NotStarted) = result {
            home.cancelled();
        }
        // SAFETY: (A3) as above.
        self.stage
            .with_mut(|stage| unsafe { (*stage).keep(result) });
        home.leave(core.pointer());
        if !core.mailbox.end() {
            // SAFETY: (A3) ended, and nobody else will ask.
            unsafe { Self::drop_result(core.pointer()) };
        }
        // A place that was reserved before may have been filled until now.
        core.undelivered(core.mailbox.drain());
        core.ended.wake_all();
        // SAFETY: (A4) the cell's own reference, given up last.
        unsafe { Self::release(core.pointer()) };
    }

    /// # Safety
    /// As [`VTable::take_result`]; `out` points to an `Option<Result<Fut::Output, Fault>>`.
    unsafe fn take_result(header: NonNull<Header>, out: *mut ()) {
        // SAFETY: (A2) the caller's reference; (A3) it alone asks for the result.
        unsafe {
            let cell = header.cast::<Self>().as_ref();
            let result = cell.stage.with_mut(|stage| (*stage).take_result());
            *out.cast::<Option<Result<Fut::Output, Fault>>>() = result;
        }
    }

    /// # Safety
    /// As [`VTable::drop_result`].
    unsafe fn drop_result(header: NonNull<Header>) {
        // SAFETY: as in `take_result`.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: (A3) as in `take_result`.
        let result = cell
            .stage
            .with_mut(|stage| unsafe { (*stage).take_result() });
        if let Some(Err(fault @ Fault::Panicked(_))) = &result {
            let (name, id) = (cell.core.name(), Some(cell.core.id));
            cell.home.report(&Unjoined { name, id, fault });
        }
        contain(|| drop(result));
    }

    /// # Safety
    /// As [`VTable::release`].
    unsafe fn release(header: NonNull<Header>) {
        // SAFETY: (A2) the caller's reference.
        let core = unsafe { header.cast::<Core<M>>().as_ref() };
        // Release pairs with the fence below: what was done under any reference is done before
        // the cell is freed.
        if core.header.refs.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: (A2) the last one; it was made by `Box` in `new`.
            drop(unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) });
        }
    }
}
