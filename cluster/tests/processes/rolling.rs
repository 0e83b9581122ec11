//! Three nodes that are restarted one after another under load.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use greenroom_cluster::Node;

use crate::killed::finds;
use crate::ledger::{Session, compare};
use crate::notes::Note;
use crate::process::{Options, Process};
use crate::support::{LONG, builder, run, scaled};

/// Looks the actor up and sends to it, again and again.
async fn client(node: Node, is_over: Arc<AtomicBool>) -> Vec<Session> {
    let mut sessions = Vec::new();
    // A hint to end: no other data depends on it.
    while !is_over.load(Ordering::Relaxed) {
        let far = node.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        sessions.push(Session::run(far, 500).await);
    }
    sessions
}

#[test]
fn a_rolling_restart_under_load_loses_nothing_that_is_not_said() {
    run(async {
        let mut nodes = VecDeque::new();
        let mut seed = String::new();
        for name in ["a", "b", "c"] {
            let mut options = Options::new(name);
            options.seed.clone_from(&seed);
            let process = Process::start(&options).await;
            options.listen.clone_from(&process.address);
            seed.clone_from(&process.address);
            nodes.push_back((options, process));
        }
        let seeds = nodes.iter().map(|(_, process)| &*process.address);
        let desk = builder("desk").seeds(seeds).open().await.unwrap();
        for (options, process) in &nodes {
            finds(&desk, options.name, process).await;
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let clients = (0..6).map(|_| greenroom::spawn(client(desk.clone(), is_over.clone())));
        let clients: Vec<_> = clients.collect();
        let mut handled = Vec::new();
        for restart in 0..scaled(6, 60) {
            let (options, mut old) = nodes.pop_front().unwrap();
            old.handles(200).await;
            // Not in step with the nodes, so each of them ends both ways.
            handled.extend(match restart % 2 {
                0 => old.close().await,
                _ => old.kill().await,
            });
            let new = Process::start(&options).await;
            finds(&desk, options.name, &new).await;
            nodes.push_back((options, new));
        }
        is_over.store(true, Ordering::Relaxed);
        let sessions: Vec<Session> = join_all(clients).await.into_iter().flatten().collect();
        for (_, process) in nodes {
            handled.extend(process.close().await);
        }
        let lost = sessions.iter().filter(|session| session.is_lost).count();
        println!(
            "{lost} of {} sessions lost, {} notes",
            sessions.len(),
            handled.len()
        );
        assert!(0 < lost && lost < sessions.len());
        compare(&sessions, &handled);
    });
}
