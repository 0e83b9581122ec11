//! A connection to a program, which is made again when it is lost.

use std::convert::Infallible;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Endpoint, Fed, LineJoiner};

/// The path of the protocol.
const PATH: &str = "/console/v1";

/// The time for a connection and for the head of the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// When nothing has come for so many seconds, the connection is given up: a program sends something at
/// least each 10 s.
const SILENCE_MAX: u64 = 30;

/// The seconds before it is tried again: the first time, and at most.
const FIRST_RETRY: u64 = 1;
const LAST_RETRY: u64 = 10;

/// Why nothing can be read.
enum FetchProblem {
    /// It may be otherwise later.
    Passing(String),
    /// It is no use to try again.
    Final(String),
    /// The console reads no more.
    Unread,
}

/// Reads lines, and connects again until the console ends or the program refuses it.
pub(super) async fn keep_reading(
    endpoint: Endpoint,
    token: Option<String>,
    is_again: bool,
    sender: Sender<Fed>,
) {
    let mut retry = FIRST_RETRY;
    if is_again {
        sleep(Duration::from_secs(retry)).await;
    }
    loop {
        let mut has_read = false;
        let Err(trouble) = read(&endpoint, token.as_deref(), &sender, &mut has_read).await;
        if has_read {
            retry = FIRST_RETRY;
        }
        match trouble {
            FetchProblem::Unread => return,
            FetchProblem::Final(why) => {
                let _ = sender.send(Fed::Refused(why)).await;
                return;
            }
            FetchProblem::Passing(why) => {
                for left in (1..=retry).rev() {
                    if sender.send(Fed::Lost(why.clone(), left)).await.is_err() {
                        return;
                    }
                    sleep(Duration::from_secs(1)).await;
                }
                retry = (retry * 2).min(LAST_RETRY);
            }
        }
    }
}

/// Reads lines. An error is the only end: a program that ends closes the connection.
async fn read(
    endpoint: &Endpoint,
    token: Option<&str>,
    sender: &Sender<Fed>,
    has_read: &mut bool,
) -> Result<Infallible, FetchProblem> {
    match endpoint {
        Endpoint::Tcp(host) => {
            let stream = in_time(TcpStream::connect(host)).await?;
            read_from(stream, host, token, sender, has_read).await
        }
        #[cfg(unix)]
        Endpoint::Unix(path) => {
            let stream = in_time(tokio::net::UnixStream::connect(path)).await?;
            read_from(stream, "localhost", token, sender, has_read).await
        }
        #[cfg(not(unix))]
        Endpoint::Unix(path) => {
            let text = format!("{}: this system has no Unix sockets", path.display());
            Err(FetchProblem::Final(text))
        }
    }
}

async fn in_time<T, E: std::fmt::Display>(
    step: impl Future<Output = Result<T, E>>,
) -> Result<T, FetchProblem> {
    match timeout(PATIENCE, step).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(FetchProblem::Passing(error.to_string())),
        Err(_) => Err(FetchProblem::Passing(format!(
            "no answer in {} s",
            PATIENCE.as_secs()
        ))),
    }
}

async fn read_from(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    host: &str,
    token: Option<&str>,
    sender: &Sender<Fed>,
    has_read: &mut bool,
) -> Result<Infallible, FetchProblem> {
    let io = TokioIo::new(stream);
    let (mut requests, connection) = in_time(hyper::client::conn::http1::handshake(io)).await?;
    // Its task ends with this function.
    let mut driver = JoinSet::new();
    driver.spawn(async {
        let _ = connection.await;
    });
    let request = request(host, token)?;
    let response = in_time(requests.send_request(request)).await?;
    let mut body = accepted(response)?;
    let passing = |error: hyper::Error| FetchProblem::Passing(error.to_string());
    let mut joiner = LineJoiner::default();
    send(sender, Fed::Begins).await?;
    let mut silence = 0;
    loop {
        let Ok(frame) = timeout(Duration::from_secs(1), body.frame()).await else {
            silence += 1;
            send(sender, Fed::Silence(silence)).await?;
            if silence == SILENCE_MAX {
                let text = format!("nothing came for {silence} s");
                return Err(FetchProblem::Passing(text));
            }
            continue;
        };
        silence = 0;
        let Some(frame) = frame else {
            return Err(FetchProblem::Passing(
                "the program has closed the connection".to_owned(),
            ));
        };
        let Ok(chunk) = frame.map_err(passing)?.into_data() else {
            continue;
        };
        if let Some(lines) = joiner.join(&chunk).map_err(FetchProblem::Final)? {
            *has_read = true;
            send(sender, Fed::Lines(lines)).await?;
        }
    }
}

async fn send(sender: &Sender<Fed>, fed: Fed) -> Result<(), FetchProblem> {
    sender.send(fed).await.map_err(|_| FetchProblem::Unread)
}

fn request(host: &str, token: Option<&str>) -> Result<Request<Empty<Bytes>>, FetchProblem> {
    let mut request = Request::get(PATH)
        .header(HOST, host)
        .header(ACCEPT, "application/x-ndjson");
    if let Some(token) = token {
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let mut value = value.map_err(|_| {
            FetchProblem::Final("the token has characters that no header may have".to_owned())
        })?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    let built = request.body(Empty::new());
    built.map_err(|error| FetchProblem::Final(error.to_string()))
}

/// Returns the body of an answer that has one.
fn accepted(response: Response<Incoming>) -> Result<Incoming, FetchProblem> {
    let text = match response.status() {
        StatusCode::OK => return Ok(response.into_body()),
        StatusCode::SERVICE_UNAVAILABLE => {
            let text = "the program has as many viewers as it allows".to_owned();
            return Err(FetchProblem::Passing(text));
        }
        StatusCode::UNAUTHORIZED => {
            "the program asks for a token, or for another one: use --token-file".to_owned()
        }
        StatusCode::FORBIDDEN => {
            "the program answers only its own machine, or those who call it by another name; \
             from other machines it wants a token"
                .to_owned()
        }
        StatusCode::NOT_FOUND => {
            format!("the program has no console at {PATH}: it has to mount one")
        }
        status if status.is_server_error() => {
            return Err(FetchProblem::Passing(format!(
                "the program answers {status}"
            )));
        }
        status => format!("the program answers {status}"),
    };
    Err(FetchProblem::Final(text))
}
