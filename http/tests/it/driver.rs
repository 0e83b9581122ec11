//! Runtimes with the driver and without it: sockets are attended to, whatever the workers do.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use greenroom::policy::{Prioritized, Sharing};
use greenroom::time::sleep;
use greenroom::{Builder, Context, Reply, Runtime, Warning, spawn};
use greenroom_http::{Server, driver};
use serde::Deserialize;

use crate::support::{Client, LONG, patient};

#[derive(Deserialize)]
struct Echo {
    text: String,
}

#[derive(Deserialize)]
struct Block {}

/// A runtime and a server on it. An actor of its own answers each of its types.
struct Running {
    runtime: Runtime,
    server: Server,
    /// The actor that blocks says that it has begun.
    blocks: Receiver<()>,
    /// Each of these ends a turn that blocks.
    goes_on: Sender<()>,
}

async fn echoes(mut cx: Context<(Echo, Reply<String>)>) {
    while let Some((Echo { text }, reply)) = cx.recv().await {
        reply.send(text);
    }
}

/// Blocks its worker in each turn.
async fn blocks(
    mut cx: Context<(Block, Reply<u32>)>,
    begins: Sender<()>,
    ends: Arc<Mutex<Receiver<()>>>,
) {
    while let Some((Block {}, reply)) = cx.recv().await {
        begins.send(()).unwrap();
        ends.lock().unwrap().recv().unwrap();
        reply.send(1);
    }
}

fn running(builder: Builder) -> Running {
    let runtime = builder.build().unwrap();
    let (begins, has_begun) = channel();
    let (goes_on, ends) = channel();
    let ends = Arc::new(Mutex::new(ends));
    let echo = spawn!(echoes(_), on = &runtime);
    let block = spawn!(blocks(_, begins, ends), on = &runtime);
    let builder = Server::bind("127.0.0.1:0")
        .limits(patient())
        .grace(LONG)
        .on("Echo", &echo.address(), |echo: Echo, reply| (echo, reply))
        .on("Block", &block.address(), |it: Block, reply| (it, reply));
    echo.detach();
    block.detach();
    let server = runtime.block_on(runtime.spawn(builder.listen())).unwrap();
    Running {
        runtime,
        server,
        blocks: has_begun,
        goes_on,
    }
}

impl Running {
    fn client(&self) -> Client {
        Client::new(self.server.local_addr())
    }

    fn echoes(&self, text: &str) {
        let answer = self.client().get(&format!("/Echo?text={text}"));
        assert_eq!(answer.body, format!("{text:?}"));
    }
}

fn workers(number: usize) -> Builder {
    Runtime::builder().workers(number)
}

#[test]
fn a_long_turn_of_one_worker_leaves_no_socket_unattended() {
    let running = running(workers(2).driver(driver()));
    let mut own = running.client();
    for number in 0..20 {
        let mut blocked = running.client();
        blocked.send("GET /Block HTTP/1.1\r\nHost: localhost\r\n\r\n");
        running.blocks.recv().unwrap();
        // On a connection that was there before, and on a new one.
        let answer = own.get(&format!("/Echo?text=old{number}"));
        assert_eq!(answer.body, format!("\"old{number}\""));
        running.echoes("new");
        running.goes_on.send(()).unwrap();
        assert_eq!(blocked.response().body, "1");
    }
}

#[test]
fn a_runtime_without_the_driver_is_served_while_all_driven_workers_are_busy() {
    let driven = running(workers(1).driver(driver()));
    let plain = running(workers(1));
    let mut blocked = driven.client();
    blocked.send("GET /Block HTTP/1.1\r\nHost: localhost\r\n\r\n");
    driven.blocks.recv().unwrap();
    for _ in 0..20 {
        plain.echoes("plain");
    }
    driven.goes_on.send(()).unwrap();
    assert_eq!(blocked.response().body, "1");
}

#[test]
fn runtimes_with_the_driver_and_without_it_begin_and_end_in_any_order() {
    let plain = running(workers(1));
    plain.echoes("alone");
    for _ in 0..10 {
        let first = running(workers(2).driver(driver()));
        let second = running(workers(2).driver(driver()));
        for all in [&plain, &first, &second] {
            all.echoes("three");
        }
        let Running {
            runtime, server, ..
        } = first;
        runtime.block_on(server.stop());
        assert_eq!(runtime.block_on(runtime.shutdown()).left_behind, 0);
        drop(runtime);
        second.echoes("second");
        plain.echoes("plain");
    }
}

#[test]
fn a_server_runs_on_driven_workers_of_each_policy() {
    running(workers(2).policy(Sharing::default()).driver(driver())).echoes("shared");
    running(workers(2).policy(Prioritized::default()).driver(driver())).echoes("first");
    running(workers(1).driver(driver())).echoes("stolen");
}

#[test]
fn a_deadline_is_never_early_and_an_earlier_one_is_not_missed() {
    let runtime = workers(2).driver(driver()).build().unwrap();
    // Each is the new earliest deadline, for which a worker waits already.
    let late: Vec<_> = (1..50u64)
        .rev()
        .map(|hours| runtime.spawn(sleep(Duration::from_secs(3600 * hours))))
        .collect();
    for micros in [1, 300, 999, 1000, 1001, 2500, 10_000].repeat(4) {
        let time = Duration::from_micros(micros);
        let begun = Instant::now();
        runtime.block_on(runtime.spawn(sleep(time)));
        assert!(begun.elapsed() >= time, "{:?} of {time:?}", begun.elapsed());
    }
    drop(late);
}

#[test]
fn an_idle_server_is_no_endless_wait_of_the_actor_that_listens() {
    /// Listens by its own address.
    async fn listens(mut cx: Context<(Echo, Reply<String>)>, bound: Sender<Server>) {
        let own = cx.address();
        let builder = Server::bind("127.0.0.1:0").limits(patient());
        let builder = builder.on("Echo", &own, |it: Echo, reply| (it, reply));
        drop(own);
        bound.send(builder.listen().await.unwrap()).unwrap();
        while let Some((Echo { text }, reply)) = cx.recv().await {
            reply.send(text);
        }
    }
    /// Keeps its own address, and nothing else has one.
    async fn keeps(mut cx: Context<()>) {
        let _own = cx.address();
        while cx.recv().await.is_some() {}
    }
    let warns = |warn: Sender<Warning>| {
        let builder = workers(2).endless_waits(true);
        let builder = builder.on_warning(move |warning| drop(warn.send(warning.clone())));
        builder.build().unwrap()
    };
    let (warn, warned) = channel();
    let (bind, bound) = channel();
    let runtime = warns(warn);
    let listens = spawn!(listens(_, bind), on = &runtime);
    let server = bound.recv().unwrap();
    let joining = runtime.clone();
    let joins = thread::spawn(move || joining.block_on(listens.join()));
    // Another runtime, which becomes idle later, has looked.
    let (warn, other_warned) = channel();
    let other = warns(warn);
    let keeps = spawn!(keeps(_), on = &other);
    let id = keeps.id();
    let other_joins = thread::spawn(move || other.block_on(keeps.join()));
    let warning = other_warned.recv().unwrap();
    assert!(warning.to_string().contains(&format!("#{id}")), "{warning}");
    let text = Client::new(server.local_addr())
        .get("/Echo?text=there")
        .body;
    assert_eq!(text, "\"there\"");
    runtime.block_on(server.stop());
    joins.join().unwrap().unwrap();
    assert!(warned.try_recv().is_err());
    drop(other_joins);
}
