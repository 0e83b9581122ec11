//! Nodes that dial each other, and nodes that are gone.

use std::io::Read;
use std::net::TcpListener;

use greenroom::spawn;
use greenroom_cluster::Node;

use crate::notes::{Note, notes};
use crate::process::{Options, Process};
use crate::restarts::life;
use crate::support::{LONG, free_address, is_long, run, scaled};

#[test]
fn nodes_that_dial_each_other_at_the_same_time_lose_no_link() {
    run(async {
        for _ in 0..scaled(50, 1000) {
            let addresses = [free_address(), free_address()];
            let open = |name, own: usize| {
                // Two seeds lead to the same node.
                let seeds = [&addresses[1 - own]; 2];
                let builder = Node::builder(name).listen(&addresses[own]);
                builder.seeds(seeds).open()
            };
            let (a, b) = futures::join!(open("a", 0), open("b", 1));
            let (a, b) = (a.unwrap(), b.unwrap());
            let actor = spawn!(notes(_, |_, _| {}));
            a.publish("of a", &actor).unwrap().detach();
            b.publish("of b", &actor).unwrap().detach();
            let asks = async |node: &Node, name| {
                let far = node.lookup::<Note>(name).timeout(LONG).await.unwrap();
                for _ in 0..20 {
                    assert!(far.ask(Note::Life).await.is_ok());
                }
            };
            futures::join!(asks(&a, "of b"), asks(&b, "of a"));
            assert_eq!(a.status().lost_links + b.status().lost_links, 0);
        }
    });
}

#[test]
fn a_node_that_is_gone_is_dialled_once_at_a_time() {
    if !is_long("a_node_that_is_gone_is_dialled_once_at_a_time") {
        return;
    }
    run(async {
        let mut shop = Process::start(&Options::new("shop")).await;
        let listen = free_address();
        for number in 0..20 {
            life(&shop, &listen, number).await;
            shop.hears("gone own").await;
        }
        let mut options = Options::new("desk");
        options.listen.clone_from(&listen);
        options.seed.clone_from(&shop.address);
        let desk = Process::start(&options).await;
        shop.hears("come notes desk").await;
        desk.kill().await;
        shop.hears("gone notes desk").await;
        let listener = TcpListener::bind(&listen).unwrap();
        let dialled = greenroom::unblock(move || {
            let first = listener.accept().unwrap().0;
            (first, listener.accept().unwrap().0)
        });
        // The node gives the first connection up before it makes another one.
        let (mut first, _second) = dialled.await;
        first.set_nonblocking(true).unwrap();
        let read = first.read_to_end(&mut Vec::new());
        assert!(read.is_ok(), "two connections at a time: {read:?}");
    });
}
