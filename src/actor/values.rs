//! Actors in struct form: the `Actor` trait, and the loop that drives such a value.
//!
//! The value becomes an ordinary actor, whose future reads the mailbox and calls the value's
//! methods. `join` returns the value.

use std::future::{Future, ready};
use std::marker::PhantomData;

use super::context::Context;
use super::spawn::{ActorBuilder, actor};

/// A value that handles messages: the struct form of an actor.
///
/// The value is spawned with `spawn!(Counter::default())`, and [`join`](crate::Handle::join)
/// returns it. Implementations write `async fn handle`. An actor that is not `Send` uses the
/// function form on a [`Pinned`](crate::Pinned) thread.
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
    /// The type of the messages.
    type Message: Send;

    /// Handles one message. The next message is handled after the returned future completes.
    fn handle(
        &mut self,
        message: Self::Message,
        cx: &mut Context<Self::Message>,
    ) -> impl Future<Output = ()> + Send;

    /// Runs before the first message is received; does nothing by default.
    fn started(&mut self, cx: &mut Context<Self::Message>) -> impl Future<Output = ()> + Send {
        let _ = cx;
        ready(())
    }

    /// Runs after the last message; does nothing by default.
    ///
    /// It does not run after a [`kill`](crate::Address::kill), a panic, or a shutdown whose grace
    /// period is over. If one of these comes while it runs, it is dropped at its suspension point,
    /// like any handler.
    fn stopped(&mut self, cx: &mut Context<Self::Message>) -> impl Future<Output = ()> + Send {
        let _ = cx;
        ready(())
    }
}

/// An argument of [`spawn!`](crate::spawn!) that is not a call: a function or closure, or a value
/// that implements `Actor`.
///
/// The compiler infers `Kind`, which tells the two forms apart. No type has both kinds.
///
/// ```compile_fail,E0277
/// greenroom::spawn!(42); // `{integer}` is not an actor
/// ```
///
/// ```compile_fail,E0277
/// let count = 42;
/// greenroom::spawn!({ move |n: u32| async move { count + n } }); // takes no `Context`
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an actor",
    label = "neither takes a `Context` and returns a future, nor implements `Actor`",
    note = "a call of an async fn needs `_` where the context goes: `spawn!(tally(_, 40))`",
    note = "a closure takes the context and returns a future: \
            `|mut cx: Context<u32>| async move {{ .. }}`",
    note = "any other value is an actor if its type implements `Actor`"
)]
pub trait IntoActor<Kind>: Sized {
    /// The type of the messages.
    type Message;
    /// The type of the result that `join` returns.
    type Output;

    /// Turns this into a builder for the actor.
    fn into_actor(self) -> ActorBuilder<Self::Message, Self, impl Future<Output = Self::Output>>;
}

/// The kind of functions and closures that take the context.
pub struct Called<M>(PhantomData<M>);

/// The kind of values that implement [`Actor`].
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

/// Turns the argument of `spawn!` into a builder. Only the macro calls this.
pub fn into_actor<Kind, A: IntoActor<Kind>>(
    actor: A,
) -> ActorBuilder<A::Message, A, impl Future<Output = A::Output>> {
    actor.into_actor()
}

/// Creates a builder for an actor in struct form, as [`actor`](crate::actor()) does for a function.
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
