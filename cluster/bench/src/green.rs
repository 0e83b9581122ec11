//! The counter of greenroom-cluster, over sockets and over NATS, with and without TLS.

use std::future::Future;
use std::time::Duration;

use greenroom::{Context, Reply, Runtime, spawn};
use greenroom_cluster::{Distance, Nats, Node, NodeBuilder, Remote, RemoteAddress, RemoteEnd};
use serde::{Deserialize, Serialize};

use crate::client::{Counter, SLOWNESS, at_workers, measure};
use crate::kinds::{Kind, WORKERS, say, until_closed};
use crate::nats_server::PASSWORD;
use crate::{Outcome, certificates};

/// The further names of the actor. Each grants credit of its own, in all more than sockets keep.
const NAMES: usize = 16;
/// A lookup finds the actor within this time, or the figure fails.
const HEALED: Duration = Duration::from_secs(60);
/// A `send` that takes longer waits: an actor that handles messages takes some of them by then.
const WAITS: Duration = Duration::from_millis(100);

#[derive(Serialize, Deserialize)]
enum Tally {
    Add(u64),
    Load(Vec<u8>),
    Count(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
}

impl Remote for Tally {
    const KIND: &'static str = "tally/1";
}

async fn tally(mut cx: Context<Tally>) {
    // The numbers that have come in their order, and the loads.
    let mut count = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Tally::Add(number) => count += u64::from(number == count),
            Tally::Load(_) => {
                greenroom::time::sleep(SLOWNESS).await;
                count += 1;
            }
            Tally::Count(reply) => reply.send(count),
        }
    }
}

/// What carries the messages.
#[derive(Clone, Copy)]
pub enum Engine<'a> {
    Sockets,
    /// At the server with this address.
    Nats(&'a str),
}

fn node(name: &str, kind: Kind, engine: Engine<'_>) -> NodeBuilder {
    let [certificate, key] = ["pem", "key"].map(|end| certificates::path(&format!("{name}.{end}")));
    let authority = certificates::path("authority.pem");
    let node = Node::builder(name);
    match (engine, kind.is_tls()) {
        (Engine::Sockets, false) => node,
        (Engine::Sockets, true) => node.identity(certificate, key, authority),
        (Engine::Nats(server), false) => node.nats(Nats::servers([server]).password(PASSWORD)),
        (Engine::Nats(server), true) => {
            node.nats(Nats::servers([server]).identity(certificate, key, authority))
        }
    }
}

pub fn serve(kind: Kind, engine: Engine<'_>) -> Outcome<()> {
    let runtime = Runtime::builder().workers(WORKERS).build()?;
    let (node, _tally) = runtime.block_on(async {
        let node = node("server", kind, engine);
        let node = match engine {
            Engine::Sockets => node.listen_address("127.0.0.1:0"),
            Engine::Nats(_) => node,
        };
        let node = node.open().await?;
        // Bounded, so that the server of a flood keeps its memory as well.
        let tally = spawn!(tally(_), capacity = 1024);
        node.publish("tally", &tally)?.detach();
        for name in 0..NAMES {
            node.publish(&name.to_string(), &tally)?.detach();
        }
        Outcome::Ok((node, tally))
    })?;
    match engine {
        Engine::Sockets => until_closed(&node.listen_addresses()[0]),
        Engine::Nats(server) => until_closed(server),
    }
}

pub fn client(
    kind: Kind,
    engine: Engine<'_>,
    figure: &str,
    address: &str,
    size: u64,
) -> Outcome<()> {
    let runtime = Runtime::builder().workers(WORKERS).build()?;
    let figure = figure.to_owned();
    let node = match engine {
        Engine::Sockets => node("client", kind, engine).seeds([address]),
        Engine::Nats(_) => node("client", kind, engine),
    };
    runtime.block_on(at_workers::<RemoteAddress<Tally>, _>(async move {
        let node = node.open().await?;
        let far: RemoteAddress<Tally> = node.lookup("tally").await?;
        match &figure[..] {
            "stopped" => stopped(node, far).await,
            _ => measure(far, &figure, size).await,
        }
    }))
}

/// Says an empty line at each step: the actor has answered; it is lost; it has answered again; all
/// sends wait; the node is closed.
async fn stopped(node: Node, far: RemoteAddress<Tally>) -> Outcome<()> {
    far.count().await?;
    say("")?;
    if far.ended().await != RemoteEnd::Lost {
        return Err("the actor has ended".into());
    }
    say("")?;
    let again: RemoteAddress<Tally> = node.lookup("tally").timeout(HEALED).await?;
    again.count().await?;
    if again != far {
        return Err("the lookup has found another actor".into());
    }
    say("")?;
    for name in 0..NAMES {
        let far: RemoteAddress<Tally> = node.lookup(name.to_string()).await?;
        let load = || far.send(Tally::Load(vec![0; 64 << 10]));
        while let Ok(sent) = greenroom::time::timeout(WAITS, load()).await {
            sent.map_err(|error| error.why.to_string())?;
        }
    }
    if node.status().peers.iter().all(|peer| peer.backlog == 0) {
        return Err("nothing waits to be written".into());
    }
    say("")?;
    node.close().await;
    say("")
}

impl Counter for RemoteAddress<Tally> {
    const HAS_BACK_PRESSURE: bool = true;

    async fn add(&self, number: u64) -> Outcome<()> {
        self.send(Tally::Add(number))
            .await
            .map_err(|error| error.why.to_string().into())
    }

    async fn load(&self, bytes: Vec<u8>) -> Outcome<()> {
        let refused = match self.tell(Tally::Load(bytes)) {
            Err(error) if error.why == Distance::Full => self.send(error.message).await,
            told => told,
        };
        refused.map_err(|error| error.why.to_string().into())
    }

    async fn count(&self) -> Outcome<u64> {
        Ok(self.ask(Tally::Count).await?)
    }

    async fn lost(&self) {
        self.ended().await;
    }

    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        greenroom::spawn(task).detach();
    }
}
