//! The requests of one connection, as hyper hands them over.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::trace::{Level, note};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderValue, SERVER, X_CONTENT_TYPE_OPTIONS};
use hyper::{Request, Response};

use super::site::{Answer, Site};
use crate::wire::Shared;

pub(super) struct Requests {
    pub(super) site: Arc<Site>,
    pub(super) shared: Arc<Shared>,
    pub(super) local: Option<SocketAddr>,
    /// The requests so far.
    pub(super) count: AtomicU64,
}

/// Notes that no request is being answered, also if hyper drops the answer.
struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set_busy(false);
    }
}

impl hyper::service::Service<Request<Incoming>> for Requests {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        // Relaxed: one task polls the connection.
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        self.shared.set_busy(true);
        let busy = Busy(self.shared.clone());
        let (site, local) = (self.site.clone(), self.local);
        Box::pin(async move {
            let what = (request.method().clone(), request.uri().clone());
            let answer = match busy.0.refused(number) {
                Some(refused) => site.refuse(refused.status, refused.why, refused.limit),
                None => site.answer(request, local).await,
            };
            let Answer {
                mut response,
                goes_on,
            } = answer;
            let (method, uri) = what;
            note!(
                Level::Trace,
                method,
                uri,
                status = response.status().as_u16()
            );
            if !goes_on {
                busy.0.end();
            }
            let headers = response.headers_mut();
            let is_last = number >= site.limits.requests_a_connection;
            if is_last {
                site.counts.limit("requests_a_connection");
            }
            if !goes_on || is_last {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            headers.insert(SERVER, HeaderValue::from_static("greenroom"));
            let no_guess = HeaderValue::from_static("nosniff");
            headers.insert(X_CONTENT_TYPE_OPTIONS, no_guess);
            Ok(response.map(Full::new))
        })
    }
}
