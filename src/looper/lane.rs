//! A lane: a task of the runtime that runs the tasks of loopers, one after another. And the steward,
//! the actor behind a controller that makes the lanes.
//!
//! Between two tasks a lane asks the table which looper goes next. The end of a task and that
//! question are one change of the table. A result is seen only after that change, when the locks of
//! its task have been given back. Regular work does not wake the steward.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker, ready};

use futures_core::Stream;

use super::job::{JobRun, PostedJob, run_as_current};
use super::monitor::{FollowUp, Monitor};
use super::table::{LooperTable, WATCH};
use crate::actor::{Address, Context};
use crate::contain::{KeptWaker, contain};
use crate::instant::Instant;
use crate::runtime::context;
use crate::sync::mutant;
use crate::time::Alarm;

pub(super) struct Lane {
    monitor: Arc<Monitor>,
    number: usize,
    /// The lane is new or has waited, so it tells the table when it looks for work.
    has_waited: bool,
    /// The number of tasks in a turn.
    batch: usize,
    /// The lane stands by at least until then.
    stands_by: Option<Instant>,
    /// The lane never stands by: it is simulated, or part of a model.
    is_timeless: bool,
    /// The last task of a simulated turn that was split. Its end is noted in the next turn, which
    /// comes after its effects.
    done: Option<(Arc<PostedJob>, JobRun)>,
}

/// The number of tasks in a turn: enough to be worth a turn, and few enough that actors beside the
/// lane do not wait long.
const BATCH: usize = 32;

/// The pauses between two looks at the clock of a lane that stands by, if its worker has nothing
/// else to run.
const PAUSES: u32 = 16;

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
        let is_timeless = is_simulated || monitor.runtime.is_none();
        Lane {
            monitor,
            number,
            has_waited: true,
            // In a simulation each task is a step of its own.
            batch: if is_simulated { 1 } else { BATCH },
            stands_by: None,
            is_timeless,
            done: None,
        }
    }

    /// Reports what was done and returns the next job. There is none if the turn is over, or if no
    /// job will ever come.
    fn step(
        &mut self,
        done: Option<(Arc<PostedJob>, JobRun)>,
        is_last: bool,
        waker: &Waker,
    ) -> Poll<Option<Arc<PostedJob>>> {
        let looks = std::mem::take(&mut self.has_waited);
        let now = (is_last && !self.is_timeless).then(Instant::now);
        let stands_by = &mut self.stands_by;
        let change = |table: &mut LooperTable, follow_up: &mut FollowUp| {
            if looks {
                table.lanes.looks(self.number);
            }
            if let Some((job, run)) = &done {
                table.has_run(job, *run, follow_up);
            }
            if is_last {
                let now = now.filter(|now| table.lanes.turn_ended(self.number, *now));
                *stands_by = now.map(|now| now + WATCH);
                return Poll::Ready(None);
            }
            let next = table.next(follow_up);
            if next.is_pending() && !mutant("a_lane_waits_after_its_look") {
                table.lanes.waits(self.number, KeptWaker::new(waker));
            }
            next
        };
        // The outcome is shown before those are woken who wait for the end of the looper or controller.
        // A call that took the work of a job shows its outcome itself.
        let next = self.monitor.step(change, || {
            if let Some((job, JobRun::Ended)) = &done {
                job.show();
            }
        });
        if mutant("a_lane_waits_after_its_look") && next.is_pending() {
            let waits = |table: &mut LooperTable, _: &mut FollowUp| {
                table.lanes.waits(self.number, KeptWaker::new(waker));
            };
            self.monitor.change(waits);
        }
        if let Some((job, _)) = done {
            contain(|| drop(job));
        }
        self.has_waited = next.is_pending();
        next
    }

    /// Returns whether the lane still stands by. If nothing else is ready here, it waits a little.
    fn stands_by(&mut self) -> bool {
        let now = Instant::now();
        self.stands_by = self.stands_by.and_then(|until| match until < now {
            true => {
                let goes_on = |table: &mut LooperTable, _: &mut FollowUp| table.lanes.goes_on(now);
                self.monitor.change(goes_on).then(|| now + WATCH)
            }
            false => Some(until),
        });
        if self.stands_by.is_some() && context::is_alone() {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
        self.stands_by.is_some()
    }
}

impl Future for Lane {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.stands_by.is_some() && this.stands_by() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut done = this.done.take();
        for _ in 0..this.batch {
            let Some(job) = ready!(this.step(done.take(), false, cx.waker())) else {
                return Poll::Ready(());
            };
            let run = run_as_current(&job);
            done = Some((job, run));
        }
        // The last end is noted in this turn, unless the job has effects that come after the turn.
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
            drop(self.step(Some(done), true, Waker::noop()));
        }
        let number = self.number;
        self.monitor
            .change(|table, follow_up| table.lost_lane(number, follow_up));
    }
}

/// Makes lanes, keeps the time, and ends with the runtime.
pub(super) struct Steward {
    monitor: Arc<Monitor>,
    alarm: Alarm,
}

impl Steward {
    pub(super) fn new(monitor: Arc<Monitor>) -> Self {
        Steward {
            monitor,
            alarm: Alarm::default(),
        }
    }

    /// Serves the controller until no task is left and none can be posted.
    pub(super) async fn run(mut self, mut cx: Context<Infallible>) {
        // Without an address the mailbox would be closed.
        let _open: Address<Infallible> = cx.address();
        let mut is_stopping = false;
        poll_fn(|task| {
            if !is_stopping && Pin::new(&mut cx).poll_next(task).is_ready() {
                is_stopping = true;
                self.monitor.change(LooperTable::close_all);
            }
            self.poll(task)
        })
        .await;
    }

    fn poll(&mut self, task: &mut TaskContext<'_>) -> Poll<()> {
        loop {
            let now = Instant::now();
            // The waker is kept in the same change that looks, so that no later change is missed.
            let (is_over, lane, alarm) = self.monitor.change(|table, follow_up| {
                table.steward = Some(KeptWaker::new(task.waker()));
                let lane = table.lanes.is_wanted().then(|| table.lanes.make());
                (table.is_over, lane, table.expire(now, follow_up))
            });
            if is_over {
                return Poll::Ready(());
            }
            if let Some(number) = lane {
                Lane::start(&self.monitor, number);
                continue;
            }
            ready!(self.alarm.poll(alarm, task));
        }
    }
}

/// Drops what is left when the runtime has ended before the controller.
impl Drop for Steward {
    fn drop(&mut self) {
        self.monitor.change(LooperTable::abort);
    }
}
