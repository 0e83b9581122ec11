//! `Watch`: a stream of what changes in a runtime, and the walks that find it.
//!
//! A thread of its own makes the walks while there are viewers, so that a runtime whose workers are
//! all held is seen as well. In a simulation, or if the system starts no thread, the polls of the
//! viewers make them.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;

use super::context;
use super::engine::DueEffects;
use super::handle::Runtime;
use super::inner::Inner;
use super::live_cells::{MarkedWalk, SeenActor};
use super::report::waits_of;
use super::stats::worker_of;
use super::status::TaskReport;
use super::thread_set::ThreadStart;
use super::viewers::{Changes, NextWalk, Viewers, WalkItems, WalkMarks, WalkPlan};
use crate::contain::contain;
use crate::instant::Instant;
use crate::sync::mutant;
use crate::task::{Look, TaskInfo, WaitsFor, run};
use crate::timers::{Armed, DeadlineKind, TimerThread};

/// A stream of what changes in a [`Runtime`], made by [`Runtime::watch`].
///
/// It does not keep the runtime alive, and ends when that has shut down. Dropping it ends the watch.
#[must_use = "a watch that is dropped sees nothing"]
pub struct Watch {
    runtime: Arc<Inner>,
    key: usize,
    /// The deadline of the next walk, if this watch waits for it itself.
    armed: Option<Armed>,
}

// One walk is made at a time, and contains the user code that it calls.
impl UnwindSafe for Watch {}
impl RefUnwindSafe for Watch {}

impl Runtime {
    /// Watches the actors of this runtime, and its statistics.
    ///
    /// The stream begins with an item that has all live actors. After each interval it has one with
    /// the actors that are new, have changed or have ended. All watches of a runtime share one walk
    /// over its actors for that, at the shortest of their intervals. While there is no watch nothing
    /// is done.
    ///
    /// A viewer that is too slow has at most two items that it has not taken. It loses those that
    /// follow, and then gets an item with all actors.
    ///
    /// The walk is made by a thread that runs nothing else. So it also sees a runtime whose workers are
    /// all busy, or blocked. It looks at one actor after the other, as [`report`](Runtime::report) does.
    /// An actor that did not change costs a look and 16 bytes. The thread sleeps at least for as long as
    /// a walk takes, and intervals are at least one millisecond.
    ///
    /// In a simulation the viewers make the walk when they are polled, in virtual time.
    ///
    /// # Blocking
    /// The call starts that thread, if there is none.
    ///
    /// ```
    /// use greenroom::{Context, Runtime, spawn};
    /// use std::time::Duration;
    ///
    /// async fn sink(mut cx: Context<u32>) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let sink = spawn!(sink(_), on = &runtime);
    /// let mut watch = runtime.watch(Duration::from_millis(10));
    /// runtime.block_on(async {
    ///     let all = watch.next().await.unwrap();
    ///     assert!(all.is_whole && all.changed[0].task.id() == sink.id());
    ///     sink.kill();
    ///     while !watch.next().await.unwrap().ended.contains(&sink.id()) {}
    /// });
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[doc(alias("monitor", "subscribe", "console"))]
    #[track_caller]
    pub fn watch(&self, interval: Duration) -> Watch {
        self.inner.check_process();
        let (key, starts) = (self.inner.viewers).enter(interval, !self.inner.is_simulated());
        if starts && start_thread(&self.inner).is_err() {
            self.inner.has_no_watch_thread();
        }
        Watch {
            runtime: self.inner.clone(),
            key,
            armed: None,
        }
    }
}

impl Watch {
    /// Waits for the next item; `None` when the runtime has shut down.
    ///
    /// # Panics
    /// In a child of `fork`. Also, where polls make the walks and no runtime is current, if the
    /// operating system does not start the process's timer thread.
    ///
    /// # Cancel safety
    /// Cancel safe: an item that was not returned is left to the next call.
    pub async fn next(&mut self) -> Option<Arc<Changes>> {
        let next = NextChanges(self);
        poll_fn(|cx| next.0.poll_item(cx)).await
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Changes>>> {
        self.runtime.check_process();
        loop {
            let polled = self.runtime.viewers.poll(self.key, cx);
            if polled.is_ready() {
                self.armed = None;
                return polled;
            }
            match self.runtime.viewers.begin_in_poll() {
                NextWalk::Now(plan) => self.runtime.walk(plan),
                next => {
                    self.arm(next, cx);
                    let what = WaitsFor::Other("a watch of the runtime");
                    run::note_wait_for(cx.waker(), what, || 0);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Makes the task be polled again when the next walk is due, if polls make it.
    fn arm(&mut self, next: NextWalk, cx: &Context<'_>) {
        self.armed = None;
        if let NextWalk::At(next) = next {
            let kind = DeadlineKind::Event;
            let clock = context::clock(kind, cx.waker());
            let armed = clock.and_then(|clock| Armed::new(clock, next, kind, cx.waker()));
            self.armed = armed.or_else(|| Armed::new(TimerThread::clock(), next, kind, cx.waker()));
            run::note_wait_for(cx.waker(), WaitsFor::Other("a timer"), || 0);
        }
    }

    fn stop_waiting(&mut self) {
        self.armed = None;
        // A thread of the parent process may have held the lock at a fork.
        if self.runtime.is_here() {
            self.runtime.viewers.forget(self.key);
        }
    }
}

/// A wait for the next item.
struct NextChanges<'a>(&'a mut Watch);

impl Drop for NextChanges<'_> {
    fn drop(&mut self) {
        self.0.stop_waiting();
    }
}

impl Stream for Watch {
    type Item = Arc<Changes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_item(cx)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.armed = None;
        if self.runtime.is_here() {
            self.runtime.viewers.leave(self.key);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// Starts the thread that makes the walks of a runtime.
fn start_thread(runtime: &Arc<Inner>) -> std::io::Result<()> {
    let name = format!("{}-watch", runtime.options().thread_name);
    let (viewers, weak) = (runtime.viewers.clone(), Arc::downgrade(runtime));
    let threads = runtime.threads.clone();
    let body = move || {
        serve(&viewers, &weak, || threads.leave());
        with_runtime(&weak, |runtime| runtime.shutdown.progress());
    };
    runtime.start_thread(name, body).and_then(ThreadStart::wait)
}

/// Makes the walks of a runtime while it has viewers.
fn serve(viewers: &Viewers, runtime: &Weak<Inner>, leave: impl Fn()) {
    while let Some(plan) = viewers.wait_for_walk(&leave) {
        with_runtime(runtime, |runtime| runtime.walk(plan));
    }
}

/// Calls `f` with the runtime, unless it was dropped.
fn with_runtime(runtime: &Weak<Inner>, f: impl FnOnce(&Inner)) {
    if let Some(runtime) = runtime.upgrade() {
        f(&runtime);
        // This may be the last reference, to functions of the user.
        contain(|| drop(runtime));
    }
}

impl Inner {
    /// Notes that no thread was started for the walks.
    pub(super) fn has_no_watch_thread(&self) {
        self.viewers.has_no_thread();
        if !mutant("a_watch_without_a_thread_tells_no_shutdown") {
            self.shutdown.progress();
        }
    }

    /// Looks at all actors, and gives the viewers their items.
    fn walk(&self, mut plan: WalkPlan) {
        // In a simulation, effects of turns may be deferred, and would be missed here (SIM-4).
        self.engine().apply(self, DueEffects::All);
        let at = Instant::now();
        let mut found = FoundActors::default();
        self.look_again(&mut plan, &mut found);
        self.name_waits(&plan.marks, &mut found);
        let FoundActors {
            reports,
            changed,
            ended,
            ..
        } = found;
        let (stats, seen) = (self.figures(), plan.marks.faults);
        let faults = match plan.wants_whole {
            true => self.faults.after(0),
            false => self.faults.after(seen),
        };
        plan.marks.faults = faults.last().map_or(seen, |last| last.number);
        let mut items = WalkItems::default();
        if plan.wants_changes {
            let later = faults.iter().filter(|fault| fault.number > seen);
            items.changes = Some(Arc::new(Changes {
                is_whole: false,
                at,
                stats: stats.clone(),
                changed: changed.iter().map(|&at| reports[at].clone()).collect(),
                ended,
                faults: later.cloned().collect(),
            }));
        }
        if plan.wants_whole {
            items.whole = Some(Arc::new(Changes {
                is_whole: true,
                at,
                stats,
                changed: reports,
                ended: Vec::new(),
                faults,
            }));
        }
        self.viewers.end_walk(plan, &items);
    }

    fn look_again(&self, plan: &mut WalkPlan, found: &mut FoundActors) {
        let WalkMarks {
            seeds,
            workers,
            hosts,
            registered,
            ..
        } = &mut *plan.marks;
        registered.look_again(self.directory());
        let turns = self.running();
        let beside = |id, look: &Look| {
            let busy = || {
                self.busy
                    .of(id)
                    .map_or(0, |times| times.all.as_nanos() as u64)
            };
            let worker = match look.is_dormant {
                true => None,
                false => worker_of(id, &turns),
            };
            let busy = if self.has_observer() { busy() } else { 0 };
            // Together in one word of a hash: a few workers, and nanoseconds.
            busy << 8 ^ worker.map_or(0, |worker| worker as u64 + 1)
        };
        let mut walk = MarkedWalk {
            seeds,
            is_whole: plan.wants_whole,
            beside: &beside,
            registered: &registered.changed,
            each: &mut |actor, has_changed| found.add(self, actor, has_changed),
            ended: Vec::new(),
        };
        workers.look_again(&self.live, &mut walk);
        let mut before = std::mem::take(hosts);
        self.hosts.for_each_live(|key, live| {
            let mut marks = before.remove(&key).unwrap_or_default();
            marks.look_again(live, &mut walk);
            hosts.insert(key, marks);
        });
        // What lived on a host that is gone has ended.
        for marks in before.values_mut() {
            marks.end(&mut walk.ended);
        }
        found.ended = walk.ended;
        let actors = found.reports.iter_mut().filter_map(|it| it.actor.as_mut());
        actors.for_each(|actor| {
            self.place(actor, &turns);
            actor.name(registered);
        });
    }

    /// Adds to the reports who is waited for.
    fn name_waits(&self, marks: &WalkMarks, found: &mut FoundActors) {
        if found.nameless.is_empty() {
            return;
        }
        let waits = found
            .nameless
            .iter()
            .flat_map(|(_, it)| it.waits.as_slice());
        let mut who: HashMap<u64, Option<TaskInfo>> = waits.map(|wait| (wait.to, None)).collect();
        for report in &found.reports {
            if let Some(named) = who.get_mut(&report.task.id()) {
                *named = Some(report.task.clone());
            }
        }
        if who.values().any(Option::is_none) {
            marks.workers.find(&self.live, &mut who);
            self.hosts.for_each_live(|key, live| {
                if let Some(marks) = marks.hosts.get(&key) {
                    marks.find(live, &mut who);
                }
            });
        }
        for (at, actor) in &found.nameless {
            let who = |id| who.get(&id).cloned().flatten();
            found.reports[*at].waits = waits_of(actor, who);
        }
    }
}

/// What a walk has found.
#[derive(Default)]
struct FoundActors {
    reports: Vec<TaskReport>,
    /// The indices of the reports of actors that are new or have changed.
    changed: Vec<usize>,
    /// The indices of the reports of actors that wait for others, and these actors.
    nameless: Vec<(usize, SeenActor)>,
    ended: Vec<u64>,
}

impl FoundActors {
    fn add(&mut self, runtime: &Inner, actor: SeenActor, has_changed: bool) {
        let at = self.reports.len();
        if has_changed {
            self.changed.push(at);
        }
        let waits_for_others = actor.waits.as_slice().iter().any(|wait| wait.to != 0);
        self.reports.push(TaskReport {
            task: actor.info.clone(),
            actor: Some(runtime.status_of(&actor)),
            waits: match waits_for_others {
                true => Vec::new(),
                false => waits_of(&actor, |_| None),
            },
        });
        if waits_for_others {
            self.nameless.push((at, actor));
        }
    }
}
