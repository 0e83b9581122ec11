//! What a server serves: the registered types, and the rules for all requests.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::AskError;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use super::answer_body::{AnswerBody, ServedResponse};
use super::callers::{CallRefusal, Caller, Callers};
use super::peers::{PeerRequests, Proxies, RemoteClient};
use super::route::{
    AnswerFuture, Input, RegisteredType, RouteAnswer, Terms, Unasked, UnknownRoute,
};
use super::status::{Accepts, of_error, of_json, of_own, sendable, unrecovered};
use crate::counts::{Counts, Numbers, Statuses};
use crate::limits::Limits;
use crate::message::HttpRequest;
use crate::values::answer::Answers;
use crate::values::{DecodeProblem, decode_part, shown};
use crate::view::Mount;
use crate::wire::{ConnectionState, HttpRefusal};

/// The methods that a type has, unless it is posted only.
const METHODS: &str = "GET, HEAD, POST, OPTIONS";
const POST_ONLY_METHODS: &str = "POST, OPTIONS";
const PAGE_METHODS: &str = "GET, HEAD, OPTIONS";

pub(super) struct Site {
    /// The types by their names in requests.
    pub(super) types: BTreeMap<String, RegisteredType>,
    pub(super) unknown: Option<UnknownRoute>,
    pub(super) form: Answers,
    pub(super) callers: Callers,
    pub(super) limits: Limits,
    /// The requests for which actors work.
    pub(super) in_flight: AtomicUsize,
    /// The bytes of answers that clients have not taken.
    pub(super) unsent: Arc<AtomicUsize>,
    pub(super) counts: Counts,
    /// The pages by their paths.
    pub(super) pages: BTreeMap<&'static str, Mount>,
    /// The times of requests are measured, since a page shows them.
    pub(super) is_measured: bool,
    pub(super) proxies: Proxies,
    /// The requests for which actors work, by the clients of proxies.
    pub(super) by_peer: Arc<PeerRequests>,
}

/// What a request has come to so far.
pub(super) enum RequestProgress<'a> {
    /// The body is being read.
    Reads {
        /// Who has sent the request, or why it is refused then.
        call: Result<Caller, CallRefusal>,
        body: Pin<Box<dyn Future<Output = Result<Bytes, HttpRefusal>> + Send + 'a>>,
    },
    Asks(Asked<'a>),
    Answered(Option<ServedResponse>),
}

/// A request that is being answered elsewhere.
pub(super) struct Asked<'a> {
    pub(super) answered: AnswerFuture<'a>,
    accepts: Accepts,
    /// Where its status is counted.
    pub(super) statuses: &'a Statuses,
    _in_flight: Option<InFlightRequest<'a>>,
}

/// The answer to a request that asks nothing. Few do not, so it is boxed.
pub(super) struct RefusedRequest(Box<Response<Bytes>>);

/// What a request is for.
pub(super) enum RequestTarget<'a> {
    Page(&'a Mount),
    Type(&'a RegisteredType),
    Unknown(&'a UnknownRoute),
}

impl From<Response<Bytes>> for RequestProgress<'_> {
    fn from(response: Response<Bytes>) -> Self {
        RequestProgress::Answered(Some(response.map(AnswerBody::from)))
    }
}

impl From<RefusedRequest> for RequestProgress<'_> {
    fn from(RefusedRequest(response): RefusedRequest) -> Self {
        (*response).into()
    }
}

impl Site {
    /// Returns what a client with this head accepts.
    pub(super) fn accepts(&self, head: &Parts) -> Accepts {
        Accepts::of(&head.headers, self.form)
    }

    /// Refuses a request for its caller.
    pub(super) fn refuse_call(&self, head: &Parts, refusal: CallRefusal) -> RequestProgress<'_> {
        self.counts.refused(refusal.cause);
        let response = of_own(refusal.status, refusal.why, self.accepts(head));
        counted(&self.counts.others, response)
    }

    /// Finds what a request is for, if it may be asked in this way, whatever its body is. Otherwise
    /// returns the answer.
    pub(super) fn target<'a>(
        &'a self,
        head: &Parts,
        caller: &Caller,
    ) -> Result<RequestTarget<'a>, RefusedRequest> {
        let (others, path) = (&self.counts.others, head.uri.path());
        // Most requests are not refused.
        let accepts = || self.accepts(head);
        let is_read = head.method == Method::GET || head.method == Method::HEAD;
        if let Some(page) = self.pages.get(path) {
            return match head.method {
                _ if is_read => Ok(RequestTarget::Page(page)),
                Method::OPTIONS => Err(refused(others, allowed(PAGE_METHODS))),
                _ => Err(refused(others, not_allowed(PAGE_METHODS, accepts()))),
            };
        }
        // `OPTIONS *` asks about the server itself.
        if path == "*" {
            return Err(refused(others, allowed(METHODS)));
        }
        let slash = path.bytes().rposition(|byte| byte == b'/');
        let segment = slash.map_or(path, |slash| &path[slash + 1..]);
        let name = match decode_part(segment) {
            Ok(name) if name.is_empty() => Err(DecodeProblem::new("no type name")),
            other => other,
        };
        let name =
            name.map_err(|problem| refused(others, unrecovered(Some(head), &problem, accepts())))?;
        // A registered type comes first, and then the actor for all others.
        let (target, statuses, is_readable) = match (self.types.get(&*name), &self.unknown) {
            (Some(of), _) => {
                of.method_refusal(&head.method, accepts)
                    .map_or(Ok(()), |refusal| Err(refused(&of.statuses, refusal)))?;
                (RequestTarget::Type(of), &of.statuses, of.is_readable)
            }
            (None, Some(unknown)) => (RequestTarget::Unknown(unknown), others, unknown.is_readable),
            (None, None) => {
                let why = format!("unknown type {}", shown(&name));
                return Err(refused(others, of_own(404, why, accepts())));
            }
        };
        if is_read && !is_readable && !caller.may_read {
            self.counts.refused(CallRefusal::SITE.cause);
            let CallRefusal { status, why, .. } = CallRefusal::SITE;
            return Err(refused(statuses, of_own(status, why, accepts())));
        }
        if let Some(coding) = coding(&head.headers) {
            let why = format!("unsupported Content-Encoding {}", shown(coding));
            return Err(refused(statuses, of_own(415, why, accepts())));
        }
        Ok(target)
    }

    /// Returns the name of the span of a request: its method, and the page or the registered type.
    pub(super) fn shown(&self, head: &Parts) -> String {
        let path = head.uri.path();
        let segment = path.rsplit('/').next().unwrap_or_default();
        let of = match self.pages.contains_key(path) {
            true => Some(path),
            // No other part of a path is in a name: there are too many of them.
            false => self.types.contains_key(segment).then_some(segment),
        };
        match of {
            Some(of) => format!("{} {of}", head.method),
            None => head.method.to_string(),
        }
    }

    /// Begins to answer a request whose body is there: with a page, by the actor of its type, or by
    /// that for all other types.
    pub(super) fn begin<'a>(
        &'a self,
        head: &Parts,
        body: Bytes,
        caller: &Caller,
        shared: &'a ConnectionState<'a>,
    ) -> RequestProgress<'a> {
        match self.target(head, caller) {
            Ok(RequestTarget::Page(page)) => {
                if let Some(fixed) = page.fixed_page() {
                    return counted(&self.counts.others, fixed);
                }
                if let Some(stream) = page.stream_page() {
                    return self.begin_stream(page, stream, head, caller, shared);
                }
                let numbers = self.numbers();
                let query = head.uri.query().unwrap_or_default().to_owned();
                RequestProgress::Asks(Asked {
                    answered: Box::pin(async move {
                        let page = page.respond(query, numbers).await;
                        Ok(RouteAnswer::Response(page))
                    }),
                    accepts: self.accepts(head),
                    statuses: &self.counts.others,
                    _in_flight: None,
                })
            }
            Ok(RequestTarget::Type(of)) => self.ask(of, head, &body, caller, shared),
            Ok(RequestTarget::Unknown(unknown)) => self.ask_unknown(unknown, head, body, caller),
            Err(refused) => refused.into(),
        }
    }

    /// Completes the answer to a request for which something was asked. `used` are the fields of
    /// the request, whose memory serves the response.
    pub(super) fn complete(
        &self,
        asked: &Asked<'_>,
        answer: Result<RouteAnswer, AskError>,
        used: HeaderMap,
    ) -> ServedResponse {
        let response = match answer {
            Ok(RouteAnswer::Json(json)) => of_json(json, used),
            Ok(RouteAnswer::Response(response)) => {
                sendable(response, asked.accepts).map(AnswerBody::from)
            }
            Ok(RouteAnswer::Failed(why)) => of_own(500, why, asked.accepts).map(AnswerBody::from),
            Err(error) => {
                // A time-out is a limit of the server, unless the actor refuses with one.
                if error == AskError::TimedOut {
                    self.counts.limit("answer_time");
                }
                of_error(error, asked.accepts).map(AnswerBody::from)
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
        let accepts = head.map_or(Accepts::of(&HeaderMap::new(), self.form), |head| {
            self.accepts(head)
        });
        match status {
            400 => unrecovered(head, &DecodeProblem::new(why), accepts),
            _ => of_own(status, why, accepts),
        }
    }

    /// Returns what was counted so far.
    fn numbers(&self) -> Numbers {
        let types = self.types.iter();
        let types = types.map(|(name, of)| (name.as_str(), &of.statuses));
        // Relaxed: only the number counts.
        self.counts
            .now(types, self.in_flight.load(Ordering::Relaxed))
    }

    /// Asks the actor of a type, if the limits allow it.
    fn ask<'a>(
        &'a self,
        of: &'a RegisteredType,
        head: &Parts,
        body: &[u8],
        caller: &Caller,
        shared: &'a ConnectionState<'a>,
    ) -> RequestProgress<'a> {
        let refused = |response| counted(&of.statuses, response);
        let accepts = self.accepts(head);
        // Counted before the request is decoded, which costs work too.
        let in_flight = match self.begin_work(caller.peer, accepts) {
            Ok(in_flight) => in_flight,
            Err(RefusedRequest(response)) => return refused(*response),
        };
        let input = match head.method {
            Method::POST => posted(head, body),
            _ => Ok(query(head)),
        };
        let terms = Terms {
            form: accepts.form,
            json: self.limits.of_json(self.form.maps()),
            shared,
        };
        let asked = input.map_err(Unasked::Malformed);
        let asked = asked.and_then(|input| of.route.ask(input, &terms));
        match asked {
            Ok(answered) => RequestProgress::Asks(Asked {
                answered,
                accepts,
                statuses: &of.statuses,
                _in_flight: Some(in_flight),
            }),
            Err(Unasked::Panicked) => {
                refused(of_own(500, "the request cannot be decoded", accepts))
            }
            Err(Unasked::Malformed(problem)) => {
                if let Some(limit) = problem.limit() {
                    self.counts.limit(limit);
                }
                refused(unrecovered(Some(head), &problem, accepts))
            }
        }
    }

    fn ask_unknown<'a>(
        &'a self,
        unknown: &UnknownRoute,
        head: &Parts,
        body: Bytes,
        caller: &Caller,
    ) -> RequestProgress<'a> {
        let (others, accepts) = (&self.counts.others, self.accepts(head));
        let in_flight = match self.begin_work(caller.peer, accepts) {
            Ok(in_flight) => in_flight,
            Err(RefusedRequest(response)) => return counted(others, *response),
        };
        // The head is cloned: the answer still needs it for its own fields.
        let request = HttpRequest {
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: head.headers.clone(),
            body,
        };
        RequestProgress::Asks(Asked {
            answered: (unknown.ask)(request, self.limits.answer_time),
            accepts,
            statuses: others,
            _in_flight: Some(in_flight),
        })
    }

    /// Counts a request for which an actor works, or returns the answer if there are too many, or too
    /// much that clients have not taken.
    fn begin_work(
        &self,
        peer: Option<RemoteClient>,
        accepts: Accepts,
    ) -> Result<InFlightRequest<'_>, RefusedRequest> {
        let Limits {
            in_flight,
            unsent,
            connections_a_peer,
            ..
        } = self.limits;
        // Relaxed: only the numbers count.
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let mut request = InFlightRequest {
            site: self,
            peer: None,
        };
        let has_share = |peer| self.by_peer.begin(peer, connections_a_peer);
        let (limit, why) = if before >= in_flight {
            (
                "in_flight",
                format!("{in_flight} requests are being answered"),
            )
        } else if self.unsent.load(Ordering::Relaxed) > unsent {
            (
                "unsent",
                format!("clients have not taken {unsent} bytes of answers"),
            )
        } else if peer.is_some_and(|peer| !has_share(peer)) {
            let most = connections_a_peer;
            (
                "connections_a_peer",
                format!("{most} requests of the client are being answered"),
            )
        } else {
            request.peer = peer;
            return Ok(request);
        };
        self.counts.limit(limit);
        Err(RefusedRequest(Box::new(of_own(503, why, accepts))))
    }
}

/// A request for which an actor works.
struct InFlightRequest<'a> {
    site: &'a Site,
    /// The client of a proxy, if its requests are counted.
    peer: Option<RemoteClient>,
}

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        // Relaxed: only the number counts.
        self.site.in_flight.fetch_sub(1, Ordering::Relaxed);
        let peer = self.peer;
        peer.inspect(|peer| self.site.by_peer.end(*peer));
    }
}

fn refused(statuses: &Statuses, response: Response<Bytes>) -> RefusedRequest {
    statuses.count(response.status().as_u16());
    RefusedRequest(Box::new(response))
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

impl Site {
    /// Returns the answer to a request whose body has a media type that no type reads, if that is so.
    pub(super) fn media_refusal(
        &self,
        target: &RequestTarget<'_>,
        head: &Parts,
    ) -> Option<RefusedRequest> {
        let RequestTarget::Type(of) = target else {
            return None;
        };
        let problem = posted(head, b"0").err()?;
        let response = unrecovered(Some(head), &problem, self.accepts(head));
        Some(refused(&of.statuses, response))
    }
}

/// Returns the coding of a body that is not as it is.
fn coding(headers: &HeaderMap) -> Option<&str> {
    let codings = headers.get_all(CONTENT_ENCODING).iter();
    let mut codings = codings.map(|coding| coding.to_str().unwrap_or("?").trim());
    codings.find(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
}

/// Returns the answer to OPTIONS.
fn allowed(methods: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let methods = HeaderValue::from_static(methods);
    response.headers_mut().insert(ALLOW, methods);
    response
}

fn not_allowed(methods: &'static str, accepts: Accepts) -> Response<Bytes> {
    let mut response = of_own(405, "the method is not allowed", accepts);
    let methods = HeaderValue::from_static(methods);
    response.headers_mut().insert(ALLOW, methods);
    response
}

impl RegisteredType {
    /// Returns the answer to a method that asks no actor.
    fn method_refusal(
        &self,
        method: &Method,
        accepts: impl FnOnce() -> Accepts,
    ) -> Option<Response<Bytes>> {
        let methods = match self.is_post_only {
            true => POST_ONLY_METHODS,
            false => METHODS,
        };
        match *method {
            Method::POST => None,
            Method::GET | Method::HEAD if !self.is_post_only => None,
            Method::OPTIONS => Some(allowed(methods)),
            _ => Some(not_allowed(methods, accepts())),
        }
    }
}
