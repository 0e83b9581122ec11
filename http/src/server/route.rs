//! A type of requests: what decodes a request, the actor that answers it, and what encodes the
//! answer.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use greenroom::{Address, AskError, Reply};
use hyper::Response;
use hyper::body::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::status;
use crate::counts::Statuses;
use crate::message::{HttpRequest, HttpResponse};
use crate::values::answer::{Answers, to_json};
use crate::values::{JsonLimits, Problem, fields, from_fields, from_json, name_of};
use crate::wire::Shared;

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
    pub(super) json: JsonLimits,
    /// Knows when the answer is too late.
    pub(super) shared: &'a Shared,
}

/// The answer of an actor, some time.
pub(super) type Answered<'a> = Pin<Box<dyn Future<Output = Result<Answer, AskError>> + Send + 'a>>;

pub(super) enum Answer {
    Json(Bytes),
    Response(Response<Bytes>),
}

/// Why no actor is asked.
pub(super) enum Unasked {
    /// The request is no value of the type.
    Malformed(Problem),
    /// The code of the type has panicked.
    Panicked,
}

pub(super) trait Route: Send + Sync {
    /// Decodes a request, and asks the actor.
    fn ask<'a>(&'a self, input: Input<'_>, terms: &Terms<'a>) -> Result<Answered<'a>, Unasked>;

    /// Sets the name that the type of the answer has in an envelope.
    fn set_answer_name(&mut self, name: &str);
}

/// A registered type.
pub(super) struct Registered {
    pub(super) route: Box<dyn Route>,
    pub(super) statuses: Statuses,
    pub(super) is_post_only: bool,
}

pub(super) struct Typed<Q, R, M, F> {
    /// The name of the type in requests.
    pub(super) name: String,
    address: Address<M>,
    make: F,
    answer_name: String,
    types: PhantomData<fn(Q) -> R>,
}

impl<Q, R, M, F> Typed<Q, R, M, F> {
    pub(super) fn new(name: &str, address: &Address<M>, make: F) -> Self {
        Typed {
            name: name.to_owned(),
            address: address.clone(),
            make,
            answer_name: name_of::<R>(),
            types: PhantomData,
        }
    }
}

impl<Q, R, M, F> Route for Typed<Q, R, M, F>
where
    Q: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
    M: Send + 'static,
    F: Fn(Q, Reply<R>) -> M + Send + Sync + 'static,
{
    fn ask<'a>(&'a self, input: Input<'_>, terms: &Terms<'a>) -> Result<Answered<'a>, Unasked> {
        let decoded = guarded(|| decode::<Q>(&self.name, input, terms.json));
        let decoded = decoded.ok_or(Unasked::Panicked)?;
        let request = decoded.map_err(Unasked::Malformed)?;
        let (form, shared) = (terms.form, terms.shared);
        Ok(Box::pin(async move {
            shared.ask();
            let asked = self.address.ask(|reply| (self.make)(request, reply));
            let mut asked = pin!(asked.into_future());
            let answer = poll_fn(|cx| match asked.as_mut().poll(cx) {
                Poll::Pending if shared.is_actor_late() => Poll::Ready(Err(AskError::TimedOut)),
                polled => polled,
            });
            let answer = answer.await?;
            let encoded = guarded(|| to_json(form, &self.answer_name, &answer));
            Ok(match encoded.and_then(Result::ok) {
                Some(json) => Answer::Json(json),
                None => Answer::Response(status::of_text(500, "the answer cannot be encoded")),
            })
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
    limits: JsonLimits,
) -> Result<Q, Problem> {
    match input {
        Input::Fields(text) => from_fields(name, limits, &fields(text)?),
        Input::Json(body) => from_json(name, limits, body),
    }
}

/// The actor that gets all requests for no registered type.
pub(super) trait Unknown: Send + Sync {
    fn ask(&self, request: HttpRequest, time: Duration) -> Answered<'_>;
}

pub(super) struct ToActor<M, F> {
    pub(super) address: Address<M>,
    pub(super) make: F,
}

impl<M, F> Unknown for ToActor<M, F>
where
    M: Send + 'static,
    F: Fn(HttpRequest, Reply<HttpResponse>) -> M + Send + Sync + 'static,
{
    fn ask(&self, request: HttpRequest, time: Duration) -> Answered<'_> {
        Box::pin(async move {
            let asked = self.address.ask(|reply| (self.make)(request, reply));
            let response = asked.timeout(time).await?;
            Ok(Answer::Response(response.complete()))
        })
    }
}
