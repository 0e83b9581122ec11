//! Pages whose bodies go on: what a request is told, and what makes the bytes.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::Stream;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderValue};

use super::mount::Mount;
use crate::message::Body;

/// The bytes of a page that goes on, for one viewer.
pub(crate) trait PageStream: Send {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;

    /// Returns what comes last when the server stops.
    fn last(&mut self) -> Option<Bytes> {
        None
    }
}

/// A request for a page that goes on.
pub(crate) struct StreamRequest<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// It comes from this machine, and not from a proxy.
    pub(crate) is_local: bool,
    /// No page of another site has sent it.
    pub(crate) may_read: bool,
}

/// Why a page that goes on does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamRefusal {
    /// A page of another site asks.
    Site,
    /// The client has not shown who it is: a status, and the reason.
    Client(u16, &'static str),
    /// There are too many viewers.
    Viewers(&'static str),
}

/// A page that goes on.
pub(crate) struct StreamPage {
    pub(crate) media: HeaderValue,
    pub(crate) begin: Box<BeginStream>,
}

/// Begins the page for a viewer.
type BeginStream =
    dyn Fn(&Mount, &StreamRequest<'_>) -> Result<Box<dyn PageStream>, StreamRefusal> + Send + Sync;

/// A stream of the program.
struct ProgramStream<S>(Pin<Box<S>>);

impl<S> PageStream for ProgramStream<S>
where
    S: Stream<Item: Into<Body>> + Send,
{
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let polled = self.0.as_mut().poll_next(cx);
        polled.map(|piece| piece.map(|piece| piece.into().into_bytes()))
    }
}

impl StreamPage {
    /// Creates a page of the program, which no page of another site may read.
    pub(super) fn of_program<S>(media: &str, begin: impl Fn() -> S + Send + Sync + 'static) -> Self
    where
        S: Stream<Item: Into<Body>> + Send + 'static,
    {
        let media = HeaderValue::from_str(media);
        let unknown = const { HeaderValue::from_static("application/octet-stream") };
        StreamPage {
            media: media.unwrap_or(unknown),
            begin: Box::new(move |_, request| match request.may_read {
                true => Ok(Box::new(ProgramStream(Box::pin(begin())))),
                false => Err(StreamRefusal::Site),
            }),
        }
    }
}
