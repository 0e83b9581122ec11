//! A stream of messages from another node to one actor of this one.
//!
//! - `IN-1`: messages reach the mailbox in the order of their frames. While one waits for room, the
//!   later ones wait behind it, as bytes.
//! - `IN-2`: a message gives its credit back when the mailbox has taken it.
//! - `IN-3`: after the end of the stream no message begins to be delivered. Deliveries and the ends
//!   of links are the work of one thread, so nothing old comes after a new link is up. Only a node
//!   that closes ends its streams from another thread.

use std::any::Any;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::frame::{LinkFrame, StreamEnd, Window, short};
use super::inbox::{ActorInbox, Delivered, RoomWait};
use super::{Link, SENDERS_AT_ONCE, codec, lock};

pub(crate) struct Incoming {
    stream: u64,
    pub(crate) actor: u64,
    inbox: Arc<dyn ActorInbox>,
    /// What the sender may have under way.
    window: Window,
    state: Mutex<IncomingState>,
}

/// The portions of a window in which credit is given back: few frames, and the sender never waits
/// for the last one.
const PORTIONS: u32 = 4;

#[derive(Default)]
struct IncomingState {
    /// The messages that the mailbox has taken.
    taken: u64,
    /// Of those, the messages and bytes whose credit was not given back yet.
    ungiven: (u32, u32),
    /// The messages and bytes that came and were not taken.
    under_way: (u32, u64),
    /// The messages behind one that waits, and whether they are traced.
    queue: VecDeque<(Vec<u8>, bool)>,
    /// The message that waits for room, and its bytes. The future is out while it is polled.
    waiting: Option<(Option<RoomWait>, usize)>,
    /// Wakes the task of that wait.
    waker: Option<Waker>,
    /// Whether the sender wants all credit back as soon as nothing is under way.
    wants_credit: bool,
    is_over: bool,
}

impl Incoming {
    pub(crate) fn new(
        stream: u64,
        actor: u64,
        inbox: Arc<dyn ActorInbox>,
        window: Window,
    ) -> Arc<Incoming> {
        let window = inbox.window().within(window);
        Arc::new(Incoming {
            window,
            stream,
            actor,
            inbox,
            state: Mutex::default(),
        })
    }

    /// Takes the bytes of a message. They wait behind another one, or go to the mailbox at once
    /// (IN-1). If that is full, a task of the link waits for room.
    pub(crate) fn message(self: &Arc<Self>, link: &Arc<Link>, bytes: &[u8], is_traced: bool) {
        // The bytes count as under way until the mailbox has taken them (IN-2).
        let excess = {
            let mut state = lock(&self.state);
            if state.is_over {
                return;
            }
            state.under_way.0 += 1;
            state.under_way.1 += bytes.len() as u64;
            let excess = self.excess(&state, link);
            if excess.is_none() && state.waiting.is_some() {
                state.queue.push_back((bytes.to_vec(), is_traced));
                return;
            }
            excess
        };
        match excess {
            Some(why) => self.finish(link, StreamEnd::Excess(why)),
            None => {
                if let Some(room) = self.deliver(link, bytes, is_traced) {
                    let mut state = lock(&self.state);
                    if state.is_over {
                        return;
                    }
                    // The first message that waits. Later ones see it and queue up behind it.
                    state.waiting = Some((Some(room), bytes.len()));
                    drop(state);
                    let (this, owner) = (self.clone(), link.owner().clone());
                    let link = link.clone();
                    let task = async move { this.wait(&link).await };
                    owner.spawn(Box::pin(task));
                }
            }
        }
    }

    /// Returns how the sender has exceeded its window, if it has.
    fn excess(&self, state: &IncomingState, link: &Link) -> Option<String> {
        let Window { messages, bytes } = self.window;
        let most = u64::from(bytes) + u64::from(SENDERS_AT_ONCE) * link.largest_frame() as u64;
        let (sent, sent_bytes) = state.under_way;
        if sent > messages {
            return Some(format!(
                "{sent} messages are under way, more than {messages}"
            ));
        }
        (sent_bytes > most).then(|| format!("{sent_bytes} bytes are under way, more than {most}"))
    }

    /// Delivers a message. Returns the wait for room if there is none.
    fn deliver(
        self: &Arc<Self>,
        link: &Arc<Link>,
        bytes: &[u8],
        is_traced: bool,
    ) -> Option<RoomWait> {
        // The actor may be behind a map, whose closure may panic.
        let (context, message) = match is_traced {
            true => match postcard::take_from_bytes::<&str>(bytes) {
                Ok((context, message)) => (Some(context), message),
                Err(error) => {
                    self.undecodable(link, format!("its context is malformed: {error}"));
                    return None;
                }
            },
            false => (None, bytes),
        };
        let delivered = codec::contained(|| self.inbox.deliver(link, message, context));
        match delivered.unwrap_or_else(Delivered::Undecodable) {
            Delivered::Taken => self.taken(link, bytes.len()),
            Delivered::Full(room) => return Some(room),
            Delivered::Closed(unsent) => self.closed(link, unsent),
            Delivered::Undecodable(why) => self.undecodable(link, why),
        }
        None
    }

    /// Ends the stream, since the actor takes no more messages. Then the last one is dropped: its
    /// asker is to learn that it was not taken.
    fn closed(&self, link: &Link, unsent: Box<dyn Any + Send>) {
        link.owner().closed(self.actor);
        self.finish(link, StreamEnd::Closed);
        let _ = codec::contained(|| drop(unsent));
    }

    /// Ends the stream, since a message makes no sense, or a map in front of the actor has panicked.
    fn undecodable(&self, link: &Link, why: String) {
        link.counts().undecodable.add();
        self.finish(link, StreamEnd::Undecodable(short(why)));
    }

    /// NodeCounts a message that the mailbox has taken (IN-2). Its credit goes back in portions.
    fn taken(&self, link: &Link, bytes: usize) {
        let mut state = lock(&self.state);
        state.taken += 1;
        state.under_way.0 = state.under_way.0.saturating_sub(1);
        state.under_way.1 = state.under_way.1.saturating_sub(bytes as u64);
        // The head of the frame counts as well.
        state.ungiven.0 += 1;
        state.ungiven.1 = state
            .ungiven
            .1
            .saturating_add(link.frame_length(self.stream, bytes));
        let is_due = self.is_credit_due(&state);
        drop(state);
        if is_due {
            self.give_credit(link);
        }
    }

    /// Returns whether the credit is a portion, or the last that is under way and wanted.
    fn is_credit_due(&self, state: &IncomingState) -> bool {
        let Window { messages, bytes } = self.window;
        state.ungiven.0 >= messages.div_ceil(PORTIONS)
            || state.ungiven.1 >= bytes / PORTIONS
            || state.wants_credit && state.under_way.0 == 0
    }

    /// Gives credit back for what was taken. If the link is clogged, that waits until it has room: a
    /// peer that does not read gets nothing to do.
    pub(crate) fn give_credit(&self, link: &Link) {
        if !link.has_room() {
            return;
        }
        let (messages, bytes) = {
            let mut state = lock(&self.state);
            // It stays wanted until all that is under way was taken.
            state.wants_credit &= state.under_way.0 > 0;
            std::mem::take(&mut state.ungiven)
        };
        if messages == 0 {
            return;
        }
        let stream = self.stream;
        link.push(
            &LinkFrame::Credit {
                stream,
                messages,
                bytes,
            }
            .encode(),
        );
    }

    /// Puts the waiting messages into the mailbox, one after another.
    async fn wait(self: Arc<Self>, link: &Arc<Link>) {
        while poll_fn(|cx| self.poll_waiting(link, cx)).await {}
    }

    /// Polls the wait for room. Returns whether there is another one.
    fn poll_waiting(self: &Arc<Self>, link: &Arc<Link>, cx: &mut Context<'_>) -> Poll<bool> {
        let taken = (lock(&self.state).waiting.as_mut()).map(|(room, bytes)| (room.take(), *bytes));
        let Some((Some(mut room), bytes)) = taken else {
            return Poll::Ready(false);
        };
        // Without the lock, since it may run code of the user.
        match codec::contained(|| room.as_mut().poll(cx)) {
            Err(why) => {
                self.undecodable(link, why);
                Poll::Ready(false)
            }
            Ok(Poll::Pending) => {
                let mut state = lock(&self.state);
                match &mut state.waiting {
                    Some((waiting, _)) => {
                        *waiting = Some(room);
                        state.waker = Some(cx.waker().clone());
                        Poll::Pending
                    }
                    None => Poll::Ready(false),
                }
            }
            Ok(Poll::Ready(Ok(()))) => {
                self.taken(link, bytes);
                Poll::Ready(self.next(link))
            }
            Ok(Poll::Ready(Err(unsent))) => {
                self.closed(link, unsent);
                Poll::Ready(false)
            }
        }
    }

    /// Delivers from the queue until one waits. Returns whether one does.
    fn next(self: &Arc<Self>, link: &Arc<Link>) -> bool {
        loop {
            let next = {
                let mut state = lock(&self.state);
                let next = state.queue.pop_front();
                if next.is_none() {
                    state.waiting = None;
                }
                next
            };
            let Some((bytes, is_traced)) = next else {
                return false;
            };
            if let Some(room) = self.deliver(link, &bytes, is_traced) {
                let mut state = lock(&self.state);
                // The stream may have ended during the delivery (IN-3).
                if !state.is_over {
                    state.waiting = Some((Some(room), bytes.len()));
                }
                return !state.is_over;
            }
        }
    }

    /// Gives credit back as soon as nothing is under way.
    pub(crate) fn return_credit(&self, link: &Link) {
        let is_due = {
            let mut state = lock(&self.state);
            state.wants_credit = true;
            self.is_credit_due(&state)
        };
        if is_due {
            self.give_credit(link);
        }
    }

    /// Ends the stream, since the sender has no address any more. All messages were taken, as it says.
    pub(crate) fn close(&self, link: &Link) {
        self.end(|_| {});
        link.forget_incoming(self.stream);
    }

    /// Ends the stream, and sends the reason.
    pub(crate) fn finish(&self, link: &Link, why: StreamEnd) {
        let stream = self.stream;
        // Askers are notified first that the stream has ended, and not that their replies are lost.
        self.end(|taken| {
            link.forget_incoming(stream);
            link.push(&LinkFrame::Ended { stream, taken, why }.encode());
        });
    }

    /// Ends the stream (IN-3), unless it has ended. Calls `report` with the number of messages that
    /// were taken, and then drops those that wait.
    pub(crate) fn end(&self, report: impl FnOnce(u64)) {
        let mut state = lock(&self.state);
        if std::mem::replace(&mut state.is_over, true) {
            return;
        }
        let (taken, waker) = (state.taken, state.waker.take());
        let waiting = (state.waiting.take(), std::mem::take(&mut state.queue));
        drop(state);
        // Nothing else would wake the task, and it has the link.
        waker.into_iter().for_each(Waker::wake);
        report(taken);
        // A message may panic when it is dropped.
        let _ = codec::contained(|| drop(waiting));
    }
}
