//! An actor with a guard: a value that is dropped after the state of the actor.
//!
//! The guard is dropped in the actor's last run, before its messages are passed on and before it
//! counts as ended. So it is if the actor never begins. A restart does not drop it.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use pin_project_lite::pin_project;

use super::context::Context;
use super::spawn::ActorBuilder;

/// What is spawned, with its guard.
pub(crate) struct GuardedActor<G, M, A, Fut> {
    actor: A,
    begin: fn(A, Context<M>) -> Fut,
    guard: G,
}

pin_project! {
    /// The future of a guarded actor. Its name has the types by which an actor is called.
    pub(crate) struct GuardedFuture<G, A, Fut> {
        #[pin]
        future: Fut,
        // Dropped last.
        guard: G,
        actor: PhantomData<fn(A)>,
    }
}

/// The builder of a guarded actor.
type GuardedBuilder<G, M, A, Fut, On> =
    ActorBuilder<M, GuardedActor<G, M, A, Fut>, GuardedFuture<G, A, Fut>, On>;

impl<M, A, Fut, On> ActorBuilder<M, A, Fut, On> {
    /// Gives the actor a guard.
    pub(crate) fn guarded<G>(self, guard: G) -> GuardedBuilder<G, M, A, Fut, On> {
        self.rebuild(Ok(()), GuardedFuture::begin, |actor, begin| GuardedActor {
            actor,
            begin,
            guard,
        })
    }
}

impl<G, A, Fut> GuardedFuture<G, A, Fut> {
    fn begin<M>(what: GuardedActor<G, M, A, Fut>, context: Context<M>) -> Self {
        let GuardedActor {
            actor,
            begin,
            guard,
        } = what;
        GuardedFuture {
            future: begin(actor, context),
            guard,
            actor: PhantomData,
        }
    }
}

impl<G, A, Fut: Future> Future for GuardedFuture<G, A, Fut> {
    type Output = Fut::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Fut::Output> {
        self.project().future.poll(cx)
    }
}
