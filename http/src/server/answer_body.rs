//! The body of an answer: bytes that are there, or a stream that goes on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::Response;
use hyper::body::{Body, Bytes, Frame, SizeHint};

use super::peers::PeerShare;
use super::route::guarded;
use crate::view::PageStream;
use crate::wire::StreamGauge;

/// A response as hyper gets it.
pub(super) type ServedResponse = Response<AnswerBody>;

/// The body of an answer. Nearly all of them are bytes, which are looked at first.
#[derive(Default)]
pub(super) struct AnswerBody {
    bytes: Option<Bytes>,
    stream: Option<Box<StreamBody>>,
}

/// A body that goes on.
#[derive(Default)]
pub(super) struct StreamBody {
    /// Nothing for a request of the head alone, or after the end.
    page: Option<Box<dyn PageStream>>,
    gauge: Option<Arc<StreamGauge>>,
    /// The share of a client of a proxy.
    _share: Option<PeerShare>,
    /// How many pieces came since the stream last had none.
    pieces: u32,
}

/// After so many pieces others have their turn, also if the client takes all at once.
const PIECES: u32 = 16;

impl From<Bytes> for AnswerBody {
    fn from(bytes: Bytes) -> Self {
        AnswerBody {
            bytes: (!bytes.is_empty()).then_some(bytes),
            stream: None,
        }
    }
}

impl From<StreamBody> for AnswerBody {
    fn from(stream: StreamBody) -> Self {
        AnswerBody {
            bytes: None,
            stream: Some(Box::new(stream)),
        }
    }
}

impl StreamBody {
    pub(super) fn new(
        page: Box<dyn PageStream>,
        gauge: Arc<StreamGauge>,
        share: Option<PeerShare>,
    ) -> Self {
        StreamBody {
            page: Some(page),
            gauge: Some(gauge),
            _share: share,
            pieces: 0,
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, &'static str>>> {
        let (Some(page), Some(gauge)) = (&mut self.page, &self.gauge) else {
            return Poll::Ready(None);
        };
        if gauge.is_stopped() {
            let last = guarded(|| page.last()).flatten();
            self.page = None;
            gauge.add(last.as_ref().map_or(0, Bytes::len));
            return Poll::Ready(last.map(Ok));
        }
        if self.pieces == PIECES {
            self.pieces = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // The code of the program may panic.
        let Some(polled) = guarded(|| page.poll_piece(cx)) else {
            self.page = None;
            return Poll::Ready(Some(Err("the stream has panicked")));
        };
        if polled.is_pending() {
            self.pieces = 0;
        }
        let piece = ready!(polled);
        match &piece {
            Some(piece) => {
                self.pieces += 1;
                gauge.add(piece.len());
            }
            None => self.page = None,
        }
        Poll::Ready(piece.map(Ok))
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        self.gauge.as_deref().map(StreamGauge::end);
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(bytes) = self.bytes.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match &mut self.stream {
            Some(stream) => stream
                .poll_piece(cx)
                .map(|piece| piece.map(|piece| piece.map(Frame::data))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none() && self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.bytes, &self.stream) {
            (Some(bytes), _) => SizeHint::with_exact(bytes.len() as u64),
            (None, None) => SizeHint::with_exact(0),
            (None, Some(_)) => SizeHint::default(),
        }
    }
}
