//! This example shows a chat server over TCP, in which a slow reader does not hold up the
//! others: `chat [--patience=SECONDS] [--listen=ADDRESS]`.
//!
//! ```text
//!  hall ── finds ──> room <── says, leaves ── connection <── types ── socket
//!                     └─────── lines ───────> outbox: a bounded mailbox ──> socket
//!  door ── accepts and owns the connections
//! ```
//!
//! With `--listen=127.0.0.1:5555` it serves until Ctrl-C; `nc 127.0.0.1 5555` is a client. The first
//! line is a name, `/join ROOM` goes to another room, `/quit` ends. Lines for which a client has no
//! room are dropped, and it is told how many. A client that takes nothing for ten seconds
//! (`--patience`) is disconnected. Ctrl-C ends in order: no other client comes in, each client is sent
//! what its room had passed on, and all that was not sent is counted.
//!
//! Without `--listen` it plays both sides. Then it prints lines like these:
//!
//! ```text
//! alan reads: * welcome to lobby, others here: 1
//! grace reads: * refused: name in use (ada); another name?
//! grace is slow
//! alan heard or missed 20000 lines
//! grace: 5861 lines written, 14139 missed
//! ```

mod connection;
mod door;
mod hall;
mod play;
mod room;

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use async_net::TcpListener;
use greenroom::{ctrl_c, spawn};
use lexopt::ValueExt;

use connection::Tally;
use door::door;
use hall::hall;

struct Options {
    listen: Option<String>,
    patience: Duration,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            name,
            written,
            missed,
        } = self;
        write!(f, "{name}: {written} lines written, {missed} missed")
    }
}

fn parse(mut arguments: lexopt::Parser) -> Result<Options, lexopt::Error> {
    let mut options = Options {
        listen: None,
        patience: Duration::from_secs(10),
    };
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("listen") => options.listen = Some(arguments.value()?.string()?),
            lexopt::Arg::Long("patience") => {
                let seconds = arguments.value()?.parse_with(|text| {
                    let seconds = text.parse().map_err(|_| "it is not a number of seconds");
                    Duration::try_from_secs_f64(seconds?).map_err(|_| "it is out of range")
                });
                options.patience = seconds?;
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(options)
}

async fn serve(options: Options) -> Result<(), Box<dyn Error>> {
    let address = options.listen.as_deref().unwrap_or("127.0.0.1:0");
    let listener = TcpListener::bind(address).await?;
    let local = listener.local_addr()?;
    let hall = spawn!(hall(_));
    let door = spawn!(door(_, listener, options.patience, hall.address()));
    match options.listen {
        Some(_) => {
            println!("listening on {local}");
            ctrl_c().await?;
        }
        None => play::play(local).await?,
    }
    door.stop();
    println!("{}", door.join().await?);
    Ok(())
}

fn main() -> ExitCode {
    let options = match parse(lexopt::Parser::from_env()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("chat: {error}\nusage: chat [--patience=SECONDS] [--listen=ADDRESS]");
            return ExitCode::from(2);
        }
    };
    match greenroom::run(serve(options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chat: {error}");
            ExitCode::FAILURE
        }
    }
}
