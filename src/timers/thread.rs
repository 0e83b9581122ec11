//! The timer thread of the process, for deadlines that belong to no runtime.
//!
//! It starts on first use, sleeps while no deadline is due, and never ends.

use std::io;
use std::sync::Arc;
use std::task::Waker;

use super::{Clock, Timers};
use crate::instant::Instant;
use crate::park::Parker;
use crate::sync::{Mutex, PerProcess};

pub(crate) struct TimerThread {
    timers: Timers,
    parker: Parker,
}

impl TimerThread {
    /// Returns the clock of the thread, which is started if there is none.
    ///
    /// # Errors
    /// That of the operating system, if it does not start the thread.
    pub(crate) fn get() -> io::Result<Arc<dyn Clock>> {
        static THREAD: PerProcess<Mutex<Option<Arc<TimerThread>>>> = PerProcess::new();
        let mut thread = THREAD.get_or_init(|| Mutex::new(None)).lock();
        if let Some(thread) = &*thread {
            return Ok(thread.clone());
        }
        let clock = Arc::new(TimerThread {
            timers: Timers::new(),
            parker: Parker::new(),
        });
        let own = clock.clone();
        let builder = std::thread::Builder::new().name("greenroom-timer".into());
        builder.spawn(move || own.serve())?;
        *thread = Some(clock.clone());
        Ok(clock)
    }

    fn serve(&self) {
        loop {
            self.timers.fire(Instant::now());
            self.parker.park(self.timers.until_next());
        }
    }
}

impl Clock for TimerThread {
    fn timers(&self) -> &Timers {
        &self.timers
    }

    fn armed(&self, earliest: bool, _waker: &Waker) {
        if earliest {
            self.parker.unpark();
        }
    }
}
