//! Asks whose answer is a `Result`, as a future of one `Result`.
//!
//! The future polls the ask in place. It has the ask's panics and cancel safety.

use std::future::Future;

use futures_util::FutureExt;

use super::ask::Ask;
use super::reply::Reply;
use super::request::Request;
use crate::error::FlatError;

impl<'a, M, T, E, F: FnOnce(Reply<Result<T, E>>) -> M> Ask<'a, M, Result<T, E>, F> {
    /// Joins the `Result` of the ask and the `Result` that is its answer.
    ///
    /// It comes last: [`timeout`](Ask::timeout) is set before. A [`FlatError`] converts from an
    /// [`AskError`](crate::AskError) by `?`.
    ///
    /// # Errors
    /// The future returns a [`FlatError`]: why there is no answer, or the error that the actor has
    /// answered.
    ///
    /// # Panics
    /// As [`Address::ask`](crate::Address::ask).
    ///
    /// # Cancel safety
    /// As [`Address::ask`](crate::Address::ask).
    ///
    /// ```
    /// use greenroom::{AskError, Context, FlatError, Reply, spawn};
    ///
    /// type Divide = (u32, u32, Reply<Result<u32, &'static str>>);
    ///
    /// async fn divider(mut cx: Context<Divide>) {
    ///     while let Some((a, b, reply)) = cx.recv().await {
    ///         reply.send(a.checked_div(b).ok_or("division by zero"));
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let divider = spawn!(divider(_));
    ///     assert_eq!(divider.ask(|reply| (84, 2, reply)).flat().await, Ok(42));
    ///     let by_zero = divider.ask(|reply| (84, 0, reply)).flat().await;
    ///     assert_eq!(by_zero, Err(FlatError::Answer("division by zero")));
    ///     divider.stop();
    ///     let late = divider.ask(|reply| (84, 2, reply)).flat().await;
    ///     assert!(matches!(late, Err(FlatError::Ask(AskError::Closed(_)))));
    /// });
    /// ```
    pub fn flat(self) -> impl Future<Output = Result<T, FlatError<E>>> + use<'a, M, T, E, F> {
        self.map(FlatError::flatten)
    }
}

impl<T, E> Request<Result<T, E>> {
    /// Joins the `Result` of the request and the `Result` that is its answer, as [`Ask::flat`]
    /// does.
    ///
    /// [`on_answer`](crate::Context::on_answer) takes the request itself; its function can join the
    /// two with [`FlatError::flatten`].
    ///
    /// # Errors
    /// As [`Ask::flat`].
    ///
    /// # Panics
    /// As [`Address::ask`](crate::Address::ask).
    ///
    /// # Cancel safety
    /// As [`Address::ask`](crate::Address::ask).
    ///
    /// ```
    /// use greenroom::request::First;
    /// use greenroom::{Context, FlatError, Reply, spawn, try_concurrently};
    ///
    /// async fn even(mut cx: Context<(u32, Reply<Result<u32, &'static str>>)>) {
    ///     while let Some((number, reply)) = cx.recv().await {
    ///         reply.send(if number % 2 == 0 { Ok(number / 2) } else { Err("odd") });
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let even = spawn!(even(_));
    ///     let halves = [2, 4, 7].map(|number| even.request(move |reply| (number, reply)).flat());
    ///     let odd = First { index: 2, error: FlatError::Answer("odd") };
    ///     assert_eq!(try_concurrently(halves).await, Err(odd));
    /// });
    /// ```
    pub fn flat(self) -> impl Future<Output = Result<T, FlatError<E>>> + use<T, E> {
        self.map(FlatError::flatten)
    }
}
