//! A spool as its clients see it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_core::Stream;

use super::limits::{SpoolError, judge_workers};
use super::pool::Pool;
use super::refusals::{RefusalReason, SpoolStatus};
use crate::actor::{Address, Ask, Context, Reply, Request};
use crate::error::{Refusal, SendError, TellError};
use crate::instant::Instant;

/// A pool of worker actors, which answer requests `Q` with `R`.
///
/// A request goes to the worker that has been idle longest. While no worker is idle, requests wait
/// in order of arrival. An answer frees its worker: a [`Reply`] that the worker passes on keeps it
/// busy until the reply is answered or dropped. [The module](super) lists the refusals.
///
/// A clone is cheap. When the last clone and the last [`address`](Spool::address) are dropped, the
/// spool stops. To supervise a spool, give it to an actor that [serves](Spool::serve) it.
///
/// ```
/// use greenroom::spool::Spool;
/// use greenroom::{AskError, Context, RefusalKind, Reply, spawn};
/// use std::time::Duration;
///
/// async fn texture(mut cx: Context<(usize, Reply<Vec<u8>>)>) {
///     while let Some((size, reply)) = cx.recv().await {
///         reply.send(vec![0; size]);
///     }
/// }
///
/// greenroom::run(async {
///     let spool = Spool::builder(|_| spawn!(texture(_)))
///         .workers(4)
///         .capacity(100)
///         .responsiveness(Duration::from_secs(1))
///         .spawn()?;
///     match spool.ask(64).await {
///         Ok(table) => assert_eq!(table.len(), 64),
///         Err(AskError::Refused(refusal)) => match refusal.kind() {
///             RefusalKind::Busy | RefusalKind::Overloaded => println!("later: {refusal}"),
///             _ => println!("{refusal}"),
///         },
///         Err(error) => println!("{error}"),
///     }
///     Ok::<(), greenroom::spool::SpoolError>(())
/// })
/// .unwrap();
/// ```
#[doc(alias = "ObjectSpool")]
pub struct Spool<Q, R> {
    pub(super) address: Address<(Q, Reply<R>)>,
    pub(super) pool: Arc<Pool<Q, R>>,
}

impl<Q: Send + 'static, R: Send + 'static> Spool<Q, R> {
    /// Sends a request when first polled, and waits for the answer.
    ///
    /// # Errors
    /// As [`Address::ask`]. The spool's own refusals are
    /// [`AskError::Refused`](crate::AskError::Refused); [the module](super) lists them.
    ///
    /// A worker that asks its own spool needs another idle worker. Deadlock detection does not see
    /// the workers.
    ///
    /// # Panics
    /// As [`Address::ask`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request. A request that waits is then dropped unhandled.
    #[expect(
        clippy::type_complexity,
        reason = "an ask has the type of its question"
    )]
    pub fn ask(
        &self,
        question: Q,
    ) -> Ask<'_, (Q, Reply<R>), R, impl FnOnce(Reply<R>) -> (Q, Reply<R>) + use<Q, R>> {
        self.address.ask(move |reply| (question, reply))
    }

    /// Creates a request that borrows nothing, as [`Address::request`] does.
    pub fn request(&self, question: Q) -> Request<R> {
        self.address.request(move |reply| (question, reply))
    }

    /// Gives a request to the spool, with the reply for its outcome. Never waits.
    ///
    /// # Errors
    /// [`TellError`] with the request, if the spool stops or has ended. All other outcomes reach
    /// the reply.
    pub fn tell(&self, question: Q, reply: Reply<R>) -> Result<(), TellError<(Q, Reply<R>)>> {
        self.address.tell((question, reply))
    }

    /// Gives a request to the spool as [`tell`](Spool::tell) does. It waits for nothing, since a
    /// spool without room refuses.
    ///
    /// # Errors
    /// [`SendError`] with the request, if the spool stops or has ended. All other outcomes reach the
    /// reply.
    ///
    /// # Panics
    /// As [`Address::send`].
    ///
    /// # Cancel safety
    /// As [`Address::send`].
    pub fn send(
        &self,
        question: Q,
        reply: Reply<R>,
    ) -> impl Future<Output = Result<(), SendError<(Q, Reply<R>)>>> + use<'_, Q, R> {
        self.address.send((question, reply))
    }

    /// Returns an address of the spool, which looks like that of a worker.
    ///
    /// Requests to it have the same outcomes as those to the spool. It keeps the spool open.
    pub fn address(&self) -> Address<(Q, Reply<R>)> {
        self.address.clone()
    }

    /// Returns the name of the spool, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.address.name()
    }

    /// Changes the number of workers that the spool makes: from 1 to 1 048 576.
    ///
    /// New workers are made soon. Workers that are too many are stopped, those with a request once
    /// it is answered. A spool that stops does not change.
    ///
    /// # Errors
    /// [`SpoolError`] if the number is out of range, or if the workers of this spool join from
    /// outside.
    pub fn resize(&self, workers: usize) -> Result<(), SpoolError> {
        let parameters = || "unexpected parameters of `resize`".to_owned();
        judge_workers(workers, parameters)?;
        let now = Instant::now();
        self.pool.change(|dispatch, outbox| {
            if dispatch.limits.is_external {
                let text = "the workers of this spool join from outside, so it has no size";
                return Err(SpoolError::Parameters(text.to_owned()));
            }
            dispatch.resize(workers, now, outbox);
            Ok(())
        })
    }

    /// Adds a worker from outside, which at once takes the oldest request that waits.
    ///
    /// It serves until it [leaves](Spool::leave) or ends; then it has no successor. An actor that
    /// has joined is not added again, nor is the spool itself, and a spool that stops adds none. The
    /// spool keeps an address of the worker and does not stop it.
    #[doc(alias = "JoinSpool")]
    pub fn join_worker(&self, worker: Address<(Q, Reply<R>)>) {
        if worker == self.address {
            return;
        }
        let now = Instant::now();
        let refused = self
            .pool
            .change(|dispatch, outbox| dispatch.join(worker, now, outbox));
        drop(refused);
    }

    /// Removes a worker that has joined. Returns false if it has not, or was removed before.
    ///
    /// The client of its request gets `Aborted`. Without any worker, the requests that wait get
    /// `Unavailable`.
    #[doc(alias = "LeaveSpool")]
    pub fn leave(&self, worker: &Address<(Q, Reply<R>)>) -> bool {
        let (id, now) = (worker.id(), Instant::now());
        self.pool
            .change(|dispatch, outbox| dispatch.leave(id, now, outbox))
    }

    /// Returns the state of the spool.
    pub fn status(&self) -> SpoolStatus {
        self.pool.look(|dispatch| dispatch.status())
    }

    /// Stops the spool. Unlike [`Address::stop`], it does not handle the requests that wait.
    ///
    /// New requests and those that wait end with `Aborted`, before this returns. The workers that
    /// the spool has made are stopped: each first answers the request that it has. A request whose
    /// reply a worker has passed on ends with `Aborted` when that worker has ended.
    pub fn stop(&self) {
        self.address.stop();
        // A worker that becomes free before the manager runs gets no other request.
        self.pool
            .change(|it, outbox| it.stop(RefusalReason::Aborted, outbox));
    }

    /// Stops the spool, and ends its workers after the request in hand.
    ///
    /// New requests and those that wait end with `Aborted`, before this returns. So do those that a
    /// worker has accepted and does not handle yet, when it has ended. The workers that the spool
    /// has made are stopped as [`Address::stop_now`] does.
    ///
    /// ```
    /// use greenroom::spool::Spool;
    /// use greenroom::{AskError, Context, RefusalKind, Reply, spawn};
    ///
    /// async fn worker(mut cx: Context<(u32, Reply<u32>)>) {
    ///     while let Some((number, reply)) = cx.recv().await {
    ///         reply.send(number);
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let spool = Spool::builder(|_| spawn!(worker(_))).workers(4).spawn().unwrap();
    ///     spool.stop_now();
    ///     let Err(AskError::Refused(refusal)) = spool.ask(1).await else {
    ///         panic!("the spool is stopped");
    ///     };
    ///     assert_eq!(refusal.kind(), RefusalKind::Aborted);
    ///     spool.join().await.unwrap_err();
    /// });
    /// ```
    #[doc(alias("cancel", "exit", "shutdown"))]
    pub fn stop_now(&self) {
        self.address.stop_now();
        self.pool.change(|it, outbox| {
            it.stop(RefusalReason::Aborted, outbox);
            it.stop_workers_now(outbox);
        });
    }

    /// Kills the workers, and ends the spool. All requests end with `Aborted`.
    pub fn kill(&self) {
        self.address.kill();
    }

    /// Waits until the spool and the workers that it has made have ended.
    ///
    /// # Errors
    /// Always [`Aborted`](crate::RefusalKind::Aborted): the spool was stopped or
    /// killed, its runtime has shut down, or it has lost a worker that is not replaced.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    pub async fn join(&self) -> Result<(), Refusal> {
        self.address.closed().await;
        for worker in self.pool.look(|it| it.killed.clone()) {
            worker.closed().await;
        }
        Err(self.pool.stopped().into())
    }

    /// Passes the requests of an actor to this spool, until either of them ends.
    ///
    /// So a spool can be supervised, named or registered as any other actor. When the actor is
    /// closed, the spool is stopped, and this waits for its workers.
    ///
    /// # Errors
    /// If the spool ends first, the reason, as [`join`](Spool::join).
    ///
    /// ```
    /// use greenroom::spool::Spool;
    /// use greenroom::supervise::{Restarts, Supervisor};
    /// use greenroom::{Context, Refusal, Reply, actor, spawn};
    ///
    /// type Work = (u32, Reply<u32>);
    ///
    /// async fn doubler(mut cx: Context<Work>) {
    ///     while let Some((number, reply)) = cx.recv().await {
    ///         reply.send(number * 2);
    ///     }
    /// }
    ///
    /// async fn doublers(cx: Context<Work>) -> Result<(), Refusal> {
    ///     let spool = Spool::builder(|_| spawn!(doubler(_))).stand_down(None).spawn().unwrap();
    ///     spool.serve(cx).await
    /// }
    ///
    /// greenroom::run(async {
    ///     let tree = Supervisor::builder().spawn().unwrap();
    ///     let restarts = Restarts::when(|result| !matches!(result, Ok(Ok(()))));
    ///     let doublers = tree.start(actor(doublers).restart(restarts)).unwrap();
    ///     assert_eq!(doublers.ask(|reply| (21, reply)).await, Ok(42));
    ///     tree.stop();
    ///     tree.join().await.unwrap();
    /// });
    /// ```
    pub async fn serve(self, mut cx: Context<(Q, Reply<R>)>) -> Result<(), Refusal> {
        let mut ended = std::pin::pin!(self.address.closed());
        loop {
            // The end comes first: a spool that has ended refuses what would be received.
            let next = poll_fn(|task| match ended.as_mut().poll(task) {
                Poll::Ready(()) => Poll::Ready(Err(Refusal::from(self.pool.stopped()))),
                Poll::Pending => Pin::new(&mut cx).poll_next(task).map(Ok),
            });
            let Some((question, reply)) = next.await? else {
                break;
            };
            if let Err(closed) = self.tell(question, reply) {
                let (_question, reply) = closed.into_inner();
                reply.refuse(self.pool.stopped().into());
            }
        }
        self.stop();
        ended.await;
        Ok(())
    }
}

impl<Q, R> Clone for Spool<Q, R> {
    fn clone(&self) -> Self {
        Spool {
            address: self.address.clone(),
            pool: self.pool.clone(),
        }
    }
}

impl<Q, R> fmt::Debug for Spool<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spool").field(&self.address).finish()
    }
}
