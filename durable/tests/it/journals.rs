//! Journals: events in their order, claims, snapshots.

use futures::future::join;
use greenroom_durable::{Job, JournalState, Store, StoreProblem, Stored};
use serde::{Deserialize, Serialize};

use crate::support::{Log, Note, Refused, notes, one_worker, simulate};

/// The notes that were added.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Pile(Vec<u64>);

impl Stored for Pile {
    const KIND: &'static str = "pile/1";
}

impl JournalState for Pile {
    type Event = Note;

    fn apply(&mut self, event: &Note) {
        self.0.push(event.0);
    }
}

async fn pile(store: &Store) -> greenroom_durable::Journal<Pile> {
    let pile = store.journal::<Pile>("piles", "alice").snapshot_every(4);
    pile.open().await.unwrap()
}

fn up_to(end: u64) -> Vec<u64> {
    (0..end).collect()
}

#[test]
fn a_journal_has_its_events_again_after_a_crash_with_and_without_snapshots() {
    simulate(|file, mut store| async move {
        let mut count = 0;
        for _ in 0..5 {
            let mut pile = pile(&store).await;
            assert_eq!((&pile.state().0, pile.position()), (&up_to(count), count));
            for size in [1, 2] {
                let events: Vec<_> = (count..count + size).map(Note).collect();
                count += size;
                pile.append(events).await.unwrap();
            }
            assert_eq!(pile.state().0, up_to(count));
            file.crash(&store);
            store = Store::simulated(&file).open().await.unwrap();
        }
        let other = store.journal::<Pile>("piles", "bob").open().await.unwrap();
        assert_eq!(other.position(), 0);
    });
}

#[test]
fn of_two_writers_one_is_refused_and_nothing_is_lost() {
    simulate(|file, store| async move {
        let theirs = Store::simulated(&file).open().await.unwrap();
        let (mut a, mut b) = (pile(&store).await, pile(&theirs).await);
        let (of_a, of_b) = join(a.append([Note(0)]), b.append([Note(0)])).await;
        assert!(of_a.is_ok() != of_b.is_ok());
        let error = of_a.and(of_b).unwrap_err();
        assert_eq!(
            (error.why, error.events),
            (StoreProblem::Stale, vec![Note(0)])
        );
        assert_eq!(pile(&store).await.state().0, [0]);
    });
}

#[test]
fn a_stale_writer_at_the_right_position_is_refused_as_well() {
    simulate(|_, store| async move {
        let mut first = pile(&store).await;
        first.append([Note(0)]).await.unwrap();
        let mut second = pile(&store).await;
        // A claim without an event: both are at the same position.
        second.append([]).await.unwrap();
        assert_eq!(
            first.append([Note(1)]).await.unwrap_err().why,
            StoreProblem::Stale
        );
        assert_eq!(first.save().await.unwrap_err().why, StoreProblem::Stale);
        second.append([Note(1)]).await.unwrap();
        assert_eq!(pile(&store).await.state().0, [0, 1]);
    });
}

#[test]
fn an_append_in_the_name_of_a_job_is_refused_once_that_is_in_other_hands() {
    simulate(|_, store| async move {
        let (queue, log) = (notes(&store).await, Log::new());
        let (own, of_handlers) = (log.clone(), store.clone());
        let workers = queue.serve(one_worker(), move |job| {
            own.add(job.fence());
            let store = of_handlers.clone();
            async move {
                let mut pile = pile(&store).await;
                pile.append_fenced(&job.fence(), [Note(pile.position())])
                    .await
                    .map_err(|_| Refused)
            }
        });
        let workers = workers.await.unwrap();
        queue.put(Job::new(Note(1))).await.unwrap();
        queue.drain().await.unwrap();
        let mut pile = pile(&store).await;
        assert_eq!(pile.position(), 1);
        let refused = pile
            .append_fenced(&log.all()[0], [Note(1)])
            .await
            .unwrap_err();
        assert_eq!(refused.why, StoreProblem::Stale);
        assert_eq!(pile.position(), 1);

        let lease = store.lease("pile").hold().await.unwrap();
        pile.append_fenced(&lease.fence(), [Note(1)]).await.unwrap();
        let fence = lease.fence();
        drop(lease);
        let refused = pile.append_fenced(&fence, [Note(2)]).await.unwrap_err();
        assert_eq!(refused.why, StoreProblem::Stale);
        workers.stop().await;
    });
}

/// Another version of the pile, with other events.
#[derive(Default, Serialize, Deserialize)]
struct Sum {
    sum: u64,
}

#[derive(Serialize, Deserialize)]
struct Added {
    number: u64,
}

impl Stored for Sum {
    const KIND: &'static str = "pile/2";
}

impl Stored for Added {
    const KIND: &'static str = "note/2";

    fn upgrade(kind: &str, bytes: &[u8]) -> Option<Self> {
        let known = serde_json::from_slice(bytes).ok();
        let number = known.filter(|number| kind == "note/1" && *number < 100)?;
        Some(Added { number })
    }
}

impl JournalState for Sum {
    type Event = Added;

    fn apply(&mut self, event: &Added) {
        self.sum += event.number;
    }
}

#[test]
fn events_of_older_kinds_are_upgraded_and_an_older_snapshot_is_left_out() {
    simulate(|_, store| async move {
        let mut pile = pile(&store).await;
        pile.append((1..=6).map(Note)).await.unwrap();
        let mut sum = store.journal::<Sum>("piles", "alice").open().await.unwrap();
        assert_eq!((sum.state().sum, sum.position()), (21, 6));
        sum.append([Added { number: 9 }]).await.unwrap();
        sum.save().await.unwrap();
        let mut sum = store.journal::<Sum>("piles", "alice").open().await.unwrap();
        assert_eq!(sum.state().sum, 30);

        sum.append([Added { number: 1 }]).await.unwrap();
        let error = store
            .journal::<Pile>("piles", "alice")
            .open()
            .await
            .unwrap_err();
        assert!(matches!(error.why, StoreProblem::Undecodable(_)), "{error}");
    });
}

#[test]
fn after_an_unknown_outcome_the_handle_is_stale_and_the_next_one_knows() {
    simulate(|file, store| async move {
        let mut count = 0;
        for _ in 0..10 {
            let mut pile = pile(&store).await;
            let (before, known) = (pile.position(), up_to(pile.position()));
            assert_eq!(pile.state().0, known);
            file.unknown(1.0);
            let error = pile.append([Note(before)]).await.unwrap_err();
            assert!(matches!(error.why, StoreProblem::Unknown(_)), "{error}");
            file.unknown(0.0);
            let stale = pile.append([Note(before)]).await.unwrap_err();
            assert_eq!(stale.why, StoreProblem::Stale);
            count += 1;
            assert!(before <= count);
        }
    });
}
