//! What a job costs does not depend on how many wait.
//!
//! `GREENROOM_WAITING` sets how many wait, by default 30 000.

use rusqlite::Connection;

use super::options;
use super::recorder::{Deed, Part, Recorder};
use crate::engine::sqlite::file;
use crate::limits::Limits;
use crate::records::command::{CommandStep, JobEnding, NewJob, StoreAnswer, TakeJob};
use crate::records::db::Db;
use crate::records::tx::Tx;

/// The bytes of a payload.
const PAYLOAD: usize = 100;

/// The bytes of a page.
const PAGE: usize = 4096;

/// A store in a file, whose commands are done here.
struct Costs {
    recorder: &'static Recorder,
    folder: tempfile::TempDir,
    connection: Connection,
    limits: Limits,
    number: u64,
}

impl Costs {
    fn new(name: &str) -> Costs {
        let recorder = Recorder::register(name);
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(&folder.path().join("costs.db"));
        options.vfs = Some(recorder.name);
        let connection = file::open(&options).unwrap();
        // What is measured is what is written, not when it is synced.
        connection
            .pragma_update(None, "synchronous", "OFF")
            .unwrap();
        let sql = "INSERT INTO store(only, boot, ahead, seen, token) VALUES (1, '', 0, 0, 0);
                   INSERT INTO queue(name) VALUES ('costs'); INSERT INTO kind(name) VALUES ('a')";
        connection.execute_batch(sql).unwrap();
        Costs {
            recorder,
            folder,
            connection,
            limits: Limits::default(),
            number: 0,
        }
    }

    /// Runs a transaction.
    fn transact<T>(&self, db: &Db<'_>, call: impl FnOnce(&mut Tx<'_, '_>) -> T) -> T {
        db.run("BEGIN IMMEDIATE", []).unwrap();
        let mut tx = Tx::new(db, 1_000_000, &self.limits);
        let value = call(&mut tx);
        tx.finish().unwrap();
        db.run("COMMIT", []).unwrap();
        value
    }

    /// Returns the next job. Its id is anywhere among the others.
    fn job(&mut self) -> NewJob {
        self.number += 1;
        let id = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        NewJob {
            queue: 1,
            kind: 1,
            id: Some(format!("{id:016x}")),
            key: Some(format!("key {}", self.number)),
            priority: (self.number % 3) as u8,
            delay: 0,
            payload: vec![7; PAYLOAD],
        }
    }

    /// Puts so many jobs, in few transactions.
    fn fill(&mut self, count: u64) {
        let jobs: Vec<_> = (0..count).map(|_| self.job()).collect();
        let db = Db::new(&self.connection);
        for jobs in jobs.chunks(10_000) {
            self.transact(&db, |tx| {
                jobs.iter().for_each(|job| drop(tx.put(job).unwrap()))
            });
        }
        self.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
    }

    /// Returns the pages that are written for a job which is put, taken and finished, each alone.
    fn pages_of_a_job(&mut self) -> f64 {
        const JOBS: usize = 200;
        let jobs: Vec<_> = (0..JOBS).map(|_| self.job()).collect();
        let before = self.recorder.deeds().len();
        let db = Db::new(&self.connection);
        for job in &jobs {
            self.transact(&db, |tx| drop(tx.put(job).unwrap()));
            let take = TakeJob {
                queue: 1,
                lease: 60_000,
                attempts: None,
            };
            let step = self.transact(&db, |tx| tx.take(&take).unwrap());
            let CommandStep::Done(StoreAnswer::Taken(taken)) = step else {
                panic!("no job: {step:?}");
            };
            let ending = JobEnding::Done { window: 1_000_000 };
            self.transact(&db, |tx| {
                drop(tx.finish_job(taken.seq, taken.token, &ending).unwrap())
            });
        }
        let deeds = self.recorder.deeds().split_off(before);
        let is_page = |deed: &&Deed| match deed {
            Deed::Write { part, bytes, .. } => *part == Part::Wal && bytes.len() == PAGE,
            _ => false,
        };
        deeds.iter().filter(is_page).count() as f64 / JOBS as f64
    }

    /// Returns the bytes of the file.
    fn size(&self) -> u64 {
        let path = self.folder.path().join("costs.db");
        std::fs::metadata(path).unwrap().len()
    }
}

#[test]
fn a_job_costs_about_as_many_pages_with_many_waiting_as_with_a_thousand() {
    let many = std::env::var("GREENROOM_WAITING");
    let many = many.map_or(30_000, |many| many.parse().unwrap());
    let (mut few, mut large) = (Costs::new("few"), Costs::new("large"));
    few.fill(1000);
    let empty = large.size();
    large.fill(many);
    let bytes = (large.size() - empty) as f64 / many as f64 - PAYLOAD as f64;
    let pages = [few.pages_of_a_job(), large.pages_of_a_job()];
    println!("{pages:?} pages a job; {bytes:.0} bytes a waiting job beside its payload");
    assert!(
        pages[1] <= 1.5 * pages[0],
        "{pages:?} pages a job with 1000 and {many} waiting"
    );
    assert!(bytes <= 300.0, "{bytes} bytes a waiting job");
}
