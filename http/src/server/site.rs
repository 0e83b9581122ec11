//! What a server serves: the registered types, and the rules for all requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::AskError;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use super::hosts::Hosts;
use super::route::{Answered, Input, Registered, Terms, Unasked, Unknown};
use super::status::{of_error, of_refusal, of_text};
use crate::counts::Counts;
use crate::limits::Limits;
use crate::message::HttpRequest;
use crate::values::answer::Answers;
use crate::values::{Problem, decode_part, shown};
use crate::view::Mount;
use crate::wire::Shared;

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

/// What a request has come to so far.
pub(super) enum Begun {
    Answered(Response<Bytes>),
    Asked(Asked),
}

/// A request that is being answered elsewhere.
pub(super) struct Asked {
    pub(super) answered: Answered,
    by: Answers,
    of: Of,
    _place: Option<Place>,
}

/// What answers a request.
enum Of {
    /// A page, or a request of an unknown name.
    Other,
    /// The type of this name.
    Type(Arc<str>),
}

impl From<Response<Bytes>> for Begun {
    fn from(response: Response<Bytes>) -> Self {
        Begun::Answered(response)
    }
}

impl Site {
    /// Begins to answer a request whose body is there.
    pub(super) fn begin(
        self: &Arc<Self>,
        head: &Parts,
        body: Bytes,
        shared: &Arc<Shared>,
    ) -> Begun {
        let path = head.uri.path();
        let is_read = head.method == Method::GET || head.method == Method::HEAD;
        if let Some(page) = self.pages.get(path).filter(|_| is_read) {
            let (page, numbers) = (page.clone(), self.counts.now());
            return Begun::Asked(Asked {
                answered: Box::pin(async move { Ok(page.respond(numbers).await.complete()) }),
                by: self.form,
                of: Of::Other,
                _place: None,
            });
        }
        if path == "*" {
            return self.counted("", allowing(StatusCode::NO_CONTENT, METHODS));
        }
        let slash = path.bytes().rposition(|byte| byte == b'/');
        let segment = slash.map_or(path, |slash| &path[slash + 1..]);
        let name = match decode_part(segment) {
            Ok(name) if name.is_empty() => Err(Problem::new("no type name")),
            other => other,
        };
        let name = match name {
            Ok(name) => name,
            Err(problem) => return self.counted("", unrecovered(head, &problem)),
        };
        match self.types.get(&*name) {
            Some(of) => self.ask(of, head, &body, shared),
            None => match &self.unknown {
                Some(unknown) => self.ask_unknown(&**unknown, head, body),
                None => self.counted("", of_text(404, format!("unknown type {}", shown(&name)))),
            },
        }
    }

    /// Completes the answer to a request for which something was asked.
    pub(super) fn complete(
        &self,
        asked: &Asked,
        answer: Result<Response<Bytes>, AskError>,
    ) -> Response<Bytes> {
        let response = answer.unwrap_or_else(|error| {
            if error == AskError::TimedOut {
                self.counts.limit("answer_time");
            }
            of_error(error, asked.by)
        });
        let status = response.status().as_u16();
        match &asked.of {
            Of::Other => self.counts.request("", status),
            Of::Type(name) => self.counts.request(name, status),
        }
        response
    }

    /// Refuses a request behind which no other one can be found. Its head may be unknown.
    pub(super) fn refuse(
        &self,
        head: Option<&Parts>,
        status: u16,
        why: &str,
        limit: Option<&'static str>,
    ) -> Response<Bytes> {
        self.counts.request("", status);
        if let Some(limit) = limit {
            self.counts.limit(limit);
        }
        match (status, head) {
            (400, Some(head)) => unrecovered(head, &Problem::new(why)),
            (400, None) => of_text(400, format!("cannot recover request ({why})")),
            _ => of_text(status, why),
        }
    }

    fn counted(&self, name: &str, response: Response<Bytes>) -> Begun {
        self.counts.request(name, response.status().as_u16());
        response.into()
    }

    fn ask(
        self: &Arc<Self>,
        of: &Registered,
        head: &Parts,
        body: &[u8],
        shared: &Arc<Shared>,
    ) -> Begun {
        let refused = |response| self.counted(&of.name, response);
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
        let Some(place) = self.place() else {
            return refused(overloaded(self.limits.in_flight, form));
        };
        let terms = Terms {
            form,
            json: self.limits.of_json(),
            shared,
        };
        let asked = input.map_err(Unasked::Malformed);
        let asked = asked.and_then(|input| of.route.clone().ask(input, &terms));
        match asked {
            Ok(answered) => Begun::Asked(Asked {
                answered,
                by: form,
                of: Of::Type(of.name.clone()),
                _place: Some(place),
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

    fn ask_unknown(self: &Arc<Self>, unknown: &dyn Unknown, head: &Parts, body: Bytes) -> Begun {
        let Some(place) = self.place() else {
            return self.counted("", overloaded(self.limits.in_flight, self.form));
        };
        let request = HttpRequest {
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: head.headers.clone(),
            body,
        };
        Begun::Asked(Asked {
            answered: unknown.ask(request, self.limits.answer_time),
            by: self.form,
            of: Of::Other,
            _place: Some(place),
        })
    }

    /// Takes a place among the requests for which actors work.
    fn place(self: &Arc<Self>) -> Option<Place> {
        // Relaxed: only the number counts.
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let place = Place(self.clone());
        if before >= self.limits.in_flight {
            self.counts.limit("in_flight");
            return None;
        }
        Some(place)
    }
}

struct Place(Arc<Site>);

impl Drop for Place {
    fn drop(&mut self) {
        // Relaxed: only the number counts.
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

fn query(head: &Parts) -> Input<'_> {
    Input::Fields(head.uri.query().unwrap_or_default())
}

/// Returns the value that was posted: by its media type, or the query if there is no body.
fn posted<'a>(head: &'a Parts, body: &'a [u8]) -> Result<Input<'a>, Problem> {
    let media = head.headers.get(CONTENT_TYPE);
    let media = media.map(|media| media.to_str().unwrap_or_default());
    let essence = media.map(|media| media.split(';').next().unwrap_or_default().trim());
    match essence.map(str::to_ascii_lowercase).as_deref() {
        Some("application/json") => Ok(Input::Json(body)),
        Some("application/x-www-form-urlencoded") => {
            let form = str::from_utf8(body);
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
