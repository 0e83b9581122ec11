//! `model_14`: an entry leaves a local queue exactly once, whichever thread takes it.
//!
//! Entries are numbers here. Each comes with a cell that its pusher wrote and its taker reads. So
//! an entry that is passed on without ordering fails the model too.
#![expect(unsafe_code, reason = "cells that a model's threads write and read")]

use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use ::loom::thread::spawn;

use super::queues::{LocalQueue, Queues};
use super::ring::{CAPACITY, Queued, Ring};
use super::sleep::WorkerSleep;
use super::slot::LifoSlot;
use crate::sync::UnsafeCell;

/// The cells that are passed on with the entries.
struct Cargo(Vec<UnsafeCell<usize>>);

impl Cargo {
    fn new(entries: usize) -> Rc<Cargo> {
        Rc::new(Cargo((0..entries).map(|_| UnsafeCell::new(0)).collect()))
    }

    /// Creates entry `number`, from 1, and writes its cell.
    fn pack(&self, number: usize) -> Queued {
        // SAFETY: no other thread has the entry yet.
        self.0[number - 1].with_mut(|cargo| unsafe { *cargo = number });
        NonNull::new(std::ptr::without_provenance_mut(number)).expect("entries count from 1")
    }

    /// Reads the cell of an entry; returns its number.
    fn unpack(&self, entry: Queued) -> usize {
        let number = entry.addr().get();
        // SAFETY: the thread that has the entry owns its cell.
        self.0[number - 1].with_mut(|cargo| assert_eq!(unsafe { *cargo }, number));
        number
    }
}

/// Asserts that each of the entries was taken exactly once.
fn assert_each_once(entries: usize, taken: impl IntoIterator<Item = usize>) {
    let mut taken: Vec<_> = taken.into_iter().collect();
    taken.sort_unstable();
    assert_eq!(taken, (1..=entries).collect::<Vec<_>>(), "taken once each");
}

/// Checks that the owner takes every entry that a thief does not, near the wrap-around of
/// positions.
#[test]
fn model_14_a_stolen_half_is_not_popped_too() {
    ::loom::model(|| {
        let (ring, cargo) = (Arc::new(Ring::starting_at(u64::MAX - 1)), Cargo::new(4));
        ring.push(cargo.pack(1)).expect("there is room");
        let thief = spawn({
            let (ring, cargo) = (ring.clone(), cargo.clone());
            move || {
                let own = Ring::starting_at(u64::MAX);
                let first = ring.steal_into(&own);
                let stolen = first.into_iter().chain(std::iter::from_fn(|| own.pop()));
                stolen.map(|entry| cargo.unpack(entry)).collect()
            }
        });
        for number in 2..=4 {
            ring.push(cargo.pack(number)).expect("there is room");
        }
        let popped: Vec<_> = std::iter::from_fn(|| ring.pop()).collect();
        let popped = popped.into_iter().map(|entry| cargo.unpack(entry));
        let stolen: Vec<_> = thief.join().unwrap();
        assert!(stolen.is_sorted(), "the oldest first");
        assert_each_once(4, popped.chain(stolen));
    });
}

/// Checks that an entry that overflows a full ring is taken once, while a thief takes from ring and
/// backlog.
#[test]
fn model_14_an_overflow_and_a_thief_share_a_full_ring() {
    ::loom::model(|| {
        const ENTRIES: usize = CAPACITY + 1;
        let (queues, cargo) = (
            Arc::new(Queues::new(2, WorkerSleep::new(2, None))),
            Cargo::new(ENTRIES),
        );
        let owner = LocalQueue::new(&queues, 0, 0, None);
        for number in 1..ENTRIES {
            owner.push(cargo.pack(number), true);
        }
        let thief = spawn({
            let (queues, cargo) = (queues.clone(), cargo.clone());
            move || {
                let local = LocalQueue::new(&queues, 1, 0, None);
                let first = local.steal();
                let stolen = first.into_iter().chain(local.drain());
                stolen.map(|entry| cargo.unpack(entry)).collect()
            }
        });
        owner.push(cargo.pack(ENTRIES), true);
        let stolen: Vec<_> = thief.join().unwrap();
        let kept: Vec<_> = owner.drain().collect();
        let kept = kept.into_iter().map(|entry| cargo.unpack(entry));
        assert_each_once(ENTRIES, kept.chain(stolen));
        assert!(!queues.has_work(), "nothing is left");
    });
}

/// Checks that either the owner or a claimer takes the entry in the slot, while the owner fills and
/// empties it.
#[test]
fn model_14_the_slot_gives_an_entry_to_its_owner_or_to_a_claimer() {
    ::loom::model(|| {
        crate::sync::follow_waits();
        let (slot, cargo) = (Arc::new(LifoSlot::new()), Cargo::new(2));
        let watcher = spawn({
            let (slot, cargo) = (slot.clone(), cargo.clone());
            move || slot.claim().map(|entry| cargo.unpack(entry))
        });
        let displaced = [1, 2].map(|number| slot.put(cargo.pack(number)));
        let own = displaced.into_iter().flatten().chain(slot.take());
        let own: Vec<_> = own.map(|entry| cargo.unpack(entry)).collect();
        assert_each_once(2, own.into_iter().chain(watcher.join().unwrap()));
        assert!(!slot.is_filled(), "nothing is left");
    });
}
