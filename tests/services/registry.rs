//! Names and groups: who has them, for how long, and who finds them.

mod groups;
mod load;
mod model;
mod names;
mod order;
mod replay;
mod runtimes;
mod waits;
mod watch;

use std::future::Future;

use greenroom::registry::Name;
use greenroom::{Context, Handle, Reply, actor};

use crate::support::{Gate, Home};

const STORE: Name<Job> = Name::new("store");

/// What the actors of these tests are told to do.
enum Job {
    /// Answer with the number of the incarnation.
    Number(Reply<u64>),
    /// Open the first gate, then wait for the other one.
    Hold(Gate, Gate),
    Return,
    Panic,
}

/// Does what it is told.
async fn work(mut cx: Context<Job>) {
    while let Some(job) = cx.recv().await {
        match job {
            Job::Number(reply) => reply.send(cx.incarnation_number()),
            Job::Hold(begun, end) => {
                begun.open();
                end.wait().await;
            }
            Job::Return => return,
            Job::Panic => panic!("bomb"),
        }
    }
}

fn worker(home: &Home) -> Handle<Job, ()> {
    home.spawn(actor(work))
}

/// An actor that receives any type of message and ends when it is stopped.
async fn idle<M>(mut cx: Context<M>) {
    while cx.recv().await.is_some() {}
}

/// Drives a future outside any runtime.
fn outside<F: Future>(future: F) -> F::Output {
    futures::executor::block_on(future)
}
