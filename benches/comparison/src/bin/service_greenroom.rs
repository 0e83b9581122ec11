//! The stock of a shop behind two routes of axum, in greenroom.

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use comparison::gate::Gate;
use comparison::service::{MAILBOX, call_routes};
use greenroom::time::timeout;
use greenroom::{Address, Context, Reply, spawn};
use tokio::runtime::Handle;

enum Message {
    Add(String, u64, Reply<u64>),
    Count(String, Reply<u64>),
}

async fn stock(mut cx: Context<Message>, gate: Gate) {
    let mut items = HashMap::<String, u64>::new();
    while let Some(message) = cx.recv().await {
        gate.pass().await;
        match message {
            Message::Add(item, n, reply) => {
                let count = items.entry(item).or_default();
                *count = count.checked_add(n).expect("the shelf is long enough");
                reply.send(*count);
            }
            Message::Count(item, reply) => reply.send(items.get(&item).copied().unwrap_or(0)),
        }
    }
}

#[derive(Clone)]
struct Shop {
    stock: Address<Message>,
    limit: Duration,
}

impl Shop {
    async fn ask(&self, message: impl FnOnce(Reply<u64>) -> Message) -> Result<String, StatusCode> {
        let (reply, answer) = Reply::pair();
        self.stock
            .tell(message(reply))
            .map_err(|error| match error.is_full() {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => StatusCode::INTERNAL_SERVER_ERROR,
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
    let here = Handle::current();
    let stock = spawn!(stock(_, gate.clone()), capacity = MAILBOX, on = &here);
    call_routes(&gate, |limit| {
        routes(Shop {
            stock: stock.address(),
            limit,
        })
    })
    .await;
}
