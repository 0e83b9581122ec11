//! The next try to get a thread for a worker, when the system has started none.
//!
//! It is a task of the market's runtime, which is not quiescent meanwhile.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::core::Core;
use crate::sync::Mutex;
use crate::time::{Sleep, sleep};

/// Judges the workers of a market again after some time.
pub(super) fn after<K: Send + 'static>(core: &Arc<Core<K>>, delay: Duration) {
    let own = core.clone();
    match &core.runtime {
        Some(runtime) => {
            let again = async move {
                sleep(delay).await;
                own.change(|state, _| state.retry.fire());
            };
            crate::task::spawn_own(runtime.clone(), again).detach();
        }
        None => {
            let again = Arc::new(Again {
                core: own,
                sleep: Mutex::new(Some(sleep(delay))),
            });
            again.poll();
        }
    }
}

/// Waits without a runtime.
struct Again<K> {
    core: Arc<Core<K>>,
    sleep: Mutex<Option<Sleep>>,
}

impl<K: Send + 'static> Again<K> {
    fn poll(self: &Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut place = self.sleep.lock();
        let Some(sleep) = &mut *place else { return };
        if pin!(sleep)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            return;
        }
        *place = None;
        drop(place);
        self.core.change(|state, _| state.retry.fire());
    }
}

impl<K: Send + 'static> Wake for Again<K> {
    fn wake(self: Arc<Self>) {
        self.poll();
    }
}
