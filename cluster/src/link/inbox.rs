//! A published actor as the links see it: bytes go in.
//!
//! It has a weak address, so it keeps the actor neither open nor alive.

use std::any::Any;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use futures_lite::future::Boxed;
use greenroom::trace::CarriedSpan;
use greenroom::{Refusal, RefusalKind, WeakAddress};

use super::frame::Window;
use super::{Link, codec};
use crate::remote::Remote;

/// A published actor without its message type.
pub(crate) trait ActorInbox: Send + Sync {
    /// Decodes a message and puts it into the mailbox, within a span whose parent is this context.
    fn deliver(&self, link: &Arc<Link>, bytes: &[u8], context: Option<&str>) -> Delivered;

    fn kind(&self) -> &'static str;

    /// Returns what each sender may have under way.
    fn window(&self) -> Window;
}

/// What has become of a message.
pub(crate) enum Delivered {
    Taken,
    /// The mailbox is full. The future waits for room, and returns the message if that has closed.
    Full(RoomWait),
    /// No mailbox has taken the message. When it is dropped, its replies are lost.
    Closed(Box<dyn Any + Send>),
    Undecodable(String),
}

/// A wait for room in a mailbox, with the message that goes there.
pub(crate) type RoomWait = Boxed<Result<(), Box<dyn Any + Send>>>;

pub(crate) struct TypedInbox<M> {
    pub(crate) actor: WeakAddress<M>,
    pub(crate) window: Window,
}

impl<M: Remote> ActorInbox for TypedInbox<M> {
    fn deliver(&self, link: &Arc<Link>, bytes: &[u8], context: Option<&str>) -> Delivered {
        let (message, replies) = match codec::decode_with_replies::<M>(link, bytes) {
            Ok(decoded) => decoded,
            Err(why) => return Delivered::Undecodable(why),
        };
        let described = |context: &str| (M::KIND.to_owned(), Some(context.to_owned()));
        let span = context.map(|context| CarriedSpan::remote(|| described(context)));
        let span = span.unwrap_or_default();
        match span.in_scope(|| self.actor.tell(message)) {
            Ok(()) => Delivered::Taken,
            Err(full) if full.is_full() => {
                let (actor, message) = (self.actor.clone(), full.into_inner());
                Delivered::Full(Box::pin(async move {
                    let mut sent = pin!(actor.send(message));
                    match poll_fn(|cx| span.in_scope(|| sent.as_mut().poll(cx))).await {
                        // With this `overflow` a message is dropped, and the stream goes on.
                        Err(unsent) if unsent.is_full() => {
                            let why = Refusal::of(RefusalKind::Overloaded, unsent.to_string());
                            replies.iter().for_each(|reply| reply.refuse(&why));
                            Ok(())
                        }
                        sent => sent.map_err(|unsent| -> Box<dyn Any + Send> { Box::new(unsent) }),
                    }
                }))
            }
            Err(unsent) => Delivered::Closed(Box::new(unsent)),
        }
    }

    fn kind(&self) -> &'static str {
        M::KIND
    }

    fn window(&self) -> Window {
        self.window
    }
}
