//! The future of a restartable actor: its incarnations, one after another.
//!
//! ```text
//!  stage    what happens                                         next     and
//!  Down     it may run, and its own delay is over                Up       lends its context
//!  Down     after a failure: its mailbox is closed and empty     (end)    ends with that result
//!  Down     after a failure: it is ordered to give up            (end)    ends with that result
//!  Up       the incarnation ends, and its rule wants no other    (end)    ends with its result
//!  Up       the incarnation ends                                 Leaving  keeps its result
//!  Up       it may not run any more                              Leaving  drops the incarnation
//!  Leaving  the context is back, after an order                  Down     answers the order
//!  Leaving  the context is back: closed and empty, or spent      (end)    ends with the result
//!  Leaving  the context is back                                  Down     counts a failure, reports it
//! ```
//!
//! A restart counts, and is observed, when its incarnation begins: from Down to Up, but for the
//! first. An actor without a supervisor may always run, one with a supervisor if it was ordered to.
//! Without a supervisor it is spent when its intensity or its delays are used up. A supervisor
//! decides that itself, and waits for the delay before it orders to run.
//!
//! The actor has its context while it is down. An incarnation that ended leaves its result in the
//! lifecycle until the next one begins.
//!
//! # Invariants
//! - RESTART-1: an incarnation begins only after the one before was dropped, with its context and
//!   sources.
//! - RESTART-2: each call of user code is contained: clones, incarnations, rules, and drops.
#![expect(
    unsafe_code,
    reason = "incarnations are polled in place; see LIFECYCLE-1 in lifecycle.rs"
)]

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use super::bond::{Bond, BondOrder, BondReport};
use super::restarts::{RestartState, Restarts};
use crate::actor::context::Context;
use crate::actor::incarnation::Loan;
use crate::actor::lifecycle::Lifecycle;
use crate::actor::spawn::ActorBuilder;
use crate::actor::undelivered::detail_about;
use crate::contain::{attempt, contain};
use crate::error::{AskCause, Fault};
use crate::instant::Instant;
use crate::task::loss;
use crate::time::sleep;

impl<M, A, Fut, On> ActorBuilder<M, A, Fut, On>
where
    M: Send + 'static,
    A: Clone,
    Fut: Future,
{
    /// Restarts the actor in place when it panics, or whenever `restarts` says so.
    ///
    /// Each incarnation begins with a clone of what is spawned: of a closure with its captures, of
    /// a value, or in [`spawn!`](crate::spawn!) of the arguments. Address, id, name, options and
    /// place stay, and so do the messages that were accepted and not received. What the old
    /// incarnation owned is dropped before the next one begins: its state, its sources, and its
    /// [children](Context::adopt), which are stopped.
    ///
    /// - The message in hand is not retried. Its asker gets
    ///   [`AskError::NoReply`](crate::AskError::NoReply) at once.
    /// - An incarnation may move its context elsewhere. Then the next one begins when that context
    ///   is dropped.
    /// - After a [`stop`](crate::Address::stop), restarts go on while accepted messages are left.
    ///   An actor that fails when its mailbox is closed and empty ends with that result.
    /// - A [`kill`](crate::Address::kill) is final.
    /// - When the [intensity](Restarts::intensity) is used up, the actor ends with its last result,
    ///   which `join` returns. Messages that are left go to
    ///   [`on_undelivered`](ActorBuilder::on_undelivered).
    ///
    /// A panic that leads to a restart is not reported to [`on_fault`](crate::Builder::on_fault),
    /// but [`Observer::restarted`](crate::Observer::restarted) is called.
    ///
    /// ```
    /// use greenroom::supervise::Restarts;
    /// use greenroom::{Context, Reply, spawn};
    ///
    /// async fn divider(mut cx: Context<(u32, u32, Reply<u32>)>) -> u64 {
    ///     while let Some((a, b, reply)) = cx.recv().await {
    ///         reply.send(a / b);
    ///     }
    ///     cx.incarnation_number()
    /// }
    ///
    /// greenroom::run(async {
    ///     let divider = spawn!(divider(_), restart = Restarts::on_fault());
    ///     assert!(divider.ask(|reply| (1, 0, reply)).await.is_err());
    ///     assert_eq!(divider.ask(|reply| (42, 2, reply)).await, Ok(21));
    ///     assert_eq!(divider.join().await.unwrap(), 1);
    /// });
    /// ```
    pub fn restart(
        self,
        restarts: Restarts<Fut::Output>,
    ) -> ActorBuilder<
        M,
        Restartable<M, A, Fut>,
        impl Future<Output = Fut::Output> + 'static + use<M, A, Fut, On>,
        On,
    >
    where
        A: 'static,
        Fut: 'static,
    {
        self.restarted_by(restarts)
    }

    fn restarted_by(self, restarts: Restarts<Fut::Output>) -> RestartBuilder<M, A, Fut, On> {
        let checked = restarts.check();
        self.rebuild(checked, Restarting::begin, |actor, begin| Restartable {
            actor,
            begin,
            restarts: (!restarts.is_default()).then(|| Arc::new(restarts)),
        })
    }

    /// Puts the actor under a supervisor. It is restarted by its own rules or, without any, by the
    /// default ones.
    ///
    /// The future of the builder is `Send` if messages, actor, future and output are.
    ///
    /// An actor with rules of its own is wrapped once more, so that both cases have one type. The
    /// outer future never restarts it, and leaves the bond to the inner one (see `begin`).
    pub(crate) fn supervised(self, bond: Arc<Bond>) -> RestartBuilder<M, A, Fut, On> {
        let restarts = match self.is_restarted() {
            true => Restarts::never(),
            false => Restarts::default(),
        };
        let mut builder = self.restarted_by(restarts);
        builder.set_bond(bond);
        builder
    }
}

/// The builder of a restartable actor.
type RestartBuilder<M, A, Fut, On> =
    ActorBuilder<M, Restartable<M, A, Fut>, Restarting<M, A, Fut>, On>;

/// What [`ActorBuilder::supervised`] says of the future. It is compiled and never called.
#[expect(dead_code, reason = "it only has to compile")]
fn is_send_with_its_parts<M: Send, A: Send, Fut>(it: Restarting<M, A, Fut>) -> impl Send
where
    Fut: Future<Output: Send> + Send,
{
    it
}

/// What is spawned, with the rules of its restarts.
///
/// [`ActorBuilder::restart`] creates it, and [`SpawnError`](crate::SpawnError) returns it.
pub struct Restartable<M, A, Fut: Future> {
    actor: A,
    begin: fn(A, Context<M>) -> Fut,
    /// `None` for the default.
    restarts: Option<Arc<Restarts<Fut::Output>>>,
}

impl<M, A, Fut: Future> Restartable<M, A, Fut> {
    /// Returns the function, closure or value that was to be spawned.
    pub fn into_inner(self) -> A {
        self.actor
    }
}

impl<M, A: Clone, Fut: Future> Clone for Restartable<M, A, Fut> {
    fn clone(&self) -> Self {
        Restartable {
            actor: self.actor.clone(),
            begin: self.begin,
            restarts: self.restarts.clone(),
        }
    }
}

impl<M, A, Fut: Future> fmt::Debug for Restartable<M, A, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restartable").finish_non_exhaustive()
    }
}

/// The future of a [restartable](ActorBuilder::restart) actor.
#[must_use = "futures do nothing unless polled"]
pub(crate) struct Restarting<M, A, Fut: Future> {
    stage: IncarnationStage<M>,
    has_begun: bool,
    /// The current incarnation, or the result of the last one.
    incarnation: Lifecycle<Context<M>, Fut, Fut::Output>,
    /// `None` once it was dropped, or given to the only incarnation.
    actor: Option<A>,
    begin: fn(A, Context<M>) -> Fut,
    /// Allocated when first used.
    rare: Option<Box<RestartState<Fut::Output>>>,
}

enum IncarnationStage<M> {
    Up(Loan<M>),
    /// The incarnation has ended, and its context may be elsewhere.
    Leaving(Loan<M>),
    Down(Context<M>),
    /// Only while a stage is replaced. An actor that ends keeps its last stage until it is dropped.
    Replaced,
}

impl<M, A, Fut> Restarting<M, A, Fut>
where
    M: Send + 'static,
    A: Clone,
    Fut: Future,
{
    fn begin(what: Restartable<M, A, Fut>, context: Context<M>) -> Self {
        // The outer of two such futures (see `supervised`): the inner one takes the bond.
        let is_outer = what.restarts.as_ref().is_some_and(|it| it.is_never());
        let bond = if is_outer { None } else { Bond::of(&context) };
        let is_rare = what.restarts.is_some() || bond.is_some();
        Restarting {
            stage: IncarnationStage::Down(context),
            has_begun: false,
            incarnation: Lifecycle::Gone,
            actor: Some(what.actor),
            begin: what.begin,
            rare: is_rare.then(|| RestartState::new(what.restarts, bond)),
        }
    }

    fn rare(&mut self) -> &mut RestartState<Fut::Output> {
        self.rare
            .get_or_insert_with(|| RestartState::new(None, None))
    }

    fn bond(&self) -> Option<&Bond> {
        self.rare.as_ref()?.bond.as_deref()
    }

    /// Returns whether the last order is to run. An actor without a supervisor always runs.
    fn may_run(&self) -> bool {
        self.bond()
            .is_none_or(|bond| bond.is_ordered(BondOrder::Run))
    }

    fn report(&self, report: BondReport) {
        if let Some(bond) = self.bond() {
            bond.report(report);
        }
    }

    /// Polls the incarnation until it ends. Returns the result with which the actor ends, if it is
    /// not to be restarted.
    ///
    /// # Safety
    /// This is not moved any more (LIFECYCLE-1).
    #[inline]
    unsafe fn poll_up(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<IncarnationResult<Fut>>> {
        if !self.may_run() {
            self.drop_incarnation();
            return Poll::Ready(None);
        }
        let is_new = !self.incarnation.has_begun();
        let (begin, actor) = (self.begin, &mut self.actor);
        let is_last = self.rare.as_ref().is_some_and(|it| it.rules.is_never());
        let begin = |context| {
            let actor = if is_last { actor.take() } else { actor.clone() };
            begin(actor.expect("it is kept until the last begin"), context)
        };
        // SAFETY: (LIFECYCLE-1) guaranteed by the caller.
        let polled = unsafe { self.incarnation.poll(begin, &(), cx) };
        if is_new {
            self.report(BondReport::Started);
        }
        let Poll::Ready(result) = polled else {
            return Poll::Pending;
        };
        Poll::Ready(self.judge(result))
    }

    /// Drops the incarnation by order of the supervisor.
    #[cold]
    fn drop_incarnation(&mut self) {
        let IncarnationStage::Up(loan) = &self.stage else {
            return;
        };
        let core = loan.core();
        let detail = || detail_about(core.info(), AskCause::Restarted);
        loss::during(detail, || self.incarnation.clear());
    }

    /// Keeps the result of an incarnation, if the actor is to be restarted after it. Otherwise
    /// returns it.
    #[cold]
    #[inline(never)]
    fn judge(&mut self, result: IncarnationResult<Fut>) -> Option<IncarnationResult<Fut>> {
        self.incarnation.clear();
        if let (Err(Fault::Panicked(panic)), IncarnationStage::Up(loan)) = (&result, &self.stage) {
            loan.core().complete_caught(panic);
        }
        // The rule is code of the user, whose panic is the result then. Without `rare` the default
        // rules hold.
        let wants = match &self.rare {
            Some(rare) => attempt(|| rare.rules.wants(&result)),
            None => Ok(result.is_err()),
        };
        match wants {
            Ok(true) => {
                self.incarnation.keep(result);
                None
            }
            Ok(false) => Some(result),
            Err(panic) => {
                contain(|| drop(result));
                Some(Err(Fault::Panicked(panic)))
            }
        }
    }

    /// Decides about the restart after an incarnation whose context is back. Returns the result
    /// with which the actor ends, if it is not to be restarted.
    fn decide_restart(
        &mut self,
        mut context: Context<M>,
        cx: &TaskContext<'_>,
    ) -> Option<IncarnationResult<Fut>> {
        let is_at_end = context.is_at_end();
        self.stage = IncarnationStage::Down(context);
        let Some(result) = self.incarnation.result() else {
            // It was dropped by order.
            if let Some(bond) = self.bond() {
                bond.answer();
            }
            return None;
        };
        let text = match result {
            Err(Fault::Panicked(panic)) => Some(panic.text().unwrap_or_default().into()),
            _ => None,
        };
        if is_at_end {
            return self.incarnation.take_result();
        }
        let rare = self.rare();
        let delay = rare.next_delay();
        if rare.bond.is_some() {
            if delay.is_none() {
                // Its supervisor gives up. If the one above restarts that, it begins with a new history.
                rare.history.clear();
                rare.row = 0;
            }
            if let Some(bond) = self.bond() {
                bond.fail(BondReport::Failed(text, delay));
                bond.answer();
            }
            return None;
        }
        let Some(delay) = delay else {
            return self.incarnation.take_result();
        };
        rare.delay = (!delay.is_zero()).then(|| sleep(delay));
        // Another turn, so that an actor that always fails leaves its thread to others.
        cx.waker().wake_by_ref();
        None
    }

    /// Waits until the next incarnation may begin. Returns the result with which the actor ends, if
    /// its mailbox is closed and empty.
    fn poll_down(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<IncarnationResult<Fut>>> {
        if let Some(bond) = self.bond() {
            bond.register(cx.waker());
            bond.answer();
        }
        let may_run = self.may_run();
        let IncarnationStage::Down(context) = &mut self.stage else {
            return Poll::Pending;
        };
        // After a failure it also waits for the end of its mailbox, and for the order to give up.
        if self.incarnation.result().is_some() {
            let is_at_end = context.poll_end(cx.waker()).is_ready();
            let bond = self.rare.as_ref().and_then(|rare| rare.bond.as_deref());
            let gives_up = !may_run && bond.is_some_and(|bond| bond.is_ordered(BondOrder::GiveUp));
            if is_at_end || gives_up {
                return Poll::Ready(self.incarnation.take_result());
            }
        }
        if !may_run {
            return Poll::Pending;
        }
        if let Some(delay) = self.rare.as_mut().and_then(|rare| rare.delay.as_mut()) {
            ready!(Pin::new(delay).poll(cx));
            self.rare().delay = None;
        }
        Poll::Ready(None)
    }

    /// Prepares the next incarnation, which the next poll begins.
    #[inline(never)]
    fn begin_again(&mut self) {
        let IncarnationStage::Down(mut context) =
            std::mem::replace(&mut self.stage, IncarnationStage::Replaced)
        else {
            unreachable!("an actor that is down has its context")
        };
        context.end_wait();
        let result = self.incarnation.take_result();
        if std::mem::replace(&mut self.has_begun, true) {
            let fault = result.as_ref().and_then(|result| result.as_ref().err());
            context.count_restart(fault);
            // Before its first poll, which may block for long.
            self.rare().begun = Some(Instant::now());
        }
        contain(|| drop(result));
        if self.bond().is_some() {
            self.report(BondReport::Starting(context.incarnation_number()));
        }
        let (loan, context) = Loan::new(context);
        self.stage = IncarnationStage::Up(loan);
        self.incarnation = Lifecycle::Waiting(context);
    }
}

/// The result of an incarnation.
type IncarnationResult<Fut> = Result<<Fut as Future>::Output, Fault>;

impl<M, A, Fut> Future for Restarting<M, A, Fut>
where
    M: Send + 'static,
    A: Clone,
    Fut: Future,
{
    type Output = Fut::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Fut::Output> {
        // SAFETY: (LIFECYCLE-1) only the incarnation is pinned; it is polled and dropped in place.
        let this = unsafe { self.get_unchecked_mut() };
        let ended = loop {
            let ended = match &this.stage {
                // SAFETY: this is pinned.
                IncarnationStage::Up(_) => ready!(unsafe { this.poll_up(cx) }),
                IncarnationStage::Leaving(loan) => {
                    ready!(loan.poll(cx.waker()));
                    None
                }
                IncarnationStage::Down(_) => ready!(this.poll_down(cx)),
                IncarnationStage::Replaced => {
                    unreachable!("a stage is put back before the next poll")
                }
            };
            if ended.is_some() {
                break ended;
            }
            match std::mem::replace(&mut this.stage, IncarnationStage::Replaced) {
                IncarnationStage::Up(loan) => this.stage = IncarnationStage::Leaving(loan),
                IncarnationStage::Leaving(loan) => {
                    let ended = this.decide_restart(loan.take_back(), cx);
                    if ended.is_some() {
                        break ended;
                    }
                    // Without a supervisor another turn was asked for, which polls the delay. Under one,
                    // `poll_down` waits for the order and for the end of the mailbox.
                    if this.bond().is_none() {
                        return Poll::Pending;
                    }
                }
                down => {
                    this.stage = down;
                    this.begin_again();
                }
            }
        };
        match ended.expect("the loop ends with a result") {
            Ok(value) => Poll::Ready(value),
            // While this unwinds, the messages that are left are lost by this panic.
            Err(Fault::Panicked(panic)) => std::panic::resume_unwind(panic.into_payload()),
            Err(fault) => unreachable!("an incarnation {fault}"),
        }
    }
}

impl<M, A, Fut: Future> Drop for Restarting<M, A, Fut> {
    fn drop(&mut self) {
        if let Some(bond) = self.rare.as_ref().and_then(|rare| rare.bond.as_ref()) {
            bond.leave();
        }
        self.incarnation.clear();
        contain(|| self.actor = None);
    }
}

impl<M, A, Fut: Future> fmt::Debug for Restarting<M, A, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restarting").finish_non_exhaustive()
    }
}
