//! `handlers!`: an actor's messages, its dispatch and a typed address from one list of methods.
//!
//! The methods become methods of the actor as they stand. The message type is the enum that would
//! be written by hand, and dispatch is one `match`. `handlers_steps.rs` makes them.

/// Declares an actor's messages, its dispatch and a typed address as one list of methods.
///
/// ```
/// use greenroom::{Context, FlatError, spawn};
/// use std::time::Duration;
///
/// #[derive(Default)]
/// pub struct Counter {
///     total: u64,
///     name: String,
/// }
///
/// #[derive(Debug, PartialEq)]
/// pub struct TooLong;
///
/// greenroom::handlers! {
///     /// Counts things.
///     pub impl Counter as CounterAddress, CounterMessage {
///         /// Adds `n` to the total.
///         pub async fn add(&mut self, n: u64) {
///             self.total += n;
///         }
///
///         /// Returns the total.
///         pub async fn total(&mut self) -> u64 {
///             self.total
///         }
///
///         /// Renames the counter, and counts that a little later.
///         pub async fn rename(
///             &mut self,
///             name: String,
///             cx: &mut Context<CounterMessage>,
///         ) -> Result<(), TooLong> {
///             if name.len() > 20 {
///                 return Err(TooLong);
///             }
///             self.name = name;
///             cx.send_after(Duration::from_millis(1), CounterMessage::add(1)).detach();
///             Ok(())
///         }
///
///         async fn started(&mut self, _cx: &mut Context<CounterMessage>) {
///             self.name = "nameless".into();
///         }
///     }
/// }
///
/// greenroom::run(async {
///     let counter: CounterAddress = spawn!(Counter::default(), capacity = 10).into();
///     counter.add(3).tell().unwrap();
///     counter.add(4).send().await.unwrap();
///     assert_eq!(counter.total().await, Ok(7));
///     assert_eq!(counter.rename("x".repeat(30)).await, Ok(Err(TooLong)));
///     let renamed = counter.rename("x".repeat(30)).flat().await;
///     assert_eq!(renamed, Err(FlatError::Answer(TooLong)));
///     assert_eq!(counter.total().timeout(Duration::from_secs(60)).await, Ok(7));
/// });
/// ```
///
/// The first name after `as` is that of the address, the second one that of the messages. From the
/// methods the macro makes
///
/// | what | example |
/// |---|---|
/// | methods of the actor, as they stand | `self.add(1).await` in another handler, or in a test |
/// | an enum: its variants have the names of the handlers, and their parameters as fields | `CounterMessage::add(3)` |
/// | a last field for the reply, if the handler has a result | `CounterMessage::total(reply)` |
/// | [`Actor`](crate::Actor) for the type, so that it is spawned like any other value | `spawn!(Counter::default())` |
/// | an address with a method for each handler | `counter.add(3)` |
///
/// A method of the address sends nothing by itself:
///
/// | the handler has | its method returns | to use as |
/// |---|---|---|
/// | no result | [`Unsent`](crate::Unsent) | `.tell()?` or `.send().await?` |
/// | a result, also `-> ()` | [`Ask`](crate::Ask) | `.await?` or `.timeout(..).await?` |
///
/// For [`on_answer`](crate::Context::on_answer) and for other tasks,
/// [`counter.request(CounterMessage::total)`](crate::Address::request) creates a request that
/// borrows nothing.
///
/// An asker of a handler that returns a `Result` gets a `Result` in a `Result`. The outer one tells
/// whether there was an answer. [`flat`](crate::Ask::flat) makes one of both.
///
/// # Handlers
///
/// A handler takes `&mut self` or `&self`, and parameters of the form `name: Type`. It may be an
/// `async fn` or a plain `fn`. The next message is handled after it returns, so a handler that
/// waits holds up its actor. A last parameter whose type begins with `&mut` is the context, and not
/// a part of the message. The [hooks](crate::Actor) `started`, `panicked` and `stopped` may stand
/// among the handlers, and are written as in the trait.
///
/// - The visibility before `impl` is that of the address. The enum with its variants is always
///   `pub`, since the messages of an actor that is `pub` must be. Without `pub impl` the
///   documentation hides it.
/// - The visibility of a handler is that of both methods.
/// - Its comments are on the methods and on the variant. `#[cfg]` and `#[allow]` hold for all of
///   them, `#[must_use]` and `#[deprecated]` for the method of the address, `#[expect]` and
///   `#[inline]` for that of the actor. Other attributes are refused.
/// - Comments before `impl` are those of the address. `#[cfg]` and `#[allow]` hold for everything,
///   `#[derive]` for the messages. A derive needs its trait also for each [`Reply`](crate::Reply),
///   which has no serde of its own.
/// - The types of parameters and results are written out, since `Self` would be the address or the
///   messages. Neither a handler nor the declaration has type parameters: `impl Stack<u32> as ..`
///   is possible, `impl<T> Stack<T> as ..` is not.
/// - Above about 60 handlers, a crate needs a higher `#![recursion_limit]`.
///
/// # Asks to the actor itself
///
/// An actor has one context, and only the context receives. So an `async` handler without it that
/// asks its own actor would wait forever. Such an ask fails instead, in every runtime: its first
/// poll returns [`AskError::Deadlock`](crate::AskError::Deadlock), and no question is sent. That
/// holds for any address of the actor, also a [mapped](crate::Address::map) or
/// [weak](crate::WeakAddress) one, for a [`Request`](crate::Request), and with a
/// [`timeout`](crate::Ask::timeout).
///
/// These ways have an answer:
///
/// - The handler calls the method itself: `self.total().await`.
/// - The handler takes the context, and gives the request to
///   [`on_answer`](crate::Context::on_answer). The answer is a message.
/// - A [task](crate::spawn()) asks for which no handler waits.
///
/// A handler that takes the context may also call [`recv`](crate::Context::recv) while it asks. So
/// its asks to its own actor are sent. One that is awaited without a `recv` waits forever.
///
/// ```
/// use greenroom::{AskError, Context, spawn};
///
/// struct Counter(u64);
///
/// greenroom::handlers! {
///     impl Counter as CounterAddress, CounterMessage {
///         async fn total(&self) -> u64 {
///             self.0
///         }
///
///         async fn twice_by_ask(&self, own: CounterAddress) -> Result<u64, AskError> {
///             Ok(2 * own.total().await?)
///         }
///
///         async fn twice(&self) -> u64 {
///             2 * self.total().await
///         }
///
///         fn double(&mut self, cx: &mut Context<CounterMessage>) {
///             cx.on_answer(cx.address().request(CounterMessage::total), CounterMessage::add);
///         }
///
///         fn add(&mut self, answer: Result<u64, AskError>) {
///             self.0 += answer.unwrap_or(0);
///         }
///     }
/// }
///
/// greenroom::run(async {
///     let handle = spawn!(Counter(21), name = "counter");
///     let counter = CounterAddress::from(handle.address());
///     let Ok(Err(AskError::Deadlock(path))) = counter.twice_by_ask(counter.clone()).await else {
///         panic!("nothing can answer it");
///     };
///     assert_eq!(path.to_string(), format!("\"counter\" #{0} → \"counter\" #{0}", counter.id()));
///     assert_eq!(counter.twice().await, Ok(42));
///     counter.double().tell().unwrap();
///     drop(counter);
///     assert_eq!(handle.join().await.unwrap().0, 42);
/// });
/// ```
///
/// # The address
///
/// It is a cheap clone, and dereferences to its [`Address`](crate::Address) of the messages. It
/// compares and prints as one. So `counter.stop()` stops the actor, unless a handler is called
/// `stop`. It converts from an `Address`, such as [`Name::get`](crate::registry::Name::get) or
/// [`Supervisor::start`](crate::supervise::Supervisor::start) return, and to one.
///
/// It also converts from a [`Handle`](crate::Handle). That gives up the actor's result, as
/// [`detach`](crate::Handle::detach) does: a panic goes to [`on_fault`](crate::Builder::on_fault).
/// To join the actor, keep the handle and convert its address:
///
/// ```
/// # use greenroom::spawn;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # greenroom::handlers! {
/// #     impl Counter as CounterAddress, CounterMessage {
/// #         fn add(&mut self, n: u64) {
/// #             self.0 += n;
/// #         }
/// #     }
/// # }
/// # greenroom::run(async {
/// let handle = spawn!(Counter::default());
/// let counter = CounterAddress::from(handle.address());
/// counter.add(3).tell().unwrap();
/// drop(counter); // so that the actor ends
/// assert_eq!(handle.join().await.unwrap().0, 3);
/// # });
/// ```
///
/// # The messages
///
/// The enum is a plain type, so everything that takes messages takes it: timers,
/// [`map`](crate::Address::map), [`Name`](crate::registry::Name), restarts. A variant is a function
/// of its fields: `address.map(CounterMessage::add)` is an `Address<u64>`. A [trace](crate::trace),
/// also that of a [simulation](crate::sim), names a message after its handler: `Sent add to ..`.
///
/// A message takes the memory and the instructions of an enum and a `match` that are written by
/// hand. An `async fn` takes about 20 instructions more than a plain `fn`, as it does when it is
/// awaited by hand. Without a context it takes a few more, so that asks to its own actor fail.
#[macro_export]
macro_rules! handlers {
    ($(#[$($attribute:tt)*])* $vis:vis impl < $($parameters:tt)*) => {
        ::core::compile_error!(
            "`handlers!` has no type parameters: it takes a type that has all of its own, such as \
             `impl Stack<u32> as ..`"
        );
        $crate::__handlers_have_no_type_parameters! { $($parameters)* }
    };
    (
        $(#[$($attribute:tt)*])*
        pub impl $actor:ty as $address:ident, $message:ident { $($methods:tt)* }
    ) => {
        $crate::__handlers! {
            @read { [$(#[$($attribute)*])*] [pub] [] [$actor] $address $message } cx [] []
            { $($methods)* }
        }
    };
    (
        $(#[$($attribute:tt)*])*
        $vis:vis impl $actor:ty as $address:ident, $message:ident { $($methods:tt)* }
    ) => {
        $crate::__handlers! {
            @read {
                [$(#[$($attribute)*])*] [$vis]
                [
                    #[doc(hidden)]
                    #[allow(
                        private_interfaces, unreachable_pub,
                        reason = "it is `pub` for the compiler alone, if the actor is"
                    )]
                ]
                [$actor] $address $message
            } cx [] []
            { $($methods)* }
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "`handlers!` takes `impl Counter as CounterAddress, CounterMessage { .. }`: the type of \
             the actor, names for an address and for an enum of messages, and methods"
        );
    };
}
