//! How pinned threads start.

use std::io;
use std::sync::Arc;

use super::thread::{PinnedThread, ThreadKind};
use crate::runtime::{HostPhase, HostThread, Inner, Starting};
use crate::sync::LEFT_BEHIND;

impl PinnedThread {
    /// Starts a pinned thread of this name.
    pub(super) fn start(runtime: &Arc<Inner>, name: String) -> io::Result<Arc<PinnedThread>> {
        if let Some(at) = name.find('\0') {
            let text = format!("a pinned thread's name has a NUL at byte {at}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if !runtime.is_here() {
            return Err(io::Error::other(LEFT_BEHIND));
        }
        let thread = Arc::new(PinnedThread::new(runtime, name, ThreadKind::Own));
        match thread.enter() {
            Some(started) => started.map(|()| thread),
            None => Err(io::Error::other("the runtime is shutting down")),
        }
    }

    /// Starts a thread for one actor of this name. If the runtime is shutting down, no thread
    /// starts and the returned value accepts nothing.
    pub(super) fn start_detached(
        runtime: &Arc<Inner>,
        name: Option<&str>,
    ) -> io::Result<Arc<PinnedThread>> {
        // The name of an actor is any text; the name of a thread must not contain NUL.
        let name = name
            .unwrap_or("greenroom-detached")
            .replace('\0', "\u{fffd}");
        let thread = Arc::new(PinnedThread::new(runtime, name, ThreadKind::Detached));
        match thread.enter() {
            Some(started) => started?,
            None => thread.close(),
        }
        Ok(thread)
    }

    /// Makes the calling thread a pinned one, which accepts nothing if the runtime is shutting
    /// down.
    pub(super) fn start_here(
        runtime: &Arc<Inner>,
        name: String,
        kind: ThreadKind,
    ) -> Arc<PinnedThread> {
        let thread = Arc::new(PinnedThread::new(runtime, name, kind));
        // A stage counts as activity of the runtime as long as it lives.
        runtime.inc_activity();
        if runtime.hosts.enter(thread.clone(), || Ok(())).is_none() {
            thread.close();
        }
        thread
    }

    /// Starts the thread; returns `None` if the runtime is shutting down.
    fn enter(self: &Arc<Self>) -> Option<io::Result<()>> {
        let runtime = self.runtime();
        // In a simulation a pinned thread has no thread of the system.
        if runtime.is_simulated() {
            return runtime.hosts.enter(self.clone(), || Ok(()));
        }
        let start = || {
            runtime.inc_activity();
            let own = self.clone();
            runtime.start_thread(self.name().to_owned(), move || own.serve())
        };
        // Waits for the thread only when the lock of the hosts is free again.
        let entered = runtime.hosts.enter(self.clone(), start)?;
        let started = entered.and_then(Starting::wait);
        if started.is_err() {
            // A thread that did not start does not count, also if a shutdown has seen it.
            self.set_phase(HostPhase::Ended);
            runtime.dec_activity();
            self.leave();
        }
        Some(started)
    }
}
