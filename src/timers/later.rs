//! Calls at a later moment, where no task can wait for it.
//!
//! The deadline of a call is one as any other: the thread that fires it makes the call.

use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use super::{DeadlineKind, TimerClock, TimerThread};
use crate::contain::KeptWaker;
use crate::instant::{Instant, RealTime};
use crate::sync::Mutex;

/// Calls a function after this time, on a thread that fires the deadlines of `clock`. If the clock
/// is closed, the function is dropped.
pub(crate) fn call_after(
    clock: &dyn TimerClock,
    delay: Duration,
    call: impl FnOnce() + Send + 'static,
) {
    let waker = Waker::from(Arc::new(LaterCall(Mutex::new(Some(Box::new(call))))));
    let at = clock.fires_at(Instant::now() + delay);
    let armed = clock
        .timers()
        .insert(at, DeadlineKind::Event, KeptWaker::new(&waker));
    if let Some((_, earliest)) = armed {
        clock.armed(earliest, &waker);
    }
}

impl TimerThread {
    /// Returns the clock that fires a deadline of no runtime.
    ///
    /// # Panics
    /// If the operating system does not start the thread.
    pub(crate) fn clock() -> Arc<dyn TimerClock> {
        TimerThread::get().unwrap_or_else(|error| panic!("cannot start the timer thread: {error}"))
    }

    /// Calls a function after this time, on the timer thread of the process.
    ///
    /// # Errors
    /// As [`TimerThread::get`].
    pub(crate) fn call_after(
        delay: Duration,
        call: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let thread = TimerThread::get()?;
        // The calling thread may drive a simulation.
        let _system = RealTime::enter();
        call_after(&*thread, delay, call);
        Ok(())
    }
}

/// A call that is due, until it is made.
struct LaterCall(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for LaterCall {
    fn wake(self: Arc<Self>) {
        let call = self.0.lock().take();
        if let Some(call) = call {
            call();
        }
    }
}
