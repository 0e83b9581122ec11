//! How a run is told to the observer of a runtime, and to its policy.

use super::context;
use super::inner::Inner;
use crate::contain::contain;
use crate::instant::Instant;
use crate::scheduler::WorkerLocal;
use crate::task::{Runnable, TaskInfo, TaskKey};

impl Inner {
    /// Runs it, between the calls of those who are told of that.
    pub(crate) fn run_observed(&self, local: Option<&WorkerLocal<'_>>, runnable: Runnable) {
        let task = runnable.info();
        if let Some(local) = local {
            local.hook(|worker| worker.before_resume(&task));
        }
        let begun = self.options.observer.as_ref().map(|observer| {
            if task.is_actor() {
                // Here, so that an actor that ends in this run is not added again.
                self.busy.with(task.id(), |shard| {
                    shard.entry(task.id()).or_default();
                });
            }
            contain(|| observer.before_run(&task));
            (observer, Instant::now())
        });
        contain(|| runnable.run());
        if let Some((observer, begun)) = begun {
            let took = begun.elapsed();
            if task.is_actor() {
                self.busy.with(task.id(), |shard| {
                    shard.entry(task.id()).and_modify(|busy| *busy += took);
                });
            }
            contain(|| observer.after_run(&task, took));
        }
        if let Some(local) = local {
            local.hook(|worker| worker.after_resume(&task));
        }
    }

    /// A task or actor has come to its end; called before its future is dropped.
    pub(crate) fn completed(&self, task: &TaskInfo) {
        context::with(|context| {
            if let Some(local) = context.and_then(|context| context.run_of(self)) {
                local.hook(|worker| worker.after_completion(task));
            }
        });
        self.engine().completed(task);
        if let Some(observer) = &self.options.observer {
            if task.is_actor() {
                self.busy.with(task.id(), |shard| shard.remove(&task.id()));
            }
            contain(|| observer.completed(task));
        }
    }

    /// The plain task that this thread runs or drops has come to its end.
    pub(crate) fn task_completed(&self) {
        // One that is dropped may be so in the run of another.
        let key = TaskKey::dropped().or_else(|| context::with(|context| context?.running.get()));
        if let Some(key) = key.filter(|key| !key.is_cell()) {
            self.completed(&TaskInfo::of_task(key));
        }
    }
}
