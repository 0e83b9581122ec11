//! The engine over NATS: a client of async-nats, on one thread of its own.
//!
//! The thread runs the client and all tasks of the node. The server vouches for names: a node may
//! publish only under its own name, and `open` asks the server whose connection it is.

mod check;
mod config;
mod options;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use async_nats::{Client, Event};
use futures_lite::StreamExt;
use futures_lite::future::{Boxed, or};
use tokio::sync::mpsc::UnboundedReceiver;

pub use options::Nats;

use super::broker::{Broker, BrokerEngine, BrokerEvent};
use super::{LinkEngine, StopSignal};
use crate::link::lock;

/// Where a server reports the connections that have ended, if the account of the node may receive it.
const GONE: &str = "gr.gone";

/// The client of one node.
struct NatsBroker {
    client: Client,
    engine: OnceLock<Weak<BrokerEngine>>,
    /// What ends each subscription, by its pattern.
    subscriptions: Mutex<BTreeMap<String, Arc<StopSignal>>>,
}

impl NatsBroker {
    fn engine(&self) -> Option<Arc<BrokerEngine>> {
        self.engine.get()?.upgrade()
    }
}

impl Broker for Arc<NatsBroker> {
    fn publish(&self, subject: String, payload: Vec<u8>) -> Boxed<()> {
        let this = self.clone();
        Box::pin(async move {
            // A packet that is too large for a new server, or that the client has no room for, is one
            // that was lost: the numbers tell it.
            let _ = this.client.publish(subject, payload.into()).await;
        })
    }

    fn take_turn(&self) -> Boxed<()> {
        // The task of the client was woken before, so it writes to the socket first.
        Box::pin(tokio::task::yield_now())
    }

    fn subscribe(&self, pattern: String) {
        let Some(engine) = self.engine() else { return };
        let stop = Arc::<StopSignal>::default();
        lock(&self.subscriptions).insert(pattern.clone(), stop.clone());
        let received = receive(self.clone(), pattern);
        engine.spawn(Box::pin(async move { or(received, stop.wait()).await }));
    }

    fn unsubscribe(&self, pattern: &str) {
        let stop = lock(&self.subscriptions).remove(pattern);
        stop.inspect(|stop| stop.stop());
    }

    fn max_payload(&self) -> usize {
        self.client.max_payload()
    }

    fn connection(&self) -> String {
        let info = self.client.server_info();
        format!("{}/{}", info.server_id, info.client_id)
    }

    fn sleep(&self, duration: Duration) -> Boxed<()> {
        // It is created by any thread, and polled by that of the runtime.
        Box::pin(async move { tokio::time::sleep(duration).await })
    }

    fn close(&self) -> Boxed<()> {
        let this = self.clone();
        Box::pin(async move {
            // The server does not answer if it is gone.
            let _ = this.client.flush().await;
        })
    }
}

/// Takes what is published under a pattern.
async fn receive(broker: Arc<NatsBroker>, pattern: String) {
    let Ok(mut subscriber) = broker.client.subscribe(pattern).await else {
        return;
    };
    while let Some(message) = subscriber.next().await {
        let Some(engine) = broker.engine() else {
            return;
        };
        match &*message.subject {
            GONE => {
                let gone = disconnected(&message.payload).map(BrokerEvent::Gone);
                gone.into_iter().for_each(|gone| engine.event(gone));
            }
            subject => engine.arrived(subject, &message.payload),
        }
    }
}

/// Returns the connection that an advisory of the server says to have ended.
fn disconnected(advisory: &[u8]) -> Option<String> {
    let advisory: serde_json::Value = serde_json::from_slice(advisory).ok()?;
    let server = advisory.pointer("/server/id")?.as_str()?;
    let client = advisory.pointer("/client/id")?.as_u64()?;
    Some(format!("{server}/{client}"))
}

/// Takes what becomes of the connection.
async fn follow(broker: Arc<NatsBroker>, mut events: UnboundedReceiver<Event>) {
    while let Some(event) = events.recv().await {
        let event = match event {
            Event::Connected => BrokerEvent::Up,
            Event::Disconnected | Event::Closed => {
                BrokerEvent::Down("the NATS server is not connected".into())
            }
            Event::SlowConsumer(_) => BrokerEvent::Dropped,
            Event::ServerError(error) => BrokerEvent::Failed(format!("the NATS server: {error}")),
            Event::ClientError(error) => BrokerEvent::Failed(format!("the NATS client: {error}")),
            _ => continue,
        };
        let engine = broker.engine();
        engine.inspect(|engine| engine.event(event));
    }
}
