//! The case of a set of tasks, on executors that have sets.

use std::time::Instant;

use crate::cases::Case;
#[cfg(feature = "greenroom")]
use crate::executors::greenroom::Greenroom;
use crate::executors::{Executor, inside, tokio::Tokio};
use crate::figures::{self, Figure, check, nanoseconds, sum_below};
use crate::sizes::{SET_TASKS, SETS};

/// An executor with sets of tasks.
pub trait WithSets: Executor {
    /// Spawns this number of tasks, each with its number, and adds up their values as they come.
    fn sum(tasks: u64) -> impl Future<Output = u64> + Send + 'static;
}

#[cfg(feature = "greenroom")]
impl WithSets for Greenroom {
    async fn sum(tasks: u64) -> u64 {
        let mut set = greenroom::TaskSet::new();
        for n in 0..tasks {
            set.spawn(async move { n });
        }
        let mut sum = 0;
        while let Some(n) = set.next().await {
            sum += n.expect("no task panics");
        }
        sum
    }
}

impl WithSets for Tokio {
    async fn sum(tasks: u64) -> u64 {
        let mut set = tokio::task::JoinSet::new();
        for n in 0..tasks {
            set.spawn(async move { n });
        }
        let mut sum = 0;
        while let Some(n) = set.join_next().await {
            sum += n.expect("no task panics");
        }
        sum
    }
}

/// Runs the case.
pub fn run<E: WithSets>(case: Case) -> Option<Vec<Figure>> {
    (case == Case::TaskSet).then(|| inside::<E, _>(task_set::<E>()))
}

async fn task_set<E: WithSets>() -> Vec<Figure> {
    let begin = Instant::now();
    for _ in 0..SETS {
        check("sum", E::sum(SET_TASKS).await, sum_below(SET_TASKS));
    }
    vec![nanoseconds(figures::TREE, SETS * SET_TASKS, begin)]
}
