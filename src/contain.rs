//! Where panics of user code end: caught, carried as a value, or reported.
//!
//! Every call into user code that must not unwind further goes through here: drops of futures,
//! messages and results, and polls of tasks and actors.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::sync::Mutex;

/// Runs user code whose panic must go no further; the panic hook has told of it.
#[cfg(not(debug_assertions))]
pub(crate) fn contain(user_code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(user_code)) {
        drop_payload(payload);
    }
}

/// The same behind a pointer: without optimization each closure would have the catching compiled once more,
/// which is a quarter of what there is to compile in a program of many actors.
#[cfg(debug_assertions)]
pub(crate) fn contain(user_code: impl FnOnce()) {
    fn contain_dyn(user_code: &mut dyn FnMut()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(user_code)) {
            drop_payload(payload);
        }
    }
    let mut user_code = Some(user_code);
    contain_dyn(&mut || {
        if let Some(user_code) = user_code.take() {
            user_code();
        }
    });
}

/// Not a closure in [`contain`], which would be another one for each that `contain` runs.
#[inline(always)]
fn drop_payload(payload: Box<dyn Any + Send>) {
    // The payload's own drop may panic again, and so may that one's.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}

/// Runs user code and gives its panic back as a value.
pub(crate) fn attempt<R>(user_code: impl FnOnce() -> R) -> Result<R, Panic> {
    catch_unwind(AssertUnwindSafe(user_code)).map_err(Panic::new)
}

/// The same for user code that works on `what`, which `clear` drops while a panic unwinds: then a guard of a
/// mutex poisons that, for one. A panic of `clear` goes no further.
#[inline(always)]
pub(crate) fn attempt_on<T, R>(
    what: &mut T,
    user_code: impl FnOnce(&mut T) -> R,
    clear: impl FnMut(&mut T),
) -> Result<R, Panic> {
    struct Clears<'a, T, F: FnMut(&mut T)>(&'a mut T, F);
    impl<T, F: FnMut(&mut T)> Drop for Clears<'_, T, F> {
        fn drop(&mut self) {
            contain(|| (self.1)(self.0));
        }
    }
    attempt(|| {
        let unwinds = Clears(what, clear);
        let result = user_code(unwinds.0);
        std::mem::forget(unwinds);
        result
    })
}

/// How deep values that a shutdown refuses may lie in each other's drops: far more than anybody
/// means, and far less than a stack holds.
const REFUSED_DEPTH_MAX: u32 = 100;

crate::sync::thread_local! {
    /// How deep this thread is in drops of refused values.
    static REFUSED_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Drops what a shutdown refused to take. Its drop may bring something that is refused as well, and
/// so on for ever: then one is kept for as long as the process lives, and that is told.
pub(crate) fn drop_refused<T: Send + 'static>(value: T) {
    // Without the thread-local the thread ends, and brings nothing for ever.
    let depth = REFUSED_DEPTH.try_with(Cell::get).unwrap_or(0);
    if depth >= REFUSED_DEPTH_MAX {
        keep(value);
        tell_of_refused(depth);
        return;
    }
    set_refused_depth(depth + 1);
    contain(|| drop(value));
    set_refused_depth(depth);
}

fn tell_of_refused(depth: u32) {
    // Not `eprintln!`, which panics where stderr is closed.
    let _ = std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!(
            "greenroom: {depth} futures were refused in each other's drops during a shutdown; \
             the last one is not dropped\n"
        ),
    );
}

fn set_refused_depth(depth: u32) {
    let _ = REFUSED_DEPTH.try_with(|cell| cell.set(depth));
}

/// Keeps what can't be dropped for as long as the process lives.
pub(crate) fn keep(value: impl Send + 'static) {
    fn keep_boxed(value: Box<dyn Any + Send>) {
        static KEPT: OnceLock<Mutex<Vec<Box<dyn Any + Send>>>> = OnceLock::new();
        let kept = KEPT.get_or_init(|| Mutex::new(Vec::new()));
        kept.lock().push(value);
    }
    keep_boxed(Box::new(value));
}

/// What a panic carried: the payload of [`std::panic::catch_unwind`], with its text.
///
/// It comes with [`Fault::Panicked`](crate::Fault::Panicked).
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

    /// The text of the panic, if it had one (`panic!` gives one, `panic_any` need not).
    pub fn text(&self) -> Option<&str> {
        self.0.text.as_deref()
    }

    /// The payload itself, for `downcast` or [`std::panic::resume_unwind`].
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
