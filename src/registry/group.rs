//! A group of actors that receive messages of one type, found by its name.
//!
//! An actor is a member from `join` until it leaves or ends. A message for the group goes to those
//! that are members at the time of the call.

mod broadcast;
mod history;
mod joining;
mod watch;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

pub use broadcast::Broadcast;
pub use watch::{GroupWatch, Membership};

use super::member::{RegisteredActor, observe, with_runtime};
use crate::actor::Address;
use crate::directory::{Directory, GroupEntry, Members, NamedActor};
use crate::error::SpawnProblem;
use crate::runtime::{Inner, Runtime};

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
    #[must_use = "this group stays as it is"]
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
        self.on_runtime(|runtime| f(runtime.directory()?))
    }

    /// Calls `f` with the runtime.
    ///
    /// # Panics
    /// As `with`.
    #[track_caller]
    fn on_runtime<R>(&self, f: impl FnOnce(&Arc<Inner>) -> R) -> R {
        match with_runtime(self.on.as_ref(), f) {
            Some(result) => result,
            None => panic!("{}", SpawnProblem::NoRuntime),
        }
    }

    /// Returns the members, if there are any.
    fn look(&self, directory: &Directory) -> Option<Arc<Members>> {
        let members = |entry: Option<&GroupEntry>| Some(entry?.members().clone());
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
    fn all(&self) -> Arc<Members> {
        let members = self.with(|directory| {
            self.observe(directory);
            self.look(directory)
        });
        members.unwrap_or_default()
    }
}

impl<M: Send + 'static> Group<M> {
    /// Ends the membership of the actor. Returns whether it was a member.
    ///
    /// # Panics
    /// If no runtime is current and none was set with [`on`](Group::on).
    #[track_caller]
    pub fn leave(&self, actor: &Address<M>) -> bool {
        let left = self.with(|directory| {
            self.observe(directory);
            directory.groups.change_members(&self.name, |entry| {
                entry.members().get(&actor.id()).and_then(of::<M>)?;
                entry.remove(actor.id())
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
        let members = members.values().filter_map(of::<M>);
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
                let (last, members) = (entry.last, entry.members());
                let later = members.range(last + 1..).chain(members.range(..=last));
                let open = |member| of::<M>(member)?.address.upgrade_now();
                let (id, next) = later.filter_map(|(&id, it)| Some((id, open(it)?))).next()?;
                entry.last = id;
                Some(next)
            })?
        })
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
        for member in members.filter_map(of::<M>) {
            member.address.stop_now();
        }
    }
}

/// Returns the member if it receives messages of this type.
fn of<M: Send + 'static>(member: &Arc<dyn NamedActor>) -> Option<&RegisteredActor<M>> {
    member.of()
}

/// Ends the membership of an actor that has ended.
fn remove(directory: &Directory, name: &str, actor: u64) {
    drop(
        directory
            .groups
            .change_members(name, |entry| entry.remove(actor)),
    );
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
