//! `spawn!`, a short form of [`ActorBuilder`](crate::ActorBuilder).

/// Spawns an actor and returns its [`Handle`](crate::Handle).
///
/// What it spawns is one of three forms:
///
/// | form | the actor |
/// |---|---|
/// | `spawn!(tally(_, 40))` | a call of an `async fn`; `_` stands for the [`Context`](crate::Context) |
/// | `spawn!(\|mut cx: Context<u32>\| async move { .. })` | a closure, or an expression that returns one |
/// | `spawn!(Counter { total: 0 })` | a value whose type implements [`Actor`](crate::Actor) |
///
/// Options follow in any order. Each is a method of [`ActorBuilder`](crate::ActorBuilder):
///
/// | option | value | default |
/// |---|---|---|
/// | [`name = ".."`](crate::ActorBuilder::name) | the name in errors, statistics and traces | none |
/// | [`capacity = 100`](crate::ActorBuilder::capacity) | the bound of the mailbox, in messages | unbounded |
/// | [`overflow = Overflow::Oldest`](crate::ActorBuilder::overflow) | what is done if there is no room | a `send` waits |
/// | [`conflate = key`](crate::ActorBuilder::conflate) | a function for the key, of which the newest message waits | all wait |
/// | [`on_displaced = f`](crate::ActorBuilder::on_displaced) | a function for messages that give way to newer ones | they are dropped |
/// | [`urgent = 64`](crate::ActorBuilder::urgent) | the capacity for urgent messages | no queue for them |
/// | [`urgent_in_a_row = 4`](crate::ActorBuilder::urgent_in_a_row) | the most urgent messages in a row, while others wait | 16 |
/// | [`priority = 1`](crate::ActorBuilder::priority) | 0 up to [`Builder::priorities`](crate::Builder::priorities) | 0 |
/// | [`on = &pinned`](crate::ActorBuilder::on) | a runtime, also of [tokio](crate::docs::with_tokio), a pinned thread, a stage or [`Detached`](crate::Detached) | the current runtime, or its bound tokio |
/// | [`restart = Restarts::on_fault()`](crate::ActorBuilder::restart) | the [rules](crate::supervise::Restarts) by which the actor begins anew after a panic | it ends |
/// | [`on_undelivered = f`](crate::ActorBuilder::on_undelivered) | a function for messages that are never handled | they are dropped |
/// | [`label = f`](crate::ActorBuilder::label) | a function that names messages in traces | their type names them |
/// | [`allow_long_turns`](crate::ActorBuilder::allow_long_turns) | none; no warning is given of long turns | a warning names the actor |
/// | [`show`](crate::ActorBuilder::show) | none; traces of [`sim`](crate::sim) show the messages | hidden |
///
/// ```
/// use greenroom::{Context, spawn};
///
/// async fn greeter(mut cx: Context<String>, greeting: &'static str) {
///     while let Some(name) = cx.recv().await {
///         println!("{greeting}, {name}");
///     }
/// }
///
/// greenroom::run(async {
///     let a = spawn!(greeter(_, "hello"));
///     let b = spawn!(greeter(_, "good day"), name = "polite", capacity = 10);
///     let c = spawn!(|mut cx: Context<u32>| async move { cx.recv().await });
///     a.tell("Ada".into()).unwrap();
///     b.send("Alan".into()).await.unwrap();
///     c.tell(1).unwrap();
///     assert_eq!(c.join().await.unwrap(), Some(1));
/// });
/// ```
///
/// # Evaluation
///
/// The arguments of a call are evaluated where `spawn!` stands, in order, before the actor is
/// spawned. A closure among them needs its parameter types. The callee itself moves into the
/// actor. So pass a receiver as an argument: `Store::serve(store.clone(), _)`, not
/// `store.clone().serve(_)`.
///
/// A closure that a block or a variable provides needs the type of its parameter:
///
/// ```
/// # use greenroom::{Context, spawn};
/// # greenroom::run(async {
/// let limit = std::sync::Arc::new(3);
/// let counter = spawn!({
///     let limit = limit.clone();
///     move |mut cx: Context<()>| async move {
///         for _ in 0..*limit {
///             cx.recv().await;
///         }
///     }
/// }, name = "counter");
/// # (0..3).for_each(|_| counter.tell(()).unwrap());
/// # counter.join().await.unwrap();
/// # });
/// ```
///
/// An expression of more than about a hundred tokens exceeds the compiler's recursion limit. Bind
/// it to a variable first.
///
/// # Panics
///
/// As [`ActorBuilder::spawn`](crate::ActorBuilder::spawn): if no runtime is current, if an option
/// is out of range, or if the thread of a [`Detached`](crate::Detached) actor does not start.
#[macro_export]
macro_rules! spawn {
    ($($actor_then_options:tt)*) => {
        $crate::__spawn!($($actor_then_options)*)
    };
}

/// Parses what `spawn!` is given: the arms with `@` are its steps.
#[doc(hidden)]
#[macro_export]
macro_rules! __spawn {
    // A closure, then options.
    (| $($rest:tt)*) => { $crate::__spawn!(@closure | $($rest)*) };
    (move $($rest:tt)*) => { $crate::__spawn!(@closure move $($rest)*) };
    (async $($rest:tt)*) => { $crate::__spawn!(@closure async $($rest)*) };
    (@closure $closure:expr $(, $option:ident $(= $value:expr)?)* $(,)?) => {
        $crate::actor($closure)$(.$option($($value)?))*.spawn()
    };

    // A call: all tokens before the last parentheses are the callee.
    (@actor [$($callee:tt)+] ($($args:tt)*) $(, $option:ident $(= $value:expr)?)* $(,)?) => {
        $crate::__spawn!(@first [$($args)*] [$($callee)+] [$($args)*] [$(.$option($($value)?))*])
    };
    // Any other value.
    (@actor [$($actor:tt)+] $(, $option:ident $(= $value:expr)?)* $(,)?) => {
        $crate::into_actor($($actor)+)$(.$option($($value)?))*.spawn()
    };
    (@actor [$($actor:tt)*] $next:tt $($rest:tt)*) => {
        $crate::__spawn!(@actor [$($actor)* $next] $($rest)*)
    };
    (@actor $($rest:tt)*) => {
        ::core::compile_error!(
            "`spawn!` takes a call with `_` for the context, such as `spawn!(tally(_, 40))`, a \
             closure, or a value whose type implements `Actor`, then options, such as \
             `name = \"tally\"`"
        )
    };

    // Looks for `_` among the arguments. Without one the call returns a value.
    (@first [_ $(, $($left:tt)*)?] $callee:tt $args:tt $opts:tt) => {
        $crate::__spawn!(@args context $callee [] [] $args $opts)
    };
    (@first $left:tt $callee:tt $args:tt $opts:tt) => {
        $crate::__spawn!(@later $left $callee $args $opts)
    };
    (@later [, _ $(, $($left:tt)*)?] $callee:tt $args:tt $opts:tt) => {
        $crate::__spawn!(@args context $callee [] [] $args $opts)
    };
    (@later [$next:tt $($left:tt)*] $callee:tt $args:tt $opts:tt) => {
        $crate::__spawn!(@later [$($left)*] $callee $args $opts)
    };
    (@later [] [$($callee:tt)+] [$($args:tt)*] [$($opts:tt)*]) => {
        $crate::into_actor($($callee)+($($args)*))$($opts)*.spawn()
    };

    // One argument a step: context, callee, bound, in the call, left, options. Each step passes
    // all names on, since macro hygiene hides a name of one step from the next.
    (@args $cx:ident $callee:tt [$($bound:tt)*] [$($call:tt)*] [_ $(, $($left:tt)*)?] $opts:tt) => {
        $crate::__spawn!(@args $cx $callee [$($bound)*] [$($call)* $cx] [$($($left)*)?] $opts)
    };
    (@args $cx:ident $callee:tt [$($bound:tt)*] [$($call:tt)*]
        [$arg:expr $(, $($left:tt)*)?] $opts:tt) => {
        $crate::__spawn!(
            @args $cx $callee [$($bound)* (argument $arg)] [$($call)* argument]
            [$($($left)*)?] $opts
        )
    };
    (@args $cx:ident [$($callee:tt)*] [$(($name:ident $arg:expr))*] [$($call:ident)*] []
        [$($opts:tt)*]) => {{
        $(let $name = $arg;)*
        $crate::actor(move |$cx| $($callee)*($($call),*)) $($opts)* .spawn()
    }};

    ($($actor:tt)*) => { $crate::__spawn!(@actor [] $($actor)*) };
}
