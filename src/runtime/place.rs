//! Where an actor without a place of its own runs: on the current runtime, or on a tokio runtime that is
//! bound to it.
//!
//! What starts actors later, on other threads, keeps the place in which it was made.

use std::sync::Arc;

#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

use super::context::{self, Role, ThreadContext};
use super::inner::Inner;

pub(crate) struct CurrentPlace {
    pub(crate) runtime: Arc<Inner>,
    /// The tokio runtime because of which the runtime is current.
    #[cfg(feature = "tokio")]
    pub(crate) tokio: Option<Handle>,
}

impl CurrentPlace {
    /// Returns the place of actors that run on this runtime.
    pub(crate) fn of(runtime: Arc<Inner>) -> Self {
        CurrentPlace {
            runtime,
            #[cfg(feature = "tokio")]
            tokio: None,
        }
    }

    /// Returns the current place of this thread.
    pub(crate) fn get() -> Option<Self> {
        #[cfg(feature = "tokio")]
        if let Some((runtime, tokio)) = context::tokio_place() {
            return Some(CurrentPlace {
                runtime,
                tokio: Some(tokio),
            });
        }
        context::runtime().map(CurrentPlace::of)
    }

    /// Returns the current place of this thread, if actors without a place run on tokio there.
    pub(crate) fn of_tokio() -> Option<Self> {
        #[cfg(feature = "tokio")]
        return Self::get().filter(|place| place.tokio.is_some());
        #[cfg(not(feature = "tokio"))]
        None
    }

    /// Makes a call where this place is the current one.
    pub(crate) fn within<R>(&self, call: impl FnOnce() -> R) -> R {
        if Self::get().is_some_and(|current| current.is(self)) {
            return call();
        }
        let context = ThreadContext::new(&self.runtime, Role::Outside);
        #[cfg(feature = "tokio")]
        let (context, _inside) = (
            context.on_tokio(self.tokio.as_ref()),
            self.tokio.as_ref().map(Handle::enter),
        );
        let _entered = context.enter();
        call()
    }

    fn is(&self, other: &CurrentPlace) -> bool {
        #[cfg(feature = "tokio")]
        if self.tokio.as_ref().map(Handle::id) != other.tokio.as_ref().map(Handle::id) {
            return false;
        }
        Arc::ptr_eq(&self.runtime, &other.runtime)
    }
}
