//! `spawn!`: a thin front of the builders.

/// Spawns an actor: a call of an `async fn` in which `_` stands for the context, a closure, or a
/// value whose type implements [`Actor`](crate::Actor); or any expression that gives one of the last two.
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
/// Arguments are evaluated at the call, in order, before anything is spawned; so a closure among
/// them needs its parameter types. What is called is not: it moves into the actor, so give a
/// receiver as an argument, `Store::serve(store.clone(), _)` rather than `store.clone().serve(_)`.
/// Options, in any order, are the methods of [`ActorBuilder`](crate::ActorBuilder): `name`,
/// `capacity`, `priority`, `on`; one that takes nothing, `show`, stands alone.
///
/// A closure that a block or a variable gives needs the type of its parameter:
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
/// It gives a [`Handle`](crate::Handle). An expression of more than about a hundred tokens runs into
/// the compiler's recursion limit: bind it to a name first.
///
/// # Panics
/// As [`ActorBuilder::spawn`](crate::ActorBuilder::spawn): where no runtime is current, an
/// option is impossible, or the system starts no thread for a [`Detached`](crate::Detached) actor.
#[macro_export]
macro_rules! spawn {
    // A closure, then options.
    (| $($rest:tt)*) => { $crate::spawn!(@closure | $($rest)*) };
    (move $($rest:tt)*) => { $crate::spawn!(@closure move $($rest)*) };
    (async $($rest:tt)*) => { $crate::spawn!(@closure async $($rest)*) };
    (@closure $closure:expr $(, $option:ident $(= $value:expr)?)* $(,)?) => {
        $crate::actor($closure)$(.$option($($value)?))*.spawn()
    };

    // A call: everything up to the last parentheses is what is called.
    (@actor [$($callee:tt)+] ($($args:tt)*) $(, $option:ident $(= $value:expr)?)* $(,)?) => {
        $crate::spawn!(@first [$($args)*] [$($callee)+] [$($args)*] [$(.$option($($value)?))*])
    };
    // Any other value.
    (@actor [$($actor:tt)+] $(, $option:ident $(= $value:expr)?)* $(,)?) => {
        $crate::into_actor($($actor)+)$(.$option($($value)?))*.spawn()
    };
    (@actor [$($actor:tt)*] $next:tt $($rest:tt)*) => {
        $crate::spawn!(@actor [$($actor)* $next] $($rest)*)
    };
    (@actor $($rest:tt)*) => {
        ::core::compile_error!(
            "`spawn!` takes a call with `_` for the context, such as `spawn!(tally(_, 40))`, a \
             closure, or a value whose type implements `Actor`, then options, such as \
             `name = \"tally\"`"
        )
    };

    // Is one of the arguments `_`? If none is, the call makes a value.
    (@first [_ $(, $($left:tt)*)?] $callee:tt $args:tt $opts:tt) => {
        $crate::spawn!(@args context $callee [] [] $args $opts)
    };
    (@first $left:tt $callee:tt $args:tt $opts:tt) => {
        $crate::spawn!(@later $left $callee $args $opts)
    };
    (@later [, _ $(, $($left:tt)*)?] $callee:tt $args:tt $opts:tt) => {
        $crate::spawn!(@args context $callee [] [] $args $opts)
    };
    (@later [$next:tt $($left:tt)*] $callee:tt $args:tt $opts:tt) => {
        $crate::spawn!(@later [$($left)*] $callee $args $opts)
    };
    (@later [] [$($callee:tt)+] [$($args:tt)*] [$($opts:tt)*]) => {
        $crate::into_actor($($callee)+($($args)*))$($opts)*.spawn()
    };

    // The arguments, one at a time: context, callee, bound, in the call, left, options. All names
    // are handed on, since a name made by one step is not seen by the next.
    (@args $cx:ident $callee:tt [$($bound:tt)*] [$($call:tt)*] [_ $(, $($left:tt)*)?] $opts:tt) => {
        $crate::spawn!(@args $cx $callee [$($bound)*] [$($call)* $cx] [$($($left)*)?] $opts)
    };
    (@args $cx:ident $callee:tt [$($bound:tt)*] [$($call:tt)*]
        [$arg:expr $(, $($left:tt)*)?] $opts:tt) => {
        $crate::spawn!(
            @args $cx $callee [$($bound)* (argument $arg)] [$($call)* argument]
            [$($($left)*)?] $opts
        )
    };
    (@args $cx:ident [$($callee:tt)*] [$(($name:ident $arg:expr))*] [$($call:ident)*] []
        [$($opts:tt)*]) => {{
        $(let $name = $arg;)*
        $crate::actor(move |$cx| $($callee)*($($call),*)) $($opts)* .spawn()
    }};

    ($($actor:tt)+) => { $crate::spawn!(@actor [] $($actor)+) };
}
