//! Actors in struct form: the `Actor` trait, and the loop that drives such a value.
//!
//! The value becomes an ordinary actor, whose future reads the mailbox and calls the value's
//! methods. `join` returns the value.

use std::future::{Future, ready};
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{self, Poll};

use super::context::Context;
use super::lifecycle::Attempt;
use super::spawn::{ActorBuilder, actor};
use crate::error::Fault;
use crate::task::{loss, run};

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
///
/// Messages of several types are an enum. A type that is not handled does not compile, as long as the
/// `match` has no arm for all others:
///
/// ```compile_fail,E0004
/// # use greenroom::{Actor, Context};
/// # struct Door;
/// enum Push {
///     Open,
///     Close,
/// }
///
/// # impl Actor for Door {
/// #     type Message = Push;
/// async fn handle(&mut self, push: Push, _cx: &mut Context<Push>) {
///     match push {
///         Push::Open => {}
///         // Push::Close is missing
///     }
/// }
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an actor",
    note = "a call of an async fn needs `_` where the context goes: `spawn!(tally(_, 40))`"
)]
// The compiler quotes this line, and that of `handle`, for what is not `Send`.
pub trait Actor: Sized + Send // not `Send`: an async fn, `on = &pinned` or `on = Detached`
{
    /// The type of the messages.
    type Message: Send;

    /// Handles one message. The next message is handled after the returned future completes.
    fn handle(
        &mut self,
        message: Self::Message,
        cx: &mut Context<Self::Message>,
    ) -> impl Future<Output = ()> + Send; // not `Send`: an async fn, `on = &pinned`

    /// Runs before the first message is received; does nothing by default.
    fn started(&mut self, cx: &mut Context<Self::Message>) -> impl Future<Output = ()> + Send {
        let _ = cx;
        ready(())
    }

    /// Returns whether the value goes on after a panic of [`handle`](Actor::handle): `false` by
    /// default.
    ///
    /// With `false`, the panic goes on: the actor ends, or is
    /// [restarted](crate::ActorBuilder::restart). With `true`, the next message is handled. By that,
    /// the implementation promises that the value is consistent, since the panic may have come in
    /// the middle of a change. [`restart`](crate::ActorBuilder::restart) needs no such promise.
    ///
    /// - The future of `handle` was dropped while the panic unwound. The message in hand is not
    ///   retried, and its asker gets [`AskError::NoReply`](crate::AskError::NoReply) with the text of
    ///   the panic. So do the askers of the replies that this method drops.
    /// - Address, messages, sources and children stay.
    /// - The panic is not reported to [`on_fault`](crate::Builder::on_fault). The panic hook has seen
    ///   it.
    ///
    /// A panic of this method replaces the first one, and goes on. Panics of `started` and
    /// `stopped` do not come here.
    ///
    /// ```
    /// use greenroom::{Actor, AskCause, AskError, Context, Fault, Reply, spawn};
    ///
    /// #[derive(Default)]
    /// struct Divider {
    ///     failures: u32,
    /// }
    ///
    /// impl Actor for Divider {
    ///     type Message = (u32, u32, Reply<u32>);
    ///
    ///     async fn handle(&mut self, message: Self::Message, _cx: &mut Context<Self::Message>) {
    ///         let (a, b, reply) = message;
    ///         reply.send(a / b);
    ///     }
    ///
    ///     fn panicked(&mut self, _fault: &Fault, _cx: &mut Context<Self::Message>) -> bool {
    ///         self.failures += 1;
    ///         self.failures < 10
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let divider = spawn!(Divider::default());
    ///     let Err(AskError::NoReply(detail)) = divider.ask(|reply| (1, 0, reply)).await else {
    ///         panic!("there is no reply");
    ///     };
    ///     assert_eq!(*detail.why(), AskCause::Panicked("attempt to divide by zero".into()));
    ///     assert_eq!(divider.ask(|reply| (42, 2, reply)).await, Ok(21));
    ///     assert_eq!(divider.join().await.unwrap().failures, 1);
    /// });
    /// ```
    fn panicked(&mut self, fault: &Fault, cx: &mut Context<Self::Message>) -> bool {
        let _ = (fault, cx);
        false
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

    /// Returns the name of a message in [traces](crate::trace), also in those of
    /// [simulations](crate::sim). An empty name, the default, stands for that of the message's
    /// type.
    ///
    /// Only traces call this. [`handlers!`](crate::handlers!) implements it: a message is named
    /// after its handler. The option [`label`](ActorBuilder::label) replaces it.
    ///
    /// ```
    /// use greenroom::{Actor, Context, spawn};
    ///
    /// struct Door;
    ///
    /// enum Push {
    ///     Open,
    ///     Close,
    /// }
    ///
    /// impl Actor for Door {
    ///     type Message = Push;
    ///
    ///     async fn handle(&mut self, _push: Push, _cx: &mut Context<Push>) {}
    ///
    ///     fn label(push: &Push) -> &'static str {
    ///         match push {
    ///             Push::Open => "Open",
    ///             Push::Close => "Close",
    ///         }
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let door = spawn!(Door);
    ///     door.tell(Push::Open).unwrap(); // traced as "Sent Open to .."
    ///     door.tell(Push::Close).unwrap();
    ///     let Door = door.join().await.unwrap();
    /// });
    /// ```
    fn label(message: &Self::Message) -> &'static str {
        let _ = message;
        ""
    }

    /// Creates a builder for an actor that is this value, as [`actor`](crate::actor()) does for a
    /// function.
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
    ///     let echo = Echo.into_builder().capacity(10).try_spawn()?;
    ///     echo.send("hello".into()).await.unwrap();
    ///     let Echo = echo.join().await.unwrap();
    ///     Ok::<(), greenroom::SpawnError<Echo>>(())
    /// })
    /// .unwrap();
    /// ```
    fn into_builder(self) -> ActorBuilder<Self::Message, Self, impl Future<Output = Self> + Send> {
        ActorBuilder::new(self, drive).label(Self::label)
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
    note = "any other value is an actor if its type implements the trait `greenroom::Actor`, by \
            hand or by `greenroom::handlers!`"
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
        self.into_builder()
    }
}

/// Turns the argument of `spawn!` into a builder. Only the macro calls this.
pub fn into_actor<Kind, A: IntoActor<Kind>>(
    actor: A,
) -> ActorBuilder<A::Message, A, impl Future<Output = A::Output>> {
    actor.into_actor()
}

/// Polls a handler that does not get this context, whose borrow keeps others from receiving
/// meanwhile. So an ask to the actor itself fails in it. Only `handlers!` calls this.
pub fn without_context<'a, M, F: Future>(
    cx: &Context<M>,
    handler: Pin<&'a mut F>,
) -> WithoutContext<'a, F> {
    WithoutContext {
        actor: cx.core().header.id(),
        handler,
    }
}

/// The future of [`without_context`].
pub struct WithoutContext<'a, F> {
    actor: u64,
    handler: Pin<&'a mut F>,
}

impl<F: Future> Future for WithoutContext<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<F::Output> {
        let _noted = run::poll_without_context(self.actor);
        self.handler.as_mut().poll(cx)
    }
}

async fn drive<A: Actor>(mut actor: A, mut cx: Context<A::Message>) -> A {
    actor.started(&mut cx).await;
    while let Some(message) = cx.recv().await {
        let handled = Attempt::new(|| actor.handle(message, &mut cx)).await;
        if let Err(fault) = handled {
            go_on_after(fault, &mut actor, &mut cx);
        }
    }
    actor.stopped(&mut cx).await;
    actor
}

/// Asks a value whether it goes on after a panic of `handle`. If not, the panic goes on.
///
/// The askers that the panic leaves without an answer are notified if the value goes on. Otherwise they
/// are notified at the end of the turn, when the mailbox is closed or the next incarnation is due.
#[cold]
#[inline(never)]
fn go_on_after<A: Actor>(fault: Fault, actor: &mut A, cx: &mut Context<A::Message>) {
    let Fault::Panicked(panic) = &fault else {
        return;
    };
    let detail = cx.core().caught_detail(panic);
    let goes_on = loss::during(|| detail.clone(), || actor.panicked(&fault, cx));
    match fault {
        Fault::Panicked(panic) if !goes_on => resume_unwind(panic.into_payload()),
        _ => loss::complete_caught_for(|| detail),
    }
}
