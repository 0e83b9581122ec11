//! Actors of keys, whose state is a journal.

use greenroom::registry::{Keyed, KeyedAskError};
use greenroom::time::sleep;
use greenroom::{AskError, Context, Reply, actor};
use greenroom_durable::{JournalState, Store, Stored};
use serde::{Deserialize, Serialize};

use crate::support::{Note, secs, simulate};

/// What was saved up, and how many events have made it since the last snapshot.
#[derive(Default, Serialize, Deserialize)]
struct Savings {
    sum: u64,
    #[serde(skip)]
    events: usize,
}

impl Stored for Savings {
    const KIND: &'static str = "savings/1";
}

impl JournalState for Savings {
    type Event = Note;

    fn apply(&mut self, event: &Note) {
        self.sum += event.0;
        self.events += 1;
    }
}

enum Saving {
    /// Saves up, and returns the sum, and the events since the last snapshot.
    Add(u64, Reply<(u64, usize)>),
    Panic,
}

async fn savings(mut cx: Context<Saving>, store: Store, owner: String) {
    let opened = store.journal::<Savings>("savings", &owner).open().await;
    let Ok(mut savings) = opened else { return };
    while let Some(message) = cx.recv().await {
        let Saving::Add(number, reply) = message else {
            panic!("an actor of a key")
        };
        if savings.append([Note(number)]).await.is_err() {
            return;
        }
        let state = savings.state();
        reply.send((state.sum, state.events));
    }
    let _ = savings.save().await;
}

/// Returns the actors of all owners.
fn all_savings(store: &Store) -> Keyed<String, Saving> {
    let store = store.clone();
    let make = move |owner| {
        let store = store.clone();
        actor(move |cx| savings(cx, store, owner))
    };
    let all = Keyed::builder(make).idle(secs(60)).on_end(|_, _| {});
    all.build().unwrap()
}

async fn add(
    all: &Keyed<String, Saving>,
    owner: &str,
    number: u64,
) -> Result<(u64, usize), KeyedAskError> {
    let add = |reply| Saving::Add(number, reply);
    all.ask(&owner.to_owned(), add).await
}

#[test]
fn an_idle_keyed_actor_saves_a_snapshot_and_the_next_one_begins_from_it() {
    simulate(|_, store| async move {
        let all = all_savings(&store);
        for (owner, sum) in [("alice", 1), ("alice", 2), ("bob", 1), ("alice", 3)] {
            assert_eq!(add(&all, owner, 1).await.unwrap(), (sum, sum as usize));
        }
        assert_eq!(all.len(), 2);
        sleep(secs(100)).await;
        all.ended().await;
        assert!(all.is_empty());
        // Only the new event was applied to the snapshot.
        assert_eq!(add(&all, "alice", 1).await.unwrap(), (4, 1));
        assert_eq!(add(&all, "bob", 5).await.unwrap(), (6, 1));
    });
}

#[test]
fn a_keyed_actor_that_panics_begins_again_with_all_that_was_answered() {
    simulate(|_, store| async move {
        let all = all_savings(&store);
        assert_eq!(add(&all, "alice", 7).await.unwrap(), (7, 1));
        all.tell(&"alice".to_owned(), Saving::Panic).unwrap();
        let (sum, events) = add_until_answered(&all, 1).await;
        assert_eq!((sum, events), (8, 2));
    });
}

/// Adds once, though the actor may just end.
async fn add_until_answered(all: &Keyed<String, Saving>, number: u64) -> (u64, usize) {
    loop {
        match add(all, "alice", number).await {
            Ok(answer) => return answer,
            Err(KeyedAskError::Ask(AskError::Closed(_) | AskError::NoReply(_))) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn what_a_keyed_actor_has_answered_is_there_after_failures_and_crashes() {
    simulate(|file, mut store| async move {
        let (mut least, mut most) = (0, 0);
        for _ in 0..5 {
            let all = all_savings(&store);
            for chance in [0.0, 0.5, 0.0] {
                file.unknown(chance);
                for _ in 0..5 {
                    most += 1;
                    if let Ok((sum, _)) = add(&all, "alice", 1).await {
                        assert!((least + 1..=most).contains(&sum), "{least} {sum} {most}");
                        (least, most) = (sum, sum);
                    }
                }
            }
            assert!(least > 0);
            file.crash(&store);
            assert!(add(&all, "alice", 1).await.is_err());
            store = Store::simulated(&file).open().await.unwrap();
        }
    });
}
