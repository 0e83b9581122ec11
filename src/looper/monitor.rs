//! The table of a controller behind its lock, and what is done when that is free.

use std::any::Any;
use std::sync::Arc;

use super::effects::Effects;
use super::hub::{Awaited, Hub};
use super::identity::{Identity, Key};
use super::inbox::{Inbox, Shut};
use super::job::Job;
use super::line::LockState;
use super::place::Place;
use super::seat::Seat;
use super::table::{Limits, Table};
use crate::error::{Deadlock, Fault, UnhandledFault};
use crate::instant::Instant;
use crate::runtime::{Inner, WaitSource, context};
use crate::sync::global::{AtomicU64, Ordering};
use crate::sync::{CachePadded, Mutex, MutexGuard};
use crate::task::TaskHooks;
use crate::waiters::Waiters;

pub(super) struct Monitor {
    /// On cache lines of its own: the rest is read by each post.
    table: CachePadded<Mutex<Table>>,
    pub(super) inbox: CachePadded<Inbox>,
    /// Those that wait for the end of the controller, or until the world does not run.
    pub(super) waiters: Waiters,
    pub(super) limits: Limits,
    /// The number of the controller in this process.
    pub(super) id: u64,
    /// The runtime of the lanes; `None` in a model.
    pub(super) runtime: Option<Arc<Inner>>,
}

/// The number of steps of lanes after which posts are taken in any case.
const POSTS_EVERY: u32 = 8;

impl Monitor {
    pub(super) fn new(limits: Limits, runtime: Option<Arc<Inner>>) -> Arc<Self> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        // In a simulation the order is exact.
        let is_simulated = runtime.as_ref().is_some_and(|it| it.is_simulated());
        let every = if is_simulated { 1 } else { POSTS_EVERY };
        Arc::new(Monitor {
            table: CachePadded(Mutex::new(Table::new(&limits, every))),
            inbox: CachePadded(Inbox::new()),
            waiters: Waiters::new(),
            limits,
            // Relaxed: only the number matters.
            id: IDS.fetch_add(1, Ordering::Relaxed),
            runtime,
        })
    }

    /// Returns the monitor that jobs and loopers know as a hub.
    pub(super) fn of(hub: &Arc<dyn Hub>) -> Arc<Self> {
        let hub: Arc<dyn Any + Send + Sync> = hub.clone();
        hub.downcast().expect("every hub is a monitor")
    }

    /// Locks the table. Earlier effects of a simulated turn come first.
    #[inline]
    fn table(&self) -> MutexGuard<'_, Table> {
        context::apply_effects();
        self.table.lock()
    }

    /// Takes a task without a deadline. Returns whether its looper accepts it.
    #[inline]
    pub(super) fn post(&self, seat: &Seat, job: Arc<Job>) -> bool {
        context::apply_effects();
        let posted = self.inbox.post(seat, job);
        if posted == Some(true) {
            self.change(|_, _| ());
        }
        posted.is_some()
    }

    /// Changes the table, then does what follows.
    #[inline]
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Table, &mut Effects) -> T) -> T {
        self.change_after(Shut::Nothing, change)
    }

    /// Closes something to posts, then changes the table as [`change`](Monitor::change) does.
    pub(super) fn change_after<T>(
        &self,
        shut: Shut<'_>,
        change: impl FnOnce(&mut Table, &mut Effects) -> T,
    ) -> T {
        let mut effects = Effects::default();
        let mut table = self.table();
        if self.inbox.top() > 0 || !matches!(shut, Shut::Nothing) {
            self.take_posts(&mut table, shut, &mut effects);
        }
        let result = change(&mut table, &mut effects);
        self.finish(&mut table, &mut effects);
        drop(table);
        effects.carry_out(&self.waiters);
        result
    }

    /// Notes what a lane has done, then finds what it does next and calls `then` before what follows.
    /// Posts are taken if they may go first, and now and then.
    pub(super) fn step<T>(
        &self,
        note: impl FnOnce(&mut Table, &mut Effects),
        next: impl FnOnce(&mut Table, &mut Effects) -> T,
        then: impl FnOnce(),
    ) -> T {
        let mut effects = Effects::default();
        let mut table = self.table();
        if table.needs_posts(self.inbox.top()) {
            self.take_posts(&mut table, Shut::Nothing, &mut effects);
        }
        note(&mut table, &mut effects);
        let result = next(&mut table, &mut effects);
        self.finish(&mut table, &mut effects);
        drop(table);
        then();
        effects.carry_out(&self.waiters);
        result
    }

    /// Lets the loopers go on that were granted a lock, and takes posts if a lane could serve them.
    #[inline]
    fn finish(&self, table: &mut Table, effects: &mut Effects) {
        table.settle(effects);
        while self.inbox.set_direct(table.lanes.has_spare()) {
            self.take_posts(table, Shut::Nothing, effects);
        }
    }

    fn take_posts(&self, table: &mut Table, shut: Shut<'_>, effects: &mut Effects) {
        let mut posts = std::mem::take(&mut table.posts);
        self.inbox.take(&mut posts, shut);
        for job in posts.drain(..) {
            table.accept(job, effects);
            // Each one is a change, as if it had been posted alone.
            table.settle(effects);
        }
        table.posts = posts;
    }

    /// Returns the time that the steward sees, on whichever thread this is called.
    pub(super) fn now(&self) -> Instant {
        let runtime = self.runtime.as_ref();
        runtime.map_or_else(Instant::now, |it| it.engine().now())
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        self.change(|table, _| look(table))
    }
}

impl Hub for Monitor {
    fn id(&self) -> u64 {
        self.id
    }

    fn report(&self, looper: Option<&Identity>, fault: &Fault) {
        let Some(runtime) = &self.runtime else { return };
        let name = looper.map_or_else(|| "the world".to_owned(), Identity::to_string);
        runtime.report(&UnhandledFault {
            name: Some(&name),
            id: None,
            fault,
            is_source: false,
            is_on_undelivered: false,
        });
    }

    fn cancel(
        &self,
        job: (Option<Key>, *const ()),
        deadline: Option<(Instant, u64)>,
        take: &mut dyn FnMut() -> bool,
    ) -> bool {
        self.change(|table, effects| table.cancel(job, deadline, take, effects))
    }

    fn await_result(&self, looper: Key, of: Box<dyn Awaited>) -> Option<Deadlock> {
        self.change(|table, _| table.await_result(looper, of))
    }

    fn end_await(&self, looper: Key, of: *const ()) {
        self.change(|table, _| table.end_await(looper, of));
    }

    fn ticket(&self, place: &Place, looper: Key) -> u32 {
        let ticket = |state: &mut LockState| state.holders.of(looper).map_or(0, |hold| hold.ticket);
        self.look(|_| ticket(&mut place.state()))
    }

    fn drop_guard(&self, place: &Arc<Place>, ticket: u32) {
        self.change(|table, effects| table.drop_guard(place, ticket, effects));
    }
}

impl WaitSource for Monitor {
    fn lines(&self) -> Vec<String> {
        self.look(Table::waits)
    }
}
