//! The clients of the model: each looks actors up again and again, and sends from several tasks.

use std::future::Future;
use std::time::Duration;

use futures::future::join_all;
use greenroom::sim;
use greenroom_cluster::{Distance, RemoteAddress, RemoteAskError};

use super::far::{Far, ModelNode};
use super::messages::{Note, Numbered, Slip};

/// What has become of a message: whether it was accepted, or the end of the address.
type Sent = Result<bool, Distance>;

/// The addresses that a client has at the end.
#[derive(Default)]
pub struct Last {
    note: Option<Far<Note>>,
    slip: Option<Far<Slip>>,
}

impl Last {
    /// Sends a message to each of its actors that takes one.
    pub fn tell(&self) {
        let _ = self.note.as_ref().map(|far| far.tell(Note::Told));
        let _ = self.slip.as_ref().map(|far| far.tell(Slip::Told));
    }

    pub fn check(&self) {
        self.note.iter().for_each(Far::check);
        self.slip.iter().for_each(Far::check);
    }
}

/// Sends to one actor after another. Returns the last addresses.
pub async fn client(model: ModelNode) -> Last {
    let mut last = Last::default();
    for _ in 0..6 {
        // Often an actor is looked up again while messages of dropped addresses are under way.
        if !sim::random().is_multiple_of(4) {
            last = Last::default();
        }
        match sim::random() % 4 {
            0 => last.slip = round(&model).await,
            _ => last.note = round(&model).await,
        }
    }
    last
}

/// Sends from several tasks with clones of one address.
async fn round<M: Kind>(model: &ModelNode) -> Option<Far<M>> {
    let far = model.find::<M>().await?;
    let task = |_| greenroom::spawn(steps(far.clone(), model.clone()));
    let tasks: Vec<_> = (0..1 + sim::random() % 3).map(task).collect();
    join_all(tasks).await;
    Some(far)
}

async fn steps<M: Kind>(far: Far<M>, model: ModelNode) {
    for _ in 0..sim::random() % 20 {
        if let Err(why) = step(&far, &model).await {
            // The end stays as it is.
            greenroom::time::sleep(Duration::from_millis(sim::random() % 3000)).await;
            assert!(far.address.end_now().is_some());
            assert_eq!(far.tell(M::told), Err(why));
            return;
        }
    }
}

async fn step<M: Kind>(far: &Far<M>, model: &ModelNode) -> Sent {
    let moment = Duration::from_micros(sim::random() % 10_000);
    match sim::random() % 8 {
        0 | 1 => far.tell(M::told),
        2 => far.send(M::told).await,
        3 => {
            greenroom::time::sleep(moment).await;
            far.send(M::told).await
        }
        4 => match greenroom::time::timeout(moment, far.send(M::told)).await {
            Ok(sent) => sent,
            Err(_) => Ok(false),
        },
        5 | 6 => ask(far).await,
        _ => M::special(far, model).await,
    }
}

/// Returns how long an ask waits.
fn patience() -> Option<Duration> {
    let moment = Duration::from_micros(sim::random() % 20_000);
    sim::random().is_multiple_of(3).then_some(moment)
}

/// Returns whether there is an answer, or the end of the address.
fn answer<M: Kind>(far: &Far<M>, answer: Result<u64, RemoteAskError>) -> Sent {
    match answer {
        Ok(_) => Ok(true),
        Err(RemoteAskError::NoReply(_) | RemoteAskError::TimedOut) => Ok(false),
        // The actor may have closed before, with the answer to come.
        Err(RemoteAskError::Lost) => Err(far.tell(M::told).unwrap_err()),
        Err(RemoteAskError::Closed) => Err(Distance::Closed),
        Err(RemoteAskError::Unknown) => Err(Distance::Unknown),
        Err(other) => panic!("{:?}: {other}", far.address),
    }
}

async fn ask<M: Kind>(far: &Far<M>) -> Sent {
    let (id, outcome) = far.ask(patience(), M::asked).await;
    if outcome.is_ok() {
        far.ledger.answered(id);
    }
    answer(far, outcome)
}

/// What only actors of one kind are sent.
trait Kind: Numbered {
    fn special(far: &Far<Self>, model: &ModelNode) -> impl Future<Output = Sent> + Send;
}

impl Kind for Slip {
    async fn special(far: &Far<Slip>, _: &ModelNode) -> Sent {
        far.send(Slip::Told).await
    }
}

impl Kind for Note {
    async fn special(far: &Far<Note>, model: &ModelNode) -> Sent {
        if sim::random().is_multiple_of(2) {
            let other = one_of(model).unwrap_or_else(|| far.address.clone());
            return far.send(|id| Note::Lent(id, other)).await;
        }
        let Some(clerk) = one_of(model) else {
            return Ok(false);
        };
        let question = |id, reply| Note::Passed(id, clerk, reply);
        let (id, outcome) = far.ask(patience(), question).await;
        match outcome {
            // Of the node of the clerk.
            Err(RemoteAskError::Refused(_)) => Ok(false),
            Ok(_) => {
                far.ledger.answered_by_clerk(id);
                Ok(true)
            }
            other => answer(far, other),
        }
    }
}

/// Draws one of all actors of a kind.
fn one_of<M: Numbered>(model: &ModelNode) -> Option<RemoteAddress<M>> {
    let mut all = model.node.all::<M>(M::NAME);
    let drawn = sim::random() as usize % all.len().max(1);
    (drawn < all.len()).then(|| all.swap_remove(drawn))
}
