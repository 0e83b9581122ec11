//! A lane: a task of the runtime that runs the tasks of loopers, one after another.
//!
//! Between two tasks a lane asks the table which looper goes next. The end of a task and that
//! question are one change of the table. A result is seen only after that change, when the locks of
//! its task have been given back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use super::current;
use super::effects::Effects;
use super::identity::Key;
use super::job::{Job, Ran};
use super::monitor::Monitor;
use super::table::{Next, Table};
use crate::contain::contain;
use crate::runtime::context;
use crate::sync::mutant;
use crate::waker::KeptWaker;

pub(super) struct Lane {
    monitor: Arc<Monitor>,
    number: usize,
    /// The lane has waited, so it tells the table when it looks for work.
    has_waited: bool,
    /// The number of tasks in a turn.
    batch: usize,
    /// The last task of a simulated turn that was split. Its end is noted in the next turn, which
    /// comes after its effects.
    done: Option<Done>,
}

/// A task that was run and has not been reported to the table.
struct Done(Option<Key>, Arc<Job>, Ran);

/// The number of tasks in a turn: enough to be worth a turn, and few enough that actors beside the
/// lane do not wait long.
const BATCH: usize = 32;

impl Lane {
    /// Starts a lane, which the table has counted.
    pub(super) fn start(monitor: &Arc<Monitor>, number: usize) {
        if let Some(runtime) = &monitor.runtime {
            let lane = Lane::new(monitor.clone(), number);
            crate::task::spawn_own(runtime.clone(), lane).detach();
        }
    }

    /// Creates a lane, which the table has counted.
    pub(super) fn new(monitor: Arc<Monitor>, number: usize) -> Self {
        let is_simulated = monitor.runtime.as_ref().is_some_and(|it| it.is_simulated());
        Lane {
            monitor,
            number,
            has_waited: true,
            // In a simulation each task is a step of its own.
            batch: if is_simulated { 1 } else { BATCH },
            done: None,
        }
    }

    /// Reports what was done and returns what comes next, unless the turn is over.
    fn step(&mut self, done: Option<Done>, is_last: bool, waker: &Waker) -> Option<Next> {
        let looks = std::mem::take(&mut self.has_waited);
        let note = |table: &mut Table, effects: &mut Effects| {
            if looks {
                table.lanes.looks(self.number);
            }
            match &done {
                Some(Done(Some(key), _, ran)) => table.has_run(*key, *ran, effects),
                Some(Done(None, ..)) => table.world_has_run(effects),
                None => {}
            }
        };
        let next = |table: &mut Table, effects: &mut Effects| {
            if is_last {
                return None;
            }
            let next = table.next(effects);
            if matches!(next, Next::Wait) && !mutant("a_lane_waits_after_its_look") {
                table.lanes.waits(self.number, KeptWaker::new(waker));
            }
            Some(next)
        };
        // Before those are woken who wait for the end of the looper, or of the controller.
        let next = self.monitor.step(note, next, || {
            if let Some(Done(_, job, Ran::Ended)) = &done {
                job.body.show(&job.origin);
            }
        });
        if mutant("a_lane_waits_after_its_look") && matches!(next, Some(Next::Wait)) {
            let waits = |table: &mut Table| table.lanes.waits(self.number, KeptWaker::new(waker));
            self.monitor.change(|table, _| waits(table));
        }
        if let Some(Done(_, job, _)) = done {
            contain(|| drop(job));
        }
        self.has_waited = matches!(next, Some(Next::Wait));
        next
    }
}

impl Future for Lane {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let this = self.get_mut();
        let mut done = this.done.take();
        for _ in 0..this.batch {
            match this.step(done.take(), false, cx.waker()) {
                Some(Next::Run(key, job)) => done = Some(run(Some(key), job)),
                Some(Next::RunAlone(job)) => done = Some(run(None, job)),
                Some(Next::Wait) => return Poll::Pending,
                Some(Next::End) | None => return Poll::Ready(()),
            }
        }
        match context::has_effects() {
            true => this.done = done,
            false => drop(this.step(done, true, cx.waker())),
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Lets other lanes go on if the runtime drops this one.
impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            self.step(Some(done), true, Waker::noop());
        }
        let number = self.number;
        self.monitor
            .change(|table, effects| table.lost_lane(number, effects));
    }
}

fn run(key: Option<Key>, job: Arc<Job>) -> Done {
    let waker = job.waker().unwrap_or(Waker::noop());
    let mut cx = TaskContext::from_waker(waker);
    let ran = current::during(&job, || job.body.run(&job.origin, &mut cx));
    Done(key, job, ran)
}
