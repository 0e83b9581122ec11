//! The task that releases actors which were not used for some time.
//!
//! The time is cut into steps, and each step advances the clock of the set. So a use costs no look at
//! the time, and an actor is released up to one step late. A short time has fewer steps, and is
//! rounded up to whole ones. There is a task only while the set holds an actor.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::core::KeyedCore;
use crate::runtime::yield_now;
use crate::sync::atomic::Ordering;
use crate::time::sleep;

/// The most steps in the time that an actor idles before it is released.
const STEPS: u32 = 8;

/// The shortest step.
const STEP_MIN: Duration = Duration::from_millis(1);

/// How many actors are released in one turn.
const BATCH: usize = 256;

impl<K: Send + 'static, M: Send + 'static> KeyedCore<K, M> {
    /// Starts the task, since the set holds one more actor.
    pub(super) fn tend(self: &Arc<Self>) {
        let Some(idle) = self.idle else { return };
        let mut idling = self.idling.lock();
        idling.is_needed = true;
        if std::mem::replace(&mut idling.is_running, true) {
            return;
        }
        drop(idling);
        if !self.runtime.shutdown.has_begun() {
            let (step, count) = steps_of(idle);
            let task = release_idle(Arc::downgrade(self), step, count);
            crate::task::spawn_own(self.runtime.clone(), task).detach();
        }
    }

    /// Gives up addresses of actors that were last used before this time. Returns how many.
    pub(super) fn release(&self, shard: usize, before: u64) -> usize {
        let mut released = Vec::new();
        let mut shard = self.shards[shard].lock();
        while released.len() < BATCH
            && let Some(address) = shard.release(before)
        {
            released.push(address);
        }
        drop(shard);
        released.len()
    }

    /// Returns whether the task may end, since the set holds no actor.
    fn is_at_rest(&self) -> bool {
        // Before the look: an actor that is held later sets it again.
        self.idling.lock().is_needed = false;
        if self.shards.iter().any(|shard| shard.lock().holds_any()) {
            return false;
        }
        let mut idling = self.idling.lock();
        idling.is_running = idling.is_needed;
        !idling.is_needed
    }
}

/// Returns the length of a step, and how many of them are at least this time.
fn steps_of(idle: Duration) -> (Duration, usize) {
    let round_up = Duration::from_nanos(u64::from(STEPS) - 1);
    let step = (idle.saturating_add(round_up) / STEPS).max(STEP_MIN);
    (step, idle.as_nanos().div_ceil(step.as_nanos()) as usize)
}

async fn release_idle<K, M>(core: Weak<KeyedCore<K, M>>, step: Duration, count: usize)
where
    K: Send + 'static,
    M: Send + 'static,
{
    // The times at the last steps.
    let mut steps = VecDeque::new();
    loop {
        sleep(step).await;
        let Some(core) = core.upgrade() else { return };
        // Relaxed: a use just before may count as one just after.
        steps.push_back(core.clock.fetch_add(1, Ordering::Relaxed) + 1);
        if steps.len() > count
            && let Some(before) = steps.pop_front()
        {
            for shard in 0..core.shards.len() {
                while core.release(shard, before) == BATCH {
                    yield_now().await;
                }
            }
        }
        if core.is_at_rest() {
            return;
        }
    }
}
