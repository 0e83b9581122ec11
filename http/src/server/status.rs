//! Responses: answers of actors, their refusals, and what the server itself says.
//!
//! The text of a panic is never part of one.

use greenroom::{AskError, Refusal, RefusalKind};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use crate::values::answer::Answers;
use crate::values::faulted;

/// A response whose body is there.
pub(super) type FullResponse = Response<Full<Bytes>>;

/// Returns the answer to a request that an actor has not answered.
pub(super) fn of_error(error: AskError, form: Answers) -> Response<Bytes> {
    let (status, refusal) = match error {
        AskError::Refused(refusal) => (status_of(&refusal), refusal),
        AskError::Closed(_) => (
            503,
            Refusal::of(RefusalKind::OutOfService, "the actor has ended"),
        ),
        AskError::TimedOut => (
            504,
            Refusal::of(RefusalKind::TimedOut, "no answer came in time"),
        ),
        AskError::Deadlock(_) => (500, Refusal::new("deadlock", "actors wait for each other")),
        _ => (500, Refusal::new("no reply", "the actor gave no answer")),
    };
    of_refusal(status, &refusal, form)
}

fn status_of(refusal: &Refusal) -> u16 {
    // A status below 200 is no answer.
    let code = refusal
        .error_code()
        .and_then(|code| u16::try_from(code).ok());
    if let Some(code @ 200..600) = code {
        return code;
    }
    match refusal.kind() {
        RefusalKind::Busy
        | RefusalKind::Overloaded
        | RefusalKind::Unavailable
        | RefusalKind::OutOfService => 503,
        RefusalKind::TimedOut => 504,
        _ => 500,
    }
}

pub(super) fn of_refusal(status: u16, refusal: &Refusal, form: Answers) -> Response<Bytes> {
    let body = faulted::to_json(refusal, form);
    let mut response = Response::new(body);
    let (known, phrase) = reason(status);
    *response.status_mut() = known;
    response
        .extensions_mut()
        .insert(ReasonPhrase::from_static(phrase));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    if status == 503 {
        let seconds = refusal.average().map_or(1, |average| average.as_secs() + 1);
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Returns a status and the phrase that layer_cake gives statuses of its class.
fn reason(status: u16) -> (StatusCode, &'static [u8]) {
    let known = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let phrase: &[u8] = match known.as_u16() {
        500.. => b"Server Error",
        400.. => b"Client Error",
        300.. => b"Redirection",
        _ => b"OK",
    };
    (known, phrase)
}

/// Returns a value as a response. Its fields take the memory of `used`.
pub(super) fn of_json(json: Bytes, mut used: HeaderMap) -> FullResponse {
    used.clear();
    let media = const { HeaderValue::from_static("application/json") };
    used.insert(CONTENT_TYPE, media);
    let mut response = Response::new(Full::new(json));
    *response.headers_mut() = used;
    response
}

/// Returns an answer of the server itself: a status and a line of text.
pub(super) fn of_text(status: u16, text: impl Into<String>) -> Response<Bytes> {
    crate::HttpResponse::new(status, text.into()).complete()
}
