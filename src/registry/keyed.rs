//! Actors that are found by keys, and started when they are needed.

mod builder;
mod calls;
mod core;
mod ends;
mod entering;
mod error;
mod idling;
mod labels;
mod starting;
mod state;
mod waits;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

pub use builder::KeyedBuilder;
pub use error::{KeyError, KeyedAskError, KeyedTellError};

use self::core::KeyedCore;
use self::entering::Entering;
use self::state::EndRequest;
use super::group::Broadcast;
use super::member::observe;
use crate::actor::{Address, Context, Reply};
use crate::contain::OnDrop;
use crate::waiters::Ticket;

/// A set of actors that receive messages of type `M`, one for each key of type `K`.
///
/// A message to a key reaches the actor of that key. If there is none, it is started, with the
/// function of the [`builder`](Keyed::builder). At most one actor of a key is open or ends at a time:
/// while one ends, calls wait for its end, and messages wait for the next one.
///
/// The set has an address of each actor, so an actor stays open until one of these:
///
/// - it ends by itself: it returns, panics, or was stopped or killed by its address;
/// - it was [idle](KeyedBuilder::idle), and nothing else keeps it open;
/// - it was stopped because of the [limit](KeyedBuilder::limit), or by [`remove`](Keyed::remove) or
///   [`stop`](Keyed::stop);
/// - the last handle of the set is dropped, and nothing else keeps it open.
///
/// A message that is accepted while its actor ends is kept for the next one, at most as many as its
/// mailbox has room for. If that one cannot be started, the messages are dropped. So are those that its
/// mailbox refuses then, with [`Overflow::Newest`](crate::Overflow::Newest), and those for which the
/// function of [`conflate`](crate::ActorBuilder::conflate) panics. That panic goes to
/// [`on_fault`](crate::Builder::on_fault).
///
/// A clone is the same set. `Hash`, `Clone` and drops of keys may panic, and may use the set. `Eq` of
/// keys may panic, but runs under a lock of the set, as does `Clone` in [`keys`](Keyed::keys). Calls
/// to the set would wait for themselves there. A panic of `Hash`, `Eq` or `Clone` is passed on to the
/// caller, and changes nothing. So is that of a drop, unless the call has accepted its message or ended
/// an actor: then it is contained.
///
/// In a child of `fork` all calls are refused, or panic.
///
/// ```
/// use greenroom::registry::Keyed;
/// use greenroom::{Context, Reply, actor};
/// use std::time::Duration;
///
/// enum Cart {
///     Add(&'static str),
///     Items(Reply<Vec<&'static str>>),
/// }
///
/// async fn cart(mut cx: Context<Cart>, user: u64) {
///     println!("user {user} begins to shop");
///     let mut items = Vec::new();
///     while let Some(message) = cx.recv().await {
///         match message {
///             Cart::Add(item) => items.push(item),
///             Cart::Items(reply) => reply.send(items.clone()),
///         }
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// greenroom::run(async {
///     let carts = Keyed::<u64, Cart>::builder(|user| actor(move |cx| cart(cx, user)))
///         .idle(Duration::from_secs(300))
///         .limit(100_000)
///         .build()?;
///     carts.tell(&7, Cart::Add("a rope"))?;
///     assert_eq!(carts.ask(&7, Cart::Items).await?, ["a rope"]);
///     assert!(carts.ask(&8, Cart::Items).await?.is_empty());
///     assert_eq!(carts.len(), 2);
///     Ok(())
/// })
/// # }
/// ```
pub struct Keyed<K: Send + 'static, M: Send + 'static>(Arc<KeyedOwner<K, M>>);

// User code runs in the middle of no change to it, so a panic leaves it consistent.
impl<K: Send + 'static, M: Send + 'static> UnwindSafe for Keyed<K, M> {}
impl<K: Send + 'static, M: Send + 'static> RefUnwindSafe for Keyed<K, M> {}

/// Is dropped with the last handle.
struct KeyedOwner<K: Send + 'static, M: Send + 'static> {
    core: Arc<KeyedCore<K, M>>,
    /// The entry of the set in the list of what ends with the runtime.
    ticket: Ticket,
}

/// Lets go those that wait, when the runtime shuts down.
struct EndWithRuntime<K, M>(Weak<KeyedCore<K, M>>);

impl<K: Send + 'static, M: Send + 'static> Wake for EndWithRuntime<K, M> {
    fn wake(self: Arc<Self>) {
        if let Some(core) = self.0.upgrade() {
            core.end_with_runtime();
        }
    }
}

impl<K: Send + 'static, M: Send + 'static> Drop for KeyedOwner<K, M> {
    fn drop(&mut self) {
        let core = &self.core;
        if !core.runtime.is_here() {
            return;
        }
        core.runtime.directory_made().forget_close(&mut self.ticket);
        for shard in 0..core.shards.len() {
            core.shards[shard].lock().is_left = true;
            while core.release(shard, u64::MAX) > 0 {}
        }
    }
}

impl<K: Send + 'static, M: Send + 'static> Keyed<K, M> {
    /// Creates a handle. Returns `None` if the runtime has shut down.
    fn of(core: Arc<KeyedCore<K, M>>) -> Option<Self> {
        let mut ticket = Ticket::default();
        let end = Waker::from(Arc::new(EndWithRuntime(Arc::downgrade(&core))));
        let directory = core.runtime.directory_made();
        let is_over = directory.wake_at_close(&mut ticket, &end);
        (!is_over).then(|| Keyed(Arc::new(KeyedOwner { core, ticket })))
    }

    /// Returns the number of keys whose actor is open or is being started, or for which messages
    /// wait.
    ///
    /// An actor that has closed by itself may be counted until it has ended.
    pub fn len(&self) -> usize {
        observe(|| None);
        self.0.core.len()
    }

    /// Returns whether [`len`](Keyed::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys that [`len`](Keyed::len) counts, in no order.
    pub fn keys(&self) -> Vec<K>
    where
        K: Clone,
    {
        observe(|| None);
        self.0.core.list()
    }

    /// Tells each open actor the message, as [`Address::tell`] does. Never waits.
    ///
    /// This is no use of an actor, which may be [idle](KeyedBuilder::idle) all the same. An actor that
    /// is being started misses the message.
    ///
    /// # Panics
    /// A panic of `clone`, or of the function of [`conflate`](crate::ActorBuilder::conflate), is passed
    /// on; some actors have the message then.
    pub fn broadcast(&self, message: M) -> Broadcast
    where
        M: Clone,
    {
        observe(|| None);
        let mut result = Broadcast::default();
        let mut addresses = self.0.core.addresses();
        let last = addresses.pop();
        let mut tell = |address: Address<M>, message| match address.tell(message) {
            Ok(()) => result.sent += 1,
            Err(full) if full.is_full() => result.full += 1,
            Err(_closed) => result.closed += 1,
        };
        for address in addresses {
            tell(address, message.clone());
        }
        if let Some(last) = last {
            tell(last, message);
        }
        result
    }

    /// Stops all actors, as [`Address::stop`] does, and starts no more.
    ///
    /// Each actor handles what it has accepted, and so does the next actor of a key for which messages
    /// wait. Later calls are refused with [`KeyError::Stopped`]. [`ended`](Keyed::ended) waits until
    /// all have ended.
    pub fn stop(&self) {
        observe(|| None);
        self.0.core.close(EndRequest::Stop);
    }

    /// Waits until the set has no actor, also none that ends, or until its runtime has shut down.
    ///
    /// ```
    /// use greenroom::registry::Keyed;
    /// use greenroom::{Context, actor};
    ///
    /// async fn room(mut cx: Context<String>, _name: String) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// greenroom::run(async {
    ///     let rooms = Keyed::builder(|name| actor(move |cx| room(cx, name))).build().unwrap();
    ///     rooms.tell(&"attic".to_owned(), "hello".to_owned()).unwrap();
    ///     rooms.stop();
    ///     rooms.ended().await;
    ///     assert!(rooms.is_empty());
    /// });
    /// ```
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses nothing.
    pub async fn ended(&self) {
        observe(|| None);
        let core = &self.0.core;
        core.emptied
            .until(|| core.is_empty() || core.is_over())
            .await;
    }

    /// Runs the set as an actor, for instance as a child of a
    /// [`Supervisor`](crate::supervise::Supervisor).
    ///
    /// When that actor is stopped, the set is [stopped](Keyed::stop), and the actor ends when the set
    /// has no actor any more. If it is killed, or dropped for a restart, so are the actors of the set.
    /// When it begins again, the set accepts messages again.
    ///
    /// ```
    /// use greenroom::registry::Keyed;
    /// use greenroom::supervise::Supervisor;
    /// use greenroom::{Context, actor};
    ///
    /// async fn room(mut cx: Context<&'static str>, name: &'static str) {
    ///     while let Some(text) = cx.recv().await {
    ///         println!("in {name}: {text}");
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let rooms = Keyed::builder(|name| actor(move |cx| room(cx, name))).build().unwrap();
    ///     let tree = Supervisor::builder().spawn().unwrap();
    ///     let set = rooms.clone();
    ///     tree.start(actor(move |cx| set.serve(cx)).name("rooms")).unwrap();
    ///     rooms.tell(&"attic", "hello").unwrap();
    ///     tree.stop();
    ///     tree.join().await.unwrap(); // the rooms have ended
    ///     assert!(rooms.tell(&"attic", "hello").is_err());
    /// });
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future kills the actors of the set, which refuses messages then.
    pub async fn serve(self, mut cx: Context<Infallible>) {
        let core = self.0.core.clone();
        core.reopen();
        // Also after the end, where no actor is left to be killed.
        let _killed = OnDrop(move || core.close(EndRequest::Kill));
        while cx.recv().await.is_some() {}
        self.stop();
        self.ended().await;
    }
}

impl<K, M> Keyed<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    /// Tells the actor of this key a message, without waiting. It is started if there is none.
    ///
    /// While an actor of the key is being started or ends, the message waits for the actor, or for the
    /// next one. So the messages of one caller are handled in the order of the calls.
    ///
    /// # Errors
    /// [`KeyedTellError`] with the message:
    ///
    /// - [full](KeyedTellError::is_full) if the mailbox is bounded and has no room, or if as many
    ///   messages wait for an actor as its mailbox has room for;
    /// - otherwise a [`KeyError`].
    ///
    /// # Panics
    /// A panic of `Hash`, `Eq`, `Clone` or a drop of the key is passed on. So is one of the function of
    /// [`conflate`](crate::ActorBuilder::conflate), if an actor is open or this call starts it. The
    /// message is dropped.
    #[inline]
    pub fn tell(&self, key: &K, message: M) -> Result<(), KeyedTellError<M>> {
        self.0.core.tell(key, message)
    }

    /// Asks the actor of this key, as [`Address::ask`] does. It is started if there is none.
    ///
    /// While an actor of the key is being started or ends, this waits for the next one. From the
    /// question to the answer it has an address of the actor, which the limit does not stop then.
    ///
    /// # Errors
    /// - [`KeyedAskError::Key`] if there is no actor.
    /// - [`KeyedAskError::Ask`] as [`Address::ask`]. It is
    ///   [`Closed`](crate::AskError::Closed) if the actor closes before it has accepted the question,
    ///   which can be asked again.
    ///
    /// # Panics
    /// As [`tell`](Keyed::tell), if `question` panics, or if it is polled again after completion.
    ///
    /// # Cancel safety
    /// As [`Address::ask`].
    pub async fn ask<T, F>(&self, key: &K, question: F) -> Result<T, KeyedAskError>
    where
        F: FnOnce(Reply<T>) -> M,
    {
        let actor = self.get_or_spawn(key).await?;
        Ok(actor.ask(question).await?)
    }

    /// Returns an address of the actor of this key, which is started if there is none.
    ///
    /// While an actor of the key is being started or ends, this waits for the next one. The address is
    /// that of the actor that is there now. It keeps that actor open, also against the limit. If the
    /// actor ends by itself, the address does not lead to the next one.
    ///
    /// # Errors
    /// [`KeyError`] if there is no actor and none was started, or if the caller is an actor that ends
    /// and would wait for its own end. Of two such actors that wait for each other, the last one gets
    /// the error at once, and the other one goes on. Waits with a timeout are not told from others.
    ///
    /// # Panics
    /// As [`tell`](Keyed::tell), or if it is polled again after completion.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses nothing. An actor that it has started stays.
    ///
    /// ```
    /// use greenroom::registry::Keyed;
    /// use greenroom::{Context, actor};
    ///
    /// async fn room(mut cx: Context<&'static str>, name: &'static str) {
    ///     while let Some(text) = cx.recv().await {
    ///         println!("in {name}: {text}");
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let rooms = Keyed::builder(|name| actor(move |cx| room(cx, name))).build().unwrap();
    ///     let attic = rooms.get_or_spawn(&"attic").await.unwrap();
    ///     attic.send("hello").await.unwrap();
    ///     assert_eq!(rooms.get_or_spawn(&"attic").await.unwrap(), attic);
    ///     rooms.remove(&"attic");
    ///     // The address does not lead to the next actor of the key.
    ///     assert!(attic.tell("hello").is_err());
    ///     assert_ne!(rooms.get_or_spawn(&"attic").await.unwrap(), attic);
    /// });
    /// ```
    pub fn get_or_spawn<'a>(
        &'a self,
        key: &'a K,
    ) -> impl Future<Output = Result<Address<M>, KeyError>> + use<'a, K, M> {
        Entering::new(&self.0.core, key)
    }

    /// Returns whether [`len`](Keyed::len) counts this key.
    ///
    /// # Panics
    /// As [`tell`](Keyed::tell).
    pub fn contains(&self, key: &K) -> bool {
        self.0.core.contains(key)
    }

    /// Stops the actor of this key, as [`Address::stop`] does. Returns whether one was open, or was
    /// being started.
    ///
    /// It handles what it has accepted. The next message to the key starts another one after its end.
    /// Only while the actor is being started, a message still goes to it.
    ///
    /// # Panics
    /// As [`tell`](Keyed::tell).
    pub fn remove(&self, key: &K) -> bool {
        self.0.core.remove(key)
    }
}

impl<K: Send + 'static, M: Send + 'static> Clone for Keyed<K, M> {
    fn clone(&self) -> Self {
        Keyed(self.0.clone())
    }
}

impl<K: Send + 'static, M: Send + 'static> fmt::Debug for Keyed<K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("len", &self.0.core.len())
            .finish_non_exhaustive()
    }
}
