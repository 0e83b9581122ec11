//! The stock of a shop behind two routes of axum, on tokio by hand.

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use comparison::gate::Gate;
use comparison::service::{MAILBOX, call_routes};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

type Reply = oneshot::Sender<u64>;

enum Message {
    Add(String, u64, Reply),
    Count(String, Reply),
}

async fn stock(mut mailbox: mpsc::Receiver<Message>, gate: Gate) {
    let mut items = HashMap::<String, u64>::new();
    while let Some(message) = mailbox.recv().await {
        gate.pass().await;
        // An answer that no task waits for any more is dropped.
        match message {
            Message::Add(item, n, reply) => {
                let count = items.entry(item).or_default();
                *count = count.checked_add(n).expect("the shelf is long enough");
                let _ = reply.send(*count);
            }
            Message::Count(item, reply) => {
                let _ = reply.send(items.get(&item).copied().unwrap_or(0));
            }
        }
    }
}

#[derive(Clone)]
struct Shop {
    stock: mpsc::Sender<Message>,
    limit: Duration,
}

impl Shop {
    async fn ask(&self, message: impl FnOnce(Reply) -> Message) -> Result<String, StatusCode> {
        let (reply, answer) = oneshot::channel();
        self.stock
            .try_send(message(reply))
            .map_err(|error| match error {
                TrySendError::Full(_) => StatusCode::SERVICE_UNAVAILABLE,
                TrySendError::Closed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            })?;
        match timeout(self.limit, answer).await {
            Ok(Ok(count)) => Ok(count.to_string()),
            Ok(Err(_)) => Err(StatusCode::INTERNAL_SERVER_ERROR),
            Err(_) => Err(StatusCode::GATEWAY_TIMEOUT),
        }
    }
}

async fn count(State(shop): State<Shop>, Path(item): Path<String>) -> Result<String, StatusCode> {
    shop.ask(|reply| Message::Count(item, reply)).await
}

async fn add(
    State(shop): State<Shop>,
    Path((item, n)): Path<(String, u64)>,
) -> Result<String, StatusCode> {
    shop.ask(|reply| Message::Add(item, n, reply)).await
}

fn routes(shop: Shop) -> Router {
    Router::new()
        .route("/stock/{item}", get(count))
        .route("/stock/{item}/{n}", post(add))
        .with_state(shop)
}

#[tokio::main]
async fn main() {
    let gate = Gate::default();
    let (sender, mailbox) = mpsc::channel(MAILBOX);
    tokio::spawn(stock(mailbox, gate.clone()));
    call_routes(&gate, |limit| {
        routes(Shop {
            stock: sender.clone(),
            limit,
        })
    })
    .await;
}
