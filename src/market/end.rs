//! The wait for the end of a market.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::Core;
use crate::waker::KeptWaker;

/// Completes when a market was stopped or drained, and its last worker has left.
pub(super) struct EndOf<K: Send + 'static> {
    core: Arc<Core<K>>,
    /// The place of its waker.
    place: Option<usize>,
}

impl<K: Send + 'static> EndOf<K> {
    pub(super) fn new(core: &Arc<Core<K>>) -> Self {
        EndOf {
            core: core.clone(),
            place: None,
        }
    }
}

impl<K: Send + 'static> Future for EndOf<K> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let waker = KeptWaker::new(cx.waker());
        let own = &mut *self;
        own.core.change(|state, after| {
            if state.is_over() {
                after.stale.push(waker);
                own.place = None;
                return Poll::Ready(());
            }
            match own.place {
                Some(place) => after
                    .stale
                    .push(std::mem::replace(&mut state.enders[place], waker)),
                None => own.place = Some(state.enders.insert(waker)),
            }
            Poll::Pending
        })
    }
}

impl<K: Send + 'static> Drop for EndOf<K> {
    fn drop(&mut self) {
        // At the end all wakers leave.
        if let Some(place) = self.place.filter(|_| self.core.is_here()) {
            self.core
                .change(|state, after| after.stale.extend(state.enders.try_remove(place)));
        }
    }
}
