//! Model 48: the last reference to a cell is dropped on a thread that did not run it.
#![expect(unsafe_code, reason = "references are given up by hand; see CELL-2")]

use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use ::loom::thread::spawn;

use super::super::address::Address;
use super::super::core::ActorOptions;
use super::super::core::CoreArc;
use super::new;
use crate::error::UnhandledFault;
use crate::mailbox::MailboxOptions;
use crate::sync::{Mutex, UnsafeCell};
use crate::task::{ActorExecutor, Executor, Header, LiveIndex, Runnable, TaskHooks};

/// An executor inside the cell, written to when the cell ends and when it is freed.
struct Nest {
    /// The slot for the runnable, until a thread runs it.
    desk: Arc<Mutex<Option<Runnable>>>,
    /// Fails the model if the thread that frees the cell does not see its end.
    written: UnsafeCell<()>,
}

impl Nest {
    fn write(&self) {
        self.written.with_mut(|_| ());
    }
}

// SAFETY: (CELL-2, CELL-3) the end of its cell writes to it, then the thread that frees the cell.
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

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        self
    }
}

impl TaskHooks for Nest {
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
}

/// Ends the cell on one thread while another drops its address and its handle. The last owner frees
/// the cell, and sees all earlier uses of it.
#[test]
fn model_48_thread_that_frees_a_cell_sees_its_end() {
    ::loom::model(|| {
        let desk = Arc::new(Mutex::new(None));
        let nest = Nest {
            desk: desk.clone(),
            written: UnsafeCell::new(()),
        };
        let options = ActorOptions {
            mailbox: MailboxOptions::of(None),
            priority: 0,
            label: None,
        };
        let begin = |(), _cx: crate::Context<()>| async {};
        let (core, _) = new(nest, ((), begin as _), options, Location::caller());
        // SAFETY: (CELL-1, CELL-2) a new cell comes with one address, and with a handle's
        // reference.
        let (address, handle) = unsafe { (Address::from_core(core), CoreArc::from_raw(core)) };
        let runnable = desk.lock().take().expect("a new cell is scheduled");
        let runs = spawn(move || runnable.run());
        drop((handle, address));
        runs.join().unwrap();
    });
}
