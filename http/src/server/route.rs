//! A type of requests: what decodes a request, the actor that answers it, and what encodes the
//! answer.

use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use greenroom::{Address, AskError, Reply};
use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::status;
use crate::message::{HttpRequest, HttpResponse};
use crate::values::answer::{Answers, to_json};
use crate::values::{JsonLimits, Problem, fields, from_fields, from_json, name_of};

/// Where a request has its value.
pub(super) enum Input {
    /// In the query or in a form.
    Fields(String),
    Json(Bytes),
}

/// How a request is to be answered.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) form: Answers,
    pub(super) json: JsonLimits,
    pub(super) time: Duration,
}

pub(super) type Answered =
    Pin<Box<dyn Future<Output = Result<Response<Bytes>, Unanswered>> + Send>>;

/// Why a request has no answer.
pub(super) enum Unanswered {
    /// It is no value of the type.
    Malformed(Problem),
    /// The actor gave none.
    Failed(AskError),
}

pub(super) trait Route: Send + Sync {
    /// Answers a request.
    fn answer(self: Arc<Self>, input: Input, terms: Terms) -> Answered;

    /// Sets the name that the type of the answer has in an envelope.
    fn set_answer_name(&mut self, name: &str);
}

/// A registered type.
#[derive(Clone)]
pub(super) struct Registered {
    pub(super) route: Arc<dyn Route>,
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
    fn answer(self: Arc<Self>, input: Input, terms: Terms) -> Answered {
        Box::pin(async move {
            let decoded = guarded(|| decode::<Q>(&self.name, &input, terms.json));
            let Some(decoded) = decoded else {
                return Ok(status::of_text(500, "the request cannot be decoded"));
            };
            let request = decoded.map_err(Unanswered::Malformed)?;
            let Some(asked) = guarded(|| {
                self.address
                    .ask(|reply| (self.make)(request, reply))
                    .timeout(terms.time)
            }) else {
                return Ok(status::of_text(500, "the request cannot be passed on"));
            };
            Ok(match asked.await {
                Ok(answer) => {
                    let encoded = guarded(|| to_json(terms.form, &self.answer_name, &answer));
                    match encoded.and_then(Result::ok) {
                        Some(json) => of_json(json),
                        None => status::of_text(500, "the answer cannot be encoded"),
                    }
                }
                Err(error) => return Err(Unanswered::Failed(error)),
            })
        })
    }

    fn set_answer_name(&mut self, name: &str) {
        self.answer_name = name.to_owned();
    }
}

/// Runs code of the user's types. Returns nothing if it panics.
fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

fn decode<Q: DeserializeOwned>(
    name: &str,
    input: &Input,
    limits: JsonLimits,
) -> Result<Q, Problem> {
    match input {
        Input::Fields(text) => from_fields(name, limits, &fields(text)?),
        Input::Json(body) => from_json(name, limits, body),
    }
}

fn of_json(json: Vec<u8>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(json));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// The actor that gets all requests for no registered type.
pub(super) trait Unknown: Send + Sync {
    fn answer(
        &self,
        request: HttpRequest,
        time: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, AskError>> + Send + '_>>;
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
    fn answer(
        &self,
        request: HttpRequest,
        time: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, AskError>> + Send + '_>> {
        let asked = self.address.ask(|reply| (self.make)(request, reply));
        Box::pin(asked.timeout(time).into_future())
    }
}
