//! Loopers by hand: a spawned task for each job, or a task for each looper.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{RwLock, oneshot};
use tokio::task::{JoinError, JoinHandle};

use crate::cases::Case;
use crate::executors::tokio::{Tokio, inside};
use crate::figures::{Figure, LOOPED};
use crate::loopers::{Counters, Job, Jobs, Loopers, count, rounds};
use crate::sizes::{LOOPER_LOCKS, LOOPER_ROUNDS, LOOPERS};

type Lock = Arc<RwLock<u64>>;

fn locks() -> Vec<Lock> {
    (0..LOOPER_LOCKS).map(|_| Lock::default()).collect()
}

/// A spawned task for each job. The jobs of a looper may run at the same time, in any order.
struct Spawned {
    counters: Counters,
    locks: Vec<Lock>,
}

impl Loopers for Spawned {
    type Lost = JoinError;
    type Posted = JoinHandle<u64>;

    fn post(&self, looper: usize, job: Job) -> Self::Posted {
        match job {
            Job::Free => {
                let job = self.counters.job(looper);
                tokio::spawn(async move { job() })
            }
            Job::Shared(lock) => {
                let lock = self.locks[lock].clone();
                tokio::spawn(async move { *lock.read().await })
            }
            Job::Exclusive(lock) => {
                let lock = self.locks[lock].clone();
                tokio::spawn(async move { count(&mut *lock.write().await) })
            }
        }
    }
}

/// A message to the task of a looper.
enum Message {
    Free(Box<dyn FnOnce() + Send>),
    Shared(Lock, Box<dyn FnOnce(&u64) + Send>),
    Exclusive(Lock, Box<dyn FnOnce(&mut u64) + Send>),
}

/// Runs the jobs of a looper in order.
async fn looper(mut inbox: UnboundedReceiver<Message>) {
    while let Some(message) = inbox.recv().await {
        match message {
            Message::Free(job) => job(),
            Message::Shared(lock, job) => job(&*lock.read().await),
            Message::Exclusive(lock, job) => job(&mut *lock.write().await),
        }
    }
}

/// A task for each looper, with a channel.
struct Tasks {
    loopers: Vec<UnboundedSender<Message>>,
    counters: Counters,
    locks: Vec<Lock>,
}

impl Loopers for Tasks {
    type Lost = RecvError;
    type Posted = oneshot::Receiver<u64>;

    fn post(&self, looper: usize, job: Job) -> Self::Posted {
        let (reply, posted) = oneshot::channel();
        let message = match job {
            Job::Free => {
                let job = self.counters.job(looper);
                Message::Free(Box::new(move || reply.send(job()).expect("it is awaited")))
            }
            Job::Shared(lock) => {
                let job = move |n: &u64| reply.send(*n).expect("it is awaited");
                Message::Shared(self.locks[lock].clone(), Box::new(job))
            }
            Job::Exclusive(lock) => {
                let job = move |n: &mut u64| reply.send(count(n)).expect("it is awaited");
                Message::Exclusive(self.locks[lock].clone(), Box::new(job))
            }
        };
        let sent = self.loopers[looper].send(message);
        assert!(sent.is_ok(), "the looper lives");
        posted
    }
}

/// Runs a case with a task for each job.
pub async fn spawned(jobs: Jobs) -> Vec<Figure> {
    let (counters, locks) = (Counters::new(), locks());
    let loopers = Spawned { counters, locks };
    vec![rounds::<Tokio>(LOOPED, loopers, jobs, LOOPER_ROUNDS).await]
}

/// Runs a case with a task for each looper.
async fn tasks(jobs: Jobs) -> Vec<Figure> {
    let loopers = (0..LOOPERS).map(|_| {
        let (sender, inbox) = unbounded_channel();
        tokio::spawn(looper(inbox));
        sender
    });
    let loopers = Tasks {
        loopers: loopers.collect(),
        counters: Counters::new(),
        locks: locks(),
    };
    vec![rounds::<Tokio>(LOOPED, loopers, jobs, LOOPER_ROUNDS).await]
}

/// Runs a case of the peer with a task for each looper.
pub fn run(case: Case) -> Option<Vec<Figure>> {
    match case {
        Case::Looper(jobs) => Some(inside(tasks(jobs))),
        _ => None,
    }
}
