//! A thread's parking place: one token, left by whoever wakes the thread.
//!
//! `unpark` before `park` is not lost: the token stays until it is taken. Tokens do not add up.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Condvar, MODEL, Mutex};

/// Where one thread parks; anybody may unpark it.
pub(crate) struct Parker {
    place: Mutex<Place>,
    left: Condvar,
}

#[derive(Default)]
struct Place {
    token: bool,
    /// How many more parks end by themselves in this model, and of what length they are at most.
    #[cfg(greenroom_loom)]
    ending: (u32, Duration),
}

crate::sync::thread_local! {
    static OWN: OnceCell<Arc<Parker>> = const { OnceCell::new() };
}

/// Where this thread parks when it waits for anything that it drives: a future, a foreign loop.
///
/// Whoever wakes it says elsewhere what for, since a token may be left of something that is over.
pub(crate) fn own() -> Arc<Parker> {
    let own = OWN.try_with(|own| own.get_or_init(|| Arc::new(Parker::new())).clone());
    own.unwrap_or_else(|_| Arc::new(Parker::new()))
}

impl Parker {
    pub(crate) fn new() -> Self {
        Parker {
            place: Mutex::new(Place::default()),
            left: Condvar::new(),
        }
    }

    /// Waits for the token and takes it, at most `wait` long; says whether there was one.
    pub(crate) fn park(&self, wait: Option<Duration>) -> bool {
        let mut place = self.place.lock();
        while !place.token && !place.is_over(wait) {
            place = self.left.wait(place, wait);
            // Without a time-out a wake-up without a token is one without a reason.
            if wait.is_some() && !MODEL {
                break;
            }
        }
        std::mem::take(&mut place.token)
    }

    pub(crate) fn unpark(&self) {
        let had_one = std::mem::replace(&mut self.place.lock().token, true);
        if !had_one {
            self.left.notify_one();
        }
    }

    /// In a model no time passes but by this: as many parks as that, of this or the next threads
    /// that park here with a time-out of at most `longest`, are over.
    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn let_time_pass(&self, parks: u32, longest: Duration) {
        self.place.lock().ending = (parks, longest);
        self.left.notify_one();
    }
}

impl Place {
    /// Whether a park of this length need not begin, or not go on.
    #[cfg(not(greenroom_loom))]
    fn is_over(&self, wait: Option<Duration>) -> bool {
        wait == Some(Duration::ZERO)
    }

    #[cfg(greenroom_loom)]
    fn is_over(&mut self, wait: Option<Duration>) -> bool {
        let (parks, longest) = &mut self.ending;
        let over = *parks > 0 && wait.is_some_and(|wait| wait <= *longest);
        *parks -= u32::from(over);
        over || wait == Some(Duration::ZERO)
    }
}
