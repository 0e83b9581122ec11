//! Model 48: the last reference to a cell is given up on another thread than the one that has run it.
#![expect(unsafe_code, reason = "references are given up by hand; see CELL-2")]

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use ::loom::thread::spawn;

use super::super::address::Address;
use super::super::core::ActorOptions;
use super::super::core::Held;
use super::new;
use crate::error::UnhandledFault;
use crate::sync::{Mutex, UnsafeCell};
use crate::task::{ActorExecutor, Executor, Header, LiveIndex, Runnable};

/// An executor that lies in the cell, and is written to at the end of the cell and when the cell is freed.
struct Nest {
    /// Where the runnable lies until somebody runs it.
    desk: Arc<Mutex<Option<Runnable>>>,
    /// Fails the model if the one that frees the cell does not see its end.
    written: UnsafeCell<()>,
}

impl Nest {
    fn write(&self) {
        self.written.with_mut(|_| ());
    }
}

// SAFETY: (CELL-2, CELL-3) it is written to by the end of its cell, and by the one that frees the cell.
unsafe impl Sync for Nest {}

impl Clone for Nest {
    fn clone(&self) -> Self {
        Nest {
            desk: self.desk.clone(),
            written: UnsafeCell::new(()),
        }
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        self.write();
    }
}

impl Executor for Nest {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        *self.desk.lock() = Some(runnable);
    }

    fn track(&self, _waker: &Waker) -> Option<LiveIndex> {
        None
    }

    fn untrack(&self, _live_index: LiveIndex) {}

    fn report(&self, _unjoined: &UnhandledFault<'_>) {}
}

impl ActorExecutor for Nest {
    fn enter(&self, _cell: NonNull<Header>) -> bool {
        true
    }

    fn leave(&self, _cell: NonNull<Header>) {
        self.write();
    }

    fn is_closing(&self) -> bool {
        false
    }

    fn cancelled(&self) {}

    fn undelivered(&self, _messages: usize) {}
}

/// The cell ends on one thread while another one drops its address and its handle: whoever is last frees it, and
/// sees all that was done with it.
#[test]
fn model_48_who_frees_a_cell_sees_its_end() {
    ::loom::model(|| {
        let desk = Arc::new(Mutex::new(None));
        let nest = Nest {
            desk: desk.clone(),
            written: UnsafeCell::new(()),
        };
        let options = ActorOptions {
            name: None,
            capacity: None,
            priority: 0,
        };
        let begin = |(), _cx: crate::Context<()>| async {};
        let Ok(core) = new(nest, ((), begin as _), options) else {
            unreachable!("nobody closes this executor")
        };
        // SAFETY: (CELL-1, CELL-2) a new cell comes with one address, and with the reference of a handle.
        let (address, handle) = unsafe { (Address::from_core(core), Held::from_raw(core)) };
        let runnable = desk.lock().take().expect("a new cell is scheduled");
        let runs = spawn(move || runnable.run());
        drop((handle, address));
        runs.join().unwrap();
    });
}
