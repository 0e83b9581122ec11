//! The pinned threads of a runtime: how they are started and asked to end.

use std::io;
use std::sync::Arc;

use super::seat::{ENDED, Kind, RUNNING, Seat};
use crate::runtime::Inner;
use crate::sync::{LEFT_BEHIND, Mutex};
use crate::task::{Look, TaskInfo, TaskKey};

pub(crate) struct Seats(Mutex<All>);

#[derive(Default)]
struct All {
    taken: Vec<Arc<Seat>>,
    closed: bool,
}

impl Seats {
    pub(crate) fn new() -> Self {
        Seats(Mutex::new(All::default()))
    }

    pub(super) fn start(&self, runtime: &Arc<Inner>, name: String) -> io::Result<Arc<Seat>> {
        if let Some(at) = name.find('\0') {
            let text = format!("a pinned thread's name has a NUL at byte {at}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if !runtime.is_here() {
            return Err(io::Error::other(LEFT_BEHIND));
        }
        let seat = Arc::new(Seat::new(runtime, name, Kind::Own));
        let mut all = self.0.lock();
        if all.closed {
            return Err(io::Error::other("the runtime is shutting down"));
        }
        let started = all.start(&seat);
        drop(all);
        started_or_fallen(seat, started)
    }

    /// Adds a stage, which has its thread; if the runtime is shutting down it takes nothing.
    pub(super) fn enter(&self, seat: &Arc<Seat>) {
        let mut all = self.0.lock();
        match all.closed {
            true => seat.close(),
            false => all.taken.push(seat.clone()),
        }
    }

    /// A thread for one actor of this name; if the runtime is shutting down there is none, and the
    /// seat is one that takes nobody.
    pub(super) fn start_detached(
        &self,
        runtime: &Arc<Inner>,
        name: Option<&str>,
    ) -> io::Result<Arc<Seat>> {
        // An actor's name is any text, a thread's has no NUL.
        let name = name
            .unwrap_or("greenroom-detached")
            .replace('\0', "\u{fffd}");
        let seat = Arc::new(Seat::new(runtime, name, Kind::Detached));
        let mut all = self.0.lock();
        if all.closed {
            seat.close();
            return Ok(seat);
        }
        let started = all.start(&seat);
        drop(all);
        started_or_fallen(seat, started)
    }

    /// A thread has ended by itself; while the runtime is closing it stays, to be asked how far it is.
    pub(super) fn leave(&self, seat: &Arc<Seat>) {
        let mut all = self.0.lock();
        if !all.closed {
            all.taken.retain(|taken| !Arc::ptr_eq(taken, seat));
        }
        drop(all);
        seat.runtime().leave_seat();
    }

    fn seats(&self) -> Vec<Arc<Seat>> {
        self.0.lock().taken.clone()
    }

    /// How many actors live on all of them.
    pub(crate) fn cells(&self) -> usize {
        self.seats().iter().map(|seat| seat.registry.cells()).sum()
    }

    /// How many plain tasks that have waited live on all of them.
    pub(crate) fn tasks(&self) -> usize {
        self.seats().iter().map(|seat| seat.registry.tasks()).sum()
    }

    /// Tells of the actors on all of them.
    pub(crate) fn describe_cells(&self, mut each: impl FnMut(TaskInfo, Look)) {
        for seat in self.seats() {
            seat.registry.describe_cells(&mut each);
        }
    }

    /// Lets nothing new begin.
    pub(crate) fn close_to_cells(&self) {
        self.0.lock().closed = true;
        self.seats().iter().for_each(|seat| seat.close());
    }

    /// Asks all actors to end; what is queued by then has its run before the threads end.
    pub(crate) fn stop_cells(&self) {
        self.seats().iter().for_each(|seat| seat.stop_cells());
    }

    /// How many that were queued before the shutdown have not been taken yet.
    pub(crate) fn before(&self) -> usize {
        self.seats().iter().map(|seat| seat.before()).sum()
    }

    /// In a simulation: cancels all that lives here but what is exempt; says how much is left.
    pub(crate) fn clear(&self, exempt: &[TaskKey]) -> usize {
        let seats = self.seats();
        seats.iter().map(|seat| seat.clear_simulated(exempt)).sum()
    }

    /// All that there are, of which none is looked at any more.
    pub(crate) fn take(&self) -> Vec<Arc<Seat>> {
        std::mem::take(&mut self.0.lock().taken)
    }

    /// Tells all threads to end.
    pub(crate) fn finish(&self) {
        self.seats().iter().for_each(|seat| seat.finish());
    }

    /// Whether no thread has anything left but what awaits the shutdown.
    pub(crate) fn all_ended(&self) -> bool {
        self.seats().iter().all(|seat| seat.stage() != RUNNING)
    }

    /// Lets go of all; says how many are left behind, and on which something may still live.
    pub(crate) fn let_go(&self) -> (usize, Vec<Arc<Seat>>) {
        let (mut left_behind, mut staying) = (0, self.take());
        staying.retain(|seat| {
            let stage = seat.stage();
            left_behind += usize::from(stage == RUNNING);
            stage != ENDED
        });
        (left_behind, staying)
    }
}

/// A thread that was not started is not counted.
fn started_or_fallen(seat: Arc<Seat>, started: io::Result<()>) -> io::Result<Arc<Seat>> {
    if started.is_err() {
        seat.runtime().fall();
    }
    started.map(|()| seat)
}

impl All {
    fn start(&mut self, seat: &Arc<Seat>) -> io::Result<()> {
        let runtime = seat.runtime();
        // In a simulation it has no thread.
        if runtime.simulation().is_none() {
            runtime.rise();
            let (name, own) = (seat.name().to_owned(), seat.clone());
            runtime.blocking.crew.start(name, move || own.serve())?;
        }
        self.taken.push(seat.clone());
        Ok(())
    }
}
