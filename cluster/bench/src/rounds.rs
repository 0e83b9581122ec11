//! The comparison: rounds in which the systems alternate.

use std::collections::BTreeSet;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::kinds::{Kind, WORKERS};
use crate::nats_server::{self, NatsServer};
use crate::process::{Process, peak, switches, threads};
use crate::{Outcome, certificates, nodes, table};

const FIGURES: [&str; 7] = ["ask", "many", "send", "flood", "idle", "killed", "stopped"];
/// The kills of a round: 20 in five rounds.
const KILLS: usize = 4;
const MIB: f64 = 1024.0 * 1024.0;
/// How long a server stays stopped when it is lost: longer than a greeting may take.
const OUTAGE: Duration = Duration::from_secs(6);

/// What one round has shown of one system: a number for each row of the table that it has.
pub struct Measured {
    pub kind: Kind,
    pub round: usize,
    pub row: usize,
    pub number: f64,
}

/// Measures all systems in so many rounds, and prints the tables.
pub fn run(rounds: usize, size: u64) -> Outcome<()> {
    certificates::write()?;
    let has_nats = nats_server::is_here();
    if !has_nats {
        eprintln!("without NATS: there is no program nats-server");
    }
    let mut all = Vec::new();
    for round in 0..rounds {
        for figure in FIGURES {
            let mut kinds = Kind::ALL.to_vec();
            kinds.retain(|kind| kind.has(figure) && (has_nats || !kind.is_nats()));
            // No system comes always after the same one.
            let kinds_here = kinds.len();
            kinds.rotate_left((round * 2) % kinds_here);
            if round % 2 == 1 {
                kinds.reverse();
            }
            for kind in kinds {
                let times = if figure == "killed" { KILLS } else { 1 };
                let mut numbers = Vec::new();
                for _ in 0..times {
                    numbers.extend(or_again(|| self::figure(kind, figure, size))?);
                }
                eprintln!("round {} {figure} {}: {numbers:?}", round + 1, kind.name());
                all.extend(numbers.into_iter().map(|(row, number)| Measured {
                    kind,
                    round,
                    row,
                    number,
                }));
            }
        }
    }
    let mut once = |kind, row, number| {
        let (round, row) = (0, table::row(row));
        all.push(Measured {
            kind,
            round,
            row,
            number,
        });
    };
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Ping) {
        once(kind, "crates", crates(kind)? as f64);
    }
    if has_nats {
        let bytes = nodes::slope()?;
        once(Kind::GreenroomNats, "memory of a node, KiB", bytes / 1024.0);
    }
    table::print(&all);
    Ok(())
}

/// Measures a second time if the first one fails. Processes of kameo hang now and then.
fn or_again<T>(measure: impl Fn() -> Outcome<T>) -> Outcome<T> {
    measure().or_else(|error| {
        eprintln!("once more, since this failed: {error}");
        measure()
    })
}

/// Measures a figure with a fresh server and a fresh client. Returns rows and numbers.
pub fn figure(kind: Kind, figure: &str, size: u64) -> Outcome<Vec<(usize, f64)>> {
    let nats = kind
        .is_nats()
        .then(|| NatsServer::start(kind))
        .transpose()?;
    let [for_server, for_client] = match &nats {
        Some(nats) => nats.addresses.each_ref().map(String::as_str),
        None => ["", ""],
    };
    let mut server = Process::start(&["serve", kind.name(), for_server])?;
    let mut address = server.line()?;
    if nats.is_some() {
        address = for_client.into();
    }
    let size_text = size.to_string();
    let mut client = Process::start(&["client", kind.name(), figure, &address, &size_text])?;
    let line = client
        .line()
        .map_err(|error| format!("{} {figure}: {error}", kind.name()))?;
    let numbers = line.split_whitespace().map(str::parse::<f64>);
    let numbers = numbers.collect::<Result<Vec<f64>, _>>()?;
    let rows: Vec<(&str, f64)> = match (figure, &numbers[..]) {
        ("ask", [p50]) => vec![("ask p50, µs", *p50)],
        ("many", [rate]) => vec![("64 askers, asks a second", *rate)],
        ("send", [rate, handled]) => vec![
            ("sent messages handled a second", *rate),
            (
                "handled of the sent messages, %",
                handled * 10.0 / size as f64,
            ),
        ],
        ("flood", [sender, sent, handled]) => {
            let mut rows = vec![
                ("peak memory of a flooding sender, MiB", sender / MIB),
                (
                    "peak memory of its server, MiB",
                    peak(server.pid())? as f64 / MIB,
                ),
            ];
            if kind.is_own() {
                rows.push(("handled of the flood, %", handled * 100.0 / sent));
            }
            rows
        }
        ("idle", []) => idle(&mut server, &mut client)?,
        ("killed", []) => {
            sleep(Duration::from_millis(100));
            let killed = Instant::now();
            server.kill()?;
            client.line()?;
            let time = killed.elapsed().as_secs_f64() * 1e3;
            vec![("loss noticed after kill -9, ms", time)]
        }
        ("stopped", []) => stopped(&server, &mut client)?,
        _ => return Err("the client has shown something else".into()),
    };
    Ok(rows
        .into_iter()
        .map(|(name, number)| (table::row(name), number))
        .collect())
}

/// Measures two processes without load.
fn idle(server: &mut Process, client: &mut Process) -> Outcome<Vec<(&'static str, f64)>> {
    sleep(Duration::from_secs(1));
    let both = [server.pid(), client.pid()];
    let count =
        |of: fn(u32) -> Outcome<u64>| -> Outcome<[u64; 2]> { Ok([of(both[0])?, of(both[1])?]) };
    let before = count(switches)?;
    sleep(Duration::from_secs(5));
    let (after, threads) = (count(switches)?, count(threads)?);
    // The workers, and the main thread.
    let most = threads.into_iter().max().unwrap_or(0) - WORKERS as u64 - 1;
    Ok(vec![
        ("threads beside main and workers", most as f64),
        (
            "context switches in 5 s, idle server",
            (after[0] - before[0]) as f64,
        ),
        (
            "context switches in 5 s, idle client",
            (after[1] - before[1]) as f64,
        ),
    ])
}

/// Measures when the client notices that the server was stopped, and when it has an answer after
/// the server goes on. Then it closes while the server is stopped again.
fn stopped(server: &Process, client: &mut Process) -> Outcome<Vec<(&'static str, f64)>> {
    let mut until_line = |begun: Instant| -> Outcome<f64> {
        client.line()?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    };
    let begun = Instant::now();
    server.signal("STOP")?;
    let silence = until_line(begun)?;
    sleep(OUTAGE);
    let begun = Instant::now();
    server.signal("CONT")?;
    let heal = until_line(begun)?;
    server.signal("STOP")?;
    until_line(Instant::now())?;
    let close = until_line(Instant::now())?;
    Ok(vec![
        ("loss noticed after SIGSTOP, ms", silence),
        ("answer after SIGCONT, ms", heal),
        ("close beside a stopped server, ms", close),
    ])
}

/// Counts the packages that a user builds, with the system's own one.
fn crates(kind: Kind) -> Outcome<usize> {
    let here = env!("CARGO_MANIFEST_DIR");
    let here_too = format!("{here}/..");
    let nats = ["--no-default-features", "--features", "nats"];
    let (folder, package) = match kind {
        Kind::AsyncNats | Kind::AsyncNatsTls => (here.to_owned(), "async-nats"),
        Kind::Kameo => (here.to_owned(), "kameo"),
        Kind::Ractor => (here.to_owned(), "ractor_cluster"),
        _ => (here_too, "greenroom-cluster"),
    };
    let features = if kind.is_nats() && kind.is_own() {
        &nats[..]
    } else {
        &[]
    };
    let mut command = Command::new("cargo");
    let command = command.args(["tree", "--locked", "-e", "normal,build", "--prefix", "none"]);
    let command = command.args(["-p", package]).args(features);
    let output = command.current_dir(folder).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let packages = text.lines().map(|line| line.trim_end_matches(" (*)"));
    Ok(packages.collect::<BTreeSet<_>>().len())
}
