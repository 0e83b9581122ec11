//! Adoption: an actor becomes the owner of another one.

use std::fmt;

use futures_util::FutureExt;

use crate::actor::context::Context;
use crate::actor::family::Kinship;
use crate::actor::handle::Handle;
use crate::actor::source::Feed;
use crate::error::Fault;
use crate::runtime::context;
use crate::task::TaskInfo;

/// Children: actors that this actor owns.
impl<M: Send + 'static> Context<M> {
    /// Makes this actor the owner of another actor, and delivers its result as a message, which
    /// `make` builds.
    ///
    /// - The child does not close for lack of senders, since this actor keeps an address of it.
    /// - When this actor was stopped, it first receives what was accepted. Then it stops its
    ///   children, youngest first, and receives their results. Only then `recv` returns `None`.
    /// - If this actor ends in any other way, its children are stopped, and their results are
    ///   dropped.
    /// - The result of a child does not keep this actor open. With no message, address or other
    ///   source left, this actor does what a stopped one does.
    ///
    /// A child that is adopted after the close is stopped by the next `recv`, which also receives
    /// its result. A panic of the child is not reported to [`on_fault`](crate::Builder::on_fault),
    /// unless its result is dropped.
    ///
    /// A child must not wait for the end of its parent, since a stopped parent waits for the end of
    /// the child. [`on_join`](Context::on_join) delivers a result, too, without ownership.
    ///
    /// # Panics
    /// If the child is this actor or one of its ancestors. [`try_adopt`](Context::try_adopt)
    /// returns an error instead.
    ///
    /// ```
    /// use greenroom::{Context, Fault, spawn};
    ///
    /// async fn worker(mut cx: Context<u32>) -> u32 {
    ///     let mut sum = 0;
    ///     while let Some(number) = cx.recv().await {
    ///         sum += number;
    ///     }
    ///     sum
    /// }
    ///
    /// async fn parent(mut cx: Context<Result<u32, Fault>>) -> u32 {
    ///     for number in 1..=3 {
    ///         let worker = spawn!(worker(_));
    ///         worker.tell(number).unwrap();
    ///         cx.adopt(worker, |result| result);
    ///     }
    ///     let mut sum = 0;
    ///     while let Some(result) = cx.recv().await {
    ///         sum += result.unwrap();
    ///     }
    ///     sum
    /// }
    ///
    /// greenroom::run(async {
    ///     let parent = spawn!(parent(_));
    ///     parent.stop();
    ///     assert_eq!(parent.join().await.unwrap(), 6);
    /// });
    /// ```
    #[track_caller]
    pub fn adopt<C, T>(
        &mut self,
        child: Handle<C, T>,
        make: impl FnOnce(Result<T, Fault>) -> M + Send + 'static,
    ) where
        C: Send + 'static,
        T: Send + 'static,
    {
        if let Err(error) = self.try_adopt(child, make) {
            panic!("{error}");
        }
    }

    /// Makes this actor the owner of another actor, as [`adopt`](Context::adopt) does, or returns
    /// the handle in the error.
    ///
    /// # Errors
    /// [`AdoptError`] if the child is this actor or one of its ancestors.
    pub fn try_adopt<C, T>(
        &mut self,
        child: Handle<C, T>,
        make: impl FnOnce(Result<T, Fault>) -> M + Send + 'static,
    ) -> Result<(), AdoptError<C, T>>
    where
        C: Send + 'static,
        T: Send + 'static,
    {
        context::apply_effects();
        let parent = self.parts().0.info();
        let Some(kinship) = Kinship::new(parent.id(), child.id()) else {
            return Err(AdoptError { child, parent });
        };
        let (address, join) = child.into_parts();
        let feed = Feed::once(join.map(make));
        self.sources_made().children.add(address, kinship, feed);
        Ok(())
    }

    /// Returns the children whose results were not received yet, oldest first.
    ///
    /// This copies the names of all of them into a list.
    pub fn children(&self) -> impl ExactSizeIterator<Item = TaskInfo> + use<M> {
        self.list_children().into_iter()
    }

    /// Stops the children, youngest first. Their results still arrive as messages.
    ///
    /// Children that are adopted later are not stopped.
    pub fn stop_children(&mut self) {
        if let Some(sources) = self.parts().1.sources() {
            sources.stop_children(false);
        }
    }
}

/// An error of [`try_adopt`](Context::try_adopt): the child is the parent or one of its ancestors.
/// It holds the handle.
pub struct AdoptError<C, T> {
    child: Handle<C, T>,
    parent: TaskInfo,
}

impl<C, T> AdoptError<C, T> {
    /// Returns the handle that was not adopted.
    pub fn into_inner(self) -> Handle<C, T> {
        self.child
    }
}

impl<C, T> fmt::Debug for AdoptError<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdoptError")
            .field("child", &self.child)
            .field("parent", &self.parent)
            .finish()
    }
}

impl<C, T> fmt::Display for AdoptError<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parent, child) = (&self.parent, self.child.info());
        if parent.id() == child.id() {
            return write!(f, "{parent} cannot adopt itself");
        }
        write!(
            f,
            "{parent} cannot adopt {child}, which is one of its ancestors"
        )
    }
}

impl<C, T> std::error::Error for AdoptError<C, T> {}
