//! Requests that run at the same time.
//!
//! Those of a tuple are polled together. Those of a list are polled only when their own wakers were
//! woken. The outputs keep the order of the requests.

use std::convert::{Infallible, identity};
use std::future::{self, Future, IntoFuture, Ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::future::{Either, Join, Map, MapErr, MapOk, TryJoin, join, try_join};
use futures_util::{FutureExt, TryFutureExt};
use pin_project_lite::pin_project;

use super::First;
use crate::task::{Unordered, is_large};

/// Runs requests at the same time, and waits for all of their outputs.
///
/// `requests` is a tuple of up to 12 futures, an array or a `Vec`. Collect an iterator first. The
/// outputs come in the order of the requests, whatever the order in which they complete: as a tuple,
/// or as a `Vec`. A request that fails has its error as its output. No requests give an empty output.
///
/// All requests run in the caller's task, which polls one at a time. Use [`spawn`](crate::spawn())
/// for those that compute. For the first of them, see [`race`](crate::request::race()).
///
/// # Panics
/// The future panics if a request does, which drops the others, or if it is polled again after
/// completion.
///
/// # Cancel safety
/// Nothing starts before the first poll. Dropping the future drops all requests.
///
/// ```
/// use greenroom::time::timeout;
/// use greenroom::{Context, Reply, concurrently, spawn, try_concurrently};
/// use std::time::Duration;
///
/// async fn doubler(mut cx: Context<(u32, Reply<u32>)>) {
///     while let Some((number, reply)) = cx.recv().await {
///         reply.send(number * 2);
///     }
/// }
///
/// greenroom::run(async {
///     let (a, b) = (spawn!(doubler(_)), spawn!(doubler(_)));
///     let both = concurrently((a.ask(|reply| (1, reply)), b.ask(|reply| (2, reply))));
///     assert_eq!(timeout(Duration::from_secs(60), both).await, Ok((Ok(2), Ok(4))));
///
///     let all: Vec<_> = (1..=3).map(|number| a.ask(move |reply| (number, reply))).collect();
///     assert_eq!(try_concurrently(all).await, Ok(vec![2, 4, 6]));
/// });
/// ```
///
/// What is no future is refused by the compiler:
///
/// ```compile_fail,E0277
/// # async fn both() {
/// greenroom::concurrently((async { 1 }, 2)).await;
/// # }
/// ```
pub fn concurrently<R: Requests>(requests: R) -> impl Future<Output = R::Output> + use<R> {
    Concurrently::new(requests)
}

/// Runs requests at the same time, and waits for all of their values or for the first that fails.
///
/// `requests` and the order of the values are those of [`concurrently`]. Each request has a `Result`
/// as its output, with one type of error for all.
///
/// # Errors
/// The future returns the [`First`] error with the position of its request, and drops the other
/// requests.
///
/// # Panics
/// As [`concurrently`].
///
/// # Cancel safety
/// As [`concurrently`].
///
/// ```
/// use greenroom::request::First;
/// use greenroom::try_concurrently;
/// use std::future::{pending, ready};
///
/// greenroom::run(async {
///     let both = try_concurrently([ready(Ok::<_, &str>(1)), ready(Ok(2))]);
///     assert_eq!(both.await, Ok(vec![1, 2]));
///
///     let fails = try_concurrently((pending::<Result<u32, _>>(), ready(Err::<u32, _>("no ink"))));
///     assert_eq!(fails.await, Err(First { index: 1, error: "no ink" }));
/// });
/// ```
pub fn try_concurrently<R: FallibleRequests>(
    requests: R,
) -> impl Future<Output = Result<R::Values, First<R::Error>>> + use<R> {
    Concurrently::new(FirstFault(requests))
}

/// Requests that can run at the same time: a tuple of up to 12 futures, an array or a `Vec`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot run concurrently",
    note = "pass a tuple of up to 12 futures, an array or a `Vec`; collect an iterator first"
)]
pub trait Requests: sealed::Sealed {
    /// All outputs: a tuple of a tuple, otherwise a `Vec`.
    type Output;
    #[doc(hidden)]
    type Running: Future<Output = Self::Output>;
    #[doc(hidden)]
    fn run(self) -> Self::Running;
    /// Large requests while they run: each is boxed.
    #[doc(hidden)]
    type Boxed: Future<Output = Self::Output>;
    #[doc(hidden)]
    fn run_boxed(self: Box<Self>) -> Self::Boxed;
}

/// Requests whose outputs are `Result`s with one type of error.
pub trait FallibleRequests: Requests {
    /// All values: a tuple of a tuple, otherwise a `Vec`.
    type Values;
    /// The error of each request.
    type Error;
    #[doc(hidden)]
    type Trying: Future<Output = Result<Self::Values, First<Self::Error>>>;
    #[doc(hidden)]
    fn attempt(self) -> Self::Trying;
    #[doc(hidden)]
    type TryingBoxed: Future<Output = Result<Self::Values, First<Self::Error>>>;
    #[doc(hidden)]
    fn attempt_boxed(self: Box<Self>) -> Self::TryingBoxed;
}

mod sealed {
    pub trait Sealed {}
}

pin_project! {
    /// The future of [`concurrently`] and of [`try_concurrently`].
    struct Concurrently<R: Requests> {
        #[pin]
        state: ConcurrentState<R>,
    }
}

pin_project! {
    #[project = ConcurrentProjected]
    enum ConcurrentState<R: Requests> {
        // `None` if the begin has panicked.
        Waiting { requests: Option<R> },
        Running { #[pin] running: R::Running },
        Boxed { #[pin] running: R::Boxed },
        Over,
    }
}

/// Each step is a function of its own, so that no copy of large requests stays on the stack for the
/// next one.
impl<R: Requests> ConcurrentState<R> {
    fn begin(mut self: Pin<&mut Self>) {
        let ConcurrentProjected::Waiting { requests } = self.as_mut().project() else {
            return;
        };
        if const { is_large::<R>() } {
            let running = boxed(requests).run_boxed();
            return self.put(|| ConcurrentState::Boxed { running });
        }
        let running = requests.take().expect(OVER).run();
        self.put(|| ConcurrentState::Running { running });
    }

    fn put(mut self: Pin<&mut Self>, next: impl FnOnce() -> Self) {
        self.set(next());
    }
}

fn boxed<R>(requests: &mut Option<R>) -> Box<R> {
    Box::new(requests.take().expect(OVER))
}

const OVER: &str = "`concurrently` polled after it was ready";

impl<R: Requests> Concurrently<R> {
    fn new(requests: R) -> Self {
        Concurrently {
            state: ConcurrentState::Waiting {
                requests: Some(requests),
            },
        }
    }
}

impl<R: Requests> Future for Concurrently<R> {
    type Output = R::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        state.as_mut().begin();
        let output = match state.as_mut().project() {
            ConcurrentProjected::Running { running } => ready!(running.poll(cx)),
            ConcurrentProjected::Boxed { running } => ready!(running.poll(cx)),
            _ => panic!("{OVER}"),
        };
        state.put(|| ConcurrentState::Over);
        Poll::Ready(output)
    }
}

/// Requests that end with the first fault.
struct FirstFault<R>(R);

impl<R> sealed::Sealed for FirstFault<R> {}

impl<R: FallibleRequests> Requests for FirstFault<R> {
    type Output = Result<R::Values, First<R::Error>>;
    type Running = R::Trying;
    type Boxed = R::TryingBoxed;

    // Not inlined, as the steps of `ConcurrentState`.
    #[inline(never)]
    fn run(self) -> Self::Running {
        self.0.attempt()
    }

    fn run_boxed(self: Box<Self>) -> Self::Boxed {
        self.into_inner().attempt_boxed()
    }
}

impl<R> FirstFault<R> {
    #[expect(clippy::boxed_local, reason = "the requests are large")]
    #[inline(never)]
    fn into_inner(self: Box<Self>) -> Box<R> {
        Box::new(self.0)
    }
}

pin_project! {
    /// A future with its position.
    pub(super) struct Indexed<F> {
        pub(super) index: usize,
        #[pin]
        pub(super) future: F,
    }
}

impl<F: Future> Future for Indexed<F> {
    type Output = (usize, F::Output);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.future.poll(cx).map(|output| (*this.index, output))
    }
}

/// Futures of one type that run at once, and the values `V` of those that have completed.
///
/// It waits for all values, or for the first error.
pub struct AllOf<F: Future, V, E> {
    futures: Unordered<Indexed<F>>,
    values: Vec<Option<V>>,
    /// Returns the value of an output, or its error.
    value: fn(F::Output) -> Result<V, E>,
}

impl<F: Future, V, E> AllOf<F, V, E> {
    fn new(futures: impl IntoIterator<Item = F>, value: fn(F::Output) -> Result<V, E>) -> Self {
        let futures = futures.into_iter().enumerate();
        let futures: Unordered<_> = futures
            .map(|(index, future)| Indexed { index, future })
            .collect();
        AllOf {
            values: (0..futures.len()).map(|_| None).collect(),
            futures,
            value,
        }
    }
}

// The futures are boxed by the list, and the values are never pinned.
impl<F: Future, V, E> Unpin for AllOf<F, V, E> {}

impl<F: Future, V, E> Future for AllOf<F, V, E> {
    type Output = Result<Vec<V>, First<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        while let Some((index, output)) = ready!(self.futures.poll_next(cx)) {
            match (self.value)(output) {
                Ok(value) => self.values[index] = Some(value),
                Err(error) => {
                    self.futures.clear();
                    return Poll::Ready(Err(First { index, error }));
                }
            }
        }
        let values = std::mem::take(&mut self.values).into_iter();
        let values = values.map(|value| value.expect("each future was polled to its end"));
        Poll::Ready(Ok(values.collect()))
    }
}

/// Implements the traits for a list of futures of one type, given a list in a box as a `Vec`.
macro_rules! list {
    ([$($generics:tt)*] $List:ty, |$boxed:ident| $as_vec:expr) => {
        impl<F, $($generics)*> sealed::Sealed for $List {}

        impl<F: IntoFuture, $($generics)*> Requests for $List {
            type Output = Vec<F::Output>;
            type Running = Map<
                Either<
                    AllOf<F::IntoFuture, F::Output, Infallible>,
                    AllOf<Pin<Box<F::IntoFuture>>, F::Output, Infallible>,
                >,
                fn(Result<Self::Output, First<Infallible>>) -> Self::Output,
            >;
            type Boxed = Self::Running;

            fn run(self) -> Self::Running {
                let all = if const { is_large::<F>() } {
                    let boxed = |it: F| Box::pin(it.into_future());
                    Either::Right(AllOf::new(self.into_iter().map(boxed), Ok))
                } else {
                    Either::Left(AllOf::new(self.into_iter().map(F::into_future), Ok))
                };
                all.map(|outputs| match outputs {
                    Ok(outputs) => outputs,
                    Err(First { error, .. }) => match error {},
                })
            }

            fn run_boxed(self: Box<Self>) -> Self::Running {
                let $boxed = self;
                $as_vec.run()
            }
        }

        impl<F, T, E, $($generics)*> FallibleRequests for $List
        where
            F: IntoFuture<Output = Result<T, E>>,
        {
            type Values = Vec<T>;
            type Error = E;
            type Trying = Either<AllOf<F::IntoFuture, T, E>, AllOf<Pin<Box<F::IntoFuture>>, T, E>>;
            type TryingBoxed = Self::Trying;

            fn attempt(self) -> Self::Trying {
                if const { is_large::<F>() } {
                    let boxed = |it: F| Box::pin(it.into_future());
                    return Either::Right(AllOf::new(self.into_iter().map(boxed), identity));
                }
                Either::Left(AllOf::new(self.into_iter().map(F::into_future), identity))
            }

            fn attempt_boxed(self: Box<Self>) -> Self::Trying {
                let $boxed = self;
                $as_vec.attempt()
            }
        }
    };
}

list!([] Vec<F>, |list| *list);
list!([const N: usize] [F; N], |list| Vec::from(list as Box<[F]>));

/// The pairs in pairs that a tuple becomes: types, values and patterns.
macro_rules! pairs {
    (running $F:ident) => { $F::IntoFuture };
    (running $F:ident $($Rest:ident)+) => { Join<$F::IntoFuture, pairs!(running $($Rest)+)> };
    (outputs $F:ident) => { $F::Output };
    (outputs $F:ident $($Rest:ident)+) => { ($F::Output, pairs!(outputs $($Rest)+)) };
    (run $f:ident) => { $f.into_future() };
    (run $f:ident $($rest:ident)+) => { join($f.into_future(), pairs!(run $($rest)+)) };

    (trying $F:ident) => { MapErr<$F::IntoFuture, fn(Error) -> First<Error>> };
    (trying $F:ident $($Rest:ident)+) => {
        TryJoin<pairs!(trying $F), pairs!(trying $($Rest)+)>
    };
    (values $T:ident) => { $T };
    (values $T:ident $($Rest:ident)+) => { ($T, pairs!(values $($Rest)+)) };
    (attempt $f:ident $index:tt) => { $f.into_future().map_err(tag::<$index, Error> as _) };
    (attempt $f:ident $index:tt $($rest:tt)+) => {
        try_join($f.into_future().map_err(tag::<$index, Error> as _), pairs!(attempt $($rest)+))
    };

    (nest $name:ident) => { $name };
    (nest $name:ident $($rest:ident)+) => { ($name, pairs!(nest $($rest)+)) };
}

/// Gives the error of a request of a tuple the request's position.
fn tag<const INDEX: usize, E>(error: E) -> First<E> {
    First {
        index: INDEX,
        error,
    }
}

/// Implements the traits for a tuple: each request has a type, a type of value, a name, a position.
macro_rules! tuple {
    ($($F:ident $T:ident $f:ident $index:tt),+) => {
        impl<$($F),+> sealed::Sealed for ($($F,)+) {}

        impl<$($F: IntoFuture),+> Requests for ($($F,)+) {
            type Output = ($($F::Output,)+);
            type Running = Map<pairs!(running $($F)+), fn(pairs!(outputs $($F)+)) -> Self::Output>;
            type Boxed = <($(Pin<Box<$F::IntoFuture>>,)+) as Requests>::Running;

            fn run(self) -> Self::Running {
                let ($($f,)+) = self;
                pairs!(run $($f)+).map(|pairs!(nest $($f)+)| ($($f,)+))
            }

            fn run_boxed(self: Box<Self>) -> Self::Boxed {
                ($(Box::pin(self.$index.into_future()),)+).run()
            }
        }

        impl<$($F, $T,)+ Error> FallibleRequests for ($($F,)+)
        where
            $($F: IntoFuture<Output = Result<$T, Error>>,)+
        {
            type Values = ($($T,)+);
            type Error = Error;
            type Trying =
                MapOk<pairs!(trying $($F)+), fn(pairs!(values $($T)+)) -> Self::Values>;
            type TryingBoxed = <($(Pin<Box<$F::IntoFuture>>,)+) as FallibleRequests>::Trying;

            fn attempt(self) -> Self::Trying {
                let ($($f,)+) = self;
                pairs!(attempt $($f $index)+).map_ok(|pairs!(nest $($f)+)| ($($f,)+))
            }

            fn attempt_boxed(self: Box<Self>) -> Self::TryingBoxed {
                ($(Box::pin(self.$index.into_future()),)+).attempt()
            }
        }
    };
}

/// Implements the traits for the first one of these, the first two, and so on.
macro_rules! tuples {
    ([$($done:tt)*]) => {};
    ([$($done:tt)*] $F:ident $T:ident $f:ident $index:tt $(, $($rest:tt)+)?) => {
        tuple!($($done)* $F $T $f $index);
        tuples!([$($done)* $F $T $f $index,] $($($rest)+)?);
    };
}

tuples!(
    [] A TA a 0, B TB b 1, C TC c 2, D TD d 3, E TE e 4, F TF f 5, G TG g 6, H TH h 7, I TI i 8,
    J TJ j 9, K TK k 10, L TL l 11
);

impl sealed::Sealed for () {}

impl Requests for () {
    type Output = ();
    type Running = Ready<()>;
    type Boxed = Ready<()>;

    fn run(self) -> Self::Running {
        future::ready(())
    }

    fn run_boxed(self: Box<Self>) -> Self::Boxed {
        self.run()
    }
}
