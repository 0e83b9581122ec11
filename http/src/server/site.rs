//! What a server serves: the registered types, and the rules for all requests.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::AskError;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use super::hosts::Hosts;
use super::route::{
    AnswerFuture, Input, RegisteredType, RouteAnswer, Terms, Unasked, UnknownRoute,
};
use super::status::{FullResponse, of_error, of_json, of_refusal, of_text};
use crate::counts::{Counts, Numbers, Statuses};
use crate::limits::Limits;
use crate::message::HttpRequest;
use crate::values::answer::Answers;
use crate::values::{DecodeProblem, decode_part, shown};
use crate::view::Mount;
use crate::wire::{ConnectionState, HttpRefusal};

/// The media type of answers in an envelope, whatever the server's own choice is.
const ENVELOPE: &str = "application/vnd.layer_cake+json";

/// The methods that a type has, unless it is posted only.
const METHODS: &str = "GET, HEAD, POST, OPTIONS";

pub(super) struct Site {
    /// The types by their names in requests.
    pub(super) types: BTreeMap<String, RegisteredType>,
    pub(super) unknown: Option<UnknownRoute>,
    pub(super) form: Answers,
    pub(super) hosts: Hosts,
    pub(super) limits: Limits,
    /// The requests for which actors work.
    pub(super) in_flight: AtomicUsize,
    pub(super) counts: Counts,
    /// The pages by their paths.
    pub(super) pages: BTreeMap<&'static str, Mount>,
}

/// What a request has come to so far.
pub(super) enum RequestProgress<'a> {
    /// The body is being read.
    Reads {
        /// Why the request is refused then.
        refusal: Option<&'static str>,
        body: Pin<Box<dyn Future<Output = Result<Bytes, HttpRefusal>> + Send + 'a>>,
    },
    Asks(Asked<'a>),
    Answered(Option<FullResponse>),
}

/// A request that is being answered elsewhere.
pub(super) struct Asked<'a> {
    pub(super) answered: AnswerFuture<'a>,
    by: Answers,
    /// Where its status is counted.
    statuses: &'a Statuses,
    _in_flight: Option<InFlightRequest<'a>>,
}

impl From<Response<Bytes>> for RequestProgress<'_> {
    fn from(response: Response<Bytes>) -> Self {
        RequestProgress::Answered(Some(response.map(Full::new)))
    }
}

impl Site {
    /// Begins to answer a request whose body is there: with a page, by the actor of its type, or by
    /// that for all other types.
    pub(super) fn begin<'a>(
        &'a self,
        head: &Parts,
        body: Bytes,
        shared: &'a ConnectionState<'a>,
    ) -> RequestProgress<'a> {
        let others = &self.counts.others;
        let path = head.uri.path();
        let is_read = head.method == Method::GET || head.method == Method::HEAD;
        if let Some(page) = self.pages.get(path).filter(|_| is_read) {
            let numbers = self.numbers();
            return RequestProgress::Asks(Asked {
                answered: Box::pin(async move {
                    let page = page.respond(numbers).await;
                    Ok(RouteAnswer::Response(page.complete()))
                }),
                by: self.form,
                statuses: others,
                _in_flight: None,
            });
        }
        // `OPTIONS *` asks about the server itself.
        if path == "*" {
            return counted(others, allowing(StatusCode::NO_CONTENT, METHODS));
        }
        let slash = path.bytes().rposition(|byte| byte == b'/');
        let segment = slash.map_or(path, |slash| &path[slash + 1..]);
        let name = match decode_part(segment) {
            Ok(name) if name.is_empty() => Err(DecodeProblem::new("no type name")),
            other => other,
        };
        let name = match name {
            Ok(name) => name,
            Err(problem) => return counted(others, unrecovered(head, &problem)),
        };
        // A registered type comes first, and then the actor for all others.
        match self.types.get(&*name) {
            Some(of) => self.ask(of, head, &body, shared),
            None => match &self.unknown {
                Some(unknown) => self.ask_unknown(unknown, head, body),
                None => counted(
                    others,
                    of_text(404, format!("unknown type {}", shown(&name))),
                ),
            },
        }
    }

    /// Completes the answer to a request for which something was asked. `used` are the fields of
    /// the request, whose memory serves the response.
    pub(super) fn complete(
        &self,
        asked: &Asked<'_>,
        answer: Result<RouteAnswer, AskError>,
        used: HeaderMap,
    ) -> FullResponse {
        let response = match answer {
            Ok(RouteAnswer::Json(json)) => of_json(json, used),
            Ok(RouteAnswer::Response(response)) => response.map(Full::new),
            Err(error) => {
                // A time-out is a limit of the server, unless the actor refuses with one.
                if error == AskError::TimedOut {
                    self.counts.limit("answer_time");
                }
                of_error(error, asked.by).map(Full::new)
            }
        };
        asked.statuses.count(response.status().as_u16());
        response
    }

    /// Refuses a request behind which no other one can be found. Its head may be unknown.
    pub(super) fn refuse(
        &self,
        head: Option<&Parts>,
        HttpRefusal { status, why, limit }: HttpRefusal,
    ) -> Response<Bytes> {
        self.counts.others.count(status);
        if let Some(limit) = limit {
            self.counts.limit(limit);
        }
        match (status, head) {
            (400, Some(head)) => unrecovered(head, &DecodeProblem::new(why)),
            (400, None) => of_text(400, format!("cannot recover request ({why})")),
            _ => of_text(status, why),
        }
    }

    /// Returns what was counted so far.
    fn numbers(&self) -> Numbers {
        let types = self.types.iter();
        let types = types.map(|(name, of)| (name.as_str(), &of.statuses));
        self.counts.now(types)
    }

    /// Asks the actor of a type, if the method and the limits allow it.
    fn ask<'a>(
        &'a self,
        of: &'a RegisteredType,
        head: &Parts,
        body: &[u8],
        shared: &'a ConnectionState<'a>,
    ) -> RequestProgress<'a> {
        let refused = |response| counted(&of.statuses, response);
        let allowed = match of.is_post_only {
            true => "POST, OPTIONS",
            false => METHODS,
        };
        let input = match head.method {
            Method::POST => posted(head, body),
            Method::GET | Method::HEAD if !of.is_post_only => Ok(query(head)),
            Method::OPTIONS => return refused(allowing(StatusCode::NO_CONTENT, allowed)),
            _ => return refused(allowing(StatusCode::METHOD_NOT_ALLOWED, allowed)),
        };
        let form = match accepts_envelope(&head.headers) {
            true => Answers::Envelope,
            false => self.form,
        };
        // Counted before the request is decoded, which costs work too.
        let Some(in_flight) = self.begin_work() else {
            return refused(overloaded(self.limits.in_flight, form));
        };
        let terms = Terms {
            form,
            json: self.limits.of_json(),
            shared,
        };
        let asked = input.map_err(Unasked::Malformed);
        let asked = asked.and_then(|input| of.route.ask(input, &terms));
        match asked {
            Ok(answered) => RequestProgress::Asks(Asked {
                answered,
                by: form,
                statuses: &of.statuses,
                _in_flight: Some(in_flight),
            }),
            Err(Unasked::Panicked) => refused(of_text(500, "the request cannot be decoded")),
            Err(Unasked::Malformed(problem)) => {
                if let Some(limit) = problem.limit() {
                    self.counts.limit(limit);
                }
                refused(unrecovered(head, &problem))
            }
        }
    }

    fn ask_unknown<'a>(
        &'a self,
        unknown: &UnknownRoute,
        head: &Parts,
        body: Bytes,
    ) -> RequestProgress<'a> {
        let others = &self.counts.others;
        let Some(in_flight) = self.begin_work() else {
            return counted(others, overloaded(self.limits.in_flight, self.form));
        };
        // The head is cloned: the answer still needs it for its own fields.
        let request = HttpRequest {
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: head.headers.clone(),
            body,
        };
        RequestProgress::Asks(Asked {
            answered: unknown(request, self.limits.answer_time),
            by: self.form,
            statuses: others,
            _in_flight: Some(in_flight),
        })
    }

    /// Counts a request for which an actor works. Returns `None` if there are too many.
    fn begin_work(&self) -> Option<InFlightRequest<'_>> {
        // Relaxed: only the number counts.
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let in_flight = InFlightRequest(self);
        if before >= self.limits.in_flight {
            self.counts.limit("in_flight");
            return None;
        }
        Some(in_flight)
    }
}

/// A request for which an actor works.
struct InFlightRequest<'a>(&'a Site);

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        // Relaxed: only the number counts.
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

fn counted(statuses: &Statuses, response: Response<Bytes>) -> RequestProgress<'static> {
    statuses.count(response.status().as_u16());
    response.into()
}

fn query(head: &Parts) -> Input<'_> {
    Input::Fields(head.uri.query().unwrap_or_default())
}

/// Returns the value that was posted: by its media type, or the query if there is no body.
fn posted<'a>(head: &'a Parts, body: &'a [u8]) -> Result<Input<'a>, DecodeProblem> {
    // The type of the media decides, and never the looks of the body.
    let media = head.headers.get(CONTENT_TYPE);
    let media = media.map(|media| media.to_str().unwrap_or_default());
    let essence = media.map(|media| media.split(';').next().unwrap_or_default().trim());
    match essence.map(str::to_ascii_lowercase).as_deref() {
        Some("application/json") => Ok(Input::Json(body)),
        Some("application/x-www-form-urlencoded") => {
            let form = str::from_utf8(body);
            let form = form.map_err(|_| DecodeProblem::new("the form is not UTF-8"))?;
            Ok(Input::Fields(form))
        }
        None if body.is_empty() => Ok(query(head)),
        _ => {
            let media = shown(media.unwrap_or("None"));
            Err(DecodeProblem::new(format!(
                "unexpected content type {media}"
            )))
        }
    }
}

fn accepts_envelope(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter();
    let mut accepted = accepted.filter_map(|accept| accept.to_str().ok());
    accepted.any(|accept| accept.contains(ENVELOPE))
}

fn unrecovered(head: &Parts, problem: &DecodeProblem) -> Response<Bytes> {
    let uri = shown(&head.uri.to_string());
    of_text(400, format!("cannot recover request {uri} ({problem})"))
}

fn allowing(status: StatusCode, methods: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    let methods = HeaderValue::from_static(methods);
    response.headers_mut().insert(ALLOW, methods);
    response
}

fn overloaded(most: usize, form: Answers) -> Response<Bytes> {
    let why = format!("{most} requests are being answered");
    let refusal = greenroom::Refusal::of(greenroom::RefusalKind::Overloaded, why);
    of_refusal(503, &refusal, form)
}
