//! Ways b1 and b2: one allocation is header, mailbox and future, and is itself the queue entry.
//!
//! Two counts are kept: the addresses (the drop of the last one closes the mailbox), and the
//! references. All addresses together hold one reference, the context one, the unfinished future
//! one, and each waker one. A dormant actor is owned by the reference of its own future, so it need
//! not be in any list.

use std::alloc::{self, Layout};
use std::cell::{Cell, UnsafeCell};
use std::future::poll_fn;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{self, Poll, RawWaker, RawWakerVTable, Waker};

use crate::blocks::Blocks;
use crate::mail::{Mail, More};
use crate::queue::{Injector, RunQueue, runs_here};
use crate::stack::Stack;
use crate::way::Way;

/// A ready actor: a pointer to its header, whose first field is its vtable.
#[derive(Clone, Copy)]
struct Ready(NonNull<&'static VTable>);

// SAFETY: it is passed between threads; future and messages are `Send` (`Way::spawn`).
unsafe impl Send for Ready {}

struct VTable {
    /// Polls the future. The actor is awake and in no queue, and only the caller runs it.
    run: unsafe fn(Ready),
    /// Frees the memory: mailbox and header. The future was dropped before.
    free: unsafe fn(NonNull<&'static VTable>),
}

thread_local! {
    static READY: RunQueue<Ready> = const { RunQueue::new() };
    /// The actor that this thread polls.
    static POLLED: Cell<Polled> = const { Cell::new(Polled { actor: ptr::null(), in_recv: false }) };
}
static INJECTOR: Injector<Ready> = Injector::new();

#[derive(Clone, Copy)]
struct Polled {
    actor: *const (),
    /// Whether its `recv` was pending in this poll: then a message has to schedule it.
    in_recv: bool,
}

#[repr(C)]
struct Header<W> {
    vtable: &'static VTable,
    mail: W,
    addresses: AtomicU32,
    references: AtomicU32,
}

#[repr(C)]
struct Actor<W, F> {
    header: Header<W>,
    /// Dropped when it has finished; only the thread that runs the actor accesses it.
    future: UnsafeCell<ManuallyDrop<F>>,
}

fn schedule<W>(header: NonNull<Header<W>>) {
    let ready = Ready(header.cast());
    if runs_here() {
        READY.with(|queue| queue.push(ready))
    } else {
        INJECTOR.push(ready)
    }
}

/// Gives up a reference.
///
/// # Safety
/// The caller has a reference, and no longer uses it.
unsafe fn release<W>(header: NonNull<Header<W>>) {
    // SAFETY: the caller's reference keeps the header alive until it is given up.
    let references = unsafe { &header.as_ref().references };
    // Ordering: AcqRel, so that the thread that frees sees all accesses of the others. If only one
    // reference is left, it is the caller's, and no new one can be made.
    let last =
        references.load(Ordering::Acquire) == 1 || references.fetch_sub(1, Ordering::AcqRel) == 1;
    if last {
        // SAFETY: no reference is left, hence the future has finished.
        unsafe { (header.as_ref().vtable.free)(header.cast()) };
    }
}

pub struct Address<M: Send, W: Mail<M>> {
    header: NonNull<Header<W>>,
    messages: PhantomData<fn(M)>,
}

// SAFETY: an address pushes messages (`M: Send`), counts and schedules, all by atomic steps.
unsafe impl<M: Send, W: Mail<M>> Send for Address<M, W> {}
// SAFETY: as above.
unsafe impl<M: Send, W: Mail<M>> Sync for Address<M, W> {}

impl<M: Send, W: Mail<M>> Address<M, W> {
    fn header(&self) -> &Header<W> {
        // SAFETY: the addresses hold a reference.
        unsafe { self.header.as_ref() }
    }
}

impl<M: Send, W: Mail<M>> Clone for Address<M, W> {
    fn clone(&self) -> Self {
        self.header().addresses.fetch_add(1, Ordering::Relaxed);
        Self {
            header: self.header,
            messages: PhantomData,
        }
    }
}

impl<M: Send, W: Mail<M>> Drop for Address<M, W> {
    fn drop(&mut self) {
        if self.header().addresses.fetch_sub(1, Ordering::AcqRel) == 1 {
            if self.header().mail.close() {
                schedule(self.header);
            }
            // SAFETY: this was the last address, so the reference of all addresses is given up.
            unsafe { release(self.header) };
        }
    }
}

pub struct Context<M: Send, W: Mail<M>> {
    header: NonNull<Header<W>>,
    messages: PhantomData<fn() -> M>,
}

// SAFETY: the one reader moves to another thread with all messages it took; `M: Send`.
unsafe impl<M: Send, W: Mail<M>> Send for Context<M, W> {}

impl<M: Send, W: Mail<M>> Context<M, W> {
    fn poll_recv(&mut self, waker: &Waker) -> Poll<Option<M>> {
        // SAFETY: the context has a reference.
        let mail = unsafe { &self.header.as_ref().mail };
        loop {
            // SAFETY: the context is the one reader, and borrowed mutably.
            if let Some(message) = unsafe { mail.pop() } {
                return Poll::Ready(Some(message));
            }
            // SAFETY: as above.
            match unsafe { mail.take() } {
                More::Some => {}
                More::Never => return Poll::Ready(None),
                More::NotNow => break,
            }
        }
        let actor = self.header.as_ptr().cast_const().cast();
        let own = POLLED.get().actor == actor && waker.data() == actor;
        assert!(own, "this prototype reads only in the actor's own task");
        POLLED.set(Polled {
            actor,
            in_recv: true,
        });
        Poll::Pending
    }
}

impl<M: Send, W: Mail<M>> Drop for Context<M, W> {
    fn drop(&mut self) {
        // SAFETY: the context has a reference, and is the one reader, borrowed mutably.
        unsafe {
            let mail = &self.header.as_ref().mail;
            if mail.close() {
                schedule(self.header);
            }
            while mail.pop().is_some() || mail.take() == More::Some {}
            release(self.header);
        }
    }
}

/// The functions of an actor whose future is an `F`.
struct Kind<M, W, F>(PhantomData<(M, W, F)>);

impl<M, W, F> Kind<M, W, F>
where
    M: Send + 'static,
    W: Mail<M> + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    const ACTOR: VTable = VTable {
        run: Self::run,
        free: Self::free,
    };
    const WAKER: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop_waker);

    fn allocate(start: impl FnOnce(Context<M, W>) -> F) -> Address<M, W> {
        let layout = Layout::new::<Actor<W, F>>();
        // SAFETY: an actor has a header, so that its size is not zero.
        let actor = unsafe { alloc::alloc(layout) }.cast::<Actor<W, F>>();
        let Some(actor) = NonNull::new(actor) else {
            alloc::handle_alloc_error(layout)
        };
        let header = actor.cast::<Header<W>>();
        let (addresses, references) = (AtomicU32::new(1), AtomicU32::new(3));
        let vtable = const { &Self::ACTOR };
        // SAFETY: just allocated for an actor, of which the header is the first field.
        unsafe {
            header.write(Header {
                vtable,
                mail: W::new(),
                addresses,
                references,
            })
        };
        let address = Address {
            header,
            messages: PhantomData,
        };
        // If `start` panics, the actor never runs: its memory leaks, with no future in it.
        let future = start(Context {
            header,
            messages: PhantomData,
        });
        // SAFETY: as above; no thread accesses the future before it is scheduled.
        unsafe {
            let place = &raw mut (*actor.as_ptr()).future;
            place.write(UnsafeCell::new(ManuallyDrop::new(future)));
        }
        schedule(header);
        address
    }

    unsafe fn run(ready: Ready) {
        let actor = ready.0.cast::<Actor<W, F>>();
        let header = ready.0.cast::<Header<W>>();
        let data = header.as_ptr().cast_const().cast::<()>();
        // SAFETY: the unfinished future has a reference, and only the thread that runs the actor
        // accesses it: this one (contract of `run`). It stays at its address until it is dropped.
        let future = unsafe { &mut *(*actor.as_ptr()).future.get() };
        // SAFETY: as above. The waker is only lent: it gives up no reference.
        let (mut pinned, waker) = unsafe {
            let raw = RawWaker::new(data, const { &Self::WAKER });
            (
                Pin::new_unchecked(&mut **future),
                ManuallyDrop::new(Waker::from_raw(raw)),
            )
        };
        let outer = POLLED.replace(Polled {
            actor: data,
            in_recv: false,
        });
        let polled = panic::catch_unwind(AssertUnwindSafe(|| {
            pinned.as_mut().poll(&mut task::Context::from_waker(&waker))
        }));
        let in_recv = POLLED.replace(outer).in_recv;
        if let Ok(Poll::Pending) = polled {
            // SAFETY: the unfinished future has a reference. Once dormant, the actor may run on
            // another thread or be freed: it is not accessed after that.
            if !unsafe { header.as_ref() }.mail.sleep(in_recv) {
                READY.with(|queue| queue.push_back(ready));
            }
            return;
        }
        // It stays awake forever: nothing schedules it again.
        // SAFETY: finished or panicked, and never polled again; then its reference is given up.
        unsafe {
            ManuallyDrop::drop(future);
            release(header);
        }
        if let Err(panic) = polled {
            panic::resume_unwind(panic);
        }
    }

    unsafe fn free(header: NonNull<&'static VTable>) {
        // SAFETY: no reference is left. The future was dropped, or never made.
        unsafe {
            header.cast::<Header<W>>().drop_in_place();
            alloc::dealloc(header.as_ptr().cast(), Layout::new::<Actor<W, F>>());
        }
    }

    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: a waker, lent or not, has a reference behind it.
        let references = unsafe { &(*data.cast::<Header<W>>()).references };
        references.fetch_add(1, Ordering::Relaxed);
        RawWaker::new(data, const { &Self::WAKER })
    }

    unsafe fn wake(data: *const ()) {
        // SAFETY: the waker is consumed.
        unsafe {
            Self::wake_by_ref(data);
            Self::drop_waker(data);
        }
    }

    unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: a waker has a reference; the pointer has the provenance of the whole actor.
        unsafe {
            let header = NonNull::new_unchecked(data.cast_mut().cast::<Header<W>>());
            if header.as_ref().mail.wake() {
                schedule(header);
            }
        }
    }

    unsafe fn drop_waker(data: *const ()) {
        // SAFETY: a waker has a reference.
        unsafe { release(NonNull::new_unchecked(data.cast_mut().cast::<Header<W>>())) };
    }
}

/// What differs between b1 and b2.
pub trait Word: 'static {
    const NAME: &str;
    type Mail<M: Send + 'static>: Mail<M> + 'static;
}

/// The word of way b1.
pub struct OfStack;

impl Word for OfStack {
    const NAME: &str = "b1: one cell, Treiber stack";
    type Mail<M: Send + 'static> = Stack<M>;
}

/// The word of way b2.
pub struct OfBlocks;

impl Word for OfBlocks {
    const NAME: &str = "b2: one cell, locked blocks";
    type Mail<M: Send + 'static> = Blocks<M>;
}

pub struct One<W>(PhantomData<W>);

impl<W: Word> Way for One<W> {
    const NAME: &str = W::NAME;
    type Address<M: Send + 'static> = Address<M, W::Mail<M>>;
    type Context<M: Send + 'static> = Context<M, W::Mail<M>>;

    fn spawn<M, F>(start: impl FnOnce(Self::Context<M>) -> F) -> Self::Address<M>
    where
        M: Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        Kind::allocate(start)
    }

    fn tell<M: Send + 'static>(address: &Self::Address<M>, message: M) -> Result<(), M> {
        if address.header().mail.push(message)? {
            schedule(address.header);
        }
        Ok(())
    }

    fn recv<M: Send + 'static>(
        context: &mut Self::Context<M>,
    ) -> impl Future<Output = Option<M>> + Send {
        poll_fn(|cx| context.poll_recv(cx.waker()))
    }

    fn run_one() -> bool {
        let Some(ready) = READY.with(RunQueue::pop).or_else(|| INJECTOR.pop()) else {
            return false;
        };
        // SAFETY: an actor in the queue is awake and was put there once; only this call has it.
        unsafe { (ready.0.as_ref().run)(ready) };
        true
    }
}
