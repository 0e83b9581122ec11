//! A stream of messages to one actor of another node, shared by all of its addresses here.
//!
//! - `OUT-1`: the messages are numbered in the order in which their frames are pushed.
//! - `OUT-2`: at most a window of messages is under way, and its bytes plus one frame a sender.
//! - `OUT-3`: once the stream has an end, nothing more is pushed, and the end never changes.
//! - `OUT-4`: credit goes to the senders that wait, in the order in which they came.
//! - `OUT-5`: a stream without addresses stays until nothing is under way. An address that comes
//!   meanwhile uses it again, so a window is never given twice.

use std::collections::{BTreeSet, VecDeque};
use std::future::poll_fn;
use std::ops::Deref;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use event_listener::{Event, EventListener};
use serde::Serialize;

use super::codec::{self, EncodeError};
use super::frame::{LinkFrame, StreamEnd, Window};
use super::pending::{LossCause, ReplyCarrier};
use super::target::Target;
use super::{Link, LinkOwner, SENDERS_AT_ONCE, lock};
use crate::error::Distance;

pub(crate) struct Outgoing {
    pub(crate) target: Target,
    /// What may be under way: what the target grants, within the limits here.
    window: Window,
    state: Mutex<OutgoingState>,
    /// Notified when the stream has an end.
    ended: Event,
    owner: Weak<dyn LinkOwner>,
}

struct OutgoingState {
    /// `None` until there is a link to the node.
    link: Option<(Arc<Link>, u64)>,
    /// Why nothing more can be sent.
    end: Option<Distance>,
    handles: usize,
    /// The messages that were pushed, and for how many of them the credit was wanted back.
    sent: u64,
    wanted_back: u64,
    /// What may be sent. `bytes` may be below 0 by the last messages.
    messages: u32,
    bytes: i64,
    /// The permits that are neither used nor given back, with those of `granted`.
    permits: u32,
    line: VecDeque<(u64, Waker)>,
    granted: BTreeSet<u64>,
    /// The number of the next sender that waits.
    next: u64,
}

/// The right to send one message.
pub(crate) struct SendPermit<'a> {
    stream: &'a Arc<Outgoing>,
    link: Arc<Link>,
    number: u64,
    is_used: bool,
}

impl Outgoing {
    /// Creates a stream with at most `bytes` under way, and its first handle.
    pub(crate) fn open(target: Target, bytes: u32, owner: Weak<dyn LinkOwner>) -> OutgoingHandle {
        // The bytes bound what is kept here. How many messages that is, the target decides.
        let messages = u32::MAX;
        let window = target.window.within(Window { messages, bytes });
        let Window { messages, bytes } = window;
        OutgoingHandle(Arc::new(Outgoing {
            target,
            window,
            state: Mutex::new(OutgoingState {
                link: None,
                end: None,
                handles: 1,
                sent: 0,
                wanted_back: 0,
                messages,
                bytes: i64::from(bytes),
                permits: 0,
                line: VecDeque::new(),
                granted: BTreeSet::new(),
                next: 0,
            }),
            ended: Event::new(),
            owner,
        }))
    }

    /// Opens the stream over this link, if it has none and the link is not ending. Senders may wait
    /// already.
    pub(crate) fn bind(self: &Arc<Self>, link: &Arc<Link>) {
        self.change(|state| {
            if state.link.is_some() || state.end.is_some() {
                return;
            }
            let stream = match link.add_outgoing(self) {
                Ok(Some(stream)) => stream,
                Ok(None) => return,
                Err(()) => return state.end = Some(Distance::Lost),
            };
            let kind = (&*self.target.kind).into();
            let actor = self.target.actor;
            let window = self.window;
            let open = LinkFrame::Open {
                stream,
                actor,
                kind,
                window,
            };
            // Before any message: no sender has credit without a link.
            link.push(&open.encode());
            state.link = Some((link.clone(), stream));
        });
        if self.end_now().is_some() {
            self.ended.notify(usize::MAX);
        }
    }

    pub(crate) fn is_bound(&self) -> bool {
        lock(&self.state).link.is_some()
    }

    /// Adds what the mailbox has taken.
    pub(crate) fn credit(&self, messages: u32, bytes: u32) {
        self.change(|state| {
            let Window {
                messages: most,
                bytes: most_bytes,
            } = self.window;
            state.messages = state.messages.saturating_add(messages).min(most);
            state.bytes = (state.bytes + i64::from(bytes)).min(i64::from(most_bytes));
        });
        self.end_if_unused();
    }

    /// Adds a handle. Returns `None` if the stream has an end.
    pub(crate) fn handle(self: &Arc<Self>) -> Option<OutgoingHandle> {
        let mut state = lock(&self.state);
        if state.end.is_some() {
            return None;
        }
        state.handles += 1;
        Some(OutgoingHandle(self.clone()))
    }

    /// Removes a handle. After the last one the peer is to give all credit back (OUT-5).
    fn released(&self) {
        {
            let mut state = lock(&self.state);
            state.handles -= 1;
            if state.handles > 0 || state.end.is_some() {
                return;
            }
            let is_done = self.has_all_credit(&state) || state.wanted_back == state.sent;
            state.wanted_back = state.sent;
            if let Some((link, stream)) = state.link.as_ref().filter(|_| !is_done) {
                let stream = *stream;
                link.push(&LinkFrame::ReturnCredit { stream }.encode());
            }
        }
        self.end_if_unused();
    }

    /// Returns whether all credit is here: nothing is under way. It is more than the window if a peer
    /// gives back what a permit still holds.
    fn has_all_credit(&self, state: &OutgoingState) -> bool {
        state.messages >= self.window.messages
    }

    /// Ends the stream if it has no handle and nothing is under way (OUT-5).
    fn end_if_unused(&self) {
        let link = {
            let mut state = lock(&self.state);
            if state.handles > 0 || !self.has_all_credit(&state) || state.end.is_some() {
                return;
            }
            // No address is left that could see it.
            state.end = Some(Distance::Lost);
            // Under the lock: the peer takes no other stream to the actor before.
            state.link.take().inspect(|(link, stream)| {
                let stream = *stream;
                link.push(&LinkFrame::Close { stream }.encode());
            })
        };
        self.ended.notify(usize::MAX);
        if let Some((link, stream)) = link {
            link.forget_outgoing(stream);
        }
    }

    /// Gives credit to senders that wait, if the link has room again.
    pub(crate) fn grant_credit(&self) {
        self.change(|_| {});
    }

    /// Ends the stream, unless it has an end.
    pub(crate) fn end(&self, end: Distance) {
        let mut is_new = false;
        self.change(|state| {
            is_new = state.end.is_none();
            state.end.get_or_insert(end);
        });
        if is_new {
            self.ended.notify(usize::MAX);
        }
    }

    /// Returns how many messages may be sent at once.
    pub(crate) fn messages(&self) -> u64 {
        lock(&self.state).messages.into()
    }

    pub(crate) fn end_now(&self) -> Option<Distance> {
        lock(&self.state).end.clone()
    }

    /// Returns a wait for the end that does not keep the stream.
    pub(crate) fn end_listener(&self) -> EventListener {
        self.ended.listen()
    }

    /// Waits until the stream has an end.
    pub(crate) async fn ended(&self) -> Distance {
        loop {
            let listener = self.ended.listen();
            if let Some(end) = self.end_now() {
                return end;
            }
            listener.await;
        }
    }

    /// Changes the state, and wakes the senders that may go on.
    fn change(&self, change: impl FnOnce(&mut OutgoingState)) {
        let mut woken = Vec::new();
        {
            let mut state = lock(&self.state);
            change(&mut state);
            state.grant_credit(&mut woken);
        }
        woken.into_iter().for_each(Waker::wake);
    }

    /// Returns a permit if one can be had at once.
    pub(crate) fn try_permit(self: &Arc<Self>) -> Result<SendPermit<'_>, Distance> {
        let mut state = lock(&self.state);
        if let Some(end) = &state.end {
            return Err(end.clone());
        }
        match state.take() {
            Some((link, number)) => Ok(SendPermit::new(self, link, number)),
            None => Err(Distance::Full),
        }
    }

    /// Waits for a permit, in the order of the calls.
    pub(crate) async fn permit(self: &Arc<Self>) -> Result<SendPermit<'_>, Distance> {
        let mut sender = QueuedSender {
            stream: self,
            number: None,
        };
        poll_fn(|cx| sender.poll(cx)).await
    }

    /// Encodes the message and sends it. If that fails, the message was not sent. Returns the link, and
    /// the numbers of the asks in the message.
    pub(crate) fn send<T: Serialize>(
        mut permit: SendPermit<'_>,
        message: &T,
        cause: Option<Arc<LossCause>>,
    ) -> Result<(Arc<Link>, Vec<u64>), Distance> {
        let (link, stream) = (permit.link.clone(), permit.number);
        let context = link.trace_context();
        let head = match context {
            None => LinkFrame::Message { stream },
            Some(_) => LinkFrame::TracedMessage { stream },
        };
        let encoded = codec::encode(&link, &head, context.as_deref(), message, cause);
        let encoded = encoded.map_err(|error| match error {
            EncodeError::TooLarge { bytes, limit } => Distance::TooLarge { bytes, limit },
            EncodeError::Failed(why) => Distance::Unencodable(why),
        })?;
        let (frame, asks) = encoded;
        let numbers = asks.iter().map(|(number, _)| *number).collect();
        let this = permit.stream;
        let mut state = lock(&this.state);
        if let Some(end) = &state.end {
            let error = end.clone();
            drop(state);
            for (_, ask) in asks {
                ask.lose(error.clone().into());
            }
            return Err(error);
        }
        state.bytes -= frame.len() as i64;
        let number = state.sent;
        state.sent += 1;
        permit.is_used = true;
        // Under the lock, so that frames are in the order of their numbers (OUT-1).
        let lost = link.commit(&frame, asks, ReplyCarrier::Message { stream, number });
        drop(state);
        for (_, ask) in lost {
            ask.lose(Distance::Lost.into());
        }
        Ok((link, numbers))
    }
}

/// Returns why nothing more can be sent to an actor of this kind, if the stream has ended so.
pub(super) fn distance(end: StreamEnd, ours: &str) -> Distance {
    match end {
        StreamEnd::Closed => Distance::Closed,
        StreamEnd::Unknown => Distance::Unknown,
        StreamEnd::WrongKind(theirs) => Distance::WrongKind {
            ours: ours.into(),
            theirs,
        },
        StreamEnd::TooMany { limit } => Distance::TooManyStreams { limit },
        StreamEnd::Undecodable(why) | StreamEnd::Excess(why) => Distance::Undecodable(why),
    }
}

impl OutgoingState {
    fn may_send(&self) -> bool {
        let has_room = self.link.as_ref().is_some_and(|(link, _)| link.has_room());
        self.messages > 0 && self.bytes > 0 && self.permits < SENDERS_AT_ONCE && has_room
    }

    /// Takes credit for one message, unless a sender waits for it.
    fn take(&mut self) -> Option<(Arc<Link>, u64)> {
        if !self.line.is_empty() || !self.may_send() {
            return None;
        }
        self.messages -= 1;
        self.permits += 1;
        self.link.clone()
    }

    /// Gives credit to the first senders in line (OUT-4), or wakes all of them if there is an end.
    fn grant_credit(&mut self, woken: &mut Vec<Waker>) {
        if self.end.is_some() {
            woken.extend(self.line.drain(..).map(|(_, waker)| waker));
            return;
        }
        while !self.line.is_empty() && self.may_send() {
            let Some((number, waker)) = self.line.pop_front() else {
                return;
            };
            self.messages -= 1;
            self.permits += 1;
            self.granted.insert(number);
            woken.push(waker);
        }
    }
}

impl<'a> SendPermit<'a> {
    fn new(stream: &'a Arc<Outgoing>, link: Arc<Link>, number: u64) -> Self {
        SendPermit {
            stream,
            link,
            number,
            is_used: false,
        }
    }
}

impl Drop for SendPermit<'_> {
    /// Lets another sender encode, and gives the credit back if no message was sent.
    fn drop(&mut self) {
        let unused = u32::from(!self.is_used);
        self.stream.change(|state| {
            state.permits -= 1;
            // A peer may have given more back than was under way.
            state.messages = state.messages.saturating_add(unused);
        });
    }
}

/// A sender that waits in the line, once it has a number.
struct QueuedSender<'a> {
    stream: &'a Arc<Outgoing>,
    number: Option<u64>,
}

impl<'a> QueuedSender<'a> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendPermit<'a>, Distance>> {
        // The credit may be here at once, may have been granted meanwhile, or is waited for (OUT-4).
        let mut state = lock(&self.stream.state);
        if let Some(end) = &state.end {
            return Poll::Ready(Err(end.clone()));
        }
        let taken = match self.number {
            None => state.take(),
            Some(number) if state.granted.remove(&number) => {
                self.number = None;
                state.link.clone()
            }
            Some(_) => None,
        };
        if let Some((link, number)) = taken {
            return Poll::Ready(Ok(SendPermit::new(self.stream, link, number)));
        }
        let waker = cx.waker().clone();
        let waiting = self.number;
        match state
            .line
            .iter_mut()
            .find(|(number, _)| Some(*number) == waiting)
        {
            Some((_, left)) => *left = waker,
            None => {
                let number = state.next;
                state.next += 1;
                self.number = Some(number);
                state.line.push_back((number, waker));
            }
        }
        Poll::Pending
    }
}

impl Drop for QueuedSender<'_> {
    /// Leaves the line. Credit that was granted goes to the next one.
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        self.stream.change(|state| {
            if state.granted.remove(&number) {
                state.permits -= 1;
                state.messages = state.messages.saturating_add(1);
            }
            state.line.retain(|(waiting, _)| *waiting != number);
        });
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.upgrade() {
            owner.forget_target(&self.target);
        }
    }
}

/// The use of a stream by an address.
pub(crate) struct OutgoingHandle(Arc<Outgoing>);

impl Deref for OutgoingHandle {
    type Target = Arc<Outgoing>;

    fn deref(&self) -> &Arc<Outgoing> {
        &self.0
    }
}

impl Clone for OutgoingHandle {
    fn clone(&self) -> Self {
        lock(&self.0.state).handles += 1;
        OutgoingHandle(self.0.clone())
    }
}

impl Drop for OutgoingHandle {
    fn drop(&mut self) {
        self.0.released();
    }
}
