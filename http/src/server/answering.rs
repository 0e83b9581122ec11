//! A request that is being answered, as a future.

use std::convert::Infallible;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use greenroom::trace::{Level, note};
use hyper::Version;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, HeaderValue, SERVER, X_CONTENT_TYPE_OPTIONS};
use hyper::http::request::Parts;

use super::route::{RouteAnswer, guarded};
use super::site::{RequestProgress, Site};
use super::status::{FullResponse, of_text};
use crate::wire::{ConnectionState, HttpRefusal};

/// The answer to a request. If it is dropped, the request is not wanted any more.
pub(super) struct Answering<'a> {
    site: &'a Site,
    shared: &'a ConnectionState<'a>,
    head: Parts,
    /// The number of the request in its connection.
    number: u64,
    /// The connection goes on after the answer.
    goes_on: bool,
    progress: RequestProgress<'a>,
}

impl<'a> Answering<'a> {
    pub(super) fn new(
        site: &'a Site,
        shared: &'a ConnectionState<'a>,
        head: Parts,
        number: u64,
    ) -> Self {
        Answering {
            site,
            shared,
            head,
            number,
            goes_on: true,
            progress: RequestProgress::Answered(None),
        }
    }

    pub(super) fn head(&self) -> &Parts {
        &self.head
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

    /// Begins to answer the request, whose body is there, unless it is refused.
    pub(super) fn begin(&mut self, refusal: Option<&'static str>, body: Bytes) {
        self.progress = match refusal {
            Some(why) => {
                self.site.counts.others.count(403);
                of_text(403, why).into()
            }
            None => self.site.begin(&self.head, body, self.shared),
        };
    }

    /// Adds the fields that each response has.
    fn complete(&self, response: &mut FullResponse) {
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
        let headers = response.headers_mut();
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
    type Output = Result<FullResponse, Infallible>;

    /// # Panics
    /// If it is polled again after completion.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let own = self.get_mut();
        let mut response = loop {
            match &mut own.progress {
                RequestProgress::Reads { refusal, body } => {
                    let (refusal, body) = (*refusal, ready!(body.as_mut().poll(cx)));
                    match body {
                        Ok(body) => own.begin(refusal, body),
                        Err(refusal) => own.refuse(refusal),
                    }
                }
                RequestProgress::Asks(asked) => {
                    // The code of the user's actors, types and pages may panic.
                    let polled = guarded(|| asked.answered.as_mut().poll(cx));
                    let answer = match polled {
                        Some(polled) => ready!(polled),
                        None => Ok(RouteAnswer::Response(of_text(500, "no answer can be made"))),
                    };
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
        Poll::Ready(Ok(response))
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.shared.finish();
    }
}
