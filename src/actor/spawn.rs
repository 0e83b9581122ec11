//! Spawning an actor: the builder, with the actor's options.
#![expect(
    unsafe_code,
    reason = "a new cell's address and result are handed to its handle; see CELL-2 in cell.rs"
)]

mod inherit;
mod overflow;
mod target;
#[cfg(feature = "tokio")]
mod tokio;
mod urgent;

use std::fmt::Debug;
use std::future::Future;
use std::panic::Location;

pub use target::{Current, Detached, SpawnFrom, SpawnTarget};

use self::target::sealed::ExecutorSource;
use super::cell::{self, CellParts};
use super::context::Context;
use super::core::ActorOptions;
use super::handle::Handle;
use crate::contain::contain;
use crate::error::{SpawnError, SpawnProblem};
use crate::info::TypeNames;
use crate::mailbox::{AnyBond, HookOptions, Hooks, LabelFn, MailboxOptions};
use crate::sync::Mutex;

/// A builder for an actor: the function, closure or value, and the actor's options.
///
/// [`spawn!`](crate::spawn!) is a short form of this builder.
///
/// ```
/// use greenroom::Context;
///
/// async fn echo(mut cx: Context<String>) -> usize {
///     let mut count = 0;
///     while let Some(text) = cx.recv().await {
///         println!("{text}");
///         count += 1;
///     }
///     count
/// }
///
/// greenroom::run(async {
///     let echo = greenroom::actor(echo).name("echo").capacity(100).spawn();
///     echo.send("hello".into()).await.unwrap();
///     assert_eq!(echo.join().await.unwrap(), 1);
/// });
/// ```
#[must_use = "an actor does nothing until it is spawned"]
pub struct ActorBuilder<M, A, Fut, On = Current> {
    actor: A,
    begin: fn(A, Context<M>) -> Fut,
    options: Options<M>,
    on: On,
}

/// The options of a builder. What needs no more is compiled once for a message type.
struct Options<M> {
    name: Option<Box<str>>,
    capacity: Option<usize>,
    priority: u8,
    label: Option<LabelFn<M>>,
    /// Whether the actor is restarted, and with possible rules.
    restarts: Option<Result<(), SpawnProblem>>,
    hooks: Option<Box<HookOptions<M>>>,
}

/// Creates a builder for an actor.
///
/// The actor's first turn calls `actor` with the [`Context`], on the thread that runs that turn.
/// The actor then runs the returned future.
pub fn actor<M, F, Fut>(actor: F) -> ActorBuilder<M, F, Fut>
where
    M: Send + 'static,
    F: FnOnce(Context<M>) -> Fut,
    Fut: Future,
{
    ActorBuilder::new(actor, |actor, cx| actor(cx))
}

impl<M, A, Fut> ActorBuilder<M, A, Fut> {
    pub(crate) fn new(actor: A, begin: fn(A, Context<M>) -> Fut) -> Self {
        ActorBuilder {
            actor,
            begin,
            options: Options {
                name: None,
                capacity: None,
                priority: 0,
                label: None,
                restarts: None,
                hooks: None,
            },
            on: Current,
        }
    }
}

impl<M, A, Fut, On> ActorBuilder<M, A, Fut, On> {
    /// Sets a diagnostic name: any text, which need not be unique. By default there is none.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = Some(name.into().into());
        self
    }

    /// Sets the capacity of the mailbox, in messages: at least 1. By default the mailbox is
    /// unbounded. Nothing is allocated in advance.
    pub fn capacity(mut self, messages: usize) -> Self {
        self.options.capacity = Some(messages);
        self
    }

    /// Sets the priority: from 0, the lowest and the default, up to the runtime's
    /// [`priorities`](crate::Builder::priorities).
    ///
    /// Its meaning depends on the scheduling [policy](crate::policy); the default policy ignores
    /// it.
    pub fn priority(mut self, level: u8) -> Self {
        self.options.priority = level;
        self
    }

    /// Shows the actor's messages in the [traces of simulations](crate::sim), using their `Debug`
    /// output.
    ///
    /// Each message is cut after 200 characters. By default a trace shows the names of the message
    /// types. Outside simulations this has no effect.
    ///
    /// ```
    /// use greenroom::{Context, policy::Simulated, spawn};
    ///
    /// #[derive(Debug)]
    /// struct Increment(u32);
    ///
    /// async fn sum(mut cx: Context<Increment>) {
    ///     let mut sum = 0;
    ///     while let Some(Increment(number)) = cx.recv().await {
    ///         sum += number;
    ///         assert!(sum < 3);
    ///     }
    /// }
    ///
    /// let run = Simulated::new(1).whole_turns().try_run(async {
    ///     let sum = spawn!(sum(_), name = "sum", show);
    ///     sum.tell(Increment(3)).unwrap();
    ///     sum.join().await.unwrap();
    /// });
    /// let failure = run.unwrap_err();
    /// let sent = r#"main: spawns "sum" #1, sends #1 Increment(3) to "sum" #1"#;
    /// assert!(failure.trace().contains(sent));
    /// ```
    pub fn show(mut self) -> Self
    where
        M: Debug,
    {
        self.hooks_made().show = Some(|message| format!("{message:?}"));
        self
    }

    /// Sets a function that names each message in [traces](crate::trace), and in the traces of
    /// [simulations](crate::sim) unless they [show](ActorBuilder::show) it. An empty name stands
    /// for that of the message's type, without its path.
    ///
    /// By default that is the name, but for a value that implements [`Actor`](crate::Actor): its
    /// [`label`](crate::Actor::label) names the messages. Without a tracer or a simulation, a label
    /// costs nothing.
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    ///
    /// enum Order {
    ///     Tea,
    ///     Cake(u32),
    /// }
    ///
    /// impl Order {
    ///     fn label(&self) -> &'static str {
    ///         match self {
    ///             Order::Tea => "Tea",
    ///             Order::Cake(_) => "Cake",
    ///         }
    ///     }
    /// }
    ///
    /// async fn waiter(mut cx: Context<Order>) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// greenroom::run(async {
    ///     let waiter = spawn!(waiter(_), label = Order::label);
    ///     waiter.tell(Order::Tea).unwrap(); // traced as "Sent Tea to .."
    ///     waiter.tell(Order::Cake(2)).unwrap();
    ///     waiter.join().await.unwrap();
    /// });
    /// ```
    pub fn label(mut self, label: fn(&M) -> &'static str) -> Self {
        self.options.label = Some(label);
        self
    }

    /// Gives no [warning](crate::Warning) of the [long turns](crate::Builder::long_turns) of this
    /// actor. By default a warning names it once.
    ///
    /// A warning of [held workers](crate::Warning::WorkersHeld) still lists the actor, if another
    /// one is the reason for it.
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    ///
    /// async fn sum(mut cx: Context<u64>) -> u64 {
    ///     let to = cx.recv().await.unwrap_or(0);
    ///     (0..=to).sum() // one turn, however long it takes
    /// }
    ///
    /// greenroom::run(async {
    ///     let sum = spawn!(sum(_), allow_long_turns);
    ///     sum.tell(1_000_000).unwrap();
    ///     assert_eq!(sum.join().await.unwrap(), 500_000_500_000);
    /// });
    /// ```
    pub fn allow_long_turns(mut self) -> Self {
        self.hooks_made().has_long_turns = true;
        self
    }

    /// Sets a function for the messages that were accepted and never handled.
    ///
    /// It is called once with each such message, in the order in which the mailbox accepted them,
    /// [urgent](ActorBuilder::urgent) ones first. The calls come after the actor's state was
    /// dropped and before the actor counts as ended. That is so for a return, a panic, a
    /// [`kill`](crate::Address::kill) and a shutdown, whose grace period includes the calls. By
    /// default such messages are dropped.
    ///
    /// If the [`Context`] was moved out of the actor, the calls come when it is dropped, perhaps
    /// after the end.
    ///
    /// The function is called on the thread that ends the actor, or that drops the context. A
    /// message for a [`Permit`](crate::Permit) may come later: it is passed on by the thread that
    /// sends it. The function must not wait for the actor's end. It is dropped when no message can
    /// follow.
    ///
    /// A panic of the function is reported to [`on_fault`](crate::Builder::on_fault), and the next
    /// message is passed on.
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    /// use std::sync::mpsc;
    ///
    /// async fn first(mut cx: Context<u32>) -> Option<u32> {
    ///     for number in 1..=3 {
    ///         cx.address().tell(number).unwrap();
    ///     }
    ///     cx.recv().await
    /// }
    ///
    /// greenroom::run(async {
    ///     let (lost, undelivered) = mpsc::channel();
    ///     let first = spawn!(first(_), on_undelivered = move |number| lost.send(number).unwrap());
    ///     assert_eq!(first.join().await.unwrap(), Some(1));
    ///     assert_eq!(undelivered.iter().collect::<Vec<_>>(), [2, 3]);
    /// });
    /// ```
    pub fn on_undelivered(mut self, function: impl FnMut(M) + Send + 'static) -> Self {
        self.hooks_made().on_undelivered = Some(Mutex::new(Box::new(function)));
        self
    }

    fn hooks_made(&mut self) -> &mut HookOptions<M> {
        self.options.hooks.get_or_insert_default()
    }

    /// Sets the place where the actor runs. The default is the current runtime.
    ///
    /// A place is a [`Runtime`](crate::Runtime), a [`Pinned`](crate::Pinned) thread, a
    /// [`Stage`](crate::Stage), or a dedicated thread ([`Detached`]). On all but a runtime the actor's
    /// future need not be `Send`. Its result is `Send` everywhere, since `join` may be elsewhere: a
    /// boxed error is a `Box<dyn Error + Send + Sync>`. On the stage of the calling thread, the
    /// arguments need not be `Send` either:
    ///
    /// ```
    /// use greenroom::{Context, Pinned, spawn};
    /// use std::cell::Cell;
    /// use std::rc::Rc;
    ///
    /// async fn add(mut cx: Context<u32>, sum: Rc<Cell<u32>>) {
    ///     while let Some(number) = cx.recv().await {
    ///         sum.set(sum.get() + number);
    ///     }
    /// }
    ///
    /// let stage = Pinned::here();
    /// let sum = Rc::new(Cell::new(40));
    /// let add = spawn!(add(_, sum.clone()), on = &stage);
    /// add.tell(2).unwrap();
    /// stage.block_on(add.join()).unwrap();
    /// assert_eq!(sum.get(), 42);
    /// ```
    ///
    /// With the feature `tokio`, a `tokio::runtime::Handle` is a place for futures that are `Send`,
    /// too. See [beside tokio](crate::docs::with_tokio).
    pub fn on<Target>(self, target: Target) -> ActorBuilder<M, A, Fut, Target> {
        ActorBuilder {
            actor: self.actor,
            begin: self.begin,
            options: self.options,
            on: target,
        }
    }

    /// Wraps what is spawned, so that it is restarted.
    pub(super) fn rebuild<Whole, Outer>(
        mut self,
        judged: Result<(), SpawnProblem>,
        begin: fn(Whole, Context<M>) -> Outer,
        wrap: impl FnOnce(A, fn(A, Context<M>) -> Fut) -> Whole,
    ) -> ActorBuilder<M, Whole, Outer, On> {
        let earlier = self.options.restarts.unwrap_or(Ok(()));
        self.options.restarts = Some(earlier.and(judged));
        ActorBuilder {
            actor: wrap(self.actor, self.begin),
            begin,
            options: self.options,
            on: self.on,
        }
    }

    /// Returns whether [`rebuild`](ActorBuilder::rebuild) was called.
    pub(super) fn is_restarted(&self) -> bool {
        self.options.restarts.is_some()
    }

    pub(super) fn set_bond(&mut self, bond: AnyBond) {
        self.hooks_made().bond = Some(bond);
    }

    /// Returns the function, closure or value that was to be spawned.
    pub(crate) fn into_actor(self) -> A {
        self.actor
    }

    /// Spawns the actor.
    ///
    /// If the runtime or pinned thread is shutting down or has ended, the actor does not start. The
    /// returned handle is then closed, and joins with
    /// [`Fault::NotStarted`](crate::Fault::NotStarted).
    ///
    /// # Panics
    /// - If no runtime is current and none was set with [`on`](ActorBuilder::on).
    /// - If an option is out of range.
    /// - If the thread of a [`Detached`] actor does not start.
    #[track_caller]
    pub fn spawn(self) -> Handle<M, Fut::Output>
    where
        M: Send + 'static,
        A: 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static, // on any place, since `join` may be elsewhere
        On: SpawnTarget<Fut> + SpawnFrom<A>,
    {
        let (executor, _kept) = match self.check() {
            Ok(executor) => executor,
            Err(problem) => panic!(
                "{}",
                self.options.describe(problem, TypeNames::of::<Fut, A>)
            ),
        };
        let options = self.options.for_cell();
        let parts = (self.actor, self.begin);
        let (core, refused) = cell::new(executor, parts, options, Location::caller());
        // SAFETY: (CELL-2) a new cell comes with one address and the right to join.
        let handle = unsafe { Handle::new(core) };
        if let Some(actor) = refused {
            On::drop_refused(actor);
        }
        handle
    }

    /// Spawns the actor, or returns it in the error.
    ///
    /// # Errors
    /// [`SpawnError`] with the function, closure or value. [`SpawnError::problem`] tells the
    /// reason:
    ///
    /// - No runtime is current, and none was set with [`on`](ActorBuilder::on).
    /// - The runtime or pinned thread is shutting down or has ended.
    /// - An option is out of range.
    /// - The thread of a [`Detached`] actor does not start.
    /// - The runtime belongs to the parent process of a `fork`.
    #[track_caller]
    pub fn try_spawn(self) -> Result<Handle<M, Fut::Output>, SpawnError<A>>
    where
        M: Send + 'static,
        A: 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static, // on any place, since `join` may be elsewhere
        On: SpawnTarget<Fut> + SpawnFrom<A>,
    {
        self.try_spawn_sent(Location::caller())
    }

    /// Does what [`try_spawn`](ActorBuilder::try_spawn) does. The caller knows that `A` is `Send`, or
    /// that it stays on this thread, and that the executor may run the future.
    pub(crate) fn try_spawn_sent(
        self,
        spawned_at: &'static Location<'static>,
    ) -> Result<Handle<M, Fut::Output>, SpawnError<A>>
    where
        M: Send + 'static,
        A: 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
        On: ExecutorSource,
    {
        let (executor, _kept) = match self.check() {
            Ok(executor) => executor,
            Err(problem) => {
                contain(|| drop(self.options));
                return Err(SpawnError::new(self.actor, problem));
            }
        };
        let options = self.options.for_cell();
        let (core, refused) = cell::new(executor, (self.actor, self.begin), options, spawned_at);
        // SAFETY: (CELL-2) a new cell comes with one address and the right to join.
        let handle = unsafe { Handle::new(core) };
        match refused {
            None => Ok(handle),
            Some(actor) => Err(SpawnError::new(actor, SpawnProblem::ShutDown)),
        }
    }

    fn check(&self) -> Result<(On::Executor, On::Kept), SpawnProblem>
    where
        On: ExecutorSource,
    {
        self.options.check()?;
        let Options { name, priority, .. } = &self.options;
        self.on.executor(name.as_deref(), *priority)
    }

    /// Takes apart an actor that needs no executor of a runtime.
    ///
    /// # Panics
    /// If an option is out of range.
    #[track_caller]
    pub(super) fn take_apart(self) -> (CellParts<M, A, Fut>, ActorOptions<M>) {
        if let Err(problem) = self.options.check() {
            panic!(
                "{}",
                self.options.describe(problem, TypeNames::of::<Fut, A>)
            );
        }
        ((self.actor, self.begin), self.options.for_cell())
    }
}

impl<M> Options<M> {
    fn check(&self) -> Result<(), SpawnProblem> {
        match (self.hooks.as_ref()).and_then(|hooks| hooks.problem(self.capacity)) {
            _ if self.capacity == Some(0) => Err(SpawnProblem::ZeroCapacity),
            Some(problem) => Err(problem),
            None => self.restarts.unwrap_or(Ok(())),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn for_cell(self) -> ActorOptions<M> {
        ActorOptions {
            mailbox: MailboxOptions {
                name: self.name,
                capacity: self.capacity,
                hooks: self.hooks.map(|options| Box::new(Hooks::new(*options))),
            },
            priority: self.priority,
            label: self.label,
        }
    }

    /// Returns the text of a panic. The actor has no number yet.
    #[cold]
    fn describe(&self, problem: SpawnProblem, types: fn() -> TypeNames) -> String {
        match &self.name {
            Some(name) => format!("cannot spawn {name:?}: {problem}"),
            None => format!("cannot spawn {}: {problem}", types().called()),
        }
    }
}

impl<M, A, Fut, On> std::fmt::Debug for ActorBuilder<M, A, Fut, On> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActorBuilder")
            .field("name", &self.options.name)
            .field("capacity", &self.options.capacity)
            .field("priority", &self.options.priority)
            .finish_non_exhaustive()
    }
}
