//! How an actor is asked to end: after all messages, after the one in hand, or in its middle.
//!
//! Each way closes the mailbox and is final. A stronger one may follow, and then holds as well.

use super::address::Address;
use super::context::Context;
use super::core::{Core, CoreRef};
use crate::error::End;
use crate::mailbox::{Flags, Termination};
use crate::sync::mutant;
use crate::task::run;

impl<M> Address<M> {
    /// Closes the mailbox: accepted messages are still delivered, then `recv` returns `None`.
    ///
    /// Closing is final. Closing again does nothing.
    pub fn stop(&self) {
        self.recipient().stop();
    }

    /// Ends the actor after the message in hand: then `recv` returns `None`.
    ///
    /// It comes between [`stop`](Address::stop), after which all accepted messages are handled, and
    /// [`kill`](Address::kill), which drops the handler in its middle. Either may come before or
    /// after it. The [guide](crate::docs::guide#ending) compares the three.
    ///
    /// - The mailbox closes at once. Waiting senders get their messages back.
    /// - Accepted messages go to [`on_undelivered`](crate::ActorBuilder::on_undelivered). Without
    ///   that function this call drops those that the actor has not taken out of the mailbox, and
    ///   the next `recv` the others. Every `ask` among them ends with
    ///   [`NoReply`](crate::AskError::NoReply), because of
    ///   [`StoppedNow`](crate::AskCause::StoppedNow).
    /// - At the next `recv`, [children](crate::Context::adopt) are stopped in the same way. Their
    ///   results are received before `None`.
    /// - The value of the actor goes to `join`. It is not restarted.
    ///
    /// A request in flight ([`on_answer`](Context::on_answer), [`on_return`](Context::on_return))
    /// is a source, and is dropped at the next `recv`. To finish it, give it to an actor that
    /// awaits it, as here, and stop that actor: one worker for each request that may run at a time.
    /// [`Group::stop_now`](crate::registry::Group::stop_now) stops all of them.
    ///
    /// ```
    /// use futures::channel::oneshot;
    /// use greenroom::{Context, spawn};
    ///
    /// async fn crawl(mut cx: Context<oneshot::Receiver<String>>) -> usize {
    ///     let mut fetched = 0;
    ///     while let Some(page) = cx.recv().await {
    ///         page.await.unwrap();
    ///         fetched += 1;
    ///     }
    ///     fetched
    /// }
    ///
    /// greenroom::run(async {
    ///     let crawl = spawn!(crawl(_));
    ///     let (servers, pages): (Vec<_>, Vec<_>) = (0..200).map(|_| oneshot::channel()).unzip();
    ///     for page in pages {
    ///         crawl.tell(page).unwrap();
    ///     }
    ///     crawl.stop_now();
    ///     for server in servers {
    ///         let _ = server.send("a page".to_owned());
    ///     }
    ///     assert!(crawl.join().await.unwrap() <= 1); // at most the page in hand
    /// });
    /// ```
    #[doc(alias("cancel", "exit", "shutdown"))]
    pub fn stop_now(&self) {
        self.recipient().stop_now();
    }

    /// Drops the actor at its next suspension, without handling another message.
    ///
    /// The mailbox closes at once. This call first wakes the actor, then drops the messages that
    /// the actor has not taken out of the mailbox. Messages that it has taken are dropped with it.
    /// Every `ask` among them ends with [`NoReply`](crate::AskError::NoReply). With
    /// [`on_undelivered`](crate::ActorBuilder::on_undelivered), the end of the actor passes all
    /// these messages on instead.
    #[doc(alias = "abort")]
    pub fn kill(&self) {
        self.recipient().kill();
    }
}

impl<M> Context<M> {
    /// Closes the mailbox: accepted messages are still received, then `recv` returns `None`.
    ///
    /// The actor's sources are dropped when it receives next, but for its
    /// [children](Context::adopt).
    pub fn stop(&self) {
        self.core().observe();
        self.core().at().close();
    }

    /// Ends this actor after the message in hand, as [`Address::stop_now`] does.
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    ///
    /// async fn find(mut cx: Context<u32>, wanted: u32) -> Option<u32> {
    ///     let mut found = None;
    ///     while let Some(number) = cx.recv().await {
    ///         if number == wanted {
    ///             found = Some(number);
    ///             cx.stop_now(); // the others are not looked at
    ///         }
    ///     }
    ///     found
    /// }
    ///
    /// greenroom::run(async {
    ///     let find = spawn!(find(_, 3));
    ///     for number in 1..=5 {
    ///         let _ = find.tell(number);
    ///     }
    ///     assert_eq!(find.join().await.unwrap(), Some(3));
    /// });
    /// ```
    #[doc(alias("cancel", "exit", "shutdown"))]
    pub fn stop_now(&self) {
        self.core().at().stop_now();
    }

    /// Returns whether this actor was stopped at once.
    pub(crate) fn is_stopped_now(&self) -> bool {
        self.core().is_stopped_now()
    }

    /// Drops the taken messages that were not received, and stops the children.
    pub(super) fn give_up(&mut self) {
        let (core, reader) = self.parts();
        let termination = core.mailbox.state.termination();
        let end = termination.map_or(End::Returned, End::from);
        core.lose_taken(end, reader.take_batch());
        self.end_children();
    }

    /// Loses the messages that were accepted and not received, if none is received any more.
    pub(super) fn lose_if_stopped_now(&mut self) {
        if self.is_stopped_now() {
            let (core, reader) = self.parts();
            core.lose_taken(End::Returned, reader.take_batch());
            core.lose(End::Returned, core.mailbox.drain());
        }
    }

    /// Stops the children, as this actor was stopped. The mailbox is closed, and empty or given up.
    pub(super) fn end_children(&mut self) {
        let (core, reader) = self.parts();
        if let Some(sources) = reader.sources() {
            sources.stop_children(core.is_stopped_now());
        }
    }
}

impl<M> Core<M> {
    /// Returns whether no accepted message is received any more.
    pub(super) fn is_stopped_now(&self) -> bool {
        self.mailbox.state.peek().has(Flags::STOPPED_NOW)
    }
}

impl<M> CoreRef<'_, M> {
    /// Closes the mailbox, so that the actor ends by itself.
    pub(super) fn close(self) {
        self.pass_on(self.mailbox.close());
    }

    /// Ends the actor after the message in hand. In a simulation the earlier actions of the sender
    /// and of the actor take effect first.
    pub(super) fn stop_now(self) {
        self.observe();
        let counted_first = mutant("stop_counted_before_it_is");
        if counted_first {
            run::count_termination();
        }
        let (wake, messages) = self.mailbox.stop_now();
        if !counted_first {
            run::count_termination();
        }
        self.pass_on(wake);
        // Only after the wake-up: the drop of a message may wait for the actor's end.
        self.mailbox.refuse_line();
        self.lose(End::Returned, messages);
    }

    /// Closes the mailbox, and drops the actor at its next suspension.
    ///
    /// A kill drops the queued messages now. After a cancellation the actor's end drops them or, if
    /// that never comes, [`refuse`](CoreRef::refuse).
    pub(super) fn terminate(self, termination: Termination) {
        let told_first = mutant("termination_counted_before_it_is");
        if told_first {
            run::count_termination();
        }
        let (wake, mut messages) = self.mailbox.terminate(termination);
        if !told_first {
            run::count_termination();
        }
        if mutant("dropped_before_the_wake_up") {
            messages.clear();
        }
        self.pass_on(wake);
        // Only after the wake-up: the drop of a message may wait for the actor's end.
        if termination == Termination::Killed {
            self.mailbox.refuse_line();
        }
        self.lose(End::from(termination), messages);
    }

    /// Kills the actor. In a simulation the earlier actions of the sender and of the actor take
    /// effect first.
    pub(super) fn kill(self) {
        self.observe();
        self.terminate(Termination::Killed);
    }

    /// Returns the messages of waiting senders, and drops the queued ones. The mailbox is closed.
    pub(super) fn refuse(self) {
        self.mailbox.refuse_line();
        self.finish_undelivered(End::Cancelled, self.mailbox.drain());
    }
}
