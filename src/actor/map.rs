//! Mapped addresses, and the actor behind them without its message type.
//!
//! A permit of its mailbox is reserved, and used or given up, for a message that a map makes.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::address::Address;
use super::core::{CoreArc, CoreRef};
use super::recipient::{ActorView, AnyMap, MappedActor, RecipientRef};
use crate::error::{AskError, End};
use crate::mailbox::{LineEntry, Refused};
use crate::sync::Process;

impl<M: Send + 'static> MappedActor for CoreArc<M> {
    fn view(&self) -> &dyn ActorView {
        &**self
    }

    fn process(&self) -> Process {
        self.at().process()
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = End> + Send>> {
        let core = self.clone();
        Box::pin(async move { RecipientRef::Actor(core.at()).ended().await })
    }

    fn stop(&self) {
        self.at().stop();
    }

    fn stop_now(&self) {
        self.at().stop_now();
    }

    fn kill(&self) {
        self.at().kill();
    }

    fn revive_sender(&self) -> bool {
        self.at().revive_sender(false)
    }

    /// Uncounts an address.
    ///
    /// # Safety
    /// As in the trait.
    #[expect(unsafe_code, reason = "as in the trait")]
    unsafe fn remove_sender(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.at().remove_sender() };
    }

    fn reserve(&self) -> Result<(), Refused> {
        self.at().reserve()
    }

    fn poll_reserve(
        &self,
        wait: &mut Option<Box<dyn Any + Send + Sync>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        if wait.is_none() {
            let reserved = self.at().reserve();
            if reserved != Err(Refused::Full) {
                return Poll::Ready(reserved);
            }
        }
        poll_reserve_of::<M, false>(self.at(), wait, cx)
    }

    fn leave_line(&self, wait: Option<Box<dyn Any + Send + Sync>>) {
        leave_line_of::<M, false>(self.at(), wait);
    }

    fn give_up_permit(&self) {
        self.at().give_up_permit::<false>();
    }

    fn trace_passed_by(&self, type_name: &'static str) {
        self.at().passed_by(type_name);
    }
}

/// Waits for a permit of one of the queues, after a try.
pub(super) fn poll_reserve_of<M: Send + 'static, const URGENT: bool>(
    core: CoreRef<'_, M>,
    wait: &mut Option<Box<dyn Any + Send + Sync>>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), Refused>> {
    // From the first wait on, the entry in the line decides.
    let wait = wait.get_or_insert_with(|| Box::new(None::<LineEntry<M>>));
    core.poll_reserve::<URGENT>(entry_in(wait), cx)
}

/// Leaves the line of one of the queues, or gives up the permit.
pub(super) fn leave_line_of<M: Send + 'static, const URGENT: bool>(
    core: CoreRef<'_, M>,
    wait: Option<Box<dyn Any + Send + Sync>>,
) {
    if let Some(entry) = wait.and_then(|mut wait| entry_in(&mut wait).take()) {
        core.leave_line::<URGENT>(entry);
    }
}

/// Returns the entry in the line inside a wait. It is used there, since a waker's clone may panic.
fn entry_in<M: Send + 'static>(wait: &mut Box<dyn Any + Send + Sync>) -> &mut Option<LineEntry<M>> {
    (**wait)
        .downcast_mut()
        .expect("a wait belongs to the actor where it began")
}

impl<M: Send + 'static> RecipientRef<'_, M> {
    /// Returns the actor, without the functions in front of it.
    pub(super) fn actor(self) -> Arc<dyn MappedActor> {
        match self {
            RecipientRef::Actor(core) => Arc::new(CoreArc::from(core)),
            RecipientRef::Map(map) => map.actor().clone(),
        }
    }
}

impl<M> Address<M> {
    /// Returns an address of the same actor for another message type, which `map` converts.
    ///
    /// It is meant for senders that should know only one kind of the actor's messages, as a
    /// `Recipient` of other crates is. A field `log: Address<Line>` takes any actor that has a message
    /// for a line, and needs no type parameter.
    ///
    /// `tell` and `send` take a permit first, so a refused message is returned as it was. The
    /// permit is used when `map` returns, on the sender's thread. If `map` panics, the `tell` or
    /// `send` panics too, and the permit is given up.
    ///
    /// A mapped address may be mapped again, up to 1000 times. Each map uses some of the sender's
    /// stack.
    ///
    /// # Panics
    /// If the address was mapped 1000 times already.
    ///
    /// # Cancel safety
    /// A `send` through a mapped address may get its permit while it waits. If it is then neither
    /// polled nor dropped, it keeps the permit. A closed actor receives `None` only after that permit
    /// was filled or given up.
    ///
    /// ```
    /// use greenroom::{Address, Context, spawn};
    ///
    /// enum Input {
    ///     Key(char),
    ///     Tick,
    /// }
    ///
    /// struct Keyboard {
    ///     keys: Address<char>,
    /// }
    ///
    /// async fn typed(mut cx: Context<Input>) -> String {
    ///     let mut text = String::new();
    ///     while let Some(event) = cx.recv().await {
    ///         match event {
    ///             Input::Key(key) => text.push(key),
    ///             Input::Tick => text.push('.'),
    ///         }
    ///     }
    ///     text
    /// }
    ///
    /// greenroom::run(async {
    ///     let typed = spawn!(typed(_));
    ///     let keyboard = Keyboard { keys: typed.map(Input::Key) };
    ///     keyboard.keys.tell('a').unwrap();
    ///     typed.tell(Input::Tick).unwrap();
    ///     keyboard.keys.tell('b').unwrap();
    ///     drop(keyboard);
    ///     assert_eq!(typed.join().await.unwrap(), "a.b");
    /// });
    /// ```
    #[doc(alias = "Recipient")]
    #[track_caller]
    pub fn map<N, F>(&self, map: F) -> Address<N>
    where
        M: Send + 'static,
        N: Send + 'static,
        F: Fn(N) -> M + Send + Sync + 'static,
    {
        self.mapped_by(&AnyMap::new(self.recipient(), map))
    }

    /// Returns a proxy: an address of the same actor whose messages go to `take`, on the sender's
    /// thread.
    ///
    /// An ask that finds the actor closed ends with `closed`. A trace shows the messages as those of
    /// the type `traced_as`; without it, it does not show them.
    pub(crate) fn proxy<N: 'static>(
        &self,
        traced_as: Option<&'static str>,
        take: impl Fn(N) + Send + Sync + 'static,
        closed: impl Fn() -> AskError + Send + Sync + 'static,
    ) -> Address<N>
    where
        M: Send + 'static,
    {
        let actor = self.recipient().actor();
        self.mapped_by(&AnyMap::proxy(actor, traced_as, take, closed))
    }
}
