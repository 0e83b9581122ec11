//! An order that nobody promises: what two senders tell one actor comes in any order.
//!
//! A report is told its pages by way of some desks, and by the editor himself that there are no more:
//! he has other things to do first, so that this seldom overtakes the last page.

use greenroom::sim::Problem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts};

/// How many actors a page goes through.
const DESKS: usize = 4;

enum Report {
    Page(usize),
    /// That was all: so many pages.
    Done(usize),
}

/// Gives the number of pages when it has all.
async fn report(mut cx: Context<Report>, version: Version) -> usize {
    let (mut pages, mut all) = (Vec::new(), None);
    while let Some(message) = cx.recv().await {
        match message {
            Report::Page(page) => pages.push(page),
            Report::Done(number) => all = Some(number),
        }
        let complete = match version {
            // Those that were sent before are here.
            Version::Buggy => all.is_some(),
            Version::Mended => all == Some(pages.len()),
        };
        if complete {
            break;
        }
    }
    pages.len()
}

/// Reads a page and passes it on.
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
            // Time enough.
            for _ in 0..2 * DESKS {
                archive.ask(|reply| reply).await.unwrap();
            }
            report.tell(Report::Done(3)).unwrap();
        })
    };
    editor.await;
    let pages = report.join().await.unwrap();
    assert!(pages == 3, "zoo: a page came too late");
}

fn is_the_bug(problem: &Problem) -> bool {
    *problem == Problem::Panicked("main panicked: zoo: a page came too late".to_owned())
}

hunts!(newspaper, is_the_bug);
