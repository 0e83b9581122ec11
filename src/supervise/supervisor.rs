//! A supervisor, as programs see it, and its options.
//!
//! All clones have an address of one actor, which [`supervising`](super::supervising) has. Without an
//! address it stops.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::child::{ActorChild, ChildStatus, ErasedChild, ended};
use super::error::{Escalated, NotAChild, StartError};
use super::options::SupervisorBuilder;
use super::supervising::Supervising;
use super::tree::{ChildStart, Tree, TreeEvent};
use crate::actor::{ActorBuilder, Address, Bond, BondOrder, SpawnTarget, actor};
use crate::error::{SpawnError, SpawnProblem};
use crate::task::TaskInfo;

/// A supervisor: an actor that starts other actors, restarts them together, and stops them in
/// reverse order.
///
/// Each child keeps its address, its name and its waiting messages over all restarts. When a child
/// fails, its own [`Restarts`](super::Restarts) are asked first: whether to restart it, after which
/// delay, and whether its intensity allows that. Then the supervisor counts the failure against its
/// own intensity, and restarts the children that its [`Strategy`](super::Strategy) selects.
///
/// A supervisor joins the faults that it receives, so they do not reach
/// [`on_fault`](crate::Builder::on_fault). A fault for which the tree gives up does, when the last
/// clone is dropped and no [`join`](Supervisor::join) has returned it. So does that of a child that
/// ends with it during a stop.
///
/// If either intensity is used up, the supervisor *gives up*. At the top of a tree it stops all
/// children, and [`join`](Supervisor::join) returns [`Escalated`]. Children that wait then are
/// killed. Below another supervisor it waits with all its children, which keep their addresses.
/// That supervisor restarts it, or gives up too.
///
/// A child ends only by itself, by [`stop`](Address::stop) or [`kill`](Address::kill), or with its
/// supervisor, which has an address of it. A child that has ended is forgotten. A supervisor may
/// have very many children: with one-for-one, the restart of one looks at no other.
///
/// A clone is cheap. Dropping the last clone is [`stop`](Supervisor::stop). A supervisor above has
/// a clone, too.
///
/// ```
/// use greenroom::supervise::{Strategy, Supervisor};
/// use greenroom::{Address, Context, Reply, actor};
///
/// type Question = (u32, Reply<u32>);
///
/// async fn db(mut cx: Context<Question>) {
///     while let Some((number, reply)) = cx.recv().await {
///         reply.send(100 / number);
///     }
/// }
///
/// async fn web(mut cx: Context<Reply<u32>>, db: Address<Question>) {
///     while let Some(reply) = cx.recv().await {
///         reply.send(db.ask(|reply| (4, reply)).await.unwrap());
///     }
/// }
///
/// greenroom::run(async {
///     let tree = Supervisor::builder().strategy(Strategy::RestForOne).spawn().unwrap();
///     let db = tree.start(actor(db).name("db")).unwrap();
///     let of_web = db.clone();
///     let web = tree.start(actor(|cx| web(cx, of_web)).name("web")).unwrap();
///
///     assert_eq!(web.ask(|reply| reply).await, Ok(25)); // both have begun
///     assert!(db.ask(|reply| (0, reply)).await.is_err()); // divides by zero
///     assert_eq!(db.ask(|reply| (5, reply)).await, Ok(20)); // has begun anew
///     assert_eq!(web.ask(|reply| reply).await, Ok(25)); // so has this child
///     assert_eq!(tree.children()[1].restarts, 1);
///     tree.stop();
///     tree.join().await.unwrap();
/// });
/// ```
#[derive(Clone)]
pub struct Supervisor {
    tree: Arc<Tree>,
    address: Address<Infallible>,
}

/// Returns the builder of the actor. Without a name, it is called after this function.
fn supervisor(
    supervising: Supervising,
) -> ActorBuilder<Infallible, impl Send, impl Future<Output = ()> + Send> {
    actor(move |cx| supervising.run(cx))
}

impl SupervisorBuilder {
    /// Spawns the supervisor on the current runtime.
    ///
    /// In a task of a bound tokio runtime it [runs on tokio](crate::docs::with_tokio). So do its
    /// children that have no [other place](ActorBuilder::on), whoever starts them.
    ///
    /// # Errors
    /// [`StartError`] with the builder: if no runtime is current, if it is shutting down, or if
    /// the window of the intensity is 0.
    #[track_caller]
    pub fn spawn(self) -> Result<Supervisor, StartError<Self>> {
        self.spawn_in(Tree::new(None), Location::caller())
    }

    fn spawn_in(
        self,
        tree: Arc<Tree>,
        spawned_at: &'static Location<'static>,
    ) -> Result<Supervisor, StartError<Self>> {
        if self.window.is_zero() {
            let error = SpawnError::new(self, SpawnProblem::ZeroWindow);
            return Err(StartError::Spawn(error));
        }
        // The actor keeps the options, and an error gives the builder back.
        let supervising = Supervising::new(tree.clone(), self.clone());
        let mut builder = supervisor(supervising);
        if let Some(name) = &self.name {
            builder = builder.name(name.clone());
        }
        match builder.try_spawn_sent(spawned_at) {
            Ok(handle) => {
                let address = handle.address();
                tree.info_or(|| address.info());
                Ok(Supervisor { tree, address })
            }
            Err(error) => {
                let error = SpawnError::new(self, error.problem());
                Err(StartError::Spawn(error))
            }
        }
    }
}

impl Supervisor {
    /// Returns a builder with the default options.
    pub fn builder() -> SupervisorBuilder {
        SupervisorBuilder::new()
    }

    /// Starts an actor as the youngest child, and returns its address.
    ///
    /// The actor is restarted by its own [`restart`](ActorBuilder::restart) or, without one, by the
    /// default [`Restarts`](super::Restarts). It begins after the children that were started before
    /// it have begun. Its address accepts messages at once.
    ///
    /// Each incarnation begins with a clone of what is started. So a function with arguments is a
    /// closure with what can be cloned: `actor(move |cx| web(cx, db))`.
    ///
    /// A child counts as begun when its first poll has returned. So a [`Detached`](crate::Detached)
    /// child that blocks there delays the children after it. If the supervisor is killed while this
    /// starts the child, the child is killed, too.
    ///
    /// # Errors
    /// [`StartError`] with the actor: if the supervisor stops or has ended, or for a reason that
    /// [`try_spawn`](ActorBuilder::try_spawn) has.
    #[track_caller]
    pub fn start<M, A, Fut, On>(
        &self,
        child: ActorBuilder<M, A, Fut, On>,
    ) -> Result<Address<M>, StartError<A>>
    where
        M: Send + 'static,
        A: Clone + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
        On: SpawnTarget<Fut>,
    {
        let Some(start) = self.begin_start() else {
            return Err(StartError::Stopping(child.into_actor()));
        };
        // A child reports from its first turn on, which may come before it is added below.
        let (tree, number) = (Arc::downgrade(&self.tree), start.number);
        let bond = Bond::new(move |report| {
            if let Some(tree) = tree.upgrade() {
                tree.take_report(number, report);
            }
        });
        let child = child.supervised(bond.clone());
        let spawned_at = Location::caller();
        match self.tree.at_place(|| child.try_spawn_sent(spawned_at)) {
            Ok(handle) => {
                let address = handle.address();
                start.add(ActorChild::new(handle, bond));
                Ok(address)
            }
            Err(error) => {
                let problem = error.problem();
                let error = SpawnError::new(error.into_inner().into_inner(), problem);
                Err(StartError::Spawn(error))
            }
        }
    }

    /// Spawns another supervisor as the youngest child.
    ///
    /// When it gives up, this supervisor restarts it, as any child that failed. Children can be
    /// started in it at once. They begin after the children that were started here before have
    /// begun.
    ///
    /// # Errors
    /// [`StartError`] with the builder: if this supervisor stops or has ended, or as for
    /// [`SupervisorBuilder::spawn`].
    ///
    /// ```
    /// use greenroom::supervise::{StartError, Supervisor, SupervisorBuilder};
    ///
    /// greenroom::run(async {
    ///     let tree = Supervisor::builder().name("all").spawn()?;
    ///     let storage = tree.supervisor(Supervisor::builder().name("storage"))?;
    ///     tree.stop();
    ///     storage.join().await.unwrap(); // it ended with the tree
    ///     Ok::<(), StartError<SupervisorBuilder>>(())
    /// })
    /// .unwrap();
    /// ```
    #[track_caller]
    pub fn supervisor(
        &self,
        child: SupervisorBuilder,
    ) -> Result<Supervisor, StartError<SupervisorBuilder>> {
        let Some(start) = self.begin_start() else {
            return Err(StartError::Stopping(child));
        };
        let parent = (Arc::downgrade(&self.tree), start.number);
        let spawned_at = Location::caller();
        let spawn = || child.spawn_in(Tree::new(Some(parent)), spawned_at);
        let child = self.tree.at_place(spawn)?;
        start.add(Arc::new(child.clone()));
        Ok(child)
    }

    /// Begins to start a child, if the supervisor does not stop.
    fn begin_start(&self) -> Option<ChildStart<'_>> {
        (!self.address.is_closed()).then(|| self.tree.begin_start())?
    }

    /// Restarts a child by hand, at once, and no other child.
    ///
    /// The incarnation is dropped at its next suspension. The asker of a message in its hands gets
    /// [`AskCause::Restarted`](crate::AskCause::Restarted). This counts against no intensity. A
    /// child that backs off for itself begins at once. A child that was stopped, or that is restarted
    /// together with others, is left to that.
    ///
    /// # Errors
    /// [`NotAChild`] if the actor is not a child of this supervisor, or has ended.
    pub fn restart<M: Send + 'static>(&self, child: &Address<M>) -> Result<(), NotAChild> {
        self.push(child, TreeEvent::Restart)
    }

    /// Stops a child, which is killed if it has not ended after the
    /// [`grace`](SupervisorBuilder::grace).
    ///
    /// A child that backs off begins at once, to handle what it has accepted. One that waits for
    /// others begins in its turn.
    ///
    /// # Errors
    /// [`NotAChild`] if the actor is not a child of this supervisor, or has ended.
    pub fn stop_child<M: Send + 'static>(&self, child: &Address<M>) -> Result<(), NotAChild> {
        self.push(child, TreeEvent::StopChild)
    }

    /// Adds an event for a child.
    fn push<M: Send + 'static>(
        &self,
        child: &Address<M>,
        event: fn(u64) -> TreeEvent,
    ) -> Result<(), NotAChild> {
        let Some(number) = self.tree.number_of(child.id()) else {
            return Err(NotAChild {
                actor: child.info(),
                supervisor: self.tree.info().clone(),
            });
        };
        self.tree.push(event(number));
        Ok(())
    }

    /// Returns the children that have not ended, in the order of their start.
    ///
    /// This copies their names and the texts of their faults.
    pub fn children(&self) -> Vec<ChildStatus> {
        self.tree.list()
    }

    /// Stops the tree: the youngest child first, each after the one before has ended. This returns at
    /// once, and [`join`](Supervisor::join) waits.
    ///
    /// Each child first handles the messages that it has accepted. So children that wait begin
    /// before, in order and without a back-off. A child that has not ended after the
    /// [`grace`](SupervisorBuilder::grace) is killed. From now on no child is started.
    ///
    /// A supervisor that waits for the one above it stops when that one lets it run.
    ///
    /// A [shutdown](crate::Runtime::shutdown) of the runtime asks all actors to stop at the same
    /// time, in no order. For an order, stop the tree and [`join`](Supervisor::join) it before.
    pub fn stop(&self) {
        self.address.stop();
    }

    /// Stops the tree at once: the youngest child first, each after the one before has ended.
    ///
    /// Each child ends [after the message in hand](Address::stop_now), and is killed if that takes
    /// longer than the [`grace`](SupervisorBuilder::grace). Until its turn comes, a child goes on:
    /// younger ones may need it for what they have in hand. A child that waits for its start or
    /// restart is killed. From now on no child is started.
    ///
    /// After a [`stop`](Supervisor::stop) this applies to the children that are left.
    ///
    /// ```
    /// use greenroom::supervise::Supervisor;
    /// use greenroom::{Context, actor};
    ///
    /// async fn deaf(mut cx: Context<std::convert::Infallible>) {
    ///     cx.recv().await;
    /// }
    ///
    /// greenroom::run(async {
    ///     let tree = Supervisor::builder().spawn().unwrap();
    ///     let deaf = tree.start(actor(deaf)).unwrap();
    ///     tree.stop_now();
    ///     tree.join().await.unwrap();
    ///     deaf.closed().await;
    /// });
    /// ```
    #[doc(alias("cancel", "exit", "shutdown"))]
    pub fn stop_now(&self) {
        self.address.stop_now();
    }

    /// Waits until the supervisor has ended.
    ///
    /// # Errors
    /// [`Escalated`] if it gave up, with the child that failed too often. A supervisor that did not
    /// give up returns no error, even if it was killed or dropped by a shutdown.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    pub async fn join(&self) -> Result<(), Escalated> {
        self.address.ended().await;
        let Some(escalated) = self.tree.escalated() else {
            return Ok(());
        };
        self.tree.take_faults();
        Err(escalated)
    }
}

impl ErasedChild for Supervisor {
    fn info(&self) -> TaskInfo {
        self.tree.info().clone()
    }

    fn order(&self, order: BondOrder) {
        self.tree.push(TreeEvent::BondOrder(order));
    }

    fn stop(&self) {
        self.address.stop();
    }

    fn stop_now(&self) {
        self.address.stop_now();
    }

    fn kill(&self) {
        self.address.kill();
    }

    fn ended(&self, number: u64) -> BoxFuture<'static, u64> {
        ended(&self.address, number)
    }

    fn take_fault(&self) {
        self.tree.take_faults();
    }

    fn faulted(self: Arc<Self>) -> Vec<Arc<dyn ErasedChild>> {
        self.tree.faulted()
    }

    fn has_grace(&self) -> bool {
        false
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Supervisor").field(self.tree.info()).finish()
    }
}
