//! This example shows state in actors behind an axum service, and what its clients see of time-outs,
//! crashes and closed actors.
//!
//! A shop has its stock in one actor, which runs on the threads of tokio, beside the handlers that
//! ask it. The fate of an ask is a status:
//!
//! | the ask | status |
//! |---|---|
//! | is answered | 200, or 404 for what the shop does not know |
//! | is refused | 409 |
//! | takes too long | 504 |
//! | is lost in a panic | 500; the actor is restarted |
//! | finds a closed actor | 503 |
//!
//! The program asks its own service over HTTP, and ends. It prints:
//!
//! ```text
//! POST /stock/tea/3    200 3
//! POST /stock/tea/4    200 7
//! GET  /stock/tea      200 7
//! GET  /stock/cake     404 the shop has no cake
//! POST /take/tea/2     200 5
//! POST /take/tea/9     409 sold out (5 are left of 9)
//! POST /count          504 no answer came in time
//! POST /spill          500 the stock is lost: tea on the floor
//! GET  /stock/tea      404 the shop has no tea
//! POST /close          200 closed
//! GET  /stock/tea      503 the shop is closed
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use greenroom::supervise::Restarts;
use greenroom::{Address, AskCause, AskError, Context, Refusal, Reply, spawn};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

enum Shop {
    Add(String, u64, Reply<u64>),
    Take(String, u64, Reply<u64>),
    Stock(String, Reply<Option<u64>>),
    /// Takes a long time, which is simulated: nothing answers.
    Count(Reply<u64>),
    /// Panics.
    Spill(Reply<()>),
}

async fn shop(mut cx: Context<Shop>) {
    let mut stock = BTreeMap::<String, u64>::new();
    let mut counting = Vec::new();
    while let Some(message) = cx.recv().await {
        match message {
            Shop::Add(item, number, reply) => {
                let left = stock.entry(item).or_default();
                *left += number;
                reply.send(*left);
            }
            Shop::Take(item, number, reply) => {
                let left = stock.entry(item).or_default();
                match left.checked_sub(number) {
                    Some(rest) => {
                        *left = rest;
                        reply.send(rest);
                    }
                    None => {
                        let why = format!("{left} are left of {number}");
                        reply.refuse(Refusal::new("sold out", why));
                    }
                }
            }
            Shop::Stock(item, reply) => reply.send(stock.get(&item).copied()),
            Shop::Count(reply) => counting.push(reply),
            Shop::Spill(_unanswered) => panic!("tea on the floor"),
        }
    }
}

/// What a handler returns in place of an answer.
struct Failure(StatusCode, String);

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        match error {
            AskError::TimedOut => Failure(StatusCode::GATEWAY_TIMEOUT, error.to_string()),
            AskError::Refused(why) => Failure(StatusCode::CONFLICT, why.to_string()),
            AskError::Closed(_) => {
                Failure(StatusCode::SERVICE_UNAVAILABLE, "the shop is closed".into())
            }
            AskError::NoReply(detail) => {
                let why = match detail.why() {
                    AskCause::Panicked(text) => format!("the stock is lost: {text}"),
                    _ => detail.to_string(),
                };
                Failure(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
            _ => Failure(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

type Answer<T> = Result<T, Failure>;

/// How long a client waits for the shop, also if it is full.
const PATIENCE: Duration = Duration::from_secs(10);

async fn ask<T>(shop: &Address<Shop>, question: impl FnOnce(Reply<T>) -> Shop) -> Answer<T> {
    Ok(shop.ask(question).timeout(PATIENCE).await?)
}

async fn add(
    State(shop): State<Address<Shop>>,
    Path((item, number)): Path<(String, u64)>,
) -> Answer<String> {
    let left = ask(&shop, |reply| Shop::Add(item, number, reply)).await?;
    Ok(left.to_string())
}

async fn take(
    State(shop): State<Address<Shop>>,
    Path((item, number)): Path<(String, u64)>,
) -> Answer<String> {
    let left = ask(&shop, |reply| Shop::Take(item, number, reply)).await?;
    Ok(left.to_string())
}

async fn stock(State(shop): State<Address<Shop>>, Path(item): Path<String>) -> Answer<String> {
    let name = item.clone();
    match ask(&shop, |reply| Shop::Stock(item, reply)).await? {
        Some(left) => Ok(left.to_string()),
        None => Err(Failure(
            StatusCode::NOT_FOUND,
            format!("the shop has no {name}"),
        )),
    }
}

async fn count(State(shop): State<Address<Shop>>) -> Answer<String> {
    let counted = shop.ask(Shop::Count).timeout(Duration::from_millis(100));
    Ok(counted.await?.to_string())
}

async fn spill(State(shop): State<Address<Shop>>) -> Answer<&'static str> {
    ask(&shop, Shop::Spill).await?;
    Ok("spilt")
}

async fn close(State(shop): State<Address<Shop>>) -> &'static str {
    shop.stop();
    shop.closed().await;
    "closed"
}

fn service(shop: Address<Shop>) -> Router {
    Router::new()
        .route("/stock/{item}", get(stock))
        .route("/stock/{item}/{number}", post(add))
        .route("/take/{item}/{number}", post(take))
        .route("/count", post(count))
        .route("/spill", post(spill))
        .route("/close", post(close))
        .with_state(shop)
}

/// What the program asks its own service, and the status that it expects.
const REQUESTS: [(&str, &str, u16); 11] = [
    ("POST", "/stock/tea/3", 200),
    ("POST", "/stock/tea/4", 200),
    ("GET", "/stock/tea", 200),
    ("GET", "/stock/cake", 404),
    ("POST", "/take/tea/2", 200),
    ("POST", "/take/tea/9", 409),
    ("POST", "/count", 504),
    ("POST", "/spill", 500),
    ("GET", "/stock/tea", 404),
    ("POST", "/close", 200),
    ("GET", "/stock/tea", 503),
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One line for the panic.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let shop = spawn!(
        shop(_),
        name = "shop",
        capacity = 100,
        restart = Restarts::default(),
        on = &Handle::current()
    );
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = format!("http://{}", listener.local_addr()?);
    let serving = tokio::spawn(axum::serve(listener, service(shop.address())).into_future());

    let client = reqwest::Client::builder().no_proxy().build()?;
    for (method, path, expected) in REQUESTS {
        let request = client.request(method.parse()?, format!("{server}{path}"));
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        println!("{method:4} {path:15} {status} {}", answer.text().await?);
        assert_eq!(status, expected, "{method} {path}");
    }
    shop.join().await?;
    serving.abort();
    Ok(())
}
