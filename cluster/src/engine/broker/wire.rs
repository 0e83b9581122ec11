//! The wire of a link over a broker: frames that wait for the next batch.
//!
//! Senders add frames here; the one task that publishes takes as many as a batch has room for. So the
//! batches of a link are published in order.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::BrokerEngine;
use super::subject::Token;
use crate::link::frame::LENGTH;
use crate::link::{LinkWire, lock};

/// The bytes that may wait, with answers, and the largest frames that may, if they are more. Then the
/// link is cut; senders wait long before.
const MOST_BACKLOG: usize = 64 << 20;
const MOST_FRAMES: usize = 64;

pub(super) struct BrokerWire {
    pub(super) peer: Token,
    pub(super) epoch: u64,
    engine: Weak<BrokerEngine>,
    most_backlog: usize,
    frames: Mutex<WaitingFrames>,
    /// The bytes of the frames that wait, as each sender looks at them.
    waiting: AtomicUsize,
    /// The weight of the batches that the peer has not acknowledged.
    under_way: AtomicU64,
}

/// The frames that wait.
#[derive(Default)]
struct WaitingFrames {
    bytes: Vec<u8>,
    /// Whether the task that publishes is to look, or is not yet to publish anything.
    is_queued: bool,
    is_cut: bool,
}

impl BrokerWire {
    /// Creates a wire, which publishes nothing before it is [released](BrokerWire::release).
    pub(super) fn new(
        engine: &Arc<BrokerEngine>,
        peer: Token,
        epoch: u64,
        largest_frame: usize,
    ) -> Arc<BrokerWire> {
        let frames = WaitingFrames {
            is_queued: true,
            ..WaitingFrames::default()
        };
        Arc::new(BrokerWire {
            peer,
            epoch,
            engine: Arc::downgrade(engine),
            most_backlog: MOST_BACKLOG.max(MOST_FRAMES.saturating_mul(largest_frame)),
            frames: Mutex::new(frames),
            waiting: AtomicUsize::new(0),
            under_way: AtomicU64::new(0),
        })
    }

    /// Lets the engine publish what waits. Returns whether something does.
    pub(super) fn release(&self) -> bool {
        let mut frames = lock(&self.frames);
        frames.is_queued = !frames.bytes.is_empty();
        frames.is_queued
    }

    pub(super) fn is_cut(&self) -> bool {
        lock(&self.frames).is_cut
    }

    /// Sets the weight of what the peer has not acknowledged.
    pub(super) fn set_under_way(&self, weight: u64) {
        // Pairs with the load in `backlog`: a sender that finds no room is seen by `Link::drained`.
        self.under_way.store(weight, Ordering::SeqCst);
    }

    /// Sets the bytes of the frames that wait, under their lock.
    fn set_waiting(&self, frames: &WaitingFrames) {
        // As in `set_under_way`.
        self.waiting.store(frames.bytes.len(), Ordering::SeqCst);
    }

    /// Takes the frames of the next batch: as many as have room, and at least one. Returns whether
    /// others wait. Without any, the engine is to look again when one was pushed.
    pub(super) fn take(&self, room: usize, batch: &mut Vec<u8>) -> bool {
        let mut frames = lock(&self.frames);
        let end = whole_frames(&frames.bytes, room);
        batch.extend_from_slice(&frames.bytes[..end]);
        match end == frames.bytes.len() {
            true => {
                frames.bytes.clear();
                // The memory of a burst is given back.
                frames.bytes.shrink_to(64 << 10);
                frames.is_queued = false;
            }
            false => drop(frames.bytes.drain(..end)),
        }
        self.set_waiting(&frames);
        frames.is_queued
    }
}

/// Returns the bytes of the first frames that have room, and at least of the first one.
pub(super) fn whole_frames(bytes: &[u8], room: usize) -> usize {
    let mut end = 0;
    while let Some(length) = bytes[end..].first_chunk::<LENGTH>() {
        let next = end + LENGTH + u32::from_le_bytes(*length) as usize;
        if end > 0 && next > room {
            break;
        }
        end = next;
    }
    end
}

impl LinkWire for BrokerWire {
    fn push(&self, frame: &[u8], _: bool) {
        let mut frames = lock(&self.frames);
        if frames.is_cut {
            return;
        }
        if frames.bytes.len() > self.most_backlog {
            // The peer takes nothing, and asks for more.
            drop(frames);
            return self.cut();
        }
        frames.bytes.extend_from_slice(frame);
        self.set_waiting(&frames);
        let was_queued = std::mem::replace(&mut frames.is_queued, true);
        drop(frames);
        if !was_queued && let Some(engine) = self.engine.upgrade() {
            engine.posts.queue(&self.peer);
        }
    }

    fn backlog(&self) -> usize {
        let under_way = self.under_way.load(Ordering::SeqCst);
        let waiting = self.waiting.load(Ordering::SeqCst);
        waiting.saturating_add(usize::try_from(under_way).unwrap_or(usize::MAX))
    }

    fn cut(&self) {
        let mut frames = lock(&self.frames);
        if std::mem::replace(&mut frames.is_cut, true) {
            return;
        }
        // Perhaps the goodbye of a node. If the link is dead, that does not matter any more.
        let rest = std::mem::take(&mut frames.bytes);
        self.set_waiting(&frames);
        drop(frames);
        self.set_under_way(0);
        if let Some(engine) = self.engine.upgrade() {
            engine.is_cut(self, &rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::Still;
    use crate::link::frame::LinkFrame;

    #[test]
    fn a_wire_with_more_than_may_wait_is_cut() {
        let engine = BrokerEngine::new("a", 4, Arc::new(Still::default()));
        let wire = BrokerWire::new(&engine, Token::new("b"), 1, 1 << 20);
        let frame = vec![0; 24 << 20];
        for frames in 1..=3 {
            wire.push(&frame, false);
            assert_eq!(wire.backlog(), frames * frame.len());
        }
        wire.push(&frame, false);
        assert_eq!((wire.is_cut(), wire.backlog()), (true, 0));
    }

    #[test]
    fn a_batch_has_whole_frames_and_at_least_one() {
        let ping = LinkFrame::Ping.encode();
        let bytes = ping.repeat(3);
        for (room, frames) in [
            (0, 1),
            (ping.len(), 1),
            (2 * ping.len(), 2),
            (usize::MAX, 3),
        ] {
            assert_eq!(whole_frames(&bytes, room), frames * ping.len(), "{room}");
        }
        assert_eq!(whole_frames(&[], 10), 0);
    }
}
