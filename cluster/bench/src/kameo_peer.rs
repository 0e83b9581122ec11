//! The counter of kameo. Its links are encrypted always, here over TCP as those of greenroom.

use std::future::Future;
use std::time::Duration;

use futures::StreamExt;
use kameo::prelude::*;
use kameo::remote::{self, messaging};
use libp2p::swarm::{NetworkBehaviour, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Swarm, SwarmBuilder, noise, tcp, yamux};
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::client::{Counter, SLOWNESS, at_workers, measure};
use crate::kinds::{tokio_runtime, until_closed};

#[derive(Actor, RemoteActor)]
struct Tally(u64);

#[derive(Serialize, Deserialize)]
struct Add(u64);

#[derive(Serialize, Deserialize)]
struct Load(Vec<u8>);

#[derive(Serialize, Deserialize)]
struct Count;

#[remote_message]
impl Message<Add> for Tally {
    type Reply = ();

    async fn handle(&mut self, _: Add, _: &mut Context<Self, ()>) {
        self.0 += 1;
    }
}

#[remote_message]
impl Message<Load> for Tally {
    type Reply = ();

    async fn handle(&mut self, _: Load, _: &mut Context<Self, ()>) {
        tokio::time::sleep(SLOWNESS).await;
    }
}

#[remote_message]
impl Message<Count> for Tally {
    type Reply = u64;

    async fn handle(&mut self, _: Count, _: &mut Context<Self, u64>) -> u64 {
        self.0
    }
}

#[derive(NetworkBehaviour)]
struct Behaviour {
    kameo: remote::Behaviour,
}

fn swarm() -> Outcome<Swarm<Behaviour>> {
    let builder = SwarmBuilder::with_new_identity().with_tokio();
    let tcp = tcp::Config::default();
    let builder = builder.with_tcp(tcp, noise::Config::new, yamux::Config::default)?;
    let builder = builder.with_behaviour(|key| Behaviour {
        kameo: remote::Behaviour::new(key.public().to_peer_id(), messaging::Config::default()),
    })?;
    // By default an idle connection is closed at once, and the next ask dials anew.
    let idle = Duration::from_secs(3600);
    let swarm = builder.with_swarm_config(|config| config.with_idle_connection_timeout(idle));
    let swarm = swarm.build();
    swarm.behaviour().kameo.try_init_global()?;
    Ok(swarm)
}

/// Runs a swarm as long as the process lives.
fn run(mut swarm: Swarm<Behaviour>) {
    tokio::spawn(async move {
        loop {
            swarm.select_next_some().await;
        }
    });
}

pub fn serve() -> Outcome<()> {
    let runtime = tokio_runtime()?;
    let address = runtime.block_on(async {
        let mut swarm = swarm()?;
        swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse()?)?;
        let address = loop {
            if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
                break address;
            }
        };
        let address = format!("{} {address}", swarm.local_peer_id());
        run(swarm);
        Tally::spawn(Tally(0)).register("tally").await?;
        Outcome::Ok(address)
    })?;
    until_closed(&address)
}

pub fn client(figure: &str, address: &str, size: u64) -> Outcome<()> {
    let runtime = tokio_runtime()?;
    let figure = figure.to_owned();
    let (peer, address) = address.split_once(' ').ok_or("no address")?;
    let (peer, address): (PeerId, Multiaddr) = (peer.parse()?, address.parse()?);
    runtime.block_on(at_workers::<RemoteActorRef<Tally>, _>(async move {
        let mut swarm = swarm()?;
        swarm.add_peer_address(peer, address.clone());
        swarm.dial(address)?;
        run(swarm);
        let far = loop {
            match RemoteActorRef::<Tally>::lookup("tally").await? {
                Some(far) => break far,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        measure(far, &figure, size).await
    }))
}

impl Counter for RemoteActorRef<Tally> {
    async fn add(&self, number: u64) -> Outcome<()> {
        Ok(self.tell(&Add(number)).send()?)
    }

    async fn load(&self, bytes: Vec<u8>) -> Outcome<()> {
        Ok(self.tell(&Load(bytes)).send()?)
    }

    async fn count(&self) -> Outcome<u64> {
        self.ask(&Count)
            .await
            .map_err(|error| error.to_string().into())
    }

    async fn lost(&self) {
        // No call of a remote reference waits for its end.
        std::future::pending().await
    }

    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }
}
