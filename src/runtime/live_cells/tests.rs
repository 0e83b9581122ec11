//! The table of cells against a list of pairs, and shards that are full.

use std::ptr::{NonNull, without_provenance_mut};
use std::task::Waker;

use super::LiveCells;
use super::table::CellTable;
use crate::task::Header;

/// Returns a pointer that the table never dereferences.
fn cell(number: usize) -> NonNull<Header> {
    NonNull::new(without_provenance_mut((number + 1) * align_of::<Header>())).unwrap()
}

#[test]
fn a_table_holds_the_cells_that_were_inserted_and_not_removed() {
    let mut random = fastrand::Rng::with_seed(7);
    let (mut table, mut model) = (CellTable::default(), Vec::<(usize, NonNull<Header>)>::new());
    for number in 0..20_000 {
        // The table grows beyond several chunks and becomes empty, again and again.
        let grows = number / 1000 % 2 == 0;
        if model.is_empty() || random.usize(..4) > if grows { 0 } else { 2 } {
            model.push((table.insert(cell(number)), cell(number)));
        } else {
            let (index, _) = model.swap_remove(random.usize(..model.len()));
            drop(table.remove(index));
        }
        assert_eq!(table.len(), model.len());
        if number % 100 == 0 {
            let (mut found, mut expected): (Vec<_>, Vec<_>) = (
                table.iter().collect(),
                model.iter().map(|&(_, cell)| cell).collect(),
            );
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn a_table_iterates_newest_first() {
    let mut table = CellTable::default();
    let indices: Vec<usize> = (0..300).map(|number| table.insert(cell(number))).collect();
    assert!(table.iter().eq((0..300).rev().map(cell)));
    for index in indices {
        drop(table.remove(index));
    }
    table.insert(cell(1));
    table.insert(cell(2));
    assert!(table.iter().eq([2, 1].map(cell)));
}

#[test]
fn a_waker_that_a_full_shard_refuses_is_kept_by_the_next() {
    let live = LiveCells {
        most: 2,
        ..LiveCells::new(3)
    };
    let track = |_| live.track(Waker::noop(), Some(1), || false).unwrap();
    let indices: Vec<_> = (0..6).map(track).collect();
    assert_eq!(live.tasks(), 6);
    let of_each: Vec<usize> = live
        .shards
        .iter()
        .map(|shard| shard.lock().wakers.len())
        .collect();
    assert_eq!(of_each, [2; 3]);
    for (n, live_index) in indices.into_iter().enumerate() {
        live.untrack(live_index);
        assert_eq!(live.tasks(), 5 - n);
    }
}

#[test]
fn a_count_of_turns_that_begins_anew_goes_on() {
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let answers = |mut cx: crate::Context<crate::Reply<()>>| async move {
        while let Some(reply) = cx.recv().await {
            reply.send(());
        }
    };
    let actor = crate::actor(answers).on(&runtime).spawn();
    let turns = || runtime.stats().actors[0].turns;
    for asks in 0..200 {
        runtime.block_on(actor.ask(|reply| reply)).unwrap();
        runtime.run_until_quiescent();
        // The actor may have had a turn before its first message.
        assert!(
            (asks + 1..=asks + 2).contains(&turns()),
            "{} turns",
            turns()
        );
    }
}
