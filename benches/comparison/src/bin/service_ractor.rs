//! The stock of a shop behind two routes of axum, in ractor.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use comparison::gate::Gate;
use comparison::service::{MAILBOX, call_routes};
use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

// A place in the mailbox, which ractor does not bound.
type Place = OwnedSemaphorePermit;
type Reply = RpcReplyPort<u64>;

enum Message {
    Add(String, u64, Place, Reply),
    Count(String, Place, Reply),
}

struct Stock(Gate);

impl Actor for Stock {
    type Msg = Message;
    type State = HashMap<String, u64>;
    type Arguments = ();

    async fn pre_start(
        &self,
        _myself: ActorRef<Message>,
        _arguments: (),
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(HashMap::new())
    }

    async fn handle(
        &self,
        _myself: ActorRef<Message>,
        message: Message,
        items: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        // An answer that no task waits for any more is dropped.
        match message {
            Message::Add(item, n, place, reply) => {
                drop(place);
                self.0.pass().await;
                let count = items.entry(item).or_default();
                *count = count.checked_add(n).expect("the shelf is long enough");
                let _ = reply.send(*count);
            }
            Message::Count(item, place, reply) => {
                drop(place);
                self.0.pass().await;
                let _ = reply.send(items.get(&item).copied().unwrap_or(0));
            }
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Shop {
    stock: ActorRef<Message>,
    places: Arc<Semaphore>,
    limit: Duration,
}

impl Shop {
    async fn ask(
        &self,
        message: impl FnOnce(Place, Reply) -> Message,
    ) -> Result<String, StatusCode> {
        let place = self.places.clone().try_acquire_owned();
        let place = place.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        match self
            .stock
            .call(|reply| message(place, reply), Some(self.limit))
            .await
        {
            Ok(CallResult::Success(count)) => Ok(count.to_string()),
            Ok(CallResult::Timeout) => Err(StatusCode::GATEWAY_TIMEOUT),
            Ok(CallResult::SenderError) | Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

async fn count(State(shop): State<Shop>, Path(item): Path<String>) -> Result<String, StatusCode> {
    shop.ask(|place, reply| Message::Count(item, place, reply))
        .await
}

async fn add(
    State(shop): State<Shop>,
    Path((item, n)): Path<(String, u64)>,
) -> Result<String, StatusCode> {
    shop.ask(|place, reply| Message::Add(item, n, place, reply))
        .await
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
    let (stock, _) = Actor::spawn(None, Stock(gate.clone()), ()).await.unwrap();
    let places = Arc::new(Semaphore::new(MAILBOX));
    call_routes(&gate, |limit| {
        routes(Shop {
            stock: stock.clone(),
            places: places.clone(),
            limit,
        })
    })
    .await;
}
