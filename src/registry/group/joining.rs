//! How an actor becomes a member of a group: with a tag, and after the history.

use std::any::{Any, type_name};
use std::sync::Arc;

use super::super::error::JoinError;
use super::super::member::{RegisteredActor, removal, with_runtime};
use super::history::{history, tell_history};
use super::{Group, of, remove};
use crate::actor::Address;
use crate::directory::NamedActor;
use crate::runtime::Inner;

impl<M: Send + 'static> Group<M> {
    /// Makes the actor a member, until it [leaves](Group::leave) or ends.
    ///
    /// An actor is a member once: if it is one already, this address replaces the earlier
    /// one. An actor may be in several groups.
    ///
    /// If the group keeps messages for late members, this call tells them to the actor, as
    /// [`replay`](Group::replay) says.
    ///
    /// # Errors
    /// - [`JoinError::WrongType`] if the members receive messages of another type.
    /// - [`JoinError::Closed`] if the actor has closed.
    /// - [`JoinError::NoRuntime`] if no runtime is current, and none was set with
    ///   [`on`](Group::on), or if it has shut down.
    ///
    /// # Panics
    /// A panic of the `clone` of a kept message is passed on. The actor is a member then.
    pub fn join(&self, actor: &Address<M>) -> Result<(), JoinError> {
        self.join_with(actor, None)
    }

    /// Makes the actor a member, as [`join`](Group::join) does, with a tag.
    ///
    /// [`broadcast_to`](Group::broadcast_to) chooses members by their tags. A tag has any type that
    /// the group's users agree on. If the actor is a member already, this tag replaces the earlier
    /// one; `join` takes it away.
    ///
    /// # Errors
    /// As [`join`](Group::join).
    ///
    /// # Panics
    /// As [`join`](Group::join).
    ///
    /// ```
    /// use greenroom::registry::Group;
    /// use greenroom::{Context, spawn};
    ///
    /// const ROOM: Group<&str> = Group::new("room");
    ///
    /// async fn guest(mut cx: Context<&'static str>) -> Option<&'static str> {
    ///     cx.recv().await
    /// }
    ///
    /// greenroom::run(async {
    ///     let guest = spawn!(guest(_));
    ///     ROOM.join_tagged(&guest, 1_u32).unwrap(); // at this table
    ///     ROOM.join_tagged(&guest, 2_u32).unwrap(); // has changed its seat
    ///     let at = |table: u32| move |seat: &u32| *seat == table;
    ///     assert_eq!(ROOM.broadcast_to("soup", at(1)).sent, 0);
    ///     assert_eq!(ROOM.broadcast_to("cake", at(2)).sent, 1);
    ///     assert_eq!(guest.join().await.unwrap(), Some("cake"));
    /// });
    /// ```
    #[doc(alias("join_with", "metadata", "topic"))]
    pub fn join_tagged<T>(&self, actor: &Address<M>, tag: T) -> Result<(), JoinError>
    where
        T: Any + Send + Sync,
    {
        self.join_with(actor, Some(Box::new(tag)))
    }

    fn join_with(
        &self,
        actor: &Address<M>,
        tag: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<(), JoinError> {
        let joined = |runtime: &Arc<Inner>| self.join_on(runtime, actor, tag);
        with_runtime(self.on.as_ref(), joined).unwrap_or(Err(JoinError::NoRuntime))
    }

    fn join_on(
        &self,
        runtime: &Arc<Inner>,
        actor: &Address<M>,
        tag: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<(), JoinError> {
        if !actor.is_here() || actor.is_closed() {
            return Err(JoinError::Closed);
        }
        let directory = runtime.directory_made();
        self.observe(directory);
        let removal = removal(runtime, remove, &self.name, actor);
        let mut member = RegisteredActor::new(actor, &removal);
        member.tag = tag;
        let (mut member, id) = (Arc::new(member), actor.id());
        let joined = directory.groups.change_members(&self.name, |entry| {
            if member.has_ended() {
                return Err(JoinError::Closed);
            }
            let mut others = entry.members().values().filter(|other| !other.has_ended());
            // All that live have the same type.
            if let Some(other) = others.next().filter(|it| of::<M>(it).is_none()) {
                return Err(JoinError::WrongType {
                    name: self.name.clone(),
                    registered: other.message_type(),
                    asked: type_name::<M>(),
                });
            }
            // A member is not late. It may still be told the history, elsewhere.
            let (late, kept) = match entry.members().get(&id).and_then(of::<M>) {
                Some(before) => (before.late.clone(), Vec::new()),
                None => history(entry),
            };
            Arc::get_mut(&mut member).expect("no group has it").late = late;
            let member: Arc<dyn NamedActor> = member.clone();
            Ok((entry.insert(&member), kept))
        });
        let (replaced, kept) = joined.unwrap_or(Err(JoinError::NoRuntime))?;
        drop(replaced);
        if let Some(late) = member.late.as_ref().filter(|_| !kept.is_empty()) {
            tell_history(actor, kept, late);
        }
        Ok(())
    }
}
