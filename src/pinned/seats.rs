//! The pinned threads of a runtime: how they are started, asked to end, and joined.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::seat::{ENDED, Kind, RUNNING, Seat};
use crate::runtime::Inner;
use crate::sync::Mutex;
use crate::task::{Key, TaskInfo};

pub(crate) struct Seats(Mutex<All>);

#[derive(Default)]
struct All {
    /// Those of a simulation have no thread.
    taken: Vec<(Arc<Seat>, Option<JoinHandle<()>>)>,
    /// Threads that have left by themselves, which have only their thread-locals to drop.
    left: Vec<JoinHandle<()>>,
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
            false => all.taken.push((seat.clone(), None)),
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

    /// A thread has ended by itself; while the runtime is closing it is left to be joined.
    pub(super) fn leave(&self, seat: &Arc<Seat>) {
        let mut all = self.0.lock();
        if !all.closed {
            let left = |(taken, _): &mut (Arc<Seat>, _)| Arc::ptr_eq(taken, seat);
            let left: Vec<_> = all.taken.extract_if(.., left).collect();
            all.left
                .extend(left.into_iter().filter_map(|(_, thread)| thread));
        }
        drop(all);
        seat.runtime().leave_seat();
    }

    fn seats(&self) -> Vec<Arc<Seat>> {
        self.0
            .lock()
            .taken
            .iter()
            .map(|(seat, _)| seat.clone())
            .collect()
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
    pub(crate) fn describe_cells(&self, mut each: impl FnMut(TaskInfo, usize)) {
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
    pub(crate) fn clear(&self, exempt: &[Key]) -> usize {
        let seats = self.seats();
        seats.iter().map(|seat| seat.clear_simulated(exempt)).sum()
    }

    /// In a simulation: all that there are, of which none is looked at any more.
    pub(crate) fn take(&self) -> Vec<Arc<Seat>> {
        let taken = std::mem::take(&mut self.0.lock().taken);
        taken.into_iter().map(|(seat, _)| seat).collect()
    }

    /// Tells all threads to end.
    pub(crate) fn finish(&self) {
        self.seats().iter().for_each(|seat| seat.finish());
    }

    /// Whether no thread has anything left but what awaits the shutdown.
    pub(crate) fn all_ended(&self) -> bool {
        self.seats().iter().all(|seat| seat.stage() != RUNNING)
    }

    /// Joins those that have ended; says how many are left behind, and which are not joined.
    pub(crate) fn join(&self) -> (usize, Vec<Arc<Seat>>) {
        let mut all = self.0.lock();
        let (taken, left) = (
            std::mem::take(&mut all.taken),
            std::mem::take(&mut all.left),
        );
        drop(all);
        // One of them may be here, in such a drop.
        let here = std::thread::current().id();
        for thread in left.into_iter().filter(|left| left.thread().id() != here) {
            let _ = thread.join();
        }
        let (mut left_behind, mut staying) = (0, Vec::new());
        for (seat, thread) in taken {
            let stage = seat.stage();
            if stage == ENDED {
                let _ = thread.map(JoinHandle::join);
                continue;
            }
            left_behind += usize::from(stage == RUNNING);
            staying.push(seat);
        }
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
        if seat.runtime().simulation().is_some() {
            self.taken.push((seat.clone(), None));
            return Ok(());
        }
        seat.runtime().rise();
        let own = seat.clone();
        let thread = std::thread::Builder::new()
            .name(seat.name().to_owned())
            .spawn(move || own.serve())?;
        self.taken.push((seat.clone(), Some(thread)));
        self.left.retain(|left| !left.is_finished());
        Ok(())
    }
}
