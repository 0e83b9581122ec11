//! A type of requests: what decodes a request, the actor that answers it, and what encodes the
//! answer.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use greenroom::trace::{Level, note};
use greenroom::{Address, AskError, Reply};
use hyper::body::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::counts::Statuses;
use crate::message::{HttpRequest, HttpResponse};
use crate::values::answer::{Answers, to_json};
use crate::values::{DecodeProblem, JsonRules, fields, from_fields, from_json, name_of};
use crate::wire::ConnectionState;

/// Where a request has its value.
#[derive(Clone, Copy)]
pub(super) enum Input<'a> {
    /// In the query or in a form.
    Fields(&'a str),
    Json(&'a [u8]),
}

/// How a request is to be answered.
pub(super) struct Terms<'a> {
    pub(super) form: Answers,
    pub(super) json: JsonRules,
    /// Knows when the answer is too late.
    pub(super) shared: &'a ConnectionState<'a>,
}

/// The wait for the answer of an actor.
pub(super) type AnswerFuture<'a> =
    Pin<Box<dyn Future<Output = Result<RouteAnswer, AskError>> + Send + 'a>>;

/// What is sent as an answer: a value, or a response with full control.
pub(super) enum RouteAnswer {
    Json(Bytes),
    Response(HttpResponse),
    /// There is none, for this reason.
    Failed(&'static str),
}

/// Why no actor is asked.
pub(super) enum Unasked {
    /// The request is no value of the type.
    Malformed(DecodeProblem),
    /// The code of the type has panicked.
    Panicked,
}

pub(super) trait Route: Send + Sync {
    /// Decodes a request, and asks the actor.
    fn ask<'a>(&'a self, input: Input<'_>, terms: &Terms<'a>) -> Result<AnswerFuture<'a>, Unasked>;

    /// Sets the name that the type of the answer has in an envelope.
    fn set_answer_name(&mut self, name: &str);
}

/// A registered type.
pub(super) struct RegisteredType {
    pub(super) route: Box<dyn Route>,
    pub(super) statuses: Statuses,
    pub(super) is_post_only: bool,
    /// Pages of other sites may read it.
    pub(super) is_readable: bool,
}

pub(super) struct TypedRoute<Q, R, M, F> {
    /// The name of the type in requests.
    pub(super) name: String,
    address: Address<M>,
    make: F,
    answer_name: String,
    types: PhantomData<fn(Q) -> R>,
}

impl<Q, R, M, F> TypedRoute<Q, R, M, F> {
    pub(super) fn new(name: &str, address: &Address<M>, make: F) -> Self {
        TypedRoute {
            name: name.to_owned(),
            address: address.clone(),
            make,
            answer_name: name_of::<R>(),
            types: PhantomData,
        }
    }
}

impl<Q, R, M, F> Route for TypedRoute<Q, R, M, F>
where
    Q: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
    M: Send + 'static,
    F: Fn(Q, Reply<R>) -> M + Send + Sync + 'static,
{
    fn ask<'a>(&'a self, input: Input<'_>, terms: &Terms<'a>) -> Result<AnswerFuture<'a>, Unasked> {
        let decoded = guarded(|| decode::<Q>(&self.name, input, terms.json));
        let decoded = decoded.ok_or(Unasked::Panicked)?;
        let request = decoded.map_err(Unasked::Malformed)?;
        let (form, shared) = (terms.form, terms.shared);
        Ok(Box::pin(async move {
            // The clock of the connection measures the time of the actor from here on.
            shared.ask();
            let asked = self.address.ask(|reply| (self.make)(request, reply));
            let mut asked = pin!(asked.into_future());
            let answer = poll_fn(|cx| match asked.as_mut().poll(cx) {
                Poll::Pending if shared.is_actor_late() => Poll::Ready(Err(AskError::TimedOut)),
                polled => polled,
            });
            let answer = answer.await?;
            let encoded = guarded(|| to_json(form, &self.answer_name, &answer));
            let why = match encoded {
                Some(Ok(json)) => return Ok(RouteAnswer::Json(json)),
                Some(Err(error)) => error.to_string(),
                None => "its code has panicked".to_owned(),
            };
            let name = &self.name;
            note!(
                Level::Warning,
                format_args!("An answer to {name:?} cannot be encoded ({why})")
            );
            Ok(RouteAnswer::Failed("the answer cannot be encoded"))
        }))
    }

    fn set_answer_name(&mut self, name: &str) {
        self.answer_name = name.to_owned();
    }
}

/// Runs code of the user. Returns nothing if it panics.
pub(super) fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

fn decode<Q: DeserializeOwned>(
    name: &str,
    input: Input<'_>,
    rules: JsonRules,
) -> Result<Q, DecodeProblem> {
    match input {
        Input::Fields(text) => from_fields(name, rules, &fields(text)),
        Input::Json(body) => from_json(name, rules, body),
    }
}

/// The actor that gets all requests of no registered type.
pub(super) struct UnknownRoute {
    pub(super) ask: Box<AskUnknown>,
    /// Pages of other sites may read what it answers.
    pub(super) is_readable: bool,
}

/// Asks the actor, with the time that it has to answer.
type AskUnknown = dyn Fn(HttpRequest, Duration) -> AnswerFuture<'static> + Send + Sync;

impl UnknownRoute {
    pub(super) fn new<M: Send + 'static>(
        address: &Address<M>,
        make: impl Fn(HttpRequest, Reply<HttpResponse>) -> M + Send + Sync + 'static,
    ) -> Self {
        let actor = Arc::new((address.clone(), make));
        let ask = move |request, timeout| -> AnswerFuture<'static> {
            let actor = actor.clone();
            Box::pin(async move {
                let (address, make) = &*actor;
                let asked = address.ask(|reply| make(request, reply));
                let response = asked.timeout(timeout).await?;
                Ok(RouteAnswer::Response(response))
            })
        };
        UnknownRoute {
            ask: Box::new(ask),
            is_readable: false,
        }
    }
}
