//! How panics of user code end: caught, and returned as a value or reported.
//!
//! Every call of user code whose panic must not unwind further goes through here: drops of futures,
//! messages and results, and polls of tasks and actors.
//!
//! The panic hook runs before the panic is caught, and may ask whether it will be. A thread that
//! greenroom has started catches all that panics on it, and a turn is noted in `task/run.rs`. So a
//! thread counts its other contained calls. The hot ones have a function that counts nothing: they
//! are in a turn, on such a thread or within a counted call. Only those of wakers may also be on a
//! thread of the program, where the hook is not told.
//!
//! The functions of a waker are user code, too: its clone, its call and its drop may panic. So a waker
//! is kept as a [`KeptWaker`]. A caller that keeps one behind a lock or in a cell makes it before it
//! enters, and drops what it replaced after it has left.
//!
//! # Invariants
//! - KEPT-1: a kept waker is there until its drop, or until its call takes it.
#![expect(unsafe_code, reason = "a waker that is taken once; see KEPT-1")]

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

use crate::stderr::print_line;
use crate::sync::Mutex;

std::thread_local! {
    /// The number of counted calls that are in progress on this thread, each within another one.
    /// All threads of a model are one thread of the system, and none of them asks.
    static CONTAINED: Cell<u32> = const { Cell::new(0) };
}

/// Returns whether a counted call is in progress on this thread, which catches a panic of what this
/// thread runs.
pub(crate) fn is_in_counted_call() -> bool {
    CONTAINED.try_with(Cell::get).is_ok_and(|calls| calls > 0)
}

/// What is added to the count when a call has returned: it is one less then.
const RETURNED: u32 = u32::MAX;

#[inline]
fn count(calls: u32) {
    let _ = CONTAINED.try_with(|all| all.set(all.get().wrapping_add(calls)));
}

/// Counts a call, from which no panic comes.
#[inline]
pub(crate) fn counted<R>(call: impl FnOnce() -> R) -> R {
    count(1);
    let returned = call();
    count(RETURNED);
    returned
}

/// Counts all that this thread does from now on as one call. The thread is greenroom's own, so a
/// panic on it goes no further.
pub(crate) fn count_thread() {
    count(1);
}

/// Calls user code and contains its panic, which the panic hook has reported.
pub(crate) fn contain(user_code: impl FnOnce()) {
    count(1);
    contain_uncounted(user_code);
    count(RETURNED);
}

/// Does the same on a hot path, and counts nothing.
#[cfg(not(debug_assertions))]
pub(crate) fn contain_uncounted(user_code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(user_code)) {
        drop_payload(payload);
    }
}

/// Does the same on a hot path, and counts nothing. It is behind a pointer: without optimization,
/// each closure would otherwise have its own copy of the catching code, a quarter of what is
/// compiled in a program of many actors.
#[cfg(debug_assertions)]
pub(crate) fn contain_uncounted(user_code: impl FnOnce()) {
    let mut user_code = Some(user_code);
    contain_mut(&mut || {
        if let Some(user_code) = user_code.take() {
            user_code();
        }
    });
}

/// Does the same for code that need not be moved, of which even less is compiled.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn contain_mut<F: FnMut() + ?Sized>(user_code: &mut F) {
    contain_uncounted(user_code);
}

/// Does the same for code that need not be moved, of which even less is compiled.
#[cfg(debug_assertions)]
pub(crate) fn contain_mut(user_code: &mut dyn FnMut()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(user_code)) {
        drop_payload(payload);
    }
}

/// Drops a panic's payload. This is not a closure in [`contain_uncounted`], of which each instance
/// would have its own copy.
#[inline(always)]
fn drop_payload(payload: Box<dyn Any + Send>) {
    // The drop of the payload may panic again, and so may the drop of that payload.
    let dropped = counted(|| catch_unwind(AssertUnwindSafe(|| drop(payload))));
    if let Err(payload) = dropped {
        std::mem::forget(payload);
    }
}

/// Calls user code and returns its panic as a value.
pub(crate) fn attempt<R>(user_code: impl FnOnce() -> R) -> Result<R, Panic> {
    counted(|| attempt_uncounted(user_code))
}

/// Does the same in a turn, or for a panic that goes on later, and counts nothing.
#[inline]
pub(crate) fn attempt_uncounted<R>(user_code: impl FnOnce() -> R) -> Result<R, Panic> {
    catch_unwind(AssertUnwindSafe(user_code)).map_err(Panic::new)
}

/// What user code is called for in [`attempt_or_clear`].
pub(crate) enum Step {
    /// Does the work.
    Run,
    /// Drops what the code was called with, so that a mutex guard in it poisons its mutex, for
    /// example.
    Clear,
}

/// Calls user code to run, and returns its panic as a value. While the panic unwinds, the code is
/// called to clear. A panic of that is contained.
pub(crate) fn attempt_or_clear(user_code: &mut impl FnMut(Step)) -> Result<(), Panic> {
    counted(|| attempt_or_clear_uncounted(user_code))
}

/// Does what [`attempt_or_clear`] does, but counts nothing, as [`attempt_uncounted`].
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn attempt_or_clear_uncounted(user_code: &mut impl FnMut(Step)) -> Result<(), Panic> {
    attempt_uncounted(move || {
        let unwinds = Clears(user_code);
        (unwinds.0)(Step::Run);
        std::mem::forget(unwinds);
    })
}

/// Does the same behind a pointer, for the reason that [`contain_uncounted`] has.
#[cfg(debug_assertions)]
pub(crate) fn attempt_or_clear_uncounted(mut user_code: &mut dyn FnMut(Step)) -> Result<(), Panic> {
    attempt_uncounted(|| {
        let unwinds = Clears(&mut user_code);
        (unwinds.0)(Step::Run);
        std::mem::forget(unwinds);
    })
}

struct Clears<'a, F: FnMut(Step)>(&'a mut F);

impl<F: FnMut(Step)> Drop for Clears<'_, F> {
    fn drop(&mut self) {
        contain_mut(&mut || (self.0)(Step::Clear));
    }
}

/// Calls a function when it is dropped, also while a panic unwinds.
#[must_use = "the function is called at once"]
pub(crate) struct OnDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The maximum depth of refused values in each other's drops: far more than a program intends, and
/// far less than a stack has room for.
const REFUSED_DEPTH_MAX: u32 = 100;

crate::sync::thread_local! {
    /// The number of drops of refused values that are in progress on this thread.
    static REFUSED_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Drops a value that a shutdown refused. The drop may create another refused value, and so on
/// without end: from a depth of 100 on, values are leaked, which is reported on stderr.
pub(crate) fn drop_refused<T: Send + 'static>(value: T) {
    // Without the thread-local, the thread is ending, so the recursion is not endless.
    let depth = REFUSED_DEPTH.try_with(Cell::get).unwrap_or(0);
    if depth >= REFUSED_DEPTH_MAX {
        keep(value);
        warn_of_refused(depth);
        return;
    }
    set_refused_depth(depth + 1);
    contain(|| drop(value));
    set_refused_depth(depth);
}

fn warn_of_refused(depth: u32) {
    print_line(format_args!(
        "a shutdown refused futures nested {depth} deep in each other's drops; the last one is \
         leaked"
    ));
}

fn set_refused_depth(depth: u32) {
    let _ = REFUSED_DEPTH.try_with(|cell| cell.set(depth));
}

/// Keeps a value that cannot be dropped until the process ends.
pub(crate) fn keep(value: impl Send + 'static) {
    fn keep_boxed(value: Box<dyn Any + Send>) {
        static KEPT: OnceLock<Mutex<Vec<Box<dyn Any + Send>>>> = OnceLock::new();
        let kept = KEPT.get_or_init(|| Mutex::new(Vec::new()));
        kept.lock().push(value);
    }
    keep_boxed(Box::new(value));
}

/// How deep results are dropped within each other. A deeper one is dropped after the outermost: the
/// results of ordinary programs never wait, and small stacks have room for these.
const NESTED_DEPTH_MAX: u32 = 32;

crate::sync::thread_local! {
    /// How many results this thread is dropping, each within the drop of the one before.
    static NESTED_DEPTH: Cell<u32> = const { Cell::new(0) };
}
crate::sync::thread_local! {
    /// The results that this thread drops at the end of the outermost drop.
    static PUT_OFF: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Drops a result that is not taken. A result may own the handle of another one, and so on, without
/// end.
pub(crate) fn drop_result<T: 'static>(result: T) {
    if !std::mem::needs_drop::<T>() {
        return;
    }
    // Without the thread-locals, the thread is ending.
    let depth = NESTED_DEPTH.try_with(Cell::get).unwrap_or(0);
    if depth >= NESTED_DEPTH_MAX {
        return put_off(Box::new(result));
    }
    let mut result = Some(result);
    drop_nested(depth, &mut || result = None);
}

fn drop_nested(depth: u32, drop_result: &mut dyn FnMut()) {
    let set_depth = |depth| NESTED_DEPTH.try_with(|cell| cell.set(depth));
    let _ = set_depth(depth + 1);
    contain(drop_result);
    while depth == 0
        && let Ok(Some(next)) = PUT_OFF.try_with(|put_off| put_off.borrow_mut().pop())
    {
        contain(|| drop(next));
    }
    let _ = set_depth(depth);
}

#[cold]
fn put_off(result: Box<dyn Any>) {
    let mut result = Some(result);
    let _ = PUT_OFF.try_with(|put_off| put_off.borrow_mut().extend(result.take()));
    contain(|| drop(result));
}

/// A caught panic: the payload, as [`std::panic::catch_unwind`] returns it, and its text.
///
/// [`Fault::Panicked`](crate::Fault::Panicked) contains it.
pub struct Panic(Box<Carried>);

struct Carried {
    /// `None` once it was taken. The mutex is never locked: it makes the payload `Sync`.
    payload: Option<std::sync::Mutex<Box<dyn Any + Send>>>,
    text: Option<Box<str>>,
}

impl Panic {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).into())
            .or_else(|| {
                payload
                    .downcast_ref::<String>()
                    .map(|text| text.as_str().into())
            });
        Panic(Box::new(Carried {
            payload: Some(std::sync::Mutex::new(payload)),
            text,
        }))
    }

    /// Returns the text of the panic, or `None` if the payload is neither a `&str` nor a `String`.
    /// `panic!` always has a text, [`panic_any`](std::panic::panic_any) may not.
    pub fn text(&self) -> Option<&str> {
        self.0.text.as_deref()
    }

    /// Returns the payload, for `downcast` or [`std::panic::resume_unwind`].
    pub fn into_payload(mut self) -> Box<dyn Any + Send> {
        let payload = self.0.payload.take().expect("the payload is taken once");
        payload
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if let Some(payload) = self.payload.take() {
            contain(|| drop(payload));
        }
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic")
            .field(&self.text().unwrap_or("no text"))
            .finish()
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().unwrap_or("a payload without text"))
    }
}

/// A waker in storage. A panic of its clone, its call or its drop is contained.
pub(crate) struct KeptWaker(ManuallyDrop<Waker>);

impl KeptWaker {
    /// Keeps a clone of `waker`. If the clone panics, `waker` is called at once. So its task is
    /// polled again, and tries again.
    #[inline]
    pub(crate) fn new(waker: &Waker) -> Self {
        let mut kept = None;
        contain_uncounted(|| kept = Some(waker.clone()));
        match kept {
            Some(kept) => KeptWaker::from(kept),
            None => KeptWaker::of_no_clone(waker),
        }
    }

    #[cold]
    #[inline(never)]
    fn of_no_clone(waker: &Waker) -> Self {
        contain_uncounted(|| waker.wake_by_ref());
        KeptWaker::noop()
    }

    /// Returns a waker that wakes nothing.
    #[inline]
    pub(crate) fn noop() -> Self {
        KeptWaker::from(Waker::noop().clone())
    }

    /// Replaces this waker, unless it wakes the task of `waker`.
    #[inline]
    pub(crate) fn renew(&mut self, waker: &Waker) {
        if !self.will_wake(waker) {
            *self = KeptWaker::new(waker);
        }
    }

    #[inline]
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        self.0.will_wake(waker)
    }

    #[inline]
    pub(crate) fn wake(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: (KEPT-1) `this` is not dropped, and not used afterwards.
        let waker = unsafe { ManuallyDrop::take(&mut this.0) };
        contain_uncounted(|| waker.wake());
    }

    pub(crate) fn wake_by_ref(&self) {
        contain_uncounted(|| self.0.wake_by_ref());
    }

    pub(crate) fn as_waker(&self) -> &Waker {
        &self.0
    }
}

/// Behind a counted pointer it is a waker whose own functions do not panic.
impl Wake for KeptWaker {
    fn wake(self: Arc<Self>) {
        KeptWaker::wake_by_ref(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        KeptWaker::wake_by_ref(self);
    }
}

impl Clone for KeptWaker {
    fn clone(&self) -> Self {
        KeptWaker::new(&self.0)
    }
}

impl From<Waker> for KeptWaker {
    fn from(waker: Waker) -> Self {
        KeptWaker(ManuallyDrop::new(waker))
    }
}

impl Drop for KeptWaker {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: (KEPT-1) the value is not used after its drop.
        let waker = unsafe { ManuallyDrop::take(&mut self.0) };
        contain_uncounted(|| drop(waker));
    }
}

impl fmt::Debug for KeptWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.0).fmt(f)
    }
}
