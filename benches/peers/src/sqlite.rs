//! The case `sqlite`: tasks on the workers call a connection on its own thread.

use std::time::Instant;

use async_sqlite::{Client, ClientBuilder};
#[cfg(feature = "greenroom")]
use greenroom::{Hosted, Pinned, Runtime};
use rusqlite::Connection;

use crate::cases::Case;
#[cfg(feature = "greenroom")]
use crate::executors::greenroom::Greenroom;
use crate::executors::{Executor, tokio::Tokio};
use crate::figures::{self, Figure, check, nanoseconds};
use crate::process::watch_idle;
use crate::sizes;

/// A connection that is called from other threads.
pub trait Database: Clone + Send + Sync + 'static {
    /// The executor whose tasks call it.
    type Executor: Executor;

    /// Opens a connection, in memory.
    fn open() -> impl Future<Output = Self> + Send;

    /// Runs `job` on the thread of the connection and returns its result.
    fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> impl Future<Output = T> + Send;
}

/// Runs the case.
pub fn run<D: Database>(case: Case) -> Option<Vec<Figure>> {
    if case != Case::Sqlite {
        return None;
    }
    let runtime = D::Executor::start();
    let (mut figures, _open) = runtime.inside(async {
        let database = D::open().await;
        let many = beyond_direct(figures::CALL_OF_MANY, &database, sizes::CALLERS).await;
        let one = beyond_direct(figures::CALL_OF_ONE, &database, 1).await;
        (vec![many, one], database)
    });
    figures.extend(watch_idle());
    Some(figures)
}

/// Executes the statement that all calls execute.
fn select(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT 1")?
        .query_row([], |row| row.get::<_, u32>(0))
        .map(u64::from)
}

/// Measures a call when this many tasks call one after the other. The time of the statement itself,
/// called directly on the thread of the connection, is subtracted.
async fn beyond_direct<D: Database>(what: &'static str, database: &D, callers: u64) -> Figure {
    let direct = database.call(|connection| {
        let (begin, mut sum) = (Instant::now(), 0);
        for _ in 0..sizes::CALLS {
            sum += select(connection)?;
        }
        check("ones", sum, sizes::CALLS);
        Ok(nanoseconds(what, sizes::CALLS, begin).value)
    });
    let direct = direct.await;
    let begin = Instant::now();
    let caller = |_| {
        let database = database.clone();
        D::Executor::spawn(async move {
            let mut sum = 0;
            for _ in 0..sizes::CALLS / callers {
                sum += database.call(select).await;
            }
            sum
        })
    };
    let callers: Vec<_> = (0..callers).map(caller).collect();
    let mut sum = 0;
    for caller in callers {
        sum += caller.await;
    }
    let mut figure = nanoseconds(what, sizes::CALLS, begin);
    check("ones", sum, sizes::CALLS);
    figure.value -= direct;
    figure
}

#[cfg(feature = "greenroom")]
impl Database for (Hosted<Connection>, Pinned) {
    type Executor = Greenroom;

    async fn open() -> Self {
        let pinned = Runtime::current().spawn_pinned("sqlite");
        let pinned = pinned.expect("a thread can be started");
        let opened = pinned.try_host(Connection::open_in_memory).await;
        let opened = opened.expect("its thread lives");
        (opened.expect("it opens"), pinned)
    }

    async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> T {
        let called = self.0.with(job).await;
        called.expect("it lives").expect("no error")
    }
}

impl Database for tokio_rusqlite::Connection {
    type Executor = Tokio;

    async fn open() -> Self {
        Self::open_in_memory().await.expect("it opens")
    }

    async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> T {
        let called = self.call(|connection| job(connection)).await;
        called.expect("no error")
    }
}

impl Database for Client {
    type Executor = Tokio;

    async fn open() -> Self {
        ClientBuilder::new().open().await.expect("it opens")
    }

    async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> T {
        self.conn(job).await.expect("no error")
    }
}
