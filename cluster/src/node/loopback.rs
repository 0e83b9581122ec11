//! The link of a node to itself: frames go through a queue, as between two nodes.
//!
//! So an address of the own node behaves as all others do.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use futures_lite::future::yield_now;

use crate::link::frame::LENGTH;
use crate::link::{Link, LinkWire, lock};

/// The wire of a node to itself: what is pushed waits here for `pass_on`.
#[derive(Default)]
pub(crate) struct Loopback(Mutex<LoopbackQueue>);

#[derive(Default)]
struct LoopbackQueue {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    waker: Option<Waker>,
    is_cut: bool,
}

impl LinkWire for Loopback {
    fn push(&self, frame: &[u8], _: bool) {
        let mut queue = lock(&self.0);
        queue.frames.push(frame.to_vec());
        queue.bytes += frame.len();
        let waker = queue.waker.take();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
    }

    fn backlog(&self) -> usize {
        lock(&self.0).bytes
    }

    fn cut(&self) {
        let mut queue = lock(&self.0);
        queue.is_cut = true;
        let waker = queue.waker.take();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Loopback {
    /// Gives the frames to the link until it is cut.
    pub(crate) async fn pass_on(self: Arc<Self>, link: Arc<Link>) {
        while let Some(frames) = poll_fn(|cx| {
            let mut queue = lock(&self.0);
            if queue.is_cut {
                return Poll::Ready(None);
            }
            if queue.frames.is_empty() {
                queue.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            queue.bytes = 0;
            Poll::Ready(Some(std::mem::take(&mut queue.frames)))
        })
        .await
        {
            link.drained();
            for frame in frames {
                // A node makes no malformed frames.
                let _ = link.frame(&frame[LENGTH..]);
            }
            // Senders may be as fast, and this thread has other links.
            yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;
    use crate::fuzzing::{ACTOR, Desk};
    use crate::link::frame::{LinkFrame, Window};

    #[test]
    fn frames_that_come_meanwhile_are_passed_on_in_another_turn() {
        let (desk, other, _) = Desk::link();
        let wire = Arc::new(Loopback::default());
        let link = Link::new(other.peer.clone(), desk, wire.clone());
        let (stream, actor, kind) = (1, ACTOR, "note/1".into());
        let (messages, bytes) = (1, 1);
        let window = Window { messages, bytes };
        let open = LinkFrame::Open {
            stream,
            actor,
            kind,
            window,
        };
        wire.push(&open.encode(), false);
        let note = postcard::to_allocvec(&("answer", 5_u64)).unwrap();
        let message = LinkFrame::Message { stream }.encode();
        wire.push(&[message, note].concat(), false);
        // The answer and the credit go over the same queue.
        let mut passed = pin!(wire.clone().pass_on(link));
        let mut context = Context::from_waker(Waker::noop());
        assert!(passed.as_mut().poll(&mut context).is_pending());
        assert!(wire.backlog() > 0);
        assert!(passed.as_mut().poll(&mut context).is_pending());
        assert_eq!(wire.backlog(), 0);
    }
}
