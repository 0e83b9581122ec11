//! An actor that its supervisor restarts, on kameo.

use std::convert::Infallible;
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::error::SendError;
use kameo::mailbox;
use kameo::message::{Context, Message};
use kameo::supervision::RestartPolicy;

use crate::actors::{INTENDED, silence_intended};
use crate::figures::{self, Figure, check, rate};
use crate::sizes;

/// Does nothing but restart its child.
struct Supervisor;

plain_actors!(Supervisor);

/// An actor that panics at every call but the last one. It counts its starts.
struct Fragile {
    starts: Arc<AtomicU64>,
}

impl Actor for Fragile {
    type Args = Arc<AtomicU64>;
    type Error = Infallible;

    async fn on_start(starts: Arc<AtomicU64>, _: ActorRef<Self>) -> Result<Self, Infallible> {
        starts.fetch_add(1, Ordering::Relaxed);
        Ok(Self { starts })
    }
}

struct Fail;
struct Starts;

impl Message<Fail> for Fragile {
    type Reply = ();

    async fn handle(&mut self, Fail: Fail, _: &mut Context<Self, ()>) {
        panic_any(INTENDED);
    }
}

impl Message<Starts> for Fragile {
    type Reply = u64;

    async fn handle(&mut self, Starts: Starts, _: &mut Context<Self, u64>) -> u64 {
        self.starts.load(Ordering::Relaxed)
    }
}

/// Runs the case `restarts`.
pub async fn restarts() -> Vec<Figure> {
    silence_intended();
    let supervisor = super::spawn(Supervisor);
    let actor = Fragile::supervise(&supervisor, Arc::default())
        .restart_policy(RestartPolicy::Permanent)
        .restart_limit(u32::MAX, Duration::from_secs(1))
        .spawn_with_mailbox(mailbox::unbounded())
        .await;
    let begin = Instant::now();
    for _ in 0..sizes::RESTARTS {
        // A call that comes during a restart may be returned.
        let answer = loop {
            match actor.ask(Fail).await {
                Err(SendError::ActorRestarting(_)) => {}
                answer => break answer,
            }
        };
        assert!(matches!(answer, Err(SendError::ActorStopped)), "it panics");
    }
    let starts = actor.ask(Starts).await.expect("it answers");
    check("starts", starts, sizes::RESTARTS + 1);
    vec![rate(figures::RESTARTS, sizes::RESTARTS, begin)]
}
