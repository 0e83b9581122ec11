//! Responses: answers of actors, their refusals, and what the server itself refuses.
//!
//! The text of a panic is never part of one. All refusals of a server have one form: JSON, or a line of
//! text for a client that takes no JSON.

use greenroom::{AskError, Refusal, RefusalKind};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};

use super::answer_body::{AnswerBody, ServedResponse};
use crate::HttpResponse;
use crate::values::answer::Answers;
use crate::values::{DecodeProblem, faulted, shown};

/// A client that accepts this gets an envelope.
const ENVELOPE: &str = "application/vnd.layer_cake+json";

/// What a client accepts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepts {
    /// The form of answers.
    pub(super) form: Answers,
    /// What is refused may be JSON.
    is_json: bool,
}

impl Accepts {
    /// Reads what a client accepts of a server whose answers usually have this form.
    pub(super) fn of(headers: &HeaderMap, usual: Answers) -> Self {
        let fields = headers.get_all(ACCEPT).iter();
        let media = fields.filter_map(|field| field.to_str().ok());
        let media = media.flat_map(|field| field.split(','));
        let (mut form, mut is_any, mut is_json) = (usual, true, false);
        for media in media {
            is_any = false;
            let mut parts = media.split(';').map(str::trim);
            let essence = parts.next().unwrap_or_default();
            let is = |name: &str| essence.eq_ignore_ascii_case(name);
            // What has the weight 0 is not accepted.
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
            if weight == Some(0.0) {
                continue;
            }
            if is(ENVELOPE) && usual == Answers::Plain {
                form = Answers::Envelope;
            }
            is_json |= [ENVELOPE, "application/json", "application/*", "*/*"]
                .into_iter()
                .any(is);
        }
        let is_json = is_any || is_json;
        Accepts { form, is_json }
    }
}

/// Returns the answer to a request that an actor has not answered.
pub(super) fn of_error(error: AskError, accepts: Accepts) -> Response<Bytes> {
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
    of_refusal(status, &refusal, accepts)
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

pub(super) fn of_refusal(status: u16, refusal: &Refusal, accepts: Accepts) -> Response<Bytes> {
    // Clients of layer_cake read JSON, and say nothing of it.
    let is_json = accepts.is_json || accepts.form == Answers::LayerCake;
    let response = match is_json {
        true => {
            let json = faulted::to_json(refusal, accepts.form);
            let response = HttpResponse::new(status, json);
            sendable(response.header("content-type", "application/json"), accepts)
        }
        false => of_text(status, refusal.to_string()),
    };
    let seconds = refusal.average().map_or(1, |average| average.as_secs() + 1);
    retried(response, seconds)
}

/// Returns what the server itself refuses, for this reason.
pub(super) fn of_own(status: u16, why: impl Into<String>, accepts: Accepts) -> Response<Bytes> {
    let why = why.into();
    if !accepts.is_json || accepts.form == Answers::LayerCake {
        return retried(of_text(status, why), 1);
    }
    let refusal = match status {
        408 | 504 => Refusal::of(RefusalKind::TimedOut, why),
        503 => Refusal::of(RefusalKind::Overloaded, why),
        _ => {
            let known = StatusCode::from_u16(status).ok();
            let phrase = known.and_then(|status| status.canonical_reason());
            Refusal::new(phrase.unwrap_or_default().to_ascii_lowercase(), why)
        }
    };
    of_refusal(status, &refusal.with_error_code(status.into()), accepts)
}

/// Says after how many seconds a request may be sent again, if it may.
fn retried(mut response: Response<Bytes>, seconds: u64) -> Response<Bytes> {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Completes the response of an actor or of a page. One that cannot be sent becomes 500.
pub(super) fn sendable(response: HttpResponse, accepts: Accepts) -> Response<Bytes> {
    let completed = response.complete();
    completed.unwrap_or_else(|why| of_own(500, why, accepts))
}

/// Returns the refusal of a request that is no value of its type.
pub(super) fn unrecovered(
    head: Option<&Parts>,
    problem: &DecodeProblem,
    accepts: Accepts,
) -> Response<Bytes> {
    let uri = head.map_or(String::new(), |head| {
        format!(" {}", shown(&head.uri.to_string()))
    });
    let condition = format!("cannot recover request{uri}");
    let refusal = Refusal::new(condition, problem.to_string());
    match accepts.form {
        Answers::LayerCake => of_text(400, refusal.to_string()),
        _ => of_refusal(400, &refusal.with_error_code(400), accepts),
    }
}

/// Returns a value as a response. Its fields take the memory of `used`.
pub(super) fn of_json(json: Bytes, mut used: HeaderMap) -> ServedResponse {
    used.clear();
    let media = const { HeaderValue::from_static("application/json") };
    used.insert(CONTENT_TYPE, media);
    let mut response = Response::new(AnswerBody::from(json));
    *response.headers_mut() = used;
    response
}

/// Returns a status and a line of text.
fn of_text(status: u16, text: impl Into<String>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let plain = const { HeaderValue::from_static("text/plain; charset=utf-8") };
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// Returns the bytes of the answer to a client whose connection has no room.
pub(super) fn no_room(form: Answers) -> Vec<u8> {
    // There is no connection of hyper's that could write it.
    let accepts = Accepts::of(&HeaderMap::new(), form);
    let response = of_own(503, "all connections are in use", accepts);
    let (head, body) = response.into_parts();
    let media = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let phrase = reason(head.status, form);
    let usual = head.status.canonical_reason().unwrap_or_default();
    let phrase = phrase.unwrap_or(usual.as_bytes());
    let length = format!("\r\nContent-Length: {}\r\n\r\n", body.len());
    let media = media.unwrap_or(b"text/plain");
    let parts = [
        b"HTTP/1.1 503 ",
        phrase,
        b"\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: ",
        media,
        length.as_bytes(),
        &body,
    ];
    parts.concat()
}

/// Returns the phrase of a status, if it is not the usual one.
pub(super) fn reason(status: StatusCode, form: Answers) -> Option<&'static [u8]> {
    /// The bytes of the longest phrase that a client on layer_cake reads.
    const LONGEST: usize = 16;
    match status.canonical_reason() {
        None => Some(b"Unassigned"),
        Some(usual) if form == Answers::LayerCake && usual.len() > LONGEST => {
            Some(match status.as_u16() {
                500.. => b"Server Error",
                400.. => b"Client Error",
                300.. => b"Redirection",
                _ => b"OK",
            })
        }
        Some(_) => None,
    }
}
