//! Handlers that block: each runs as a job of a market.
//!
//! A worker waits for the handler of its job, and tells it when the job is to end early.

use std::fmt::Display;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;

use futures_lite::future::or;
use greenroom::market::{self, Market};

use super::handle::Queue;
use super::serve::{QueueWorkers, Serve};
use super::taken::TakenJob;
use crate::error::StoreError;
use crate::stored::Stored;

impl<J: Stored> Queue<J> {
    /// Starts workers as [`serve`](Queue::serve) does, of which each runs the handler as a job of the
    /// market, where it may block.
    ///
    /// The market says how many handlers run at the same time, also those of other queues. While its board
    /// is full, a worker waits, and has its job meanwhile: as many workers as the market has are enough.
    ///
    /// If the job is to [end early](TakenJob::cancelled), [`is_cancelled`](market::is_cancelled) returns
    /// true in the handler. If that has not begun, it never runs.
    ///
    /// If the worker is cancelled, the handler goes on, and has the job until it ends. Attempts that the
    /// market refuses have failed: stop the workers before the market.
    ///
    /// ```
    /// use greenroom::market::{self, Market};
    /// use greenroom_durable::{Job, Serve, SimFile, Store, Stored};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Resize {
    ///     files: Vec<String>,
    /// }
    ///
    /// impl Stored for Resize {
    ///     const KIND: &'static str = "resize/1";
    /// }
    ///
    /// # async fn program(store: Store) -> Result<(), Box<dyn std::error::Error>> {
    /// let queue = store.queue::<Resize>("resize").open().await?;
    /// let market = Market::<()>::builder().max_workers(4).build()?;
    /// let workers = queue.serve_blocking(Serve::workers(4), &market, |job| {
    ///     for file in &job.files {
    ///         if market::is_cancelled() {
    ///             return Err("cancelled");
    ///         }
    ///         println!("{file}"); // or what takes long
    ///     }
    ///     Ok(())
    /// }).await?;
    /// queue.put(Job::new(Resize { files: vec!["a.png".into()] }).id("upload-17")).await?;
    /// queue.outcome("upload-17").await?;
    /// workers.stop().await;
    /// # Ok(())
    /// # }
    /// # greenroom::sim::run(7, async {
    /// #     program(Store::simulated(&SimFile::new()).open().await.unwrap()).await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// A [`StoreError`] if the store is closed.
    ///
    /// # Panics
    /// If no runtime is current.
    ///
    /// # Cancel safety
    /// If the future is dropped, no worker was started.
    pub async fn serve_blocking<K, F, E>(
        &self,
        serve: Serve,
        market: &Market<K>,
        handler: F,
    ) -> Result<QueueWorkers, StoreError>
    where
        K: Hash + Eq + Clone + Send + 'static,
        F: Fn(TakenJob<J>) -> Result<(), E> + Send + Sync + 'static,
        E: Display + Send + 'static,
    {
        let (market, handler) = (market.clone(), Arc::new(handler));
        let run = move |job| run(market.clone(), handler.clone(), job);
        self.serve(serve, run).await
    }
}

/// Runs the handler for a job in the market. Returns the text of an error.
async fn run<J, K, F, E>(market: Market<K>, handler: Arc<F>, job: TakenJob<J>) -> Result<(), String>
where
    J: Stored,
    K: Hash + Eq + Clone + Send + 'static,
    F: Fn(TakenJob<J>) -> Result<(), E> + Send + Sync + 'static,
    E: Display + Send + 'static,
{
    let mut early = pin!(job.early_end());
    let offered = market.offer(market::Job::new(move || handler(job)));
    let Some(offered) = unless(&mut early, offered).await else {
        return Err("cancelled".to_owned());
    };
    let mut running = offered.map_err(|refused| refused.to_string())?;
    let ended = match unless(early, &mut running).await {
        Some(ended) => ended,
        None => {
            running.cancel();
            running.await
        }
    };
    let done = ended.map_err(|problem| problem.to_string())?;
    done.map_err(|error| error.to_string())
}

/// Waits for a future, unless the other one ends first.
async fn unless<T>(early: impl Future<Output = ()>, future: impl Future<Output = T>) -> Option<T> {
    let early = async {
        early.await;
        None
    };
    or(async { Some(future.await) }, early).await
}
