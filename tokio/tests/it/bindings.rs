//! Services of axum, and clients of reqwest, on tokio runtimes that are bound to a greenroom runtime.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use greenroom::registry::{Keyed, Name};
use greenroom::supervise::Restarts;
use greenroom::time::RetryIntervals;
use greenroom::{Context, Fault, Handle, Reply, Runtime, actor, spawn};
use reqwest::Client;
use tokio::net::TcpListener;
use tokio::runtime::Runtime as Tokio;

use crate::support::{bound, within};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

enum Count {
    Add(u64, Reply<u64>),
    /// Panics.
    Crash,
}

async fn counter(mut cx: Context<Count>) {
    let mut sum = 0;
    while let Some(message) = cx.recv().await {
        match message {
            Count::Add(number, reply) => {
                sum += number;
                reply.send(sum);
            }
            Count::Crash => panic!("bomb in a turn"),
        }
    }
}

/// The counter of all users.
const TOTAL: Name<Count> = Name::new("total");

/// An actor that keeps each question, and answers none.
const SILENT: Name<Reply<()>> = Name::new("silent");

type Answer = Result<String, (StatusCode, String)>;

fn error(error: impl ToString) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

/// Adds a number to the counter of a user, and to that of all.
async fn add(
    State(users): State<Keyed<String, Count>>,
    Path((user, number)): Path<(String, u64)>,
) -> Answer {
    let add = |reply| Count::Add(number, reply);
    let own = users.ask(&user, add).await.map_err(error)?;
    let total = TOTAL.get().map_err(error)?.ask(add).await.map_err(error)?;
    Ok(format!("{own} of {total}"))
}

async fn silence() -> Answer {
    let silent = SILENT.get().map_err(error)?;
    silent.ask(|reply| reply).await.map_err(error)?;
    Ok("it has answered".to_owned())
}

/// A service on a tokio runtime of its own, with its actors there.
struct Site {
    address: SocketAddr,
    total: Handle<Count, ()>,
    runtime: Runtime,
    tokio: Tokio,
}

impl Site {
    fn start() -> Site {
        let (tokio, runtime) = bound();
        let (address, total) = tokio.block_on(async {
            let total = spawn!(counter(_));
            TOTAL.register(&total).unwrap();
            let users = Keyed::builder(|_: String| actor(counter)).build().unwrap();
            let router = Router::new()
                .route("/add/{user}/{number}", get(add))
                .route("/silence", get(silence))
                .with_state(users);
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(async move { axum::serve(listener, router).await });
            (address, total)
        });
        Site {
            address,
            total,
            runtime,
            tokio,
        }
    }

    /// Asks the service in a task of its own tokio runtime.
    fn get(&self, path: &str) -> String {
        let page = page(self.address, path.to_owned());
        self.tokio.block_on(page).unwrap()
    }
}

async fn page(server: SocketAddr, path: String) -> Result<String, reqwest::Error> {
    let client = Client::builder().no_proxy().build().unwrap();
    let answer = client.get(format!("http://{server}/{path}")).send().await?;
    answer.error_for_status()?.text().await
}

/// Fetches pages, each for a message.
async fn fetcher(mut cx: Context<(String, Reply<Result<String, String>>)>, server: SocketAddr) {
    while let Some((path, reply)) = cx.recv().await {
        let page = page(server, path).await;
        reply.send(page.map_err(|error| error.to_string()));
    }
}

#[test]
fn handlers_of_axum_find_the_actors_of_their_own_runtime() {
    within(|| {
        let (one, other) = (Site::start(), Site::start());
        assert_eq!(one.get("add/ann/2"), "2 of 2");
        assert_eq!(one.get("add/bob/3"), "3 of 5");
        assert_eq!(other.get("add/ann/10"), "10 of 10");
        assert_eq!(one.get("add/ann/1"), "3 of 6");
        let total = TOTAL.on(&other.runtime).get().unwrap();
        let total = other
            .runtime
            .block_on(total.ask(|reply| Count::Add(0, reply)));
        assert_eq!(total, Ok(10));
    });
}

#[test]
fn a_service_that_is_shut_down_in_mid_ask_fails_its_clients_and_frees_its_names() {
    within(|| {
        let (site, (tokio, runtime)) = (Site::start(), bound());
        let (asked, is_asked) = mpsc::channel();
        let silent = |mut cx: Context<Reply<()>>| async move {
            let mut kept = Vec::new();
            while let Some(reply) = cx.recv().await {
                kept.push(reply);
                asked.send(()).unwrap();
            }
        };
        let silent = site.tokio.block_on(async { spawn!(silent) });
        SILENT.on(&site.runtime).register(&silent).unwrap();
        // An actor that has not begun would not be cancelled.
        assert_eq!(site.get("add/ann/2"), "2 of 2");
        let server = site.address;
        let client = tokio.block_on(async { spawn!(fetcher(_, server)) });
        let page = runtime.spawn({
            let client = client.address();
            async move { client.ask(|reply| ("silence".to_owned(), reply)).await }
        });
        is_asked.recv().unwrap();
        site.tokio.shutdown_timeout(LONG);
        // The client is on another tokio runtime, which goes on.
        assert!(runtime.block_on(page).unwrap().is_err());
        let ended = site.runtime.block_on(site.total.join());
        assert!(matches!(ended, Err(Fault::Cancelled)), "{ended:?}");
        assert!(TOTAL.on(&site.runtime).get().is_err());
        assert!(SILENT.on(&site.runtime).get().is_err());
        let again = spawn!(counter(_), on = &site.runtime);
        TOTAL.on(&site.runtime).register(&again).unwrap();
    });
}

#[test]
fn a_tokio_that_is_shut_down_while_an_actor_waits_for_its_restart_cancels_it() {
    within(|| {
        let (tokio, runtime) = bound();
        let (judge, is_judged) = mpsc::channel();
        let restart = Restarts::when(move |_| judge.send(()).is_ok());
        let restart = restart.delays(RetryIntervals::every(LONG));
        let counter = tokio.block_on(async { spawn!(counter, restart = restart) });
        TOTAL.on(&runtime).register(&counter).unwrap();
        counter.tell(Count::Crash).unwrap();
        let asked = runtime.spawn({
            let counter = counter.address();
            async move { counter.ask(|reply| Count::Add(1, reply)).await }
        });
        is_judged.recv().unwrap();
        tokio.shutdown_timeout(LONG);
        assert!(runtime.block_on(asked).is_err());
        let ended = runtime.block_on(counter.join());
        assert!(matches!(ended, Err(Fault::Cancelled)), "{ended:?}");
        assert!(TOTAL.on(&runtime).get().is_err());
    });
}
