//! The frames that two nodes exchange.
//!
//! A frame on the wire is its length in four bytes, its head as postcard encodes it, and for a
//! message or an answer the payload. The length is checked before anything is allocated.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The version of this protocol. Nodes tell it in two bytes, in front of what they say first.
pub(crate) const VERSION: u16 = 1;

/// The bytes in front of a frame that have its length.
pub(crate) const LENGTH: usize = 4;

/// The head of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LinkFrame<'a> {
    /// The sender will send messages to this actor as this stream.
    Open {
        stream: u64,
        actor: u64,
        #[serde(borrow)]
        kind: Cow<'a, str>,
        /// What the sender will use at most.
        window: Window,
    },
    /// A message of this stream follows.
    Message { stream: u64 },
    /// The mailbox has taken this much.
    Credit {
        stream: u64,
        messages: u32,
        bytes: u32,
    },
    /// Once all that came of this stream is taken, the sender wants its credit at once.
    ReturnCredit { stream: u64 },
    /// The sender has no address of the actor any more, and all of its credit.
    Close { stream: u64 },
    /// The receiver takes no more messages. It has taken this many.
    Ended {
        stream: u64,
        taken: u64,
        why: StreamEnd,
    },
    /// The answer to this ask follows.
    Answer { ask: u64 },
    /// This ask has no answer.
    Unanswered { ask: u64, why: Unanswered },
    /// The asker is gone.
    Unwanted { ask: u64 },
    /// The sender has this actor.
    Publish(Publication),
    /// The sender has this actor no more under its name.
    Withdraw { actor: u64 },
    /// The nodes that the sender knows.
    Members(Vec<ClusterMember>),
    /// Nothing else was to be sent for a while.
    Ping,
    /// The sender closes.
    Bye,
    /// The sender does not use the link. It opens no stream before this is answered: the link ends, or
    /// is [used](LinkFrame::Used).
    Unused,
    /// The sender uses the link, so it does not end.
    Used,
    /// The context of a trace follows, and then a message of this stream. It is sent only to a node with
    /// the feature [`TRACES`].
    TracedMessage { stream: u64 },
}

/// Why a stream ends on the side that receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StreamEnd {
    /// The actor has closed.
    Closed,
    /// There is no such actor.
    Unknown,
    /// The actor has messages of this kind.
    WrongKind(String),
    /// A message was no value of its type, with the reason.
    Undecodable(String),
    /// The sender sent more than it was granted, or opened a stream twice.
    Excess(String),
    /// The sender has as many streams as it may.
    TooMany { limit: u64 },
}

/// Why an ask has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unanswered {
    Refused(WireRefusal),
    /// The reply was dropped, with the reason as a text.
    NoReply(String),
    /// The answer was too large for a frame.
    TooLarge {
        bytes: u64,
        limit: u64,
    },
}

/// A refusal as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WireRefusal {
    pub(crate) kind: u8,
    pub(crate) condition: String,
    pub(crate) explanation: String,
    pub(crate) code: Option<i64>,
    pub(crate) status: Option<i32>,
}

/// An actor with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Publication {
    pub(crate) actor: u64,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) window: Window,
}

/// How much a sender may have under way: messages and bytes that the mailbox has not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Window {
    pub(crate) messages: u32,
    pub(crate) bytes: u32,
}

impl Window {
    /// Returns the smaller one of each number, and at least 1.
    pub(crate) fn within(self, most: Window) -> Window {
        Window {
            messages: self.messages.min(most.messages).max(1),
            bytes: self.bytes.min(most.bytes).max(1),
        }
    }
}

/// A node that can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ClusterMember {
    pub(crate) name: String,
    pub(crate) incarnation: u128,
    pub(crate) addresses: Vec<String>,
}

/// The bytes of the name and the addresses of a node. So a member fits into the smallest frame that a
/// node may take, and an honest one is smaller.
pub(crate) const LARGEST_MEMBER: usize = 3 << 10;

impl ClusterMember {
    /// Returns whether a frame of each node has room for this one.
    pub(crate) fn fits(&self) -> bool {
        let texts = self.addresses.iter().chain([&self.name]);
        // A length takes two bytes at most, if it is that of a text which fits.
        let bytes = texts.map(|text| text.len() + 2).sum::<usize>();
        bytes <= LARGEST_MEMBER
    }
}

/// The first frame of each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) member: ClusterMember,
    /// The time without a byte after which the sender is counted as lost, in milliseconds.
    pub(crate) lease: u32,
    /// The largest frame that the sender takes, in bytes.
    pub(crate) frame: u32,
    /// What the sender takes beyond this version of the protocol, as bits. Unknown ones are ignored.
    pub(crate) features: u32,
}

/// The feature of a node that sends and takes the contexts of traces.
pub(crate) const TRACES: u32 = 1;

impl Hello {
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease.into())
    }

    pub(crate) fn has_traces(&self) -> bool {
        self.features & TRACES != 0
    }
}

/// Why bytes are no frame. The link is cut then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FrameError {
    TooLarge { bytes: u64, limit: u64 },
    Malformed(String),
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::TooLarge { bytes, limit } => {
                write!(f, "a frame has {bytes} bytes, more than {limit}")
            }
            FrameError::Malformed(why) => write!(f, "a frame is malformed: {why}"),
        }
    }
}

impl<'a> LinkFrame<'a> {
    /// Decodes a frame without its length. Returns the head and the payload.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<(LinkFrame<'a>, &'a [u8]), FrameError> {
        let malformed = |error: postcard::Error| FrameError::Malformed(error.to_string());
        let (frame, rest) = postcard::take_from_bytes::<LinkFrame<'a>>(bytes).map_err(malformed)?;
        let has_payload = matches!(
            frame,
            LinkFrame::Message { .. } | LinkFrame::TracedMessage { .. } | LinkFrame::Answer { .. }
        );
        if !has_payload && !rest.is_empty() {
            let text = format!("{} bytes follow its end", rest.len());
            return Err(FrameError::Malformed(text));
        }
        Ok((frame, rest))
    }

    /// Returns the frame as it goes onto the wire, without a payload.
    pub(crate) fn encode(&self) -> Vec<u8> {
        framed(self)
    }
}

/// The bytes of a text about a fault. The rest is cut off, so that it fits into each frame.
pub(super) const LONGEST_TEXT: usize = 1 << 10;

/// Returns the begin of a text, short enough for each frame.
pub(crate) fn short(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        let mut ends = (0..=LONGEST_TEXT).rev();
        let end = ends.find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
    }
    text
}

/// Returns a value as a frame with its length. Values of this module can always be encoded.
pub(crate) fn framed<T: Serialize>(value: &T) -> Vec<u8> {
    let bytes = postcard::to_extend(value, vec![0; LENGTH]).unwrap_or_else(|_| vec![0; LENGTH]);
    with_length(bytes)
}

/// Writes the length into the first four bytes.
pub(crate) fn with_length(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = u32::try_from(bytes.len() - LENGTH).unwrap_or(u32::MAX);
    bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Returns the bytes of the first frame in `buffer`, without its length, if it is there as a whole.
pub(crate) fn first(buffer: &[u8], limit: usize) -> Result<Option<&[u8]>, FrameError> {
    let Some((length, rest)) = buffer.split_first_chunk::<LENGTH>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > limit {
        let (bytes, limit) = (length as u64, limit as u64);
        return Err(FrameError::TooLarge { bytes, limit });
    }
    Ok(rest.get(..length))
}
