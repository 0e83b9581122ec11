//! Requests of which one outcome is enough.
//!
//! All of them begin, and those that are left are dropped before the outcome is returned. So
//! whoever works for a dropped ask finds that its reply is not wanted any more. Those of a tuple
//! are polled together, those of a list only when their own wakers were woken.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_util::future::Either;
use futures_util::stream::{Empty, empty};
use pin_project_lite::pin_project;

use super::concurrently::{Indexed, Requests};
use crate::task::run::BATCH;
use crate::task::{Unordered, is_large};

/// Runs requests at the same time, and returns the first output, whatever it is.
///
/// `requests` is a tuple of up to 12 futures, an array or a `Vec`, all with one type of output. Of
/// those that are ready at the same time, the earliest in a tuple wins. In a list that is so at the
/// first poll; after it the one wins that was woken first. The others are dropped before the output
/// is returned, so [`Reply::is_wanted`](crate::Reply::is_wanted) is false for the asks among them. An
/// actor that works for one can look at that, and stop.
///
/// All requests run in the caller's task, which polls one at a time. For the first that succeeds,
/// see [`first_ok`].
///
/// # Panics
/// If the list is empty. The future panics if a request does, which drops the others, or if it is
/// polled again after completion.
///
/// # Cancel safety
/// Nothing starts before the first poll. Dropping the future drops all requests.
///
/// ```
/// use greenroom::request::race;
/// use greenroom::{Context, Reply, spawn};
///
/// async fn mirror(mut cx: Context<Reply<u32>>, answers: bool) -> usize {
///     let mut kept = Vec::new();
///     while let Some(reply) = cx.recv().await {
///         match answers {
///             true => reply.send(42),
///             false => kept.push(reply),
///         }
///     }
///     kept.iter().filter(|reply| reply.is_wanted()).count()
/// }
///
/// greenroom::run(async {
///     let (slow, fast) = (spawn!(mirror(_, false)), spawn!(mirror(_, true)));
///     let first = race((slow.ask(|reply| reply), fast.ask(|reply| reply)));
///     assert_eq!(first.await, Ok(42));
///     assert_eq!(slow.join().await.unwrap(), 0); // it keeps a reply that nothing waits for
/// });
/// ```
#[track_caller]
pub fn race<R: Alternatives>(requests: R) -> Race<R::Outputs> {
    assert!(requests.count() > 0, "`race` of no requests never ends");
    Race {
        running: Some(requests.begin()),
    }
}

/// Runs requests at the same time, and returns the first value, or all errors if each request
/// fails.
///
/// `requests` are those of [`race`], each with a `Result` as its output. A request that fails does
/// not end the others; one that succeeds does, as for [`race`].
///
/// # Errors
/// The future returns [`AllFailed`] with the error of each request. So it does at once for an empty
/// list.
///
/// # Panics
/// The future panics if a request does, which drops the others, or if it is polled again after
/// completion.
///
/// # Cancel safety
/// As [`race`].
///
/// ```
/// use greenroom::request::first_ok;
/// use std::future::{pending, ready};
///
/// greenroom::run(async {
///     let mirrors = (ready(Err("no ink")), pending(), ready(Ok(42)));
///     assert_eq!(first_ok(mirrors).await, Ok(42));
///
///     let failed = first_ok([ready(Err::<(), _>("no ink")), ready(Err("no paper"))]).await;
///     assert_eq!(failed.unwrap_err().errors, ["no ink", "no paper"]);
/// });
/// ```
pub fn first_ok<R, T, E>(requests: R) -> FirstOk<R::Outputs, E>
where
    R: Alternatives<Each = Result<T, E>>,
{
    FirstOk {
        running: Some(requests.begin()),
        errors: Vec::new(),
    }
}

/// The errors of all requests of a [`first_ok`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllFailed<E> {
    /// The error of each request, in the order of the requests.
    pub errors: Vec<E>,
}

impl<E: fmt::Display> fmt::Display for AllFailed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errors.len() {
            0 => return f.write_str("there was no request"),
            1 => f.write_str("the only request failed")?,
            all => write!(f, "all {all} requests failed")?,
        }
        for (index, error) in self.errors.iter().enumerate() {
            let before = if index == 0 { ": " } else { "; " };
            write!(f, "{before}{error}")?;
        }
        Ok(())
    }
}

// The text has the errors, so none is a source as well.
impl<E: std::error::Error> std::error::Error for AllFailed<E> {}

/// Requests with one type of output: a tuple of up to 12 futures, an array or a `Vec`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no single type of output",
    note = "pass futures with one type of output: a tuple of up to 12, an array or a `Vec`"
)]
pub trait Alternatives: Requests {
    /// The output of each request.
    type Each;
    #[doc(hidden)]
    type Outputs: Stream<Item = (usize, Self::Each)>;
    #[doc(hidden)]
    fn begin(self) -> Self::Outputs;
    #[doc(hidden)]
    fn count(&self) -> usize;
}

pin_project! {
    /// The future of [`race`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Race<S> {
        // `None` once it is over.
        #[pin]
        running: Option<S>,
    }
}

impl<S: Stream<Item = (usize, T)>, T> Future for Race<S> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut running = self.project().running;
        let all = running.as_mut().as_pin_mut();
        let next = ready!(all.expect("`race` polled after it was ready").poll_next(cx));
        running.set(None);
        let (_, output) = next.expect("there is a request until the first output");
        Poll::Ready(output)
    }
}

impl<S> fmt::Debug for Race<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Race").finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of [`first_ok`].
    #[must_use = "futures do nothing unless polled"]
    pub struct FirstOk<S, E> {
        // `None` once it is over.
        #[pin]
        running: Option<S>,
        // Each with the position of its request.
        errors: Vec<(usize, E)>,
    }
}

impl<S, T, E> Future for FirstOk<S, E>
where
    S: Stream<Item = (usize, Result<T, E>)>,
{
    type Output = Result<T, AllFailed<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        for _ in 0..BATCH {
            let all = this.running.as_mut().as_pin_mut();
            let next = ready!(
                all.expect("`first_ok` polled after it was ready")
                    .poll_next(cx)
            );
            if let Some((index, Err(error))) = next {
                this.errors.push((index, error));
                continue;
            }
            this.running.set(None);
            let mut errors = std::mem::take(this.errors);
            return Poll::Ready(match next {
                Some((_, Ok(value))) => Ok(value),
                _ => {
                    errors.sort_by_key(|(index, _)| *index);
                    let errors = errors.into_iter().map(|(_, error)| error).collect();
                    Err(AllFailed { errors })
                }
            });
        }
        // Requests that fail at once must not occupy the worker.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S, E> fmt::Debug for FirstOk<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstOk")
            .field("errors", &self.errors.len())
            .finish_non_exhaustive()
    }
}

/// Futures of one type that run at once, as a stream of their outputs.
pub struct AnyOf<F>(Unordered<Indexed<F>>);

impl<F> AnyOf<F> {
    fn new(futures: impl IntoIterator<Item = F>) -> Self {
        let futures = futures.into_iter().enumerate();
        let futures = futures.map(|(index, future)| Indexed { index, future });
        AnyOf(futures.collect())
    }
}

impl<F: Future> Stream for AnyOf<F> {
    type Item = (usize, F::Output);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next(cx)
    }
}

// The futures are boxed by the list.
impl<F> Unpin for AnyOf<F> {}

macro_rules! list {
    ([$($generics:tt)*] $List:ty) => {
        impl<F: IntoFuture, $($generics)*> Alternatives for $List {
            type Each = F::Output;
            type Outputs = Either<AnyOf<F::IntoFuture>, AnyOf<Pin<Box<F::IntoFuture>>>>;

            fn begin(self) -> Self::Outputs {
                if const { is_large::<F>() } {
                    let boxed = |it: F| Box::pin(it.into_future());
                    return Either::Right(AnyOf::new(self.into_iter().map(boxed)));
                }
                Either::Left(AnyOf::new(self.into_iter().map(F::into_future)))
            }

            fn count(&self) -> usize {
                self.len()
            }
        }
    };
}

list!([] Vec<F>);
list!([const N: usize] [F; N]);

pin_project! {
    /// A future at a position, and those after it, as a stream of their outputs.
    pub struct Alternative<F, S> {
        index: usize,
        // `None` once it has completed.
        #[pin]
        future: Option<F>,
        #[pin]
        rest: S,
    }
}

impl<F, S> Stream for Alternative<F, S>
where
    F: Future,
    S: Stream<Item = (usize, F::Output)>,
{
    type Item = (usize, F::Output);

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let future = this.future.as_mut().as_pin_mut();
        if let Some(Poll::Ready(output)) = future.map(|future| future.poll(cx)) {
            this.future.set(None);
            return Poll::Ready(Some((*this.index, output)));
        }
        match this.rest.poll_next(cx) {
            Poll::Ready(None) if this.future.is_some() => Poll::Pending,
            polled => polled,
        }
    }
}

/// The nested alternatives that a tuple becomes: the type and the value.
macro_rules! nested {
    (type $T:ident) => { Empty<(usize, $T)> };
    (type $T:ident $F:ident $($Rest:ident)*) => {
        Alternative<$F::IntoFuture, nested!(type $T $($Rest)*)>
    };
    (value) => { empty() };
    (value $f:ident $index:tt $($rest:tt)*) => {
        Alternative {
            index: $index,
            future: Some($f.into_future()),
            rest: nested!(value $($rest)*),
        }
    };
}

macro_rules! tuple {
    ($($F:ident $f:ident $index:tt,)+) => {
        impl<T, $($F: IntoFuture<Output = T>),+> Alternatives for ($($F,)+) {
            type Each = T;
            type Outputs = nested!(type T $($F)+);

            fn begin(self) -> Self::Outputs {
                let ($($f,)+) = self;
                nested!(value $($f $index)+)
            }

            fn count(&self) -> usize {
                [$($index),+].len()
            }
        }
    };
}

/// Implements the trait for the first one of these, the first two, and so on.
macro_rules! tuples {
    ([$($done:tt)*]) => {};
    ([$($done:tt)*] $F:ident $f:ident $index:tt $(, $($rest:tt)+)?) => {
        tuple!($($done)* $F $f $index,);
        tuples!([$($done)* $F $f $index,] $($($rest)+)?);
    };
}

tuples!(
    [] A a 0, B b 1, C c 2, D d 3, E e 4, F f 5, G g 6, H h 7, I i 8, J j 9, K k 10, L l 11
);
