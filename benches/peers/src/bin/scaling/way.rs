//! The two ways in which the programs are written: on greenroom, and by hand on tokio.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// The operations of a runtime and its actors that the programs use; sends never fail.
pub trait Way: Sized + 'static {
    /// The address of an actor, which keeps the actor alive.
    type Address<M: Send + 'static>: Clone + Send + Sync + 'static;
    /// The receiver of an actor; it ends when no address is left.
    type Inbox<M: Send + 'static>: Send + 'static;
    /// The reply of an ask.
    type Reply: Send + 'static;
    /// The handle of a spawned task.
    type Task: Send + 'static;
    /// The address of an actor with a bounded mailbox.
    type Bounded: Send + Sync + 'static;
    /// The receiver of such an actor.
    type BoundedInbox: Send + 'static;

    /// Runs `driver` as a task on one of `workers` workers and returns its output.
    fn run<T: Send + 'static>(
        workers: usize,
        driver: impl Future<Output = T> + Send + 'static,
    ) -> T;

    /// Spawns an actor from a worker.
    fn actor<M, F>(start: impl FnOnce(Self::Inbox<M>) -> F + Send + 'static) -> Self::Address<M>
    where
        M: Send + 'static,
        F: Future<Output = ()> + Send + 'static;

    /// Sends a message to an actor, which must live.
    fn tell<M: Send + 'static>(to: &Self::Address<M>, message: M);

    /// Returns the next message, or `None` when there will be none.
    fn recv<M: Send + 'static>(
        inbox: &mut Self::Inbox<M>,
    ) -> impl Future<Output = Option<M>> + Send;

    /// Asks an actor whose messages are plain replies, and waits for the reply.
    fn ask(to: &Self::Address<Self::Reply>) -> impl Future<Output = ()> + Send;

    /// Spawns a plain task from a worker.
    fn task(future: impl Future<Output = ()> + Send + 'static) -> Self::Task;

    /// Waits until `time` has passed.
    fn sleep(time: Duration) -> impl Future<Output = ()> + Send;

    /// Spawns an actor whose mailbox has room for `capacity` messages, and which has its address.
    fn bounded<F>(
        capacity: usize,
        start: impl FnOnce(Self::BoundedInbox, Self::Bounded) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static;

    /// Waits for room, and sends.
    fn send(to: &Self::Bounded, message: u64) -> impl Future<Output = ()> + Send;

    /// Returns the next message of a bounded mailbox.
    fn recv_bounded(inbox: &mut Self::BoundedInbox) -> impl Future<Output = Option<u64>> + Send;
}

/// The programs on greenroom.
pub struct Greenroom;

impl Way for Greenroom {
    type Address<M: Send + 'static> = greenroom::Address<M>;
    type Inbox<M: Send + 'static> = greenroom::Context<M>;
    type Reply = greenroom::Reply<()>;
    type Task = greenroom::Task<()>;
    type Bounded = greenroom::Address<u64>;
    type BoundedInbox = greenroom::Context<u64>;

    fn run<T: Send + 'static>(
        workers: usize,
        driver: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let runtime = greenroom::Runtime::builder().workers(workers).build();
        let runtime = runtime.expect("threads can be started");
        runtime.block_on(runtime.spawn(driver))
    }

    fn actor<M, F>(start: impl FnOnce(Self::Inbox<M>) -> F + Send + 'static) -> Self::Address<M>
    where
        M: Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        greenroom::actor(start).spawn().address()
    }

    fn tell<M: Send + 'static>(to: &Self::Address<M>, message: M) {
        assert!(to.tell(message).is_ok(), "the actor lives");
    }

    fn recv<M: Send + 'static>(
        inbox: &mut Self::Inbox<M>,
    ) -> impl Future<Output = Option<M>> + Send {
        inbox.recv()
    }

    async fn ask(to: &Self::Address<Self::Reply>) {
        to.ask(|reply| reply).await.expect("it answers");
    }

    fn task(future: impl Future<Output = ()> + Send + 'static) -> Self::Task {
        greenroom::spawn(future)
    }

    fn sleep(time: Duration) -> impl Future<Output = ()> + Send {
        greenroom::time::sleep(time)
    }

    fn bounded<F>(
        capacity: usize,
        start: impl FnOnce(Self::BoundedInbox, Self::Bounded) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let actor = greenroom::actor(|cx: greenroom::Context<u64>| {
            let own = cx.address();
            start(cx, own)
        });
        actor.capacity(capacity).spawn().detach();
    }

    async fn send(to: &Self::Bounded, message: u64) {
        assert!(to.send(message).await.is_ok(), "the actor lives");
    }

    fn recv_bounded(inbox: &mut Self::BoundedInbox) -> impl Future<Output = Option<u64>> + Send {
        inbox.recv()
    }
}

/// The programs on tokio: a task with an unbounded channel, and a oneshot for a reply.
pub struct Tokio;

impl Way for Tokio {
    type Address<M: Send + 'static> = mpsc::UnboundedSender<M>;
    type Inbox<M: Send + 'static> = mpsc::UnboundedReceiver<M>;
    type Reply = oneshot::Sender<()>;
    type Task = tokio::task::JoinHandle<()>;
    type Bounded = mpsc::Sender<u64>;
    type BoundedInbox = mpsc::Receiver<u64>;

    fn run<T: Send + 'static>(
        workers: usize,
        driver: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(workers).enable_time().build();
        let runtime = runtime.expect("threads can be started");
        let driven = runtime.block_on(async { tokio::spawn(driver).await });
        driven.expect("no panic")
    }

    fn actor<M, F>(start: impl FnOnce(Self::Inbox<M>) -> F + Send + 'static) -> Self::Address<M>
    where
        M: Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (address, inbox) = mpsc::unbounded_channel();
        tokio::spawn(start(inbox));
        address
    }

    fn tell<M: Send + 'static>(to: &Self::Address<M>, message: M) {
        assert!(to.send(message).is_ok(), "the actor lives");
    }

    fn recv<M: Send + 'static>(
        inbox: &mut Self::Inbox<M>,
    ) -> impl Future<Output = Option<M>> + Send {
        inbox.recv()
    }

    async fn ask(to: &Self::Address<Self::Reply>) {
        let (reply, answer) = oneshot::channel();
        Self::tell(to, reply);
        answer.await.expect("it answers");
    }

    fn task(future: impl Future<Output = ()> + Send + 'static) -> Self::Task {
        tokio::spawn(future)
    }

    fn sleep(time: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(time)
    }

    fn bounded<F>(
        capacity: usize,
        start: impl FnOnce(Self::BoundedInbox, Self::Bounded) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (address, inbox) = mpsc::channel(capacity);
        // Otherwise a turn ends after 128 messages, even in the polls of other futures.
        tokio::spawn(tokio::task::unconstrained(start(inbox, address)));
    }

    async fn send(to: &Self::Bounded, message: u64) {
        assert!(to.send(message).await.is_ok(), "the actor lives");
    }

    fn recv_bounded(inbox: &mut Self::BoundedInbox) -> impl Future<Output = Option<u64>> + Send {
        inbox.recv()
    }
}
