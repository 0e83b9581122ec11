//! `Tasks`: what runs on the thread of the links, until the engine is stopped.
//!
//! One thread or one task of a simulation runs all of them, so none runs during another one.

use std::sync::Arc;

use async_executor::Executor;
use futures_lite::future::or;

use super::{Job, Stop};

#[derive(Default)]
pub(crate) struct Tasks {
    executor: Executor<'static>,
    pub(crate) stop: Arc<Stop>,
    ended: Arc<Stop>,
}

impl Tasks {
    /// Adds a task, which ends when the engine is stopped.
    pub(crate) fn spawn(&self, task: Job) {
        let stop = self.stop.clone();
        self.executor
            .spawn(async move { or(stop.wait(), task).await })
            .detach();
    }

    /// Runs all tasks until the engine is stopped, and then until each of them has ended.
    pub(crate) async fn run(&self) {
        self.executor.run(self.stop.wait()).await;
        while !self.executor.is_empty() {
            self.executor.tick().await;
        }
        self.ended.stop();
    }

    /// Waits until all tasks have ended.
    pub(crate) fn ended(&self) -> Job {
        let ended = self.ended.clone();
        Box::pin(async move { ended.wait().await })
    }
}
