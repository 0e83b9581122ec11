//! A group of actors that receive messages of one type, found by its name.
//!
//! An actor is a member from `join` until it leaves or ends. A message for the group goes to those
//! that are members at the time of the call.

use std::any::type_name;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;

use super::error::JoinError;
use super::member::{RegisteredActor, observe, removal, with_runtime};
use crate::actor::Address;
use crate::directory::{Directory, GroupEntry, NamedActor};
use crate::error::SpawnProblem;
use crate::runtime::{Inner, Runtime};
use crate::task::Unordered;

/// A group of actors that receive messages of type `M`, found by its name.
///
/// A group can serve as a topic: subscribers join, and publishers broadcast. It can also share
/// work among equal actors, with [`next`](Group::next).
///
/// A group whose members receive another type than `M` has no members for this `Group`.
///
/// ```
/// use greenroom::registry::Group;
/// use greenroom::{Context, spawn};
///
/// const NEWS: Group<&str> = Group::new("news");
///
/// async fn reader(mut cx: Context<&'static str>) -> Option<&'static str> {
///     NEWS.join(&cx.address()).unwrap();
///     cx.recv().await
/// }
///
/// greenroom::run(async {
///     let readers = [spawn!(reader(_)), spawn!(reader(_))];
///     while NEWS.members().len() < 2 {
///         greenroom::yield_now().await;
///     }
///     assert_eq!(NEWS.broadcast("rain").sent, 2);
///     for reader in readers {
///         assert_eq!(reader.join().await.unwrap(), Some("rain"));
///     }
/// });
/// ```
pub struct Group<M> {
    name: Cow<'static, str>,
    on: Option<Arc<Inner>>,
    _messages: PhantomData<fn(M)>,
}

/// What became of a message to each member of a [`Group`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broadcast {
    /// The number of members that have accepted it.
    pub sent: usize,
    /// The number of members whose mailboxes had no room.
    pub full: usize,
    /// The number of members that have closed and not ended yet.
    pub closed: usize,
}

impl<M> Group<M> {
    /// Creates the name of a group, for instance for a constant.
    pub const fn new(name: &'static str) -> Self {
        Group {
            name: Cow::Borrowed(name),
            on: None,
            _messages: PhantomData,
        }
    }

    /// Creates the name of a group at run time.
    pub fn owned(name: impl Into<String>) -> Self {
        Group {
            name: Cow::Owned(name.into()),
            on: None,
            _messages: PhantomData,
        }
    }

    /// Returns the name of the group.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns the same group on this runtime, whichever is current.
    ///
    /// It does not keep the runtime alive.
    pub fn on(&self, runtime: &Runtime) -> Self {
        Group {
            on: Some(runtime.inner().clone()),
            ..self.clone()
        }
    }

    /// Calls `f` with the groups of the runtime, if it ever had any.
    ///
    /// # Panics
    /// If no runtime is current and none was set.
    #[track_caller]
    fn with<R>(&self, f: impl FnOnce(&Directory) -> Option<R>) -> Option<R> {
        let on_runtime = |runtime: &Arc<Inner>| f(runtime.directory()?);
        match with_runtime(self.on.as_ref(), on_runtime) {
            Some(result) => result,
            None => panic!("{}", SpawnProblem::NoRuntime),
        }
    }

    /// Returns the members, if there are any.
    fn look(&self, directory: &Directory) -> Option<Arc<BTreeMap<u64, Arc<dyn NamedActor>>>> {
        let members = |entry: Option<&GroupEntry>| Some(entry?.members.clone());
        directory.groups.look(&self.name, members)?
    }

    /// Applies the pending effects of the members, in a simulation.
    fn observe(&self, directory: &Directory) {
        observe(|| {
            let members = self.look(directory).unwrap_or_default();
            members.keys().copied().collect::<Vec<_>>()
        });
    }

    /// Returns the members.
    ///
    /// # Panics
    /// As `with`.
    #[track_caller]
    fn all(&self) -> Arc<BTreeMap<u64, Arc<dyn NamedActor>>> {
        let members = self.with(|directory| {
            self.observe(directory);
            self.look(directory)
        });
        members.unwrap_or_default()
    }
}

impl<M: Send + 'static> Group<M> {
    /// Makes the actor a member, until it [leaves](Group::leave) or ends.
    ///
    /// An actor is a member once: if it is one already, this address replaces the earlier
    /// one. An actor may be in several groups.
    ///
    /// # Errors
    /// - [`JoinError::WrongType`] if the members receive messages of another type.
    /// - [`JoinError::Closed`] if the actor has closed.
    /// - [`JoinError::NoRuntime`] if no runtime is current, and none was set with
    ///   [`on`](Group::on), or if it has shut down.
    pub fn join(&self, actor: &Address<M>) -> Result<(), JoinError> {
        let joined = with_runtime(self.on.as_ref(), |runtime| self.join_on(runtime, actor));
        joined.unwrap_or(Err(JoinError::NoRuntime))
    }

    fn join_on(&self, runtime: &Arc<Inner>, actor: &Address<M>) -> Result<(), JoinError> {
        if !actor.is_here() || actor.is_closed() {
            return Err(JoinError::Closed);
        }
        let directory = runtime.directory_made();
        self.observe(directory);
        let removal = removal(runtime, remove, &self.name, actor);
        let member: Arc<dyn NamedActor> = Arc::new(RegisteredActor::new(actor, &removal));
        let replaced = directory.groups.change(&self.name, |entry| {
            if member.has_ended() {
                return Err(JoinError::Closed);
            }
            let mut others = entry.members.values().filter(|other| !other.has_ended());
            // All that live have the same type.
            if let Some(other) = others
                .next()
                .filter(|other| other.of::<RegisteredActor<M>>().is_none())
            {
                return Err(JoinError::WrongType {
                    name: self.name.clone(),
                    registered: other.message_type(),
                    asked: type_name::<M>(),
                });
            }
            Ok(Arc::make_mut(&mut entry.members).insert(member.id(), member.clone()))
        });
        replaced.unwrap_or(Err(JoinError::NoRuntime)).map(drop)
    }

    /// Ends the membership of the actor. Returns whether it was a member.
    ///
    /// # Panics
    /// If no runtime is current and none was set with [`on`](Group::on).
    #[track_caller]
    pub fn leave(&self, actor: &Address<M>) -> bool {
        let left = self.with(|directory| {
            self.observe(directory);
            directory.groups.change(&self.name, |entry| {
                let is_member = entry
                    .members
                    .get(&actor.id())?
                    .of::<RegisteredActor<M>>()
                    .is_some();
                is_member.then(|| Arc::make_mut(&mut entry.members).remove(&actor.id()))?
            })?
        });
        left.is_some_and(|member| !member.has_ended())
    }

    /// Returns the addresses of the members that are open, in the order of their
    /// [ids](Address::id).
    ///
    /// # Panics
    /// If no runtime is current and none was set with [`on`](Group::on).
    #[track_caller]
    pub fn members(&self) -> Vec<Address<M>> {
        let members = self.all();
        let members = members
            .values()
            .filter_map(|member| member.of::<RegisteredActor<M>>());
        members.filter_map(|it| it.address.upgrade_now()).collect()
    }

    /// Returns the next member that is open: each in turn, in the order of their
    /// [ids](Address::id).
    ///
    /// All callers share one turn.
    ///
    /// # Panics
    /// If no runtime is current and none was set with [`on`](Group::on).
    #[track_caller]
    pub fn next(&self) -> Option<Address<M>> {
        self.with(|directory| {
            self.observe(directory);
            directory.groups.change(&self.name, |entry| {
                let (last, members) = (entry.last, &entry.members);
                let later = members.range(last + 1..).chain(members.range(..=last));
                let open = |member: &Arc<dyn NamedActor>| {
                    member.of::<RegisteredActor<M>>()?.address.upgrade_now()
                };
                let (id, next) = later.filter_map(|(&id, it)| Some((id, open(it)?))).next()?;
                entry.last = id;
                Some(next)
            })?
        })
    }

    /// Tells each member the message, as [`Address::tell`] does. Never waits.
    ///
    /// Messages of one caller reach a member in the order of the calls. A member whose mailbox is
    /// full misses the message.
    ///
    /// # Panics
    /// If no runtime is current and none was set with [`on`](Group::on). A panic of `clone` is
    /// passed on; some members have the message then.
    #[track_caller]
    pub fn broadcast(&self, message: M) -> Broadcast
    where
        M: Clone,
    {
        let mut result = Broadcast::default();
        tell_all(&self.all(), message, &mut result, |result, _, _| {
            result.full += 1;
        });
        result
    }

    /// Ends each member after its message in hand, as [`Address::stop_now`] does.
    ///
    /// # Panics
    /// If no runtime is current and none was set with [`on`](Group::on).
    ///
    /// ```
    /// use greenroom::registry::Group;
    /// use greenroom::{Context, spawn};
    ///
    /// const CRAWLERS: Group<String> = Group::new("crawlers");
    ///
    /// async fn crawl(mut cx: Context<String>) {
    ///     while let Some(_page) = cx.recv().await {}
    /// }
    ///
    /// greenroom::run(async {
    ///     let crawl = spawn!(crawl(_));
    ///     CRAWLERS.join(&crawl).unwrap();
    ///     CRAWLERS.stop_now();
    ///     assert!(crawl.tell("a page".into()).is_err());
    ///     crawl.join().await.unwrap();
    /// });
    /// ```
    #[doc(alias("cancel", "exit", "shutdown"))]
    #[track_caller]
    pub fn stop_now(&self) {
        let members = self.all();
        let members = members.values().filter(|member| !member.has_ended());
        for member in members.filter_map(|member| member.of::<RegisteredActor<M>>()) {
            member.address.stop_now();
        }
    }

    /// Sends each member the message, and waits for room where a mailbox is full, as
    /// [`Address::send`] does.
    ///
    /// The future borrows nothing. The message goes to those that are members at its first poll. It
    /// waits for all of them at the same time, so a slow member delays the result and no other
    /// member. The only `full` ones are those whose [`overflow`](crate::ActorBuilder::overflow)
    /// lets no sender wait. A member that waits for this waits for itself if its own mailbox is
    /// full.
    ///
    /// # Panics
    /// As [`broadcast`](Group::broadcast), when it is first polled.
    ///
    /// # Cancel safety
    /// Dropping the future drops the messages that wait for room. All other members have the
    /// message.
    pub fn send_all(&self, message: M) -> impl Future<Output = Broadcast> + use<M>
    where
        M: Clone,
    {
        let group = self.clone();
        async move {
            let (mut result, members) = (Broadcast::default(), group.all());
            let mut waiting = Unordered::new();
            tell_all(&members, message, &mut result, |_, member, message| {
                waiting.push(member.address.send(message));
            });
            while let Some(sent) = poll_fn(|cx| waiting.poll_next(cx)).await {
                match sent {
                    Ok(()) => result.sent += 1,
                    Err(error) if error.is_full() => result.full += 1,
                    Err(_closed) => result.closed += 1,
                }
            }
            result
        }
    }
}

/// Tells each member the message, and calls `full` with the ones that have no room.
fn tell_all<'a, M: Clone + Send + 'static>(
    members: &'a BTreeMap<u64, Arc<dyn NamedActor>>,
    message: M,
    result: &mut Broadcast,
    mut full: impl FnMut(&mut Broadcast, &'a RegisteredActor<M>, M),
) {
    let members = members.values().filter(|member| !member.has_ended());
    let mut members = members
        .filter_map(|member| member.of::<RegisteredActor<M>>())
        .peekable();
    let mut message = Some(message);
    while let Some(member) = members.next() {
        // The last one gets the message itself.
        let copy = match members.peek() {
            Some(_) => message.clone(),
            None => message.take(),
        };
        match member.address.tell(copy.expect("taken by the last one")) {
            Ok(()) => result.sent += 1,
            Err(error) if error.is_full() => full(result, member, error.into_inner()),
            Err(_closed) => result.closed += 1,
        }
    }
}

/// Ends the membership of an actor that has ended.
fn remove(directory: &Directory, name: &str, actor: u64) {
    drop(directory.groups.change(name, |entry| {
        Arc::make_mut(&mut entry.members).remove(&actor)
    }));
}

impl<M> Clone for Group<M> {
    fn clone(&self) -> Self {
        Group {
            name: self.name.clone(),
            on: self.on.clone(),
            _messages: PhantomData,
        }
    }
}

impl<M> fmt::Debug for Group<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.name).finish()
    }
}
