//! A node whose peer is restarted again and again keeps nothing of it.

use std::fs::{read_dir, read_to_string};

use futures::FutureExt;
use greenroom::spawn;
use greenroom_cluster::OpenError;

use crate::notes::{Note, notes};
use crate::process::{Options, Process};
use crate::support::{LONG, builder, free_address, run, scaled, until};

/// What a process may have in addition after any number of restarts, in KiB.
const MOST_MEMORY: usize = 2048;

/// What a process has.
struct Things {
    descriptors: usize,
    threads: usize,
    /// Resident, in KiB.
    memory: usize,
}

impl Things {
    fn of(process: &Process) -> Self {
        let folder = format!("/proc/{}", process.id());
        let count = |name| read_dir(format!("{folder}/{name}")).unwrap().count();
        let status = read_to_string(format!("{folder}/status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.unwrap().trim().trim_end_matches(" kB");
        Things {
            descriptors: count("fd"),
            threads: count("task"),
            memory: memory.parse().unwrap(),
        }
    }
}

/// Opens a node, exchanges questions, and ends it with a question open.
pub async fn life(shop: &mut Process, listen: &str, number: usize) {
    let builder = builder("desk")
        .listen_address(listen)
        .seeds([&shop.address]);
    let desk = loop {
        match builder.clone().open().await {
            Ok(desk) => break desk,
            // One that was dropped closes without a wait for it.
            Err(OpenError::Listen(..)) if number > 0 => greenroom::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    let actor = spawn!(notes(_, |_, _| {}));
    let published = desk.publish("own", &actor).unwrap();
    // A name that comes and goes between two looks of the watch is no change.
    shop.wait_for("come own").await;
    let far = desk.lookup::<Note>("shop").timeout(LONG).await.unwrap();
    let passed = far.ask(|reply| Note::Pass(published.address(), reply));
    assert_eq!(passed.await, Ok(std::process::id()));
    let mut kept = far.ask(Note::Keep).into_future();
    assert!((&mut kept).now_or_never().is_none());
    // It was sent before.
    assert!(far.ask(Note::Kept).await.unwrap() > 0);
    match number % 3 {
        0 => drop(kept),
        1 => desk.close().await,
        // It closes when the last thing is dropped.
        _ => {}
    }
}

#[test]
fn many_restarts_of_a_peer_leave_nothing_behind() {
    run(async {
        let mut shop = Process::start(&Options::new("shop")).await;
        let listen = free_address();
        let mut lives = async |count| {
            for number in 0..count {
                life(&mut shop, &listen, number).await;
                shop.wait_for("gone own").await;
            }
            Things::of(&shop)
        };
        let before = lives(scaled(20, 200)).await;
        let mut after = lives(scaled(60, 1000)).await;
        // A dial may be under way.
        until(async || {
            after = Things::of(&shop);
            after.descriptors <= before.descriptors && after.threads <= before.threads + 1
        })
        .await;
        println!(
            "descriptors {} to {}, threads {} to {}, KiB {} to {}",
            before.descriptors,
            after.descriptors,
            before.threads,
            after.threads,
            before.memory,
            after.memory
        );
        assert!(after.memory <= before.memory + MOST_MEMORY);
    });
}
