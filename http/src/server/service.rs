//! The requests of one connection, as hyper hands them over.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::net::SocketAddr;

use hyper::Request;
use hyper::body::{Body, Bytes, Incoming};

use super::answering::{Answering, State};
use super::body;
use super::site::Site;
use crate::wire::Shared;

pub(super) struct Requests<'a> {
    site: &'a Site,
    shared: &'a Shared,
    local: Option<SocketAddr>,
    /// The requests so far.
    count: Cell<u64>,
    /// The value of `Host` that was allowed last. Most connections have no other one.
    host: RefCell<Option<Box<[u8]>>>,
}

impl<'a> Requests<'a> {
    /// Creates the requests of a connection to this address of the server.
    pub(super) fn new(site: &'a Site, shared: &'a Shared, local: Option<SocketAddr>) -> Self {
        Requests {
            site,
            shared,
            local,
            count: Cell::new(0),
            host: RefCell::default(),
        }
    }
}

impl<'a> hyper::service::Service<Request<Incoming>> for Requests<'a> {
    type Response = super::status::Whole;
    type Error = Infallible;
    type Future = Answering<'a>;

    fn call(&self, request: Request<Incoming>) -> Answering<'a> {
        let number = self.count.get() + 1;
        self.count.set(number);
        let (head, body) = request.into_parts();
        let refused = self.shared.begin(number);
        let mut answering = Answering::new(self.site, self.shared, head, number);
        if let Some(refused) = refused {
            answering.refuse(refused.status, refused.why, refused.limit);
            return answering;
        }
        let hosts = &self.site.hosts;
        let refusal = hosts.refusal(answering.head(), self.local, &self.host);
        // The body is read in any case, since the next request comes behind it.
        if body.is_end_stream() {
            answering.begin(refusal, Bytes::new());
        } else {
            let body = Box::pin(body::read(body, &self.site.limits));
            answering.set(State::Reads { refusal, body });
        }
        answering
    }
}
