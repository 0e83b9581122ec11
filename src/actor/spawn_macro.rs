//! `spawn!`: a thin front of the builder.

/// Spawns an actor: a call of an `async fn` in which `_` stands for the context, or a closure.
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
/// `capacity`, `on`.
///
/// It gives a [`Handle`](crate::Handle).
///
/// # Panics
/// As [`ActorBuilder::spawn`](crate::ActorBuilder::spawn): where no runtime is current, or an
/// option is impossible.
#[macro_export]
macro_rules! spawn {
    // A closure, then options.
    (| $($rest:tt)*) => { $crate::spawn!(@closure | $($rest)*) };
    (move $($rest:tt)*) => { $crate::spawn!(@closure move $($rest)*) };
    (async $($rest:tt)*) => { $crate::spawn!(@closure async $($rest)*) };
    (@closure $closure:expr $(, $option:ident = $value:expr)* $(,)?) => {
        $crate::actor($closure)$(.$option($value))*.spawn()
    };

    // A call: everything up to the last parentheses is what is called.
    (@callee [$($callee:tt)+] ($($args:tt)*) $(, $option:ident = $value:expr)* $(,)?) => {
        $crate::spawn!(@args context [$($callee)+] [] [] [$($args)*] [$(.$option($value))*])
    };
    (@callee [$($callee:tt)*] $next:tt $($rest:tt)*) => {
        $crate::spawn!(@callee [$($callee)* $next] $($rest)*)
    };
    (@callee $($rest:tt)*) => {
        ::core::compile_error!(
            "`spawn!` takes a call with `_` for the context, such as `spawn!(tally(_, 40))`, or a \
             closure, then options, such as `name = \"tally\"`"
        )
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

    ($($call:tt)+) => { $crate::spawn!(@callee [] $($call)+) };
}
