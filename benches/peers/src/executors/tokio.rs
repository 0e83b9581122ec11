//! tokio's multi-threaded runtime.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::{Executor, WORKERS};
use crate::figures::{Figure, check};

/// A runtime; its tasks end with it.
pub struct Tokio(pub Runtime);

/// A task that never panics.
pub struct Task<T>(JoinHandle<T>);

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let joined = Pin::new(&mut self.0).poll(cx);
        joined.map(|result| result.expect("no task panics"))
    }
}

impl Tokio {
    /// Returns a task that never panics.
    pub fn task<T>(joined: JoinHandle<T>) -> Task<T> {
        Task(joined)
    }

    /// Starts this number of workers.
    pub fn of(workers: usize) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_time()
            .build();
        Self(runtime.expect("two threads can be started"))
    }
}

impl Executor for Tokio {
    type Task<T: Send + 'static> = Task<T>;

    fn start() -> Self {
        Self::of(WORKERS)
    }

    fn inside<T: Send + 'static>(&self, driver: impl Future<Output = T> + Send + 'static) -> T {
        self.0.block_on(async { Self::spawn(driver).await })
    }

    fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        Task(tokio::spawn(future))
    }
}

/// Starts a runtime, runs `driver` on it and returns its output.
pub fn inside(driver: impl Future<Output = Vec<Figure>> + Send + 'static) -> Vec<Figure> {
    super::inside::<Tokio, _>(driver)
}

/// Makes one blocking call, so that a thread for blocking calls exists.
pub async fn block_once() {
    let blocked = tokio::task::spawn_blocking(|| 1).await;
    check("blocking call", blocked.expect("no panic"), 1);
}
