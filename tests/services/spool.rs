//! Spools: who gets a request, what a spool refuses, and what becomes of its workers.

mod bombs;
mod deaths;
mod ends;
mod example;
mod external;
mod keys;
mod limits;
mod load;
mod model;
mod order;
mod replies;
mod returns;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::spool::{Spool, SpoolStatus};
use greenroom::time::sleep;
use greenroom::{
    Address, AskCause, AskError, Context, Handle, Refusal, RefusalKind, Reply, Runtime, actor,
    yield_now,
};

use crate::support::scenarios::{SEEDS, everywhere, on_two_workers, simulated};
use crate::support::{Gate, Log, WATCH, keep_bombs_quiet, names, within};

/// What a request makes its worker do.
#[derive(Clone)]
enum Job {
    /// Answer with the number of the worker.
    Say,
    /// Answer after this time.
    Take(Duration),
    /// Open the first gate, and answer once the second one is open.
    Hold(Gate, Gate),
    /// Pass the reply on, and receive the next message.
    Forward(Replies),
    /// Drop the reply.
    Drop,
    Refuse,
    Panic,
    Return,
}

type Work = (Job, Reply<usize>);

/// A place for replies that were passed on.
type Replies = Arc<Mutex<Vec<Reply<usize>>>>;

/// A worker, which does what it is told.
async fn worker(mut cx: Context<Work>, number: usize) {
    while let Some((job, reply)) = cx.recv().await {
        match job {
            Job::Say => reply.send(number),
            Job::Take(time) => {
                sleep(time).await;
                reply.send(number);
            }
            Job::Hold(holds, until) => {
                holds.open();
                until.wait().await;
                reply.send(number);
            }
            Job::Forward(to) => to.lock().unwrap().push(reply),
            Job::Drop => drop(reply),
            Job::Refuse => reply.refuse(Refusal::new("no", "")),
            Job::Panic => panic!("bomb {number}"),
            Job::Return => return,
        }
    }
}

/// Makes a worker.
fn work(number: usize) -> Handle<Work, ()> {
    actor(move |cx| worker(cx, number)).spawn()
}

/// The addresses of the workers that a spool has made, in the order in which they were made.
type Made = Log<(usize, Address<Work>)>;

/// Makes workers, and notes them.
fn noting(made: &Made) -> impl FnMut(usize) -> Handle<Work, ()> + Send + use<> {
    let made = made.clone();
    move |number| {
        let worker = work(number);
        made.add((number, worker.address()));
        worker
    }
}

/// Starts a spool of workers that do what they are told.
fn spool(objects: usize) -> Spool<Job, usize> {
    Spool::builder(work).workers(objects).spawn().unwrap()
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Returns a time without that of the turns, each of which takes a little virtual time.
fn rounded(time: Duration) -> Duration {
    Duration::from_millis((time.as_micros() as u64 + 500) / 1000)
}

/// Returns the average response time.
fn average(spool: &Spool<Job, usize>) -> Duration {
    rounded(spool.status().average)
}

/// A request that a worker holds until the gate opens, in its own task.
struct Held {
    until: Gate,
    answer: greenroom::Answer<usize>,
}

impl Held {
    /// Lets the worker answer, and waits for it.
    async fn free(self) -> Result<usize, AskError> {
        self.until.open();
        self.answer.await
    }
}

/// Lets a worker hold a request. Returns when it does.
async fn hold(spool: &Spool<Job, usize>) -> Held {
    let (holds, until) = (Gate::default(), Gate::default());
    let answer = post(spool, Job::Hold(holds.clone(), until.clone()));
    holds.wait().await;
    Held { until, answer }
}

/// Gives a request to the spool.
fn post(spool: &Spool<Job, usize>, job: Job) -> greenroom::Answer<usize> {
    let (reply, answer) = Reply::pair();
    spool.tell(job, reply).unwrap();
    answer
}

/// Waits until the status of the spool is so. A change that needs a timer is not noticed.
async fn wait_for<Q: Send + 'static>(spool: &Spool<Q, usize>, is_so: impl Fn(SpoolStatus) -> bool) {
    while !is_so(spool.status()) {
        yield_now().await;
    }
}

/// Returns the refusal of a request.
#[track_caller]
fn refusal(outcome: Result<usize, AskError>) -> Refusal {
    match outcome {
        Err(AskError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[track_caller]
fn is_refused(outcome: Result<usize, AskError>, kind: RefusalKind) {
    assert_eq!(refusal(outcome).kind(), kind);
}

/// Returns why a request was lost.
#[track_caller]
fn cause(outcome: Result<usize, AskError>) -> AskCause {
    match outcome {
        Err(AskError::NoReply(detail)) => detail.why().clone(),
        other => panic!("not lost: {other:?}"),
    }
}

/// Returns the number of requests whose outcome the counters have.
fn settled(status: SpoolStatus) -> u64 {
    status.answered + status.lost + status.unwanted + status.refused()
}
