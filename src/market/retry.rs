//! The next try to get a thread for a worker, when the system has started none.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::core::Core;
use crate::sync::Mutex;
use crate::time::{Sleep, sleep};

/// How long a market waits before it tries again: after each failure twice as long.
#[derive(Default)]
pub(super) struct Retry {
    last: Option<Duration>,
    /// A try is due.
    is_armed: bool,
}

impl Retry {
    const FIRST: Duration = Duration::from_millis(10);
    const LAST: Duration = Duration::from_secs(1);

    /// Returns the time until the next try, or `None` if one is due already.
    pub(super) fn arm(&mut self) -> Option<Duration> {
        if std::mem::replace(&mut self.is_armed, true) {
            return None;
        }
        let next = self.last.map_or(Self::FIRST, |last| last * 2);
        self.last = Some(next.min(Self::LAST));
        self.last
    }

    /// Notes that the time is over.
    fn fire(&mut self) {
        self.is_armed = false;
    }

    /// Notes that a worker has a thread.
    pub(super) fn has_succeeded(&mut self) {
        self.last = None;
    }
}

/// Judges the workers of a market again after some time.
pub(super) fn after<K: Send + 'static>(core: &Arc<Core<K>>, delay: Duration) {
    let own = core.clone();
    match &core.runtime {
        Some(runtime) => {
            let again = async move {
                sleep(delay).await;
                own.change(|state, _| state.retry.fire());
            };
            crate::task::spawn(runtime.clone(), again).detach();
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
