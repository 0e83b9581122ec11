//! The options of a set of keyed actors.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::panic::Location;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;

use super::Keyed;
use super::core::{KeyGuard, KeyLabel, KeyedCore, Make};
use super::state::EndCall;
use crate::actor::{ActorBuilder, Handle, SpawnFrom, SpawnTarget};
use crate::contain::contain;
use crate::directory::LabelledKeys;
use crate::error::{BuildError, Fault, SpawnProblem, how_to_bind};
use crate::runtime::{CurrentPlace, Runtime};

/// Spawns the actor of a key.
type SpawnOf<K, M, T> =
    Box<dyn Fn(K, KeyGuard<K, M>) -> Result<Handle<M, T>, SpawnProblem> + Send + Sync>;

/// Takes the results of the actors. It is behind two pointers, so that each actor has a small one.
type OnEnd<K, T> = Arc<Box<dyn Fn(&K, Result<T, Fault>) + Send + Sync>>;

/// The options of a [`Keyed`] set, whose actors have results of type `T`.
#[must_use = "a builder does nothing until `build`"]
pub struct KeyedBuilder<K, M, T> {
    spawn: SpawnOf<K, M, T>,
    runtime: Option<Runtime>,
    idle: Option<Duration>,
    limit: Option<usize>,
    label: Option<KeyLabel<K>>,
    on_end: Option<OnEnd<K, T>>,
}

impl<K, M> Keyed<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    /// Creates the options of a set whose actors `make` makes, each of its key.
    ///
    /// The function is called without a lock, on the thread that needs the actor, where the runtime
    /// of the set is the current one. It must not block until the set has an actor of the same key.
    ///
    /// The function may use the set. A handle of the set in the function would keep both for ever.
    /// [`Arc::new_cyclic`] gives the function a `Weak` instead:
    ///
    /// ```
    /// use greenroom::registry::Keyed;
    /// use greenroom::{Context, actor};
    /// use std::sync::{Arc, Weak};
    ///
    /// async fn countdown(mut cx: Context<()>, left: u32, others: Weak<Keyed<u32, ()>>) {
    ///     while cx.recv().await.is_some() {
    ///         if let (Some(others), Some(next)) = (others.upgrade(), left.checked_sub(1)) {
    ///             others.tell(&next, ()).unwrap();
    ///         }
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let set = Arc::new_cyclic(|own: &Weak<_>| {
    ///         let own = own.clone();
    ///         let make = move |left| {
    ///             let others = own.clone();
    ///             actor(move |cx| countdown(cx, left, others))
    ///         };
    ///         Keyed::builder(make).build().unwrap()
    ///     });
    ///     set.tell(&3, ()).unwrap();
    ///     while set.len() < 4 {
    ///         greenroom::yield_now().await;
    ///     }
    /// });
    /// ```
    #[track_caller]
    pub fn builder<A, Fut, On>(
        make: impl Fn(K) -> ActorBuilder<M, A, Fut, On> + Send + Sync + 'static,
    ) -> KeyedBuilder<K, M, Fut::Output>
    where
        A: 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
        On: SpawnTarget<Fut> + SpawnFrom<A>,
    {
        let spawned_at = Location::caller();
        KeyedBuilder {
            spawn: Box::new(move |key, guard| {
                match make(key).guarded(guard).try_spawn_sent(spawned_at) {
                    Ok(handle) => Ok(handle),
                    Err(error) => {
                        let problem = error.problem();
                        contain(|| drop(error));
                        Err(problem)
                    }
                }
            }),
            runtime: None,
            idle: None,
            limit: None,
            label: None,
            on_end: None,
        }
    }
}

impl<K, M, T> KeyedBuilder<K, M, T>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    /// Sets the runtime of the set, by default the current one.
    ///
    /// Its actors run there, unless they have [another place](ActorBuilder::on). A set that is built in
    /// a task of a bound tokio runtime, without this option, has its actors [run on
    /// tokio](crate::docs::with_tokio). The set does not keep the runtime alive.
    pub fn on(mut self, runtime: &Runtime) -> Self {
        self.runtime = Some(Runtime::not_counting(runtime.inner().clone()));
        self
    }

    /// Sets for how long an actor may receive no message by its key before the set gives up its
    /// address. By default the set keeps it.
    ///
    /// Such an actor ends as any other: when it receives and finds no message, and no other address
    /// and no source of it is left. A message by its key before that is handled, and the set has an
    /// address again. The time is up to one eighth longer, or up to two milliseconds if that is more.
    /// At the [limit](KeyedBuilder::limit), a search for an actor that can go counts as a use of those
    /// that it finds in use by other code.
    pub fn idle(mut self, time: Duration) -> Self {
        self.idle = Some(time);
        self
    }

    /// Sets how many actors may be open at the same time. By default there is no limit.
    ///
    /// For one more, the set [stops](crate::Address::stop) the actor that has received no message by
    /// its key for the longest time, of those that no other code has an address of. That one handles
    /// what it has accepted, and does not count any more. If there is none, the call that needs one
    /// more is refused with [`KeyError::Limit`](super::KeyError::Limit).
    ///
    /// The keys are in 16 parts, by their hashes. In each part a call looks at 32 actors of which the
    /// set has an address, and at 32 idle ones. The next call looks at others. So a call may be refused
    /// while other code has an address of all that it looks at, although a further one could go.
    ///
    /// ```
    /// use greenroom::registry::{KeyError, Keyed};
    /// use greenroom::{Context, actor};
    /// use std::time::Duration;
    ///
    /// async fn session(mut cx: Context<&'static str>, _user: u64) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// greenroom::run(async {
    ///     let sessions = Keyed::builder(|user| actor(move |cx| session(cx, user)))
    ///         .idle(Duration::from_secs(60))
    ///         .limit(1)
    ///         .build()
    ///         .unwrap();
    ///     sessions.tell(&1, "hello").unwrap();
    ///     // It stops the actor of 1.
    ///     let second = sessions.get_or_spawn(&2).await.unwrap();
    ///     assert!(!sessions.contains(&1));
    ///     // That of 2 is in use.
    ///     let refused = sessions.tell(&1, "hello").unwrap_err();
    ///     assert!(matches!(refused.key_error(), Some(KeyError::Limit { limit: 1, .. })));
    ///     drop(second);
    ///     sessions.tell(&1, "hello").unwrap();
    /// });
    /// ```
    pub fn limit(mut self, actors: usize) -> Self {
        self.limit = Some(actors);
        self
    }

    /// Sets the text that shows a key to those who look at actors, as
    /// [`ActorStatus::key`](crate::ActorStatus::key). By default keys are not shown: they may be private.
    ///
    /// It is called without a lock, once for each actor while the runtime is
    /// [watched](crate::Runtime::watch), and for each actor by [`stats`](crate::Runtime::stats) and the
    /// like. So a key has no text in memory in a runtime that is not watched. A key for which the
    /// function panics is shown as `?`.
    ///
    /// ```
    /// use greenroom::registry::Keyed;
    /// use greenroom::{Context, Runtime, actor};
    ///
    /// async fn session(mut cx: Context<&'static str>) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// greenroom::run(async {
    ///     let sessions = Keyed::builder(|_user: u64| actor(session))
    ///         .label(|user| format!("user {user}"))
    ///         .build()
    ///         .unwrap();
    ///     sessions.tell(&7, "hello").unwrap();
    ///     let actors = Runtime::current().stats().actors;
    ///     assert!(actors.iter().any(|actor| actor.key.as_deref() == Some("user 7")));
    /// });
    /// ```
    pub fn label(mut self, text: impl Fn(&K) -> String + Send + Sync + 'static) -> Self {
        self.label = Some(Box::new(text));
        self
    }

    /// Sets a function for the result of each actor. By default results are dropped, and a panic of
    /// an actor goes to [`on_fault`](crate::Builder::on_fault).
    ///
    /// It is called on the thread that ends the actor, before the next actor of the key starts. It
    /// must not block until that has started. A panic of the function goes to `on_fault`.
    ///
    /// ```
    /// use greenroom::registry::Keyed;
    /// use greenroom::{Context, actor};
    /// use std::sync::mpsc;
    ///
    /// async fn sum(mut cx: Context<u32>) -> u32 {
    ///     let mut sum = 0;
    ///     while let Some(number) = cx.recv().await {
    ///         sum += number;
    ///     }
    ///     sum
    /// }
    ///
    /// let (results, ended) = mpsc::channel();
    /// greenroom::run(async {
    ///     let sums = Keyed::builder(|_user: u64| actor(sum))
    ///         .on_end(move |user, sum| results.send((*user, sum.unwrap())).unwrap())
    ///         .build()
    ///         .unwrap();
    ///     for number in [1, 2, 40] {
    ///         sums.tell(&7, number).unwrap();
    ///     }
    ///     sums.stop();
    ///     sums.ended().await;
    /// });
    /// assert_eq!(ended.recv().unwrap(), (7, 43));
    /// ```
    pub fn on_end(
        mut self,
        function: impl Fn(&K, Result<T, Fault>) + Send + Sync + 'static,
    ) -> Self {
        self.on_end = Some(Arc::new(Box::new(function)));
        self
    }

    /// Builds the set, without any actor.
    ///
    /// # Errors
    /// [`BuildError::Impossible`] if the limit is 0, if the idle time is 0, if no runtime is current
    /// and none was set, or if it has shut down.
    pub fn build(self) -> Result<Keyed<K, M>, BuildError>
    where
        T: Send + 'static,
    {
        let impossible = |option, reason: &str| {
            let reason = reason.to_owned();
            Err(BuildError::Impossible { option, reason })
        };
        if self.limit == Some(0) {
            return impossible("limit", "is 0, but must be at least 1");
        }
        if self.idle == Some(Duration::ZERO) {
            return impossible("idle", "is 0 s, but must be longer");
        }
        let set = self.runtime.map(|it| CurrentPlace::of(it.inner().clone()));
        let Some(place) = set.or_else(CurrentPlace::get) else {
            let reason = format!("is not set, and no runtime is current{}", how_to_bind());
            return impossible("on", &reason);
        };
        let runtime = place.runtime.clone();
        if !runtime.is_here() {
            return impossible("on", "is a runtime of the parent process");
        }
        let make = make(place, self.spawn, self.on_end);
        let limit = self.limit.unwrap_or(usize::MAX);
        let core = KeyedCore::new(runtime, make, self.label, self.idle, limit);
        let Some(set) = Keyed::of(core.clone()) else {
            return impossible("on", "is a runtime that has shut down");
        };
        if core.label.is_some() {
            let own: Weak<dyn LabelledKeys> = Arc::<KeyedCore<K, M>>::downgrade(&core);
            core.runtime.directory_made().add_labelled(own);
        }
        Ok(set)
    }
}

/// Returns what starts an actor, and takes its result at the end.
fn make<K, M, T>(
    place: CurrentPlace,
    spawn: SpawnOf<K, M, T>,
    on_end: Option<OnEnd<K, T>>,
) -> Make<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
    T: Send + 'static,
{
    let spawn = move |key, guard| place.within(|| spawn(key, guard));
    Box::new(move |key, guard| {
        let Some(on_end) = &on_end else {
            let (address, join) = spawn(key, guard)?.into_parts();
            drop(join);
            return Ok((address, None));
        };
        let (own, on_end) = (key.clone(), on_end.clone());
        let (address, join) = spawn(key, guard)?.into_parts();
        let end = move || {
            if let Some(result) = join.now_or_never() {
                on_end(&own, result);
            }
        };
        let end: EndCall = Box::new(end);
        Ok((address, Some(Box::new(end))))
    })
}

impl<K, M, T> fmt::Debug for KeyedBuilder<K, M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedBuilder")
            .field("idle", &self.idle)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
