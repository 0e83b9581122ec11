//! The counter of ractor_cluster, without TLS.

use std::future::Future;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, pg};
use ractor_cluster::{NodeServer, NodeServerMessage, RactorClusterMessage};

use crate::Outcome;
use crate::client::{Counter, SLOWNESS, at_workers, measure};
use crate::kinds::{tokio_runtime, until_closed};

#[derive(RactorClusterMessage)]
enum Message {
    Add(u64),
    Load(Vec<u8>),
    #[rpc]
    Count(RpcReplyPort<u64>),
}

struct Tally;

impl Actor for Tally {
    type Msg = Message;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        count: &mut u64,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Add(_) => *count += 1,
            Message::Load(_) => tokio::time::sleep(SLOWNESS).await,
            Message::Count(reply) => reply.send(*count)?,
        }
        Ok(())
    }
}

/// Starts a node that listens at a port.
async fn node(name: &str, port: u16) -> Outcome<ActorRef<NodeServerMessage>> {
    let (name, host) = (name.to_owned(), "localhost".to_owned());
    let node = NodeServer::new(port, "cookie".into(), name, host, None, None);
    let node = node.with_listen_addr(Ipv4Addr::LOCALHOST.into());
    Ok(Actor::spawn(None, node, ()).await?.0)
}

pub fn serve() -> Outcome<()> {
    let runtime = tokio_runtime()?;
    // The node does not tell which port it has got.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let _node = runtime.block_on(async {
        let (tally, _) = Actor::spawn(None, Tally, ()).await?;
        pg::join("tally".into(), vec![tally.get_cell()]);
        node("server", port).await
    })?;
    until_closed(&format!("127.0.0.1:{port}"))
}

pub fn client(figure: &str, address: &str, size: u64) -> Outcome<()> {
    let runtime = tokio_runtime()?;
    let (figure, address) = (figure.to_owned(), address.to_owned());
    runtime.block_on(at_workers::<ActorRef<Message>, _>(async move {
        let node = node("client", 0).await?;
        ractor_cluster::client_connect(&node, &address).await?;
        let far = loop {
            match pg::get_members(&"tally".into()).pop() {
                Some(far) => break far,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        measure(ActorRef::<Message>::from(far), &figure, size).await
    }))
}

impl Counter for ActorRef<Message> {
    async fn add(&self, number: u64) -> Outcome<()> {
        self.cast(Message::Add(number))
            .map_err(|error| error.to_string().into())
    }

    async fn load(&self, bytes: Vec<u8>) -> Outcome<()> {
        self.cast(Message::Load(bytes))
            .map_err(|error| error.to_string().into())
    }

    async fn count(&self) -> Outcome<u64> {
        let called = self.call(Message::Count, None).await;
        let called = called.map_err(|error| error.to_string())?;
        called.success_or(()).map_err(|()| "no answer".into())
    }

    async fn lost(&self) {
        let _ = self.wait(None).await;
    }

    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }
}
