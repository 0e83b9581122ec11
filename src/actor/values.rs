//! Actors that are values: the trait, and how such a value is driven.
//!
//! A value is an actor like any other, whose future reads the mailbox and calls the value. What
//! `join` gives back is the value.

use std::future::{Future, ready};
use std::marker::PhantomData;

use super::context::Context;
use super::spawn::{ActorBuilder, actor};

/// A value that handles messages: the struct form of an actor.
///
/// It is spawned as a value, `spawn!(Counter::default())`, and [`join`](crate::Handle::join) gives it
/// back. Implementations write `async fn handle`. What must not leave its thread uses the function
/// form on a [`Pinned`](crate::Pinned) thread.
///
/// ```
/// use greenroom::{Actor, Context, spawn};
///
/// #[derive(Default)]
/// struct Counter {
///     total: u64,
/// }
///
/// impl Actor for Counter {
///     type Message = u64;
///
///     async fn handle(&mut self, number: u64, _cx: &mut Context<u64>) {
///         self.total += number;
///     }
/// }
///
/// greenroom::run(async {
///     let counter = spawn!(Counter { total: 40 }, name = "counter");
///     counter.tell(2).unwrap();
///     assert_eq!(counter.join().await.unwrap().total, 42);
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an actor",
    note = "a call of an async fn needs `_` where the context goes: `spawn!(tally(_, 40))`"
)]
pub trait Actor: Send + Sized {
    /// What it is told.
    type Message: Send;

    /// Handles one message; the next one is handled when this is done.
    fn handle(
        &mut self,
        message: Self::Message,
        cx: &mut Context<Self::Message>,
    ) -> impl Future<Output = ()> + Send;

    /// Comes before the first message.
    fn started(&mut self, cx: &mut Context<Self::Message>) -> impl Future<Output = ()> + Send {
        let _ = cx;
        ready(())
    }

    /// Comes after the last message; not after [`kill`](crate::Address::kill), a panic, or the
    /// shutdown's end, which drop it where it waits as they do with any handler.
    fn stopped(&mut self, cx: &mut Context<Self::Message>) -> impl Future<Output = ()> + Send {
        let _ = cx;
        ready(())
    }
}

/// What [`spawn!`](crate::spawn!) takes but a call: a function or closure, or a value that is an actor.
///
/// `Kind` tells the two apart, and is found by the compiler: nothing is both.
///
/// ```compile_fail,E0277
/// greenroom::spawn!(42); // `{integer}` is not an actor
/// ```
///
/// ```compile_fail,E0277
/// let count = 42;
/// greenroom::spawn!({ move |n: u32| async move { count + n } }); // it takes no context
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an actor",
    label = "neither takes a `Context` and gives a future, nor implements `Actor`",
    note = "a call of an async fn needs `_` where the context goes: `spawn!(tally(_, 40))`",
    note = "a closure takes the context, and gives a future: `|mut cx: Context<u32>| async move {{ .. }}`",
    note = "any other value is an actor if its type implements `Actor`"
)]
pub trait IntoActor<Kind>: Sized {
    /// What it is told.
    type Message;
    /// What `join` gives.
    type Output;

    /// Begins it.
    fn into_actor(self) -> ActorBuilder<Self::Message, Self, impl Future<Output = Self::Output>>;
}

/// The kind of what is called with the context.
pub struct Called<M>(PhantomData<M>);

/// The kind of what implements [`Actor`].
pub struct Valued;

impl<M, F, Fut> IntoActor<Called<M>> for F
where
    M: Send + 'static,
    F: FnOnce(Context<M>) -> Fut,
    Fut: Future,
{
    type Message = M;
    type Output = Fut::Output;

    fn into_actor(self) -> ActorBuilder<M, F, impl Future<Output = Fut::Output>> {
        actor(self)
    }
}

impl<A: Actor> IntoActor<Valued> for A {
    type Message = A::Message;
    type Output = A;

    fn into_actor(self) -> ActorBuilder<A::Message, A, impl Future<Output = A>> {
        actor_from(self)
    }
}

/// Begins what `spawn!` was given, for that alone.
pub fn into_actor<Kind, A: IntoActor<Kind>>(
    actor: A,
) -> ActorBuilder<A::Message, A, impl Future<Output = A::Output>> {
    actor.into_actor()
}

/// Begins an actor that is a value, as [`actor`](crate::actor()) does for a function.
///
/// ```
/// # use greenroom::{Actor, Context};
/// struct Echo;
///
/// impl Actor for Echo {
///     type Message = String;
///
///     async fn handle(&mut self, text: String, _cx: &mut Context<String>) {
///         println!("{text}");
///     }
/// }
///
/// greenroom::run(async {
///     let echo = greenroom::actor_from(Echo).capacity(10).try_spawn()?;
///     echo.send("hello".into()).await.unwrap();
///     let Echo = echo.join().await.unwrap();
///     Ok::<(), greenroom::SpawnError<Echo>>(())
/// })
/// .unwrap();
/// ```
pub fn actor_from<A: Actor>(
    actor: A,
) -> ActorBuilder<A::Message, A, impl Future<Output = A> + Send> {
    ActorBuilder::new(actor, drive)
}

async fn drive<A: Actor>(mut actor: A, mut cx: Context<A::Message>) -> A {
    actor.started(&mut cx).await;
    while let Some(message) = cx.recv().await {
        actor.handle(message, &mut cx).await;
    }
    actor.stopped(&mut cx).await;
    actor
}
