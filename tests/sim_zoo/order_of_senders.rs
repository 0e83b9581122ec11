//! An order that is not guaranteed: messages from two senders to one actor arrive in any order.
//!
//! A report receives its pages through several desks. The editor sends it directly the message that
//! there are no more pages. The editor does other work first, so this message seldom overtakes the
//! last page.

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts};

/// The number of actors that a page passes through.
const DESKS: usize = 4;

enum Report {
    Page(usize),
    /// All pages were sent; this is their number.
    Done(usize),
}

/// Returns the number of pages when the report is complete.
async fn report(mut cx: Context<Report>, version: Version) -> usize {
    let (mut pages, mut all) = (Vec::new(), None);
    while let Some(message) = cx.recv().await {
        match message {
            Report::Page(page) => pages.push(page),
            Report::Done(number) => all = Some(number),
        }
        let complete = match version {
            // All pages were sent earlier, so they should have arrived.
            Version::Buggy => all.is_some(),
            Version::Mended => all == Some(pages.len()),
        };
        if complete {
            break;
        }
    }
    pages.len()
}

/// Passes every page on.
async fn desk(mut cx: Context<usize>, next: Address<usize>) {
    while let Some(page) = cx.recv().await {
        let _ = next.tell(page);
    }
}

async fn archive(mut cx: Context<Reply<()>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(());
    }
}

pub async fn newspaper(version: Version) {
    let report = spawn!(report(_, version), name = "report");
    let mut first = report.map(Report::Page);
    for number in 0..DESKS {
        first = spawn!(desk(_, first), name = format!("desk {number}")).address();
    }
    let archive = spawn!(archive(_), name = "archive");
    let editor = {
        let report = report.address();
        greenroom::spawn(async move {
            for page in 0..3 {
                first.tell(page).unwrap();
            }
            // Enough time for the pages to arrive.
            for _ in 0..2 * DESKS {
                archive.ask(|reply| reply).await.unwrap();
            }
            report.tell(Report::Done(3)).unwrap();
        })
    };
    editor.await;
    let pages = report.join().await.unwrap();
    assert!(pages == 3, "zoo: a page arrived too late");
}

fn is_the_bug(problem: &RunProblem) -> bool {
    *problem == RunProblem::Panicked("main panicked: zoo: a page arrived too late".to_owned())
}

hunts!(newspaper, is_the_bug);
