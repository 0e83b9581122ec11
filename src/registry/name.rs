//! A name that at most one actor of a runtime has at a time.
//!
//! A name is taken from the registration until the actor has ended or was unregistered.

use std::any::type_name;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use super::error::{LookupError, RegisterError};
use super::member::{RegisteredActor, observe, removal, with_runtime};
use crate::actor::Address;
use crate::directory::{Directory, NameEntry, NamedActor};
use crate::runtime::{Inner, Runtime};

/// A name under which an actor that receives messages of type `M` can be found.
///
/// At most one actor of a runtime has the name at a time. See the [module](super) for when a name
/// is free, and for an example.
pub struct Name<M> {
    name: Cow<'static, str>,
    on: Option<Arc<Inner>>,
    _messages: PhantomData<fn(M)>,
}

impl<M> Name<M> {
    /// Creates a name, for instance for a constant.
    pub const fn new(name: &'static str) -> Self {
        Name {
            name: Cow::Borrowed(name),
            on: None,
            _messages: PhantomData,
        }
    }

    /// Creates a name that is made at run time.
    ///
    /// ```
    /// use greenroom::registry::Name;
    /// use greenroom::{Context, spawn};
    ///
    /// greenroom::run(async {
    ///     let rooms: Vec<_> = (1..=3)
    ///         .map(|number| {
    ///             let room = spawn!(|mut cx: Context<u32>| async move { cx.recv().await });
    ///             Name::owned(format!("room {number}")).register(&room).unwrap();
    ///             room
    ///         })
    ///         .collect();
    ///     assert_eq!(Name::<u32>::owned("room 2").get().unwrap(), *rooms[1]);
    /// });
    /// ```
    pub fn owned(name: impl Into<String>) -> Self {
        Name {
            name: Cow::Owned(name.into()),
            on: None,
            _messages: PhantomData,
        }
    }

    /// Returns the text of the name.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns the same name on this runtime, whichever is current.
    ///
    /// It does not keep the runtime alive.
    ///
    /// ```
    /// use greenroom::registry::{LookupError, Name};
    /// use greenroom::{Context, Runtime, actor};
    ///
    /// const ECHO: Name<u32> = Name::new("echo");
    ///
    /// let runtime = Runtime::new()?;
    /// let echo = actor(async |mut cx: Context<u32>| cx.recv().await).on(&runtime).spawn();
    /// ECHO.on(&runtime).register(&echo)?;
    ///
    /// assert_eq!(ECHO.on(&runtime).get()?, *echo);
    /// assert_eq!(ECHO.get(), Err(LookupError::NoRuntime)); // none is current here
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "this name stays as it is"]
    pub fn on(&self, runtime: &Runtime) -> Self {
        Name {
            on: Some(runtime.inner().clone()),
            ..self.clone()
        }
    }

    pub(super) fn text(&self) -> Cow<'static, str> {
        self.name.clone()
    }

    pub(super) fn with_runtime<R>(&self, f: impl FnOnce(&Arc<Inner>) -> R) -> Option<R> {
        with_runtime(self.on.as_ref(), f)
    }
}

impl<M: Send + 'static> Name<M> {
    /// Gives this name to the actor, until it ends or [`unregister`](Name::unregister) is called.
    ///
    /// If the actor has the name already, this address replaces the earlier one. So an
    /// actor that is restarted may register itself each time that it begins. An actor may have
    /// several names.
    ///
    /// # Errors
    /// - [`RegisterError::Taken`] if another actor has the name and has not ended. An actor that
    ///   was stopped or killed has it until it has ended.
    /// - [`RegisterError::WrongType`] if the name was registered for messages of another type.
    /// - [`RegisterError::Closed`] if the actor has closed.
    /// - [`RegisterError::NoRuntime`] if no runtime is current, and none was set with
    ///   [`on`](Name::on), or if it has shut down.
    ///
    /// ```
    /// use greenroom::registry::{Name, RegisterError};
    /// use greenroom::{Context, spawn};
    ///
    /// const LEADER: Name<()> = Name::new("leader");
    ///
    /// async fn candidate(mut cx: Context<()>) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// greenroom::run(async {
    ///     let first = spawn!(candidate(_), name = "Ada");
    ///     let second = spawn!(candidate(_), name = "Bob");
    ///     LEADER.register(&first).unwrap();
    ///     let error = LEADER.register(&second).unwrap_err();
    ///     let text = format!(r#"the name "leader" is taken by "Ada" #{}"#, first.id());
    ///     assert_eq!(error.to_string(), text);
    ///
    ///     first.stop();
    ///     first.closed().await;
    ///     LEADER.register(&second).unwrap();
    /// });
    /// ```
    pub fn register(&self, actor: &Address<M>) -> Result<(), RegisterError> {
        let registered = self.with_runtime(|runtime| self.register_on(runtime, actor));
        registered.unwrap_or(Err(RegisterError::NoRuntime))
    }

    fn register_on(&self, runtime: &Arc<Inner>, actor: &Address<M>) -> Result<(), RegisterError> {
        if !actor.is_here() || actor.is_closed() {
            return Err(RegisterError::Closed);
        }
        let names = &runtime.directory_made().names;
        observe(|| self.holder(runtime));
        let removal = removal(runtime, remove, &self.name, actor);
        let mut member: Option<Box<dyn NamedActor>> =
            Some(Box::new(RegisteredActor::new(actor, &removal)));
        let entered = names.change(&self.name, |entry| {
            if member.as_ref().is_some_and(|member| member.has_ended()) {
                return Err(RegisterError::Closed);
            }
            if let Some(holder) = entry.holder.as_ref().filter(|holder| !holder.has_ended()) {
                if holder.of::<RegisteredActor<M>>().is_none() {
                    return Err(RegisterError::WrongType {
                        name: self.text(),
                        registered: holder.message_type(),
                        asked: type_name::<M>(),
                    });
                }
                if holder.id() != actor.id() {
                    return Err(RegisterError::Taken {
                        name: self.text(),
                        by: holder.info(),
                    });
                }
            }
            mem::swap(&mut entry.holder, &mut member);
            Ok(entry.waits.clone())
        });
        // The member that was replaced, or that was refused, is dropped outside the lock.
        drop(member);
        names.wake(
            &self.name,
            entered.unwrap_or(Err(RegisterError::NoRuntime))?,
        );
        Ok(())
    }

    /// Returns the address of the actor with this name.
    ///
    /// # Errors
    /// - [`LookupError::Unknown`] if no actor has the name, or if that actor has closed.
    /// - [`LookupError::WrongType`] if it receives messages of another type.
    /// - [`LookupError::NoRuntime`] as [`register`](Name::register).
    pub fn get(&self) -> Result<Address<M>, LookupError> {
        match self.with_runtime(|runtime| self.find(runtime)).flatten() {
            Some(Ok(Some(address))) => Ok(address),
            Some(Ok(None)) => Err(LookupError::Unknown { name: self.text() }),
            Some(Err(registered)) => Err(self.wrong_type(registered)),
            None => Err(LookupError::NoRuntime),
        }
    }

    /// Returns the address that the runtime has under this name, or the message type of an actor with
    /// another one. Returns `None` if the runtime has shut down.
    #[inline]
    pub(super) fn find(
        &self,
        runtime: &Arc<Inner>,
    ) -> Option<Result<Option<Address<M>>, &'static str>> {
        let Some(directory) = runtime.directory() else {
            return (!runtime.is_over()).then_some(Ok(None));
        };
        observe(|| self.holder(runtime));
        directory.names.look(&self.name, |entry| {
            let Some(holder) = entry.and_then(|entry| entry.holder.as_ref()) else {
                return Ok(None);
            };
            match holder.of::<RegisteredActor<M>>() {
                Some(member) => Ok(member.address.upgrade_now()),
                None if holder.has_ended() => Ok(None),
                None => Err(holder.message_type()),
            }
        })
    }

    pub(super) fn wrong_type(&self, registered: &'static str) -> LookupError {
        LookupError::WrongType {
            name: self.text(),
            registered,
            asked: type_name::<M>(),
        }
    }

    /// Returns whether no actor has the name, or `None` if the runtime has shut down.
    pub(super) fn is_free(&self, runtime: &Arc<Inner>) -> Option<bool> {
        let Some(directory) = runtime.directory() else {
            return (!runtime.is_over()).then_some(true);
        };
        observe(|| self.holder(runtime));
        directory.names.look(&self.name, |entry| {
            let holder = entry.and_then(|entry| entry.holder.as_ref());
            holder.is_none_or(|holder| holder.has_ended())
        })
    }

    /// Returns the id of the actor with this name.
    fn holder(&self, runtime: &Inner) -> Option<u64> {
        let names = &runtime.directory()?.names;
        let holder = |entry: Option<&NameEntry>| Some(entry?.holder.as_ref()?.id());
        names.look(&self.name, holder).flatten()
    }

    /// Frees the name. Returns whether an actor that has not ended had it.
    ///
    /// The actor is not notified. Returns false if it receives messages of another type, or if no
    /// runtime is current and none was set with [`on`](Name::on).
    pub fn unregister(&self) -> bool {
        let removed = self.with_runtime(|runtime| {
            let names = &runtime.directory()?.names;
            observe(|| self.holder(runtime));
            names.free(&self.name, |holder| {
                holder.of::<RegisteredActor<M>>().is_some()
            })
        });
        removed.flatten().is_some_and(|holder| !holder.has_ended())
    }
}

/// Frees a name at the end of the actor that has it.
fn remove(directory: &Directory, name: &str, actor: u64) {
    drop(directory.names.free(name, |holder| holder.id() == actor));
}

impl<M> Clone for Name<M> {
    fn clone(&self) -> Self {
        Name {
            name: self.name.clone(),
            on: self.on.clone(),
            _messages: PhantomData,
        }
    }
}

impl<M> fmt::Debug for Name<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Name").field(&self.name).finish()
    }
}
