//! Nodes that are gone, and dialled nevertheless.

use std::io::Read;
use std::net::TcpListener;

use crate::process::{Options, Process};
use crate::restarts::life;
use crate::support::{free_address, is_long, run};

#[test]
fn a_node_that_is_gone_is_dialled_once_at_a_time() {
    if !is_long("a_node_that_is_gone_is_dialled_once_at_a_time") {
        return;
    }
    run(async {
        let mut shop = Process::start(&Options::new("shop")).await;
        let listen = free_address();
        for number in 0..20 {
            life(&mut shop, &listen, number).await;
            shop.wait_for("gone own").await;
        }
        let mut options = Options::new("desk");
        options.listen.clone_from(&listen);
        options.seed.clone_from(&shop.address);
        let desk = Process::start(&options).await;
        shop.wait_for("come notes desk").await;
        desk.kill().await;
        shop.wait_for("gone notes desk").await;
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
