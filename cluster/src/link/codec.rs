//! Messages and answers as bytes, with the replies and addresses inside of them.
//!
//! serde calls the impls of [`reply`](crate::reply) and `RemoteAddress` without an argument of ours.
//! So the link of the message is in a [`Scope`] of the thread while serde runs. User code is called
//! without a lock.

mod bounded;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use bounded::{Bounded, Bounds};
use postcard::de_flavors::{self, Slice};
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Link;
use super::answering::ReceivedAsk;
use super::frame::{LENGTH, LinkFrame, with_length};
use super::pending::{LossCause, SentAsks};

std::thread_local! {
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// What a value is encoded for, or decoded from.
pub(crate) enum Scope {
    Encoding {
        link: Arc<Link>,
        /// Where the cause of a loss goes, if the value is the question of an ask.
        cause: Option<Arc<LossCause>>,
        /// The replies that have left the value.
        asks: SentAsks,
    },
    Decoding {
        link: Arc<Link>,
        /// The replies that were made for the value. They are answered only if all of it is right.
        replies: Vec<Arc<dyn ReceivedAsk>>,
    },
}

/// Why a value is no frame. Its replies were refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EncodeError {
    TooLarge { bytes: u64, limit: u64 },
    Failed(String),
}

impl Scope {
    /// Calls `look` with the scope of this thread.
    pub(crate) fn with<T>(look: impl FnOnce(Option<&mut Scope>) -> T) -> T {
        SCOPE.with(|scope| look(scope.borrow_mut().as_mut()))
    }

    /// Runs `code` within this scope. Returns what it returns, and the scope.
    fn around<T>(self, code: impl FnOnce() -> T) -> (T, Scope) {
        let outer = SCOPE.with(|scope| scope.replace(Some(self)));
        let run = catch_unwind(AssertUnwindSafe(code));
        // The outer scope comes back, also if `code` panics. Then the replies of this one are lost.
        let inner = SCOPE.with(|scope| scope.replace(outer));
        match (run, inner) {
            (Ok(value), Some(inner)) => (value, inner),
            (Err(panic), inner) => {
                drop(inner);
                resume_unwind(panic)
            }
            (Ok(_), None) => unreachable!("inner scopes restore this one"),
        }
    }
}

/// The bytes of most frames: one allocation is enough for them.
const USUAL_FRAME: usize = 64;

/// Encodes `value` behind `head`, and behind the context of a trace if there is one. Returns a frame with
/// its length, and the asks that wait for an answer to it. If that panics, the replies are lost.
pub(crate) fn encode<T: Serialize>(
    link: &Arc<Link>,
    head: &LinkFrame<'_>,
    context: Option<&str>,
    value: &T,
    cause: Option<Arc<LossCause>>,
) -> Result<(Vec<u8>, SentAsks), EncodeError> {
    let scope = Scope::Encoding {
        link: link.clone(),
        cause,
        asks: Vec::new(),
    };
    let limit = link.largest_frame();
    let (outcome, scope) = scope.around(|| {
        let mut buffer = Vec::with_capacity(USUAL_FRAME);
        buffer.resize(LENGTH, 0);
        let mut head = postcard::to_extend(head, buffer)?;
        if let Some(context) = context {
            head = postcard::to_extend(context, head)?;
        }
        let limited = Limited {
            buffer: head,
            bytes: 0,
            limit: limit + LENGTH,
        };
        postcard::serialize_with_flavor(value, limited)
    });
    let Scope::Encoding { asks, .. } = scope else {
        unreachable!("the scope was one of encoding");
    };
    let error = match outcome {
        Ok(Ok(bytes)) => {
            return Ok((with_length(bytes), asks));
        }
        Ok(Err(bytes)) => EncodeError::TooLarge {
            bytes: (bytes - LENGTH) as u64,
            limit: limit as u64,
        },
        Err(error) => EncodeError::Failed(error.to_string()),
    };
    // Nothing is sent, so no reply can come: the askers get the error.
    for (_, ask) in asks {
        ask.fail(&error);
    }
    Err(error)
}

/// A buffer that stops to grow at a limit, and then only counts.
struct Limited {
    buffer: Vec<u8>,
    /// The bytes that found no room.
    bytes: usize,
    limit: usize,
}

impl Flavor for Limited {
    /// The bytes, or how many there would have been.
    type Output = Result<Vec<u8>, usize>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.try_extend(&[byte])
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        if self.bytes == 0 && self.buffer.len() + bytes.len() <= self.limit {
            self.buffer.extend_from_slice(bytes);
        } else {
            self.bytes += bytes.len();
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Self::Output> {
        match self.bytes {
            0 => Ok(Ok(self.buffer)),
            bytes => Ok(Err(self.buffer.len() + bytes)),
        }
    }
}

/// Decodes a value from all of `bytes`. A panic of its `Deserialize` is an error.
pub(crate) fn decode<T: DeserializeOwned>(link: &Arc<Link>, bytes: &[u8]) -> Result<T, String> {
    decode_with_replies(link, bytes).map(|(value, _)| value)
}

/// Does the same, and returns the replies that are in the value.
pub(crate) fn decode_with_replies<T: DeserializeOwned>(
    link: &Arc<Link>,
    bytes: &[u8],
) -> Result<(T, Vec<Arc<dyn ReceivedAsk>>), String> {
    let scope = Scope::Decoding {
        link: link.clone(),
        replies: Vec::new(),
    };
    let bounds = Bounds::new(bytes.len());
    let (decoded, scope) = scope.around(|| {
        contained(|| {
            let mut deserializer = postcard::Deserializer::from_flavor(Shallow::new(bytes));
            let value = T::deserialize(Bounded::new(&mut deserializer, &bounds));
            (value, deserializer.finalize())
        })
    });
    let value = match decoded? {
        (Ok(value), Ok(Rest { bytes: [], .. })) => value,
        (Ok(value), Ok(rest)) => {
            // A value may panic when it is dropped.
            let _ = contained(|| drop(value));
            return Err(format!("{} bytes follow its end", rest.bytes.len()));
        }
        (Err(_), Ok(Rest { is_deep: true, .. })) => {
            let stack = MOST_STACK >> 10;
            return Err(format!(
                "it is nested so deeply that it needs more than {stack} KiB of stack"
            ));
        }
        (Err(error), _) | (_, Err(error)) => {
            return Err(bounds.problem().unwrap_or_else(|| error.to_string()));
        }
    };
    let Scope::Decoding { replies, .. } = scope else {
        unreachable!("the scope was one of decoding");
    };
    for reply in &replies {
        reply.clone().arm();
    }
    Ok((value, replies))
}

/// The bytes of a value, and a limit to its nesting: a peer could exhaust the stack otherwise, with a
/// type that contains itself. Each level reads at least a byte.
struct Shallow<'de> {
    bytes: Slice<'de>,
    /// Where the stack was at the begin.
    start: usize,
    is_deep: bool,
}

/// What is left of the bytes, and whether the nesting was too deep.
struct Rest<'de> {
    bytes: &'de [u8],
    is_deep: bool,
}

/// The stack that a value may take while it is decoded, in bytes. Threads have 2 MiB.
const MOST_STACK: usize = 512 << 10;

/// Returns about where the stack of this thread is.
fn stack() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

impl<'de> Shallow<'de> {
    fn new(bytes: &'de [u8]) -> Self {
        Shallow {
            bytes: Slice::new(bytes),
            start: stack(),
            is_deep: false,
        }
    }

    fn look(&mut self) -> postcard::Result<&mut Slice<'de>> {
        if self.start.abs_diff(stack()) > MOST_STACK {
            self.is_deep = true;
            return Err(postcard::Error::DeserializeBadEncoding);
        }
        Ok(&mut self.bytes)
    }
}

impl<'de> de_flavors::Flavor<'de> for Shallow<'de> {
    type Remainder = Rest<'de>;
    type Source = &'de [u8];

    fn pop(&mut self) -> postcard::Result<u8> {
        self.look()?.pop()
    }

    fn size_hint(&self) -> Option<usize> {
        self.bytes.size_hint()
    }

    fn try_take_n(&mut self, bytes: usize) -> postcard::Result<&'de [u8]> {
        self.look()?.try_take_n(bytes)
    }

    fn finalize(self) -> postcard::Result<Rest<'de>> {
        Ok(Rest {
            bytes: self.bytes.finalize()?,
            is_deep: self.is_deep,
        })
    }
}

/// Returns what `code` returns, or the text of its panic.
pub(crate) fn contained<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let text = (payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned()))
        .or_else(|| payload.downcast_ref::<String>().cloned());
        // A payload may panic when it is dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        text.map_or_else(
            || "it panicked".into(),
            |text| format!("it panicked: {text}"),
        )
    })
}
