//! Two full bounded mailboxes: each actor waits for room in the other's mailbox and reads nothing.
//!
//! A parser sends records to a store, which sends rejected ones back. As long as there is room in
//! one of the mailboxes, nothing goes wrong.

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, spawn};

use crate::hunt::{Version, hunts};

const ROOM: usize = 4;
/// The number of lines of a file.
const LINES: u32 = 3;
/// One record in this many is rejected.
const REFUSED: u32 = 8;

enum Line {
    Text(u32),
    /// The store rejects this record.
    Refused(u32),
    /// The store to which the records are sent.
    Store(Address<u32>),
}

async fn parser(mut cx: Context<Line>) -> Vec<u32> {
    let (mut refused, mut store) = (Vec::new(), None);
    while let Some(line) = cx.recv().await {
        match line {
            Line::Store(address) => store = Some(address),
            Line::Refused(record) => refused.push(record),
            Line::Text(record) => {
                let Some(store) = &store else { continue };
                // The store may be closed already.
                let _ = store.send(record).await;
            }
        }
    }
    refused
}

async fn store(mut cx: Context<u32>, parser: Address<Line>, version: Version) {
    while let Some(record) = cx.recv().await {
        if record % REFUSED > 0 {
            continue;
        }
        let back = Line::Refused(record);
        match version {
            Version::Buggy => drop(parser.send(back).await),
            // Another task waits for room.
            Version::Mended => {
                let parser = parser.clone();
                let waits = async move { drop(parser.send(back).await) };
                greenroom::spawn(waits).detach();
            }
        }
    }
}

pub async fn import(version: Version) {
    let parser = spawn!(parser(_), name = "parser", capacity = ROOM);
    let to = parser.address();
    let store = spawn!(store(_, to, version), name = "store", capacity = ROOM);
    parser.send(Line::Store(store.address())).await.unwrap();
    drop(store);
    let readers = [0, 1, 2, 3, 4].map(|file| {
        let parser = parser.address();
        greenroom::spawn(async move {
            for line in 1..=LINES {
                let text = Line::Text(LINES * file + line);
                parser.send(text).await.unwrap();
            }
        })
    });
    for reader in readers {
        reader.await;
    }
}

fn is_the_bug(problem: &RunProblem) -> bool {
    let cycles = [
        r#""parser" #1 → "store" #2 (for room) → "parser" #1 (for room)"#,
        r#""store" #2 → "parser" #1 (for room) → "store" #2 (for room)"#,
    ];
    matches!(problem, RunProblem::Deadlock(text) if cycles.contains(&text.as_str()))
}

hunts!(import, is_the_bug);
