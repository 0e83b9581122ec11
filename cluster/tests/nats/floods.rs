//! Floods over servers that are killed or stopped: a prefix of each is handled, then it is lost.

use futures::future::join_all;
use greenroom_cluster::{Node, RemoteEnd};

use crate::certificates::NAMES;
use crate::ledger::{Session, compare};
use crate::notes::Note;
use crate::process::{Options, Process};
use crate::server::Server;
use crate::support::{LONG, is_long, run};

/// The notes that are handled before a fault.
const NOTES: usize = 500;

/// Floods the node of a process at the first server from one at the last. Meanwhile each of these
/// servers suffers a fault, and recovers.
async fn keeps_what_is_promised(
    servers: &mut [Server],
    faults: &[usize],
    fault: impl Fn(&mut Server),
    recovery: impl Fn(&mut Server),
) {
    let mut options = Options::new("shop");
    options.listen = servers[0].address();
    let mut shop = Process::start(&options).await;
    let desk = servers.last().unwrap().known("desk");
    let desk = Node::builder("desk").nats(desk).open().await.unwrap();
    let mut sessions = Vec::new();
    let mut before = 0;
    for at in faults {
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        let floods = (0..4).map(|_| greenroom::spawn(Session::run(far.clone(), u64::MAX)));
        let floods: Vec<_> = floods.collect();
        before += NOTES;
        shop.handles(before).await;
        fault(&mut servers[*at]);
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        sessions.extend(join_all(floods).await);
        recovery(&mut servers[*at]);
    }
    assert!(sessions.iter().all(|session| session.is_lost));
    // A session that ends before the nodes have noticed the recovery is followed by another one.
    loop {
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        sessions.push(Session::run(far, 100).await);
        if sessions.last().is_some_and(|session| !session.is_lost) {
            break;
        }
    }
    compare(&sessions, &shop.kill().await);
}

#[test]
fn of_floods_over_a_server_that_is_killed_a_prefix_is_handled() {
    run(async {
        let mut servers = [Server::secure()];
        keeps_what_is_promised(&mut servers, &[0; 2], Server::kill, Server::start).await;
    });
}

#[test]
fn of_floods_over_three_servers_of_which_one_is_killed_a_prefix_is_handled() {
    run(async {
        let mut servers: [_; 3] = Server::cluster(&Server::secure_config(&NAMES));
        keeps_what_is_promised(&mut servers, &[0, 2], Server::kill, Server::start).await;
    });
}

#[test]
fn of_floods_over_a_server_that_is_stopped_a_prefix_is_handled() {
    // Clients notice after some seconds.
    if !is_long("of_floods_over_a_server_that_is_stopped_a_prefix_is_handled") {
        return;
    }
    run(async {
        let mut servers = [Server::secure()];
        let (stop, go) = (
            |server: &mut Server| server.signal("STOP"),
            |server: &mut Server| server.signal("CONT"),
        );
        keeps_what_is_promised(&mut servers, &[0; 2], stop, go).await;
    });
}
