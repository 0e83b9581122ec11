//! A worker of a queue: an actor that takes a job, runs its handler, and stores what has become of it.
//!
//! - HAND-1: a job that was taken is finished or given back. If the worker is dropped, it is given back
//!   when no handler has it any more, also on another thread.
//! - HAND-2: the end of a job and the next take are asked for together, so they share a transaction.

use std::any::Any;
use std::convert::Infallible;
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use futures_lite::FutureExt;
use futures_lite::future::{or, poll_once};
use greenroom::Context;
use greenroom::time::{Instant, sleep};

use super::serve::Serve;
use super::taken::TakenJob;
use crate::engine::{CommandResult, EngineHandle, ValueReceiver, answer_of};
use crate::error::{StoreProblem, millis};
use crate::records::command::{Command, JobEnding, RawJob, StoreAnswer, TakeJob};
use crate::stored::{Stored, decode};

/// The bytes of a reason that are kept at most.
const REASON: usize = 1024;

/// The pauses between tries to reach a store that fails.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// What the workers of a queue share. Times are in milliseconds.
pub(super) struct WorkerParts<F> {
    pub(super) engine: EngineHandle,
    pub(super) queue: i64,
    pub(super) lease: i64,
    pub(super) window: i64,
    pub(super) attempts: Option<i64>,
    pub(super) serve: Serve,
    pub(super) handler: F,
}

/// A take under way. If it is dropped, a job that has come already is given back.
struct Taking {
    engine: EngineHandle,
    answer: ValueReceiver<CommandResult>,
}

impl Future for Taking {
    type Output = Option<CommandResult>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(cx)
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        if let Some(Ok(StoreAnswer::Taken(job))) = self.answer.end() {
            self.engine.release(job.seq, job.token);
        }
    }
}

/// A job in the hands of a worker and its handler. When both have dropped it, it is given back (HAND-1).
pub(super) struct Holding {
    pub(super) engine: EngineHandle,
    seq: i64,
    token: i64,
    is_over: AtomicBool,
}

impl Drop for Holding {
    fn drop(&mut self) {
        if !*self.is_over.get_mut() {
            self.engine.release(self.seq, self.token);
        }
    }
}

/// The end of a job that is being stored.
struct Finishing {
    command: Command,
    answer: ValueReceiver<CommandResult>,
}

/// Runs a worker until it is stopped, or until the store is closed.
pub(super) async fn work<J, F, Fut, E>(mut cx: Context<Infallible>, parts: Arc<WorkerParts<F>>)
where
    J: Stored,
    F: Fn(TakenJob<J>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send + 'static,
    E: Display + Send + 'static,
{
    let (mut finishing, mut pause) = (None, FIRST_PAUSE);
    loop {
        // A worker that was stopped takes nothing more.
        let is_stopped = poll_once(cx.recv()).await.is_some();
        let mut taking = (!is_stopped).then(|| parts.take());
        if let Some(mut finishing) = finishing.take()
            && !is_settled(&mut finishing).await
        {
            // A job that was taken meanwhile goes back: its lease would be over too early.
            drop(taking.take());
            parts.store_again(finishing).await;
            taking = (!is_stopped).then(|| parts.take());
        }
        let Some(taking) = taking else { return };
        let stop = async {
            cx.recv().await;
            None
        };
        let Some(taken) = or(async { Some(taking.await) }, stop).await else {
            return;
        };
        match answer_of(taken) {
            Ok(StoreAnswer::Taken(job)) => {
                pause = FIRST_PAUSE;
                finishing = Some(parts.run(job).await);
            }
            Ok(_) => {}
            Err(StoreProblem::Closed | StoreProblem::Forked) => return,
            Err(_) => {
                let stop = async {
                    cx.recv().await;
                };
                or(sleep(pause), stop).await;
                pause = (pause * 2).min(LAST_PAUSE);
            }
        }
    }
}

impl<F> WorkerParts<F> {
    fn take(&self) -> Taking {
        let take = TakeJob {
            queue: self.queue,
            lease: self.lease,
            attempts: self.attempts,
        };
        Taking {
            engine: self.engine.clone(),
            answer: self.engine.submit(Command::Take(take)),
        }
    }

    /// Runs the handler for a job, and begins to store its end.
    async fn run<J, Fut, E>(&self, raw: RawJob) -> Finishing
    where
        J: Stored,
        F: Fn(TakenJob<J>) -> Fut,
        Fut: Future<Output = Result<(), E>>,
        E: Display,
    {
        let (seq, token, attempt) = (raw.seq, raw.token, raw.attempt);
        let holding = Arc::new(Holding {
            engine: self.engine.clone(),
            seq,
            token,
            is_over: AtomicBool::new(false),
        });
        // What decodes, and what makes a text of an error, is of the user as well, and may panic.
        let run = AssertUnwindSafe(async {
            let payload = decode(&raw.kind, &raw.payload).map_err(|why| JobEnding::Dead {
                reason: clip(format!("its payload cannot be decoded: {why}")),
            })?;
            let job = TakenJob::new(payload, holding.clone(), raw, self.lease);
            let ended = (self.handler)(job).await;
            ended.map_err(|error| self.failed(attempt, error.to_string()))
        });
        let ending = match run.catch_unwind().await {
            Ok(Ok(())) => JobEnding::Done {
                window: self.window,
            },
            Ok(Err(ending)) => ending,
            Err(panic) => self.failed(attempt, format!("panicked: {}", text_of(&*panic))),
        };
        // Relaxed: who drops it last has seen that the worker has dropped it, by the count of the `Arc`.
        holding.is_over.store(true, Ordering::Relaxed);
        let command = Command::Finish { seq, token, ending };
        let answer = self.engine.submit(command.clone());
        Finishing { command, answer }
    }

    /// Returns what becomes of a job whose attempt of this number has failed.
    fn failed(&self, attempt: u32, reason: String) -> JobEnding {
        let retries = attempt.saturating_sub(1) as usize;
        let reason = clip(reason);
        let intervals = self.serve.retries.as_ref();
        match intervals.and_then(|intervals| intervals.iter().nth(retries)) {
            None => JobEnding::Dead { reason },
            Some(interval) => JobEnding::Retry {
                after: millis(interval),
                reason,
                yields: self.serve.skips_failed,
            },
        }
    }

    /// Stores the end of a job again, as long as its lease holds: what was stored before is then stale.
    async fn store_again(&self, mut finishing: Finishing) {
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        let lease = Duration::from_millis(self.lease as u64);
        while start.elapsed() < lease {
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
            finishing.answer = self.engine.submit(finishing.command.clone());
            if is_settled(&mut finishing).await {
                return;
            }
        }
    }
}

/// Waits for an answer. Returns whether there is nothing more to do.
async fn is_settled(finishing: &mut Finishing) -> bool {
    matches!(
        answer_of((&mut finishing.answer).await),
        Ok(_) | Err(StoreProblem::Stale | StoreProblem::Closed | StoreProblem::Forked)
    )
}

/// Cuts a text to what is kept of it.
fn clip(mut reason: String) -> String {
    let mut end = reason.len().min(REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.truncate(end);
    reason
}

/// Returns the text of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("with a value that is no text")
}
