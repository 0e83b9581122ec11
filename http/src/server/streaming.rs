//! Answers that go on: who gets one, and its head.

use std::sync::atomic::Ordering;

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::{Method, Response};

use super::answer_body::{AnswerBody, ServedResponse, StreamBody};
use super::callers::{CallRefusal, Caller};
use super::peers::PeerShare;
use super::route::guarded;
use super::site::{RequestProgress, Site};
use super::status::of_own;
use crate::view::{Mount, PageStream, StreamPage, StreamRefusal, StreamRequest};
use crate::wire::ConnectionState;

/// A page that goes on for a viewer, and the share of the client of a proxy.
struct OpenedStream {
    page: Box<dyn PageStream>,
    share: Option<PeerShare>,
}

impl Site {
    /// Begins an answer that goes on, if the limits and the page allow it.
    pub(super) fn begin_stream<'a>(
        &'a self,
        mount: &Mount,
        page: &StreamPage,
        head: &Parts,
        caller: &Caller,
        shared: &'a ConnectionState<'a>,
    ) -> RequestProgress<'a> {
        let body = self.open_stream(mount, page, head, caller, shared.is_local());
        let response = match body {
            Ok(OpenedStream { page, .. }) if head.method == Method::HEAD => {
                // A viewer that asks for the head alone takes nobody's place.
                drop(page);
                StreamBody::default().into()
            }
            Ok(OpenedStream { page, share }) => {
                let gauge = shared.begin_stream(self.unsent.clone());
                StreamBody::new(page, gauge, share).into()
            }
            Err((status, why)) => {
                let mut response = of_own(status, why, self.accepts(head));
                if status == 401 {
                    let scheme = const { HeaderValue::from_static("Bearer") };
                    response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
                }
                return self.streams(response.map(AnswerBody::from));
            }
        };
        let mut response = Response::new(response);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, page.media.clone());
        let no_store = const { HeaderValue::from_static("no-store") };
        headers.insert(CACHE_CONTROL, no_store);
        self.streams(response)
    }

    fn streams(&self, response: ServedResponse) -> RequestProgress<'_> {
        self.counts.others.count(response.status().as_u16());
        RequestProgress::Answered(Some(response))
    }

    /// Begins a stream for a viewer. Otherwise returns a status and the reason, and counts the cause.
    fn open_stream(
        &self,
        mount: &Mount,
        page: &StreamPage,
        head: &Parts,
        caller: &Caller,
        is_local: bool,
    ) -> Result<OpenedStream, (u16, &'static str)> {
        let limited = |limit, why| {
            self.counts.limit(limit);
            Err((503, why))
        };
        // Relaxed: only the number counts.
        if self.unsent.load(Ordering::Relaxed) > self.limits.unsent {
            return limited("unsent", "clients have not taken the bytes of answers");
        }
        let most = self.limits.connections_a_peer;
        let share = caller
            .peer
            .map(|peer| PeerShare::begin(&self.by_peer, peer, most));
        if share.as_ref().is_some_and(Option::is_none) {
            let why = "as many requests of the client are being answered as may be";
            return limited("connections_a_peer", why);
        }
        let request = StreamRequest {
            headers: &head.headers,
            is_local,
            may_read: caller.may_read,
        };
        // The code of the program may panic.
        let begun = guarded(|| (page.begin)(mount, &request));
        match begun.ok_or((500, "no answer can be made"))? {
            Ok(page) => Ok(OpenedStream {
                page,
                share: share.flatten(),
            }),
            Err(StreamRefusal::Site) => {
                let CallRefusal { status, why, cause } = CallRefusal::SITE;
                self.counts.refused(cause);
                Err((status, why))
            }
            Err(StreamRefusal::Client(status, why)) => {
                self.counts.refused("token");
                Err((status, why))
            }
            Err(StreamRefusal::Viewers(why)) => limited("viewers", why),
        }
    }
}
