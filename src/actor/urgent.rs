//! Addresses for the urgent messages of an actor.
//!
//! Such an address is a map: each message takes a permit of the second queue, and uses it at once. So
//! whatever works with a mapped address works with it. It counts as an address of the actor.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::address::Address;
use super::core::{CoreArc, CoreRef};
use super::deferred::apply_all_effects;
use super::map::{leave_line_of, poll_reserve_of};
use super::recipient::{ActorView, AnyMap, MappedActor, RecipientRef};
use crate::error::{AskDetail, End};
use crate::info::TaskInfo;
use crate::mailbox::{LineEntry, Refused};
use crate::runtime::context;
use crate::sync::Process;
use crate::task::{MessageEvent, MessageInfo};
use crate::waiters::Waiters;

/// An error of [`Address::urgent`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrgentError {
    /// The actor was spawned without the option [`urgent`](crate::ActorBuilder::urgent).
    NotSet(TaskInfo),
    /// The address of this actor is [mapped](Address::map). Map the urgent one instead.
    Mapped(TaskInfo),
}

impl fmt::Display for UrgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UrgentError::NotSet(actor) => {
                write!(f, "{actor} was spawned without the option `urgent`")
            }
            UrgentError::Mapped(actor) => write!(
                f,
                "an address of {actor} is mapped: call `urgent` before `map`"
            ),
        }
    }
}

impl std::error::Error for UrgentError {}

impl<M: Send + 'static> Address<M> {
    /// Returns an address for urgent messages of the same actor, which it receives before all plain
    /// ones that it has not received yet.
    ///
    /// They have a queue of their own, with the capacity that the option
    /// [`urgent`](crate::ActorBuilder::urgent) sets. Its senders wait for room in that queue, and
    /// `len` and `capacity` are those of it. All else is common: the address keeps the actor open,
    /// is equal to its other addresses, and may be cloned, mapped, or used to `ask`. The
    /// [guide](crate::docs::guide#control-messages) has the order of messages.
    ///
    /// # Errors
    /// [`UrgentError`] if the actor was spawned without that option, or if this address is
    /// [mapped](Address::map).
    ///
    /// ```
    /// use greenroom::{Context, actor};
    ///
    /// #[derive(Debug, PartialEq)]
    /// enum Job {
    ///     Print(u32),
    ///     Cancel,
    /// }
    ///
    /// async fn printer(mut cx: Context<Job>) -> Vec<Job> {
    ///     let mut seen = Vec::new();
    ///     while let Some(job) = cx.recv().await {
    ///         seen.push(job);
    ///     }
    ///     seen
    /// }
    ///
    /// // Split, so that the actor runs when both were sent.
    /// let (address, printer) = actor(printer).urgent(8).split();
    /// let control = address.urgent().unwrap();
    /// address.tell(Job::Print(1)).unwrap();
    /// control.tell(Job::Cancel).unwrap();
    /// drop((address, control));
    /// let seen = futures::executor::block_on(printer).unwrap();
    /// assert_eq!(seen, [Job::Cancel, Job::Print(1)]);
    /// ```
    pub fn urgent(&self) -> Result<Address<M>, UrgentError> {
        let core = match self.recipient() {
            RecipientRef::Actor(core) if core.mailbox.has_urgent() => core,
            RecipientRef::Actor(core) => return Err(UrgentError::NotSet(core.info())),
            RecipientRef::Map(map) if map.is_urgent() => return Ok(self.clone()),
            RecipientRef::Map(map) => return Err(UrgentError::Mapped(map.actor().view().info())),
        };
        let core = CoreArc::from(core);
        let actor = Arc::new(UrgentRecipient(core.clone()));
        let fill = move |message| core.fill::<true>(message);
        Ok(self.mapped_by(&AnyMap::of(actor, None, fill)))
    }
}

/// An actor as the recipient of urgent messages.
struct UrgentRecipient<M>(CoreArc<M>);

impl<M: Send + 'static> MappedActor for UrgentRecipient<M> {
    fn view(&self) -> &dyn ActorView {
        self
    }

    fn process(&self) -> Process {
        self.0.process()
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = End> + Send>> {
        MappedActor::end(&self.0)
    }

    fn stop(&self) {
        MappedActor::stop(&self.0);
    }

    fn stop_now(&self) {
        MappedActor::stop_now(&self.0);
    }

    fn kill(&self) {
        MappedActor::kill(&self.0);
    }

    fn revive_sender(&self) -> bool {
        MappedActor::revive_sender(&self.0)
    }

    /// Uncounts an address.
    ///
    /// # Safety
    /// As in the trait.
    #[expect(unsafe_code, reason = "as in the trait")]
    unsafe fn remove_sender(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe { MappedActor::remove_sender(&self.0) };
    }

    fn reserve(&self) -> Result<(), Refused> {
        let core = self.0.at();
        core.is_deferred();
        let reserved = core.mailbox.reserve_in::<true>();
        match reserved {
            Err(Refused::Full) if core.header.is_traced() => apply_all_effects(),
            Err(Refused::Closed) => core.observe(),
            _ => {}
        }
        reserved
    }

    fn poll_reserve(
        &self,
        wait: &mut Option<Box<dyn Any + Send + Sync>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        if wait.is_none() {
            let reserved = self.reserve();
            if reserved != Err(Refused::Full) {
                return Poll::Ready(reserved);
            }
        }
        poll_reserve_of::<M, true>(self.0.at(), wait, cx)
    }

    fn leave_line(&self, wait: Option<Box<dyn Any + Send + Sync>>) {
        leave_line_of::<M, true>(self.0.at(), wait);
    }

    fn give_up_permit(&self) {
        self.0.at().give_up_permit::<true>();
    }

    fn is_urgent(&self) -> bool {
        true
    }

    fn trace_passed_by(&self, type_name: &'static str) {
        self.0.at().passed_by(type_name);
    }
}

/// The view of the actor, but for its queue.
impl<M> ActorView for UrgentRecipient<M> {
    fn id(&self) -> u64 {
        self.0.header.id()
    }

    fn name(&self) -> Option<&str> {
        self.0.name()
    }

    fn info(&self) -> TaskInfo {
        self.0.info()
    }

    fn closed_detail(&self) -> AskDetail {
        self.0.closed_detail()
    }

    fn is_closed(&self) -> bool {
        ActorView::is_closed(&*self.0)
    }

    fn is_closed_now(&self) -> bool {
        ActorView::is_closed_now(&*self.0)
    }

    fn addresses(&self) -> usize {
        ActorView::addresses(&*self.0)
    }

    fn len(&self) -> usize {
        self.0.observe();
        self.0.mailbox.urgent_len().0
    }

    fn capacity(&self) -> Option<usize> {
        Some(self.0.mailbox.urgent_len().1)
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    fn end(&self) -> Option<End> {
        ActorView::end(&*self.0)
    }

    fn ended(&self) -> &Waiters {
        self.0.mailbox.ended_made()
    }

    fn observe(&self) {
        self.0.observe();
    }

    fn awaits_end(&self) {
        self.0.awaits_end();
    }

    fn add_sender(&self) {
        self.0.mailbox.add_sender();
    }
}

/// Permits of one of the queues.
impl<M> CoreRef<'_, M> {
    /// Traces an event in one of the queues.
    pub(super) fn trace_in<const URGENT: bool>(self, event: impl FnOnce() -> MessageEvent) {
        self.trace(|| match URGENT {
            true => MessageEvent::Urgent(Box::new(event())),
            false => event(),
        });
    }

    /// Waits in line for a permit.
    pub(super) fn poll_reserve<const URGENT: bool>(
        self,
        entry: &mut Option<LineEntry<M>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        let before = entry.as_ref().map(LineEntry::key);
        let reserved = self.mailbox.poll_reserve::<URGENT>(entry, cx);
        let now = entry.as_ref().map(LineEntry::key);
        match (before, now, &reserved) {
            (None, Some(key), Poll::Pending) => {
                self.trace_in::<URGENT>(|| MessageEvent::AwaitsPermit(MessageInfo::of::<M>(), key));
            }
            (Some(key), _, Poll::Ready(Ok(()))) => {
                self.trace_in::<URGENT>(|| MessageEvent::HasPermit(key))
            }
            (Some(key), _, Poll::Ready(Err(_))) => {
                self.trace_in::<URGENT>(|| MessageEvent::GivenUp(key))
            }
            _ => {}
        }
        reserved
    }

    /// Leaves the line for a permit, and gives that up if it was given already.
    pub(super) fn leave_line<const URGENT: bool>(self, entry: LineEntry<M>) {
        context::apply_effects();
        self.trace_in::<URGENT>(|| MessageEvent::GivenUp(entry.key()));
        self.pass_on(self.mailbox.leave_line::<URGENT>(entry));
        self.pass_undelivered();
    }
}
