//! Actors that have the values of the task that spawns them.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task;

use pin_project_lite::pin_project;

use super::ActorBuilder;
use crate::actor::context::Context;
use crate::task_local::{LocalScope, TaskLocals};

impl<M, A, Fut: Future, On> ActorBuilder<M, A, Fut, On> {
    /// Lets the actor have the [values](crate::TaskLocal) that are in scope here.
    ///
    /// They are in scope in all of its turns, and while its state is dropped. With
    /// [`restart`](ActorBuilder::restart) before this, each incarnation has them.
    pub fn inherit(self) -> ActorBuilder<M, Inheriting<M, A, Fut>, InheritingActor<A, Fut>, On> {
        ActorBuilder {
            actor: Inheriting {
                actor: self.actor,
                begin: self.begin,
                values: TaskLocals::current(),
            },
            begin: |of, cx| {
                let future = of.values.clone().run(|| (of.begin)(of.actor, cx));
                InheritingActor {
                    future: of.values.scope(future),
                    _actor: PhantomData,
                }
            },
            options: self.options,
            on: self.on,
        }
    }
}

/// An actor, and the values that it is to have.
pub struct Inheriting<M, A, Fut> {
    actor: A,
    begin: fn(A, Context<M>) -> Fut,
    values: TaskLocals,
}

pin_project! {
    /// The future of an actor that has values. An actor without a name is called after `A` and
    /// `Fut`.
    pub struct InheritingActor<A, Fut> {
        #[pin]
        future: LocalScope<Fut>,
        _actor: PhantomData<fn() -> A>,
    }
}

impl<A, Fut: Future> Future for InheritingActor<A, Fut> {
    type Output = Fut::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<Fut::Output> {
        self.project().future.poll(cx)
    }
}
