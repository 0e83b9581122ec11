//! The stock of a shop behind two routes of axum, in kameo.

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use comparison::gate::Gate;
use comparison::service::{MAILBOX, call_routes};
use kameo::prelude::*;

#[derive(Actor, Default)]
struct Stock {
    gate: Gate,
    items: HashMap<String, u64>,
}

#[messages]
impl Stock {
    #[message]
    async fn add(&mut self, item: String, n: u64) -> u64 {
        self.gate.pass().await;
        let count = self.items.entry(item).or_default();
        *count = count.checked_add(n).expect("the shelf is long enough");
        *count
    }

    #[message]
    async fn count(&self, item: String) -> u64 {
        self.gate.pass().await;
        self.items.get(&item).copied().unwrap_or(0)
    }
}

#[derive(Clone)]
struct Shop {
    stock: ActorRef<Stock>,
    limit: Duration,
}

fn status<M>(error: SendError<M>) -> StatusCode {
    match error {
        SendError::MailboxFull(_) => StatusCode::SERVICE_UNAVAILABLE,
        SendError::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

async fn count(State(shop): State<Shop>, Path(item): Path<String>) -> Result<String, StatusCode> {
    let count = shop
        .stock
        .ask(Count { item })
        .reply_timeout(shop.limit)
        .try_send()
        .await;
    count.map(|count| count.to_string()).map_err(status)
}

async fn add(
    State(shop): State<Shop>,
    Path((item, n)): Path<(String, u64)>,
) -> Result<String, StatusCode> {
    let count = shop
        .stock
        .ask(Add { item, n })
        .reply_timeout(shop.limit)
        .try_send()
        .await;
    count.map(|count| count.to_string()).map_err(status)
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
    let stock = Stock {
        gate: gate.clone(),
        items: HashMap::new(),
    };
    let stock = Stock::spawn_with_mailbox(stock, mailbox::bounded(MAILBOX));
    call_routes(&gate, |limit| {
        routes(Shop {
            stock: stock.clone(),
            limit,
        })
    })
    .await;
}
