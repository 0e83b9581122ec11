//! A forgotten reply: on a rare path an asker is left in a list that is never looked at again.
//!
//! A cache loads a page once for all askers that want it meanwhile. A page that changes while it is
//! being loaded is out of date, so it is not stored. The bug forgets the askers that wait for it.

use std::mem::take;

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts};

enum Cache {
    Get(Reply<u32>),
    /// The page has changed.
    Changed,
    /// The page, and the number of changes when it was requested.
    Loaded(u32, u32),
}

type Disk = Address<Reply<u32>>;

async fn disk(mut cx: Context<Reply<u32>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(42);
    }
}

fn load(cx: &mut Context<Cache>, disk: &Disk, changes: u32) {
    let disk = disk.clone();
    let page = async move { disk.ask(|reply| reply).await.unwrap_or(0) };
    cx.on_return(page, move |page| Cache::Loaded(page.unwrap_or(0), changes));
}

async fn cache(mut cx: Context<Cache>, disk: Disk, version: Version) {
    let (mut page, mut waiting, mut changes) = (None, Vec::<Reply<u32>>::new(), 0);
    while let Some(message) = cx.recv().await {
        match message {
            Cache::Get(reply) => match page {
                Some(page) => reply.send(page),
                None => {
                    if waiting.is_empty() {
                        load(&mut cx, &disk, changes);
                    }
                    waiting.push(reply);
                }
            },
            Cache::Changed => {
                page = None;
                changes += 1;
            }
            Cache::Loaded(loaded, of) if of == changes => {
                page = Some(loaded);
                take(&mut waiting)
                    .into_iter()
                    .for_each(|reply| reply.send(loaded));
            }
            Cache::Loaded(..) if version == Version::Mended => load(&mut cx, &disk, changes),
            Cache::Loaded(..) => {}
        }
    }
}

pub async fn site(version: Version) {
    let disk = spawn!(disk(_), name = "disk").address();
    let cache = spawn!(cache(_, disk, version), name = "cache");
    let visitors = [1, 2].map(|_| {
        let cache = cache.address();
        greenroom::spawn(async move { cache.ask(Cache::Get).await.unwrap() })
    });
    let author = {
        let cache = cache.address();
        greenroom::spawn(async move {
            // Writing takes a while.
            for _ in 0..8 {
                greenroom::yield_now().await;
            }
            cache.tell(Cache::Changed).unwrap();
        })
    };
    for visitor in visitors {
        assert_eq!(visitor.await, 42);
    }
    author.await;
}

fn is_the_bug(problem: &RunProblem) -> bool {
    // The visitors are the third and the fourth task.
    let chains = [3, 4].map(|visitor| format!("task #{visitor} → \"cache\" #2"));
    matches!(problem, RunProblem::Deadlock(text) if chains.contains(text))
}

hunts!(site, is_the_bug);
