//! Looks into the file of a store, which may be in use.
//!
//! It shows the queues and the dead letters, puts these again or removes them, and checks the file.

use std::error::Error;
use std::io::{self, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use greenroom_durable::{DeadJob, Store};
use lexopt::prelude::*;

const USAGE: &str = "\
Usage: greenroom-durable FILE status             the queues; up to 1000 late jobs are counted
       greenroom-durable FILE dead QUEUE         its dead letters, with their payloads
       greenroom-durable FILE requeue QUEUE NUMBER|all
                                                 puts dead letters again
       greenroom-durable FILE drop QUEUE NUMBER|all
                                                 removes dead letters
       greenroom-durable FILE check              whether the file is whole";

/// The dead letters that are read at a time.
const PAGE: usize = 100;

fn main() -> ExitCode {
    let words = match words() {
        Ok(words) => words,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match greenroom::run(run(&words)) {
        Ok(code) => code,
        // The program that reads, such as `head`, has ended.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Returns the arguments: a file and a command.
fn words() -> Result<Vec<String>, lexopt::Error> {
    let (mut parser, mut words) = (lexopt::Parser::from_env(), Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Value(word) => words.push(word.string()?),
            Long("help") | Short('h') => {
                let _ = writeln!(stdout(), "{USAGE}");
                std::process::exit(0);
            }
            other => return Err(other.unexpected()),
        }
    }
    let known: Vec<_> = words.iter().skip(1).map(String::as_str).collect();
    match known[..] {
        ["status" | "check"] | ["dead", _] | ["requeue" | "drop", _, _] => Ok(words),
        [] => Err("a file and a command are missing".into()),
        _ => Err(format!("there is no command `{}`", known.join(" ")).into()),
    }
}

async fn run(words: &[String]) -> Result<ExitCode, Box<dyn Error>> {
    let path = PathBuf::from(&words[0]);
    // Only a program creates its store.
    std::fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let words: Vec<_> = words[1..].iter().map(String::as_str).collect();
    if words == ["check"] {
        return check(path).await;
    }
    let store = Store::sqlite(&path).open().await?;
    match words[..] {
        ["status"] => status(&store).await?,
        ["dead", queue] => {
            for job in dead(&store, queue, "all").await? {
                print(&job)?;
            }
        }
        ["requeue", queue, number] => {
            let jobs = dead(&store, queue, number).await?;
            for job in &jobs {
                store.requeue(queue, job.number).await?;
            }
            writeln!(stdout(), "{} put again", jobs.len())?;
        }
        ["drop", queue, number] => {
            let jobs = dead(&store, queue, number).await?;
            for job in &jobs {
                store.discard(queue, job.number).await?;
            }
            writeln!(stdout(), "{} removed", jobs.len())?;
        }
        // `words` returns no others.
        _ => {}
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

async fn check(path: PathBuf) -> Result<ExitCode, Box<dyn Error>> {
    let report = Store::check(path).await?;
    for damage in &report.damages {
        writeln!(stdout(), "{damage}")?;
    }
    let (jobs, events, damages) = (report.jobs, report.events, report.damages.len());
    writeln!(stdout(), "{jobs} jobs, {events} events, {damages} damages")?;
    Ok(match report.damages.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

async fn status(store: &Store) -> Result<(), Box<dyn Error>> {
    let head = "waiting running    late    dead     done /minute  oldest  queue";
    writeln!(stdout(), "{head}")?;
    for status in store.statuses().await? {
        let oldest = status.oldest.unwrap_or_default().as_secs();
        let paused = if status.is_paused { " (paused)" } else { "" };
        writeln!(
            stdout(),
            "{:7} {:7} {:7} {:7} {:8} {:7} {oldest:6}s  {}{paused}",
            status.waiting,
            status.running,
            status.late,
            status.dead,
            status.done,
            status.rate,
            status.name.escape_debug(),
        )?;
    }
    Ok(())
}

/// Returns the dead letter of a number, or all.
async fn dead(store: &Store, queue: &str, number: &str) -> Result<Vec<DeadJob>, Box<dyn Error>> {
    let mut jobs: Vec<DeadJob> = Vec::new();
    if number != "all" {
        let number: i64 = number
            .parse()
            .map_err(|_| format!("{number:?} is no number"))?;
        let found = store.dead_jobs(queue, number.saturating_sub(1), 1).await?;
        jobs.extend(found.into_iter().filter(|job| job.number == number));
        if jobs.is_empty() {
            return Err(format!("{queue:?} has no dead letter {number}").into());
        }
        return Ok(jobs);
    }
    loop {
        let after = jobs.last().map_or(0, |job| job.number);
        let page = store.dead_jobs(queue, after, PAGE).await?;
        if page.is_empty() {
            return Ok(jobs);
        }
        jobs.extend(page);
    }
}

fn print(job: &DeadJob) -> io::Result<()> {
    let text = |text: &Option<String>| text.as_ref().map_or("-".into(), |text| format!("{text:?}"));
    writeln!(
        stdout(),
        "{}: {} attempts, dead for {} s, kind {:?}, id {}, key {}",
        job.number,
        job.attempts,
        job.age.as_secs(),
        job.kind,
        text(&job.id),
        text(&job.key)
    )?;
    writeln!(stdout(), "  {}", on_one_line(&job.reason))?;
    let payload = String::from_utf8_lossy(&job.payload);
    writeln!(stdout(), "  {}", on_one_line(&payload))
}

/// Returns a text of which a terminal shows each character. JSON stays as it is.
fn on_one_line(text: &str) -> String {
    let shown = |character| match character {
        '"' | '\'' | '\\' => String::from(character),
        other => other.escape_debug().to_string(),
    };
    text.chars().map(shown).collect()
}
