//! Looks at a running program in a terminal.
//!
//! One thread reads keys, and one does all else: it reads lines, applies and draws them.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::thread;

use crossterm::event::{DisableMouseCapture, EnableMouseCapture, Event};
use crossterm::execute;
use greenroom_console::feed::{Fed, LineFeed, LineOrigin, LineRecord};
use greenroom_console::input::action;
use greenroom_console::session::{Demand, Session};
use greenroom_console::view::Outlook;
use lexopt::prelude::*;
use ratatui::DefaultTerminal;
use tokio::sync::mpsc;

const USAGE: &str = "\
Usage: greenroom-console [OPTIONS] URL|SOCKET
       greenroom-console --replay FILE

Looks at a running program that mounts a console, such as http://127.0.0.1:5050 or the path of its
Unix socket: what is stuck, slow, growing or faulting, and why.

  --token-file FILE   the file of the token, if the program asks for one
  --record FILE       writes what comes into a new file
  --replay FILE       shows what was recorded, at the same pace
  --help              this text

The key ? shows all keys.";

/// The keys that wait to be read.
const KEYS: usize = 64;

struct Invocation {
    origin: LineOrigin,
    record: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    run(options).unwrap_or_else(|failure| {
        eprintln!("greenroom-console: {failure}");
        ExitCode::FAILURE
    })
}

fn options() -> Result<Invocation, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let (mut endpoint, mut token, mut record, mut replay) = (None, None, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("token-file") => token = Some(PathBuf::from(parser.value()?)),
            Long("record") => record = Some(PathBuf::from(parser.value()?)),
            Long("replay") => replay = Some(PathBuf::from(parser.value()?)),
            Long("help") | Short('h') => {
                println!("{USAGE}");
                std::process::exit(0);
            }
            Value(word) if endpoint.is_none() => endpoint = Some(word.parse()?),
            other => return Err(other.unexpected()),
        }
    }
    let token = token.map(|path| token_of(&path)).transpose()?;
    let origin = match (endpoint, replay) {
        (Some(endpoint), None) => LineOrigin::Live(endpoint, token),
        (None, Some(path)) if record.is_none() => LineOrigin::Record(path),
        (None, None) => return Err("a URL or the path of a socket is missing".into()),
        _ => return Err("a replay has no connection, and is not recorded again".into()),
    };
    Ok(Invocation { origin, record })
}

fn token_of(path: &std::path::Path) -> Result<String, lexopt::Error> {
    let read = std::fs::read_to_string(path);
    let token = read.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(token.trim().to_owned())
}

/// Runs until the user or a signal ends it.
///
/// # Errors
/// It is impossible to go on.
fn run(options: Invocation) -> Result<ExitCode, Box<dyn Error>> {
    let create = |path: &PathBuf| {
        LineRecord::create(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let record = options.record.as_ref().map(create).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // Before the terminal is changed, so that no signal leaves it so.
    let signal = {
        let _entered = runtime.enter();
        signal_status()?
    };
    // It also restores the terminal when the program panics.
    let mut terminal =
        ratatui::try_init().map_err(|error| format!("it needs a terminal: {error}"))?;
    let mut session = Session::new(&options.origin, record);
    // What no-color.org asks for.
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        session.screen.drop_colors();
    }
    let ending = match execute!(io::stdout(), EnableMouseCapture) {
        Ok(()) => runtime.block_on(look(&mut terminal, session, &options.origin, signal)),
        Err(error) => Err(error.into()),
    };
    // A terminal that is gone cannot be restored.
    let _ = execute!(io::stdout(), DisableMouseCapture);
    let _ = ratatui::try_restore();
    // A thread that waits for a key ends with the process.
    runtime.shutdown_background();
    ending
}

/// Waits for a signal that ends programs, and returns the status of a shell for it.
#[cfg(unix)]
fn signal_status() -> io::Result<impl Future<Output = u8>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = hangup.recv() => 128 + 1,
            _ = interrupt.recv() => 128 + 2,
            _ = terminate.recv() => 128 + 15,
        }
    })
}

/// Waits forever: this system has no such signals.
#[cfg(not(unix))]
fn signal_status() -> io::Result<impl Future<Output = u8>> {
    Ok(std::future::pending())
}

/// Sends the events of the terminal, from a thread of their own.
fn events() -> io::Result<mpsc::Receiver<io::Result<Event>>> {
    let (sender, events) = mpsc::channel(KEYS);
    let read = move || {
        loop {
            let event = crossterm::event::read();
            let is_last = event.is_err();
            if sender.blocking_send(event).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".to_owned()).spawn(read)?;
    Ok(events)
}

async fn look(
    terminal: &mut DefaultTerminal,
    mut session: Session,
    origin: &LineOrigin,
    signal: impl Future<Output = u8>,
) -> Result<ExitCode, Box<dyn Error>> {
    let mut signal = pin!(signal);
    let is_live = matches!(origin, LineOrigin::Live(..));
    let mut events = events()?;
    let mut feed = Some(LineFeed::begin(origin, false));
    draw(terminal, &mut session)?;
    loop {
        let demand = tokio::select! {
            // A key is served before the next lines.
            biased;
            status = &mut signal => return Ok(ExitCode::from(status)),
            event = events.recv() => {
                let Some(event) = event else { return Ok(ExitCode::SUCCESS) };
                let Some(action) = action(&event?, session.screen.is_typing()) else {
                    continue;
                };
                match session.act(action) {
                    Outlook::Leave => return Ok(ExitCode::SUCCESS),
                    // A program cuts a viewer that does not read, so a pause ends the connection.
                    Outlook::TogglePause if is_live => {
                        let is_on = !session.is_paused();
                        feed = is_on.then(|| LineFeed::begin(origin, false));
                    }
                    _ => {}
                }
                Demand::Draw
            }
            fed = next(&mut feed), if !session.is_paused() => match fed {
                Some(fed) => session.take(fed),
                None => {
                    feed = None;
                    Demand::Nothing
                }
            }
        };
        match demand {
            Demand::Nothing => continue,
            Demand::Draw => {}
            Demand::Reconnect => feed = Some(LineFeed::begin(origin, true)),
            Demand::Fail(failure) => return Err(failure.into()),
        }
        draw(terminal, &mut session)?;
    }
}

/// Waits for what comes next, or forever.
async fn next(feed: &mut Option<LineFeed>) -> Option<Fed> {
    match feed {
        Some(feed) => feed.next().await,
        None => std::future::pending().await,
    }
}

fn draw(terminal: &mut DefaultTerminal, session: &mut Session) -> io::Result<()> {
    let Session { model, screen, .. } = session;
    terminal.draw(|frame| screen.draw(model, frame.area(), frame.buffer_mut()))?;
    Ok(())
}
