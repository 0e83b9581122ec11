//! A socket that is registered for as long as it lives.

use std::io;
use std::sync::Arc;

use mio::event;
use mio::{Interest, Token};

use super::core::Reactor;
use super::source::Source;

#[derive(Debug)]
pub(super) struct Registered<S: event::Source> {
    pub(super) inner: S,
    pub(super) source: Arc<Source>,
    number: usize,
    reactor: &'static Reactor,
}

impl<S: event::Source> Registered<S> {
    pub(super) fn new(mut inner: S, interest: Interest) -> io::Result<Self> {
        let reactor = Reactor::get()?;
        let source = Arc::new(Source::default());
        let number = reactor.sources.add(source.clone());
        if let Err(error) = reactor
            .registry
            .register(&mut inner, Token(number), interest)
        {
            reactor.sources.remove(number);
            return Err(error);
        }
        Ok(Registered {
            inner,
            source,
            number,
            reactor,
        })
    }
}

impl<S: event::Source> Drop for Registered<S> {
    fn drop(&mut self) {
        // It is closed next, so nothing depends on this.
        let _ = self.reactor.registry.deregister(&mut self.inner);
        self.reactor.sources.remove(self.number);
    }
}
