//! What a server serves: the registered types, and the rules for all requests.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::AskError;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};

use super::body::{self, Unread};
use super::hosts::Hosts;
use super::route::{Input, Registered, Terms, Unanswered, Unknown};
use super::status::{of_error, of_refusal, of_text};
use crate::counts::Counts;
use crate::limits::Limits;
use crate::message::HttpRequest;
use crate::values::answer::Answers;
use crate::values::{Problem, decode_part, shown};
use crate::view::Mount;

/// The media type of answers in an envelope, whatever the server's own choice is.
const ENVELOPE: &str = "application/vnd.layer_cake+json";

/// The methods that a type has, unless it is posted only.
const METHODS: &str = "GET, HEAD, POST, OPTIONS";

pub(super) struct Site {
    pub(super) types: HashMap<String, Registered>,
    pub(super) unknown: Option<Arc<dyn Unknown>>,
    pub(super) form: Answers,
    pub(super) hosts: Hosts,
    pub(super) limits: Limits,
    /// The requests for which actors work.
    pub(super) in_flight: AtomicUsize,
    pub(super) counts: Counts,
    /// The pages by their paths.
    pub(super) pages: HashMap<&'static str, Mount>,
}

/// An answer, and whether the connection goes on after it.
pub(super) struct Answer {
    pub(super) response: Response<Bytes>,
    pub(super) goes_on: bool,
}

impl From<Response<Bytes>> for Answer {
    fn from(response: Response<Bytes>) -> Self {
        Answer {
            response,
            goes_on: true,
        }
    }
}

impl Site {
    /// Answers a request that came to this address of the server.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        local: Option<SocketAddr>,
    ) -> Answer {
        let (head, body) = request.into_parts();
        let host = head.uri.host().map(str::to_owned);
        let refusal = self.hosts.refusal(&head.headers, host.as_deref(), local);
        // The body is read in any case, since the next request comes behind it.
        let body = match body::read(body, &self.limits).await {
            Ok(body) => body,
            Err(Unread { status, why, limit }) => {
                let answer = self.refuse(status, why, limit);
                return match status {
                    400 => Answer {
                        response: unrecovered(&head, &Problem::new(why)),
                        ..answer
                    },
                    _ => answer,
                };
            }
        };
        if let Some(why) = refusal {
            self.counts.request("", 403);
            return of_text(403, why).into();
        }
        self.answer_whole(head, body).await.into()
    }

    /// Refuses a request behind which no other one can be found.
    pub(super) fn refuse(&self, status: u16, why: &str, limit: Option<&'static str>) -> Answer {
        self.counts.request("", status);
        if let Some(limit) = limit {
            self.counts.limit(limit);
        }
        let text = match status {
            400 => format!("cannot recover request ({why})"),
            _ => why.to_owned(),
        };
        Answer {
            response: of_text(status, text),
            goes_on: false,
        }
    }

    async fn answer_whole(&self, head: Parts, body: Bytes) -> Response<Bytes> {
        let path = head.uri.path();
        let is_read = head.method == Method::GET || head.method == Method::HEAD;
        if let Some(page) = self.pages.get(path).filter(|_| is_read) {
            let response = page.respond(self.counts.now()).await.complete();
            self.counts.request("", response.status().as_u16());
            return response;
        }
        if path == "*" {
            self.counts.request("", 204);
            return allowing(StatusCode::NO_CONTENT, METHODS);
        }
        let segment = path.rsplit('/').next().unwrap_or_default();
        let name = match decode_part(segment) {
            Ok(name) if name.is_empty() => Err(Problem::new("no type name")),
            other => other,
        };
        let name = match name {
            Ok(name) => name,
            Err(problem) => {
                self.counts.request("", 400);
                return unrecovered(&head, &problem);
            }
        };
        let (name, response) = match self.types.get(&*name) {
            Some(registered) => (&*name, self.answer_typed(registered, &head, body).await),
            None => match &self.unknown {
                Some(unknown) => {
                    let response = self.answer_unknown(&**unknown, head, body).await;
                    self.counts.request("", response.status().as_u16());
                    return response;
                }
                None => ("", of_text(404, format!("unknown type {}", shown(&name)))),
            },
        };
        self.counts.request(name, response.status().as_u16());
        response
    }

    async fn answer_typed(&self, of: &Registered, head: &Parts, body: Bytes) -> Response<Bytes> {
        let allowed = match of.is_post_only {
            true => "POST, OPTIONS",
            false => METHODS,
        };
        let input = match head.method {
            Method::POST => posted(head, body),
            Method::GET | Method::HEAD if !of.is_post_only => Ok(query(head)),
            Method::OPTIONS => return allowing(StatusCode::NO_CONTENT, allowed),
            _ => return allowing(StatusCode::METHOD_NOT_ALLOWED, allowed),
        };
        let form = match accepts_envelope(&head.headers) {
            true => Answers::Envelope,
            false => self.form,
        };
        let Some(_place) = self.begin() else {
            return overloaded(self.limits.in_flight, form);
        };
        let terms = Terms {
            form,
            json: self.limits.of_json(),
            time: self.limits.answer_time,
        };
        let answered = match input {
            Ok(input) => of.route.clone().answer(input, terms).await,
            Err(problem) => Err(Unanswered::Malformed(problem)),
        };
        answered.unwrap_or_else(|unanswered| match unanswered {
            Unanswered::Failed(error) => self.failed(error, form),
            Unanswered::Malformed(problem) => {
                if let Some(limit) = problem.limit() {
                    self.counts.limit(limit);
                }
                unrecovered(head, &problem)
            }
        })
    }

    async fn answer_unknown(
        &self,
        unknown: &dyn Unknown,
        head: Parts,
        body: Bytes,
    ) -> Response<Bytes> {
        let Some(_place) = self.begin() else {
            return overloaded(self.limits.in_flight, self.form);
        };
        let request = HttpRequest {
            method: head.method,
            uri: head.uri,
            headers: head.headers,
            body,
        };
        match unknown.answer(request, self.limits.answer_time).await {
            Ok(response) => response.complete(),
            Err(error) => self.failed(error, self.form),
        }
    }

    /// Takes a place among the requests for which actors work.
    fn begin(&self) -> Option<Place<'_>> {
        // Relaxed: only the number counts.
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let place = Place(&self.in_flight);
        if before >= self.limits.in_flight {
            self.counts.limit("in_flight");
            return None;
        }
        Some(place)
    }

    fn failed(&self, error: AskError, form: Answers) -> Response<Bytes> {
        if error == AskError::TimedOut {
            self.counts.limit("answer_time");
        }
        of_error(error, form)
    }
}

struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // Relaxed: only the number counts.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn query(head: &Parts) -> Input {
    Input::Fields(head.uri.query().unwrap_or_default().to_owned())
}

/// Returns the value that was posted: by its media type, or the query if there is no body.
fn posted(head: &Parts, body: Bytes) -> Result<Input, Problem> {
    let media = head.headers.get(CONTENT_TYPE);
    let media = media.map(|media| media.to_str().unwrap_or_default());
    let essence = media.map(|media| media.split(';').next().unwrap_or_default().trim());
    match essence.map(str::to_ascii_lowercase).as_deref() {
        Some("application/json") => Ok(Input::Json(body)),
        Some("application/x-www-form-urlencoded") => {
            let form = String::from_utf8(body.into());
            let form = form.map_err(|_| Problem::new("the form is not UTF-8"))?;
            Ok(Input::Fields(form))
        }
        None if body.is_empty() => Ok(query(head)),
        _ => {
            let media = shown(media.unwrap_or("None"));
            Err(Problem::new(format!("unexpected content type {media}")))
        }
    }
}

fn accepts_envelope(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter();
    let mut accepted = accepted.filter_map(|accept| accept.to_str().ok());
    accepted.any(|accept| accept.contains(ENVELOPE))
}

fn unrecovered(head: &Parts, problem: &Problem) -> Response<Bytes> {
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
