//! A request that is being answered, as a future.

use std::convert::Infallible;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use greenroom::trace::{CarriedSpan, Level, note};
use hyper::body::{Body, Bytes};
use hyper::ext::ReasonPhrase;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW, CONNECTION, CONTENT_TYPE,
    HeaderMap, HeaderValue, SERVER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Version};

use super::answer_body::{AnswerBody, ServedResponse};
use super::callers::{CallRefusal, Caller};
use super::route::{RouteAnswer, guarded};
use super::site::{RequestProgress, Site};
use super::status::reason;
use crate::wire::{ConnectionState, HttpRefusal, context_of};

/// The answer to a request. If it is dropped, the request is not wanted any more.
pub(super) struct Answering<'a> {
    site: &'a Site,
    shared: &'a ConnectionState<'a>,
    head: Parts,
    /// The number of the request in its connection.
    number: u64,
    /// When the head of the request was there, if that is measured.
    begun: Option<Instant>,
    /// The connection goes on after the answer.
    goes_on: bool,
    /// The origin of another page that may read the answer, and whether it asks first.
    origin: Option<HeaderValue>,
    is_preflight: bool,
    progress: RequestProgress<'a>,
    /// The span within which the request is answered, if spans go on from process to process.
    span: CarriedSpan,
}

impl<'a> Answering<'a> {
    pub(super) fn new(
        site: &'a Site,
        shared: &'a ConnectionState<'a>,
        head: Parts,
        number: u64,
    ) -> Self {
        let is_preflight = head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        Answering {
            site,
            shared,
            head,
            number,
            begun: site.is_measured.then(Instant::now),
            goes_on: true,
            origin: None,
            is_preflight,
            progress: RequestProgress::Answered(None),
            span: CarriedSpan::default(),
        }
    }

    pub(super) fn head(&self) -> &Parts {
        &self.head
    }

    /// Lets a page of this origin read what the answer will be, also a refusal.
    pub(super) fn set_origin(&mut self, origin: Option<HeaderValue>) {
        self.origin = origin;
    }

    pub(super) fn set(&mut self, progress: RequestProgress<'a>) {
        self.progress = progress;
    }

    /// Refuses the request. No other one can be found behind it.
    pub(super) fn refuse(&mut self, refusal: HttpRefusal) {
        self.goes_on = false;
        self.shared.note_answered(refusal.status);
        // A head that was refused is not here: another one stands for it.
        let head = matches!(self.progress, RequestProgress::Reads { .. }).then_some(&self.head);
        self.progress = self.site.refuse(head, refusal).into();
    }

    /// Answers without the body that the client still keeps. No other request can be found behind it.
    pub(super) fn answer_early(&mut self, answered: RequestProgress<'a>) {
        self.goes_on = false;
        self.progress = answered;
    }

    /// Begins to answer the request, whose body is there, unless it is refused.
    pub(super) fn begin(&mut self, call: Result<Caller, CallRefusal>, body: Bytes) {
        self.progress = match call {
            Ok(caller) => {
                let head = &self.head;
                self.span =
                    CarriedSpan::remote(|| (self.site.shown(head), context_of(&head.headers)));
                let begin = || self.site.begin(head, body, &caller, self.shared);
                self.span.in_scope(begin)
            }
            Err(refusal) => self.site.refuse_call(&self.head, refusal),
        };
    }

    /// Adds the fields for a page of another site that may read the answer.
    fn open_to_origin(&self, headers: &mut HeaderMap) {
        if !self.site.callers.have_origins() {
            return;
        }
        headers.append(VARY, const { HeaderValue::from_static("Origin") });
        let Some(origin) = &self.origin else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        if let Some(methods) = headers.get(ALLOW).filter(|_| self.is_preflight).cloned() {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
            let fields = HeaderValue::from_static("accept, content-type");
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, fields);
            let seconds = HeaderValue::from_static("600");
            headers.insert(ACCESS_CONTROL_MAX_AGE, seconds);
        }
    }

    /// Adds the fields that each response has.
    fn complete(&self, response: &mut ServedResponse) {
        note!(
            Level::Trace,
            self.head.method,
            self.head.uri,
            status = response.status().as_u16()
        );
        let is_last = self.number >= self.site.limits.requests_a_connection;
        let ends = !self.goes_on || is_last;
        if ends {
            self.shared.note_end();
        }
        // Otherwise hyper adds `keep-alive` to `close` if the client has asked for that.
        if ends && self.head.version == Version::HTTP_10 {
            *response.version_mut() = Version::HTTP_10;
        }
        let phrase = reason(response.status(), self.site.form);
        let phrase = phrase.map(ReasonPhrase::from_static);
        phrase.and_then(|phrase| response.extensions_mut().insert(phrase));
        if response.status() == StatusCode::RESET_CONTENT {
            // It has no body by definition.
            *response.body_mut() = AnswerBody::default();
            response.headers_mut().remove(CONTENT_TYPE);
        }
        // hyper sends no body with these.
        let is_bare = self.head.method == Method::HEAD
            || matches!(
                response.status(),
                StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
            );
        if !is_bare {
            let bytes = response.body().size_hint().exact();
            self.shared.note_answer(bytes.unwrap_or(0) as usize);
        }
        let headers = response.headers_mut();
        self.open_to_origin(headers);
        if is_last {
            self.site.counts.limit("requests_a_connection");
        }
        if ends {
            headers.insert(CONNECTION, const { HeaderValue::from_static("close") });
        }
        headers.insert(SERVER, const { HeaderValue::from_static("greenroom") });
        let no_guess = const { HeaderValue::from_static("nosniff") };
        headers.insert(X_CONTENT_TYPE_OPTIONS, no_guess);
    }
}

impl Future for Answering<'_> {
    type Output = Result<ServedResponse, Infallible>;

    /// # Panics
    /// If it is polled again after completion.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let own = self.get_mut();
        // A request that asks nothing counts as one for no type.
        let mut statuses = &own.site.counts.others;
        let mut response = loop {
            match &mut own.progress {
                RequestProgress::Reads { call, body } => {
                    let body = ready!(body.as_mut().poll(cx));
                    let call = mem::replace(call, Ok(Caller::default()));
                    match body {
                        Ok(body) => own.begin(call, body),
                        Err(refusal) => own.refuse(refusal),
                    }
                }
                RequestProgress::Asks(asked) => {
                    // The code of the user's actors, types and pages may panic.
                    let polled = guarded(|| own.span.in_scope(|| asked.answered.as_mut().poll(cx)));
                    let answer = match polled {
                        Some(polled) => ready!(polled),
                        None => Ok(RouteAnswer::Failed("no answer can be made")),
                    };
                    statuses = asked.statuses;
                    let used = mem::take(&mut own.head.headers);
                    let response = own.site.complete(asked, answer, used);
                    own.progress = RequestProgress::Answered(None);
                    break response;
                }
                RequestProgress::Answered(response) => {
                    break response.take().expect("it is polled once");
                }
            }
        };
        own.complete(&mut response);
        if let Some(begun) = own.begun {
            statuses.took(begun.elapsed());
        }
        Poll::Ready(Ok(response))
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.shared.finish();
    }
}
