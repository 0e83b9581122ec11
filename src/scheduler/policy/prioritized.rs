//! Priorities: a queue for each level, served from the highest level down.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU32;

use super::central::{Central, QueueOrder};
use super::{Duties, Policy, Runnable, Setup};

/// Strict priorities: the highest level first, and round-robin within a level.
///
/// The levels range from 0, the lowest and the default, to the runtime's
/// [`priorities`](crate::Builder::priorities). The `priority` option of an actor sets its level.
/// Plain tasks have level 0.
///
/// **A level that is always busy starves all lower levels**: their tasks do not run while the
/// higher level has ready tasks for every worker. [`aging`](Prioritized::aging) bounds the wait.
///
/// All workers share the levels behind one mutex, as with [`Sharing`](super::Sharing).
///
/// # Examples
///
/// ```
/// use greenroom::{Context, Runtime, policy, spawn};
///
/// async fn alarm(mut cx: Context<&'static str>) {
///     while let Some(text) = cx.recv().await {
///         println!("{text}");
///     }
/// }
///
/// let levels = policy::Prioritized::default().aging(100);
/// let runtime = Runtime::builder().policy(levels).priorities(3).build()?;
/// runtime.block_on(async {
///     let alarm = spawn!(alarm(_), priority = 3);
///     alarm.tell("fire").unwrap();
///     alarm.join().await.unwrap();
/// });
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub struct Prioritized(Central<Levels>, u32);

impl Prioritized {
    /// Lets every `turns`-th turn serve the lowest level that has a ready task, so that no level
    /// starves.
    ///
    /// 0, the default, means never. 1 serves the lowest level at every turn.
    pub fn aging(self, turns: u32) -> Self {
        Prioritized(self.0, turns)
    }
}

impl Default for Prioritized {
    fn default() -> Self {
        Prioritized(Central::new(Levels::new(0, 0)), 0)
    }
}

impl fmt::Debug for Prioritized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prioritized")
            .field("aging", &self.1)
            .finish_non_exhaustive()
    }
}

impl Policy for Prioritized {
    type Worker = ();

    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        self.0 = Central::new(Levels::new(setup.highest_priority, self.1));
        Ok(())
    }

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        self.0.push(runnable);
    }

    fn dequeue(&self, _worker: &(), duties: &Duties<'_>) -> Option<Runnable> {
        self.0.pop(duties)
    }

    fn interrupt(&self) {
        self.0.interrupt();
    }
}

struct Levels {
    levels: Box<[VecDeque<Runnable>]>,
    aging: Option<NonZeroU32>,
    turns: u32,
}

impl Levels {
    fn new(highest: u8, aging: u32) -> Self {
        Levels {
            levels: (0..=highest).map(|_| VecDeque::new()).collect(),
            aging: NonZeroU32::new(aging),
            turns: 0,
        }
    }
}

impl QueueOrder for Levels {
    fn push(&mut self, runnable: Runnable) {
        let highest = self.levels.len() - 1;
        let level = usize::from(runnable.priority()).min(highest);
        self.levels[level].push_back(runnable);
    }

    fn pop(&mut self) -> Option<Runnable> {
        let turn = self.turns.wrapping_add(1);
        let lowest_first = self
            .aging
            .is_some_and(|aging| turn.is_multiple_of(aging.get()));
        let mut levels = self.levels.iter_mut();
        let popped = if lowest_first {
            levels.find_map(VecDeque::pop_front)
        } else {
            levels.rev().find_map(VecDeque::pop_front)
        };
        // An empty queue is no turn.
        if popped.is_some() {
            self.turns = turn;
        }
        popped
    }
}
