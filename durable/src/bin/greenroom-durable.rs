//! Looks into the file of a store, which may be in use.
//!
//! It shows the queues and the dead letters, puts these again or removes them, and checks the file.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use greenroom_durable::{DeadJob, Store};
use lexopt::prelude::*;

const USAGE: &str = "\
Usage: greenroom-durable FILE status             the queues
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
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the arguments, of which at least two are there.
fn words() -> Result<Vec<String>, lexopt::Error> {
    let (mut parser, mut words) = (lexopt::Parser::from_env(), Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Value(word) => words.push(word.string()?),
            Long("help") | Short('h') => {
                println!("{USAGE}");
                std::process::exit(0);
            }
            other => return Err(other.unexpected()),
        }
    }
    match words.len() {
        0 | 1 => Err("a file and a command are missing".into()),
        _ => Ok(words),
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
                print(&job);
            }
        }
        ["requeue", queue, number] => {
            let jobs = dead(&store, queue, number).await?;
            for job in &jobs {
                store.requeue(queue, job.number).await?;
            }
            println!("{} put again", jobs.len());
        }
        ["drop", queue, number] => {
            let jobs = dead(&store, queue, number).await?;
            for job in &jobs {
                store.discard(queue, job.number).await?;
            }
            println!("{} removed", jobs.len());
        }
        _ => {
            eprintln!("{USAGE}");
            return Ok(ExitCode::from(2));
        }
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

async fn check(path: PathBuf) -> Result<ExitCode, Box<dyn Error>> {
    let report = Store::check(path).await?;
    for damage in &report.damages {
        println!("{damage}");
    }
    println!(
        "{} jobs, {} events, {} damages",
        report.jobs,
        report.events,
        report.damages.len()
    );
    Ok(match report.damages.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

async fn status(store: &Store) -> Result<(), Box<dyn Error>> {
    println!("waiting running    late    dead     done /minute  oldest  queue");
    for status in store.statuses().await? {
        let oldest = status.oldest.unwrap_or_default().as_secs();
        let paused = if status.is_paused { " (paused)" } else { "" };
        println!(
            "{:7} {:7} {:7} {:7} {:8} {:7} {oldest:6}s  {}{paused}",
            status.waiting,
            status.running,
            status.late,
            status.dead,
            status.done,
            status.rate,
            status.name.escape_debug(),
        );
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

fn print(job: &DeadJob) {
    let text = |text: &Option<String>| text.as_ref().map_or("-".into(), |text| format!("{text:?}"));
    println!(
        "{}: {} attempts, dead for {} s, kind {:?}, id {}, key {}",
        job.number,
        job.attempts,
        job.age.as_secs(),
        job.kind,
        text(&job.id),
        text(&job.key)
    );
    println!("  {}", job.reason.escape_debug());
    println!("  {}", String::from_utf8_lossy(&job.payload).escape_debug());
}
