//! How the observer and the policy of a runtime are notified of polls.

use super::context;
use super::inner::Inner;
use crate::contain::contain;
use crate::error::Fault;
use crate::instant::Instant;
use crate::scheduler::WorkerLocal;
use crate::task::{Runnable, TaskInfo, TaskKey};
use crate::tracer;

impl Inner {
    /// Runs a runnable, between the calls of the policy's and the observer's hooks.
    pub(crate) fn run_observed(&self, local: Option<&WorkerLocal<'_>>, runnable: Runnable) {
        let task = runnable.info();
        if let Some(local) = local {
            local.hook(|worker| worker.before_resume(&task));
        }
        let begun = self.options.observer.as_ref().map(|observer| {
            if task.is_actor() {
                // Inserted before the run, so that an actor that ends in this run is not inserted
                // again.
                self.busy.with(task.id(), |shard| {
                    shard.entry(task.id()).or_default();
                });
            }
            contain(|| observer.before_run(&task));
            (observer, Instant::now())
        });
        let tracer = self.tracer().filter(|_| task.is_actor());
        if let Some(tracer) = tracer {
            let subject = runnable.subject();
            let name = task.name().unwrap_or(&subject.called);
            tracer::call(tracer, |tracer| tracer.enter(&task, name));
        }
        contain(|| runnable.run());
        if let Some(tracer) = tracer {
            tracer::call(tracer, |tracer| tracer.exit(&task));
        }
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

    /// Notifies the observer that an actor begins anew.
    pub(crate) fn restarted(&self, actor: &TaskInfo, incarnation: u64, fault: Option<&Fault>) {
        if let Some(observer) = &self.options.observer {
            contain(|| observer.restarted(actor, incarnation, fault));
        }
    }

    /// Notifies policy, engine and observer that a task or actor has ended, before its future is
    /// dropped.
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

    /// Notifies them that the plain task that this thread runs or drops has ended.
    pub(crate) fn task_completed(&self) {
        // A task may be dropped during the run of another task.
        let key = TaskKey::dropped().or_else(|| context::with(|context| context?.running.get()));
        if let Some(key) = key.filter(|key| !key.is_cell()) {
            self.completed(&TaskInfo::of_task(key.number()));
        }
    }
}
