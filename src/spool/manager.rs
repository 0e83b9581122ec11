//! The actor behind a spool: it makes workers, watches them, and keeps the time.
//!
//! Requests and answers pass it by. It is alerted when something falls due earlier than it expects,
//! so that a spool in regular work does not wake it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use futures_core::Stream;
use futures_util::future::BoxFuture;

use super::dispatch::Dispatch;
use super::outbox::Outbox;
use super::pool::Pool;
use super::refusals::RefusalReason;
use super::worker::PoolWorker;
use crate::actor::{Address, Context, Permit, Reply};
use crate::contain::{KeptWaker, attempt};
use crate::instant::Instant;
use crate::task::Unordered;
use crate::time::Alarm;

/// The actor. A trace calls a spool without a name after this type, which therefore has its name of
/// layer_cake.
pub(super) struct ObjectSpool<Q: Send + 'static, R: Send + 'static> {
    pool: Arc<Pool<Q, R>>,
    /// `None` if all workers join from outside.
    factory: Option<Factory<Q, R>>,
    /// The ends of the workers, with their keys and ids.
    ends: Unordered<BoxFuture<'static, (usize, u64)>>,
    /// The waits for room in full mailboxes.
    rooms: Unordered<RoomFuture<Q, R>>,
    alarm: Alarm,
    is_stopping: bool,
    /// Whether its workers were stopped at once.
    stops_now: bool,
}

/// Waits for a permit for the mailbox of the worker with this key and id; `None` if that is closed.
type RoomFuture<Q, R> = BoxFuture<'static, ((usize, u64), Option<Permit<(Q, Reply<R>)>>)>;

/// Makes the worker with this number.
pub(super) type Factory<Q, R> = Box<dyn FnMut(usize) -> Address<(Q, Reply<R>)> + Send>;

impl<Q: Send + 'static, R: Send + 'static> ObjectSpool<Q, R> {
    pub(super) fn new(pool: Arc<Pool<Q, R>>, factory: Option<Factory<Q, R>>) -> Self {
        ObjectSpool {
            pool,
            factory,
            ends: Unordered::new(),
            rooms: Unordered::new(),
            alarm: Alarm::default(),
            is_stopping: false,
            stops_now: false,
        }
    }

    /// Keeps the spool until its last worker has ended after a stop.
    pub(super) async fn run(mut self, mut cx: Context<Infallible>) {
        poll_fn(|task| self.poll(&mut cx, task)).await;
    }

    fn poll(&mut self, cx: &mut Context<Infallible>, task: &mut TaskContext<'_>) -> Poll<()> {
        if !self.is_stopping && Pin::new(&mut *cx).poll_next(task).is_ready() {
            self.is_stopping = true;
            self.pool
                .change(|it, outbox| it.stop(RefusalReason::Aborted, outbox));
        }
        if !self.stops_now && cx.is_stopped_now() {
            self.stops_now = true;
            self.pool.change(|it, outbox| it.stop_workers_now(outbox));
        }
        // Each round leaves the waker before it looks, so that no alert is lost. It ends when nothing
        // is due before the next alarm.
        loop {
            self.watch_workers(task);
            while let Poll::Ready(Some(worker)) = self.ends.poll_next(task) {
                let now = Instant::now();
                self.pool
                    .change(|it, outbox| it.worker_ended(worker, now, outbox));
            }
            while let Poll::Ready(Some((worker, permit))) = self.rooms.poll_next(task) {
                let now = Instant::now();
                self.pool
                    .change(|it, outbox| it.has_room(worker, permit, now, outbox));
            }
            self.make_workers();
            let now = Instant::now();
            let (is_stopped, is_over, alarm) = self.pool.change(|it, outbox| {
                it.sweep(now, outbox);
                (it.stopped.is_some(), it.is_over(), it.alarm)
            });
            if is_stopped {
                cx.trace_state("CLEARING");
            }
            if is_over {
                return Poll::Ready(());
            }
            ready!(self.alarm.poll(alarm, task));
        }
    }

    /// Takes up the workers that are new, or have no room, and leaves the waker.
    fn watch_workers(&mut self, task: &TaskContext<'_>) {
        // What it replaces is dropped when the lock is free.
        let mut waker = Some(KeptWaker::new(task.waker()));
        let (hired, full, late) = self.pool.change(|it, _| {
            std::mem::swap(&mut it.manager, &mut waker);
            let (hired, full) = (std::mem::take(&mut it.hired), std::mem::take(&mut it.full));
            let address = |key: usize| Some((key, it.workers.get(key)?.address.clone()));
            let hired: Vec<_> = hired.into_iter().filter_map(address).collect();
            let full: Vec<_> = full.into_iter().filter_map(address).collect();
            (hired, full, std::mem::take(&mut it.late))
        });
        for mut late in late {
            self.pool.carry_out(&mut late);
        }
        for (key, worker) in hired {
            let (id, worker) = (worker.id(), worker.downgrade());
            self.ends.push(Box::pin(async move {
                worker.closed().await;
                (key, id)
            }));
        }
        for (key, worker) in full {
            self.rooms.push(Box::pin(async move {
                // A worker that is closed ends, so it needs no room.
                let permit = worker.reserve().await.ok();
                ((key, worker.id()), permit)
            }));
        }
    }

    /// Makes the workers that are due. A panic counts as the death of the worker.
    pub(super) fn make_workers(&mut self) {
        let Some(factory) = &mut self.factory else {
            return;
        };
        let now = Instant::now();
        for slot in self.pool.look(|it| it.due(now)) {
            // The function that makes workers may have changed their number.
            if !self.pool.look(|it| it.is_due(slot, now)) {
                continue;
            }
            let made = attempt(|| factory(slot));
            let now = Instant::now();
            self.pool.change(|it, outbox| match made {
                Ok(worker) => it.install(slot, worker, now, outbox),
                Err(_) => it.was_not_made(slot, now, outbox),
            });
        }
    }
}

/// Ends a spool that was killed or cancelled, or never began. After a stop nothing is left.
impl<Q: Send + 'static, R: Send + 'static> Drop for ObjectSpool<Q, R> {
    fn drop(&mut self) {
        let late = self.pool.change(|it, outbox| {
            it.end(outbox);
            std::mem::take(&mut it.late)
        });
        for mut late in late {
            self.pool.carry_out(&mut late);
        }
    }
}

// -- what falls due ---------------------------------------------------------------------------

impl<Q: Send + 'static, R: Send + 'static> Dispatch<Q, R> {
    /// Ends what has expired, and sets the next alarm.
    pub(super) fn sweep(&mut self, now: Instant, outbox: &mut Outbox<Q, R>) {
        let is_late = |worker: &PoolWorker<Q, R>| {
            let until = worker.open.as_ref().and_then(|open| open.until);
            until.is_some_and(|until| until <= now)
        };
        let late = self.workers.iter().filter(|(_, worker)| is_late(worker));
        let late: Vec<_> = late.map(|(key, worker)| (key, worker.number)).collect();
        for (key, number) in late {
            let Some((open, _)) = self.take_open(key, number) else {
                continue;
            };
            let limit = self.limits.worker_time().unwrap_or_default();
            let (client, hash) = (open.info.client, open.info.hash);
            self.refuse_client(client, RefusalReason::TimedOut(limit), open.spare, outbox);
            // The worker is given up for this request alone: it gets the next one. Its late answer
            // finds another assignment.
            self.assign(key);
            self.release(key, now, outbox);
            self.unblock(hash, now, outbox);
        }
        self.drop_stale(now, outbox);
        self.alarm = self.next_alarm();
    }

    fn next_alarm(&self) -> Option<Instant> {
        let open = self
            .workers
            .iter()
            .filter_map(|(_, worker)| worker.open.as_ref());
        let open = open.filter_map(|open| open.until);
        let first = self.crews.iter().filter_map(|crew| crew.waiting.front());
        let first = first.filter_map(|first| self.limits.deadline_of(first.info.arrived));
        let due = self.slots.iter().filter_map(|slot| slot.due);
        open.chain(first).chain(due).min()
    }

    /// Sets the alarm to this instant, if it is later now. The manager then looks at the spool.
    pub(super) fn set_alarm(&mut self, at: Instant, outbox: &mut Outbox<Q, R>) {
        if self.alarm.is_none_or(|alarm| at < alarm) {
            self.alarm = Some(at);
            self.alert(outbox);
        }
    }

    pub(super) fn alert(&mut self, outbox: &mut Outbox<Q, R>) {
        if let Some(manager) = self.manager.take() {
            outbox.alert = Some(manager);
        }
    }

    /// Leaves `late` to the manager. After its end nothing follows from a reply.
    #[cold]
    pub(super) fn leave_for_later(&mut self, mut late: Outbox<Q, R>, outbox: &mut Outbox<Q, R>) {
        // The manager may have been alerted by what it is to do late.
        outbox.alert = late.alert.take();
        self.late.push(late);
        self.alert(outbox);
    }
}
