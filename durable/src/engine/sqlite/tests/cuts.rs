//! Files that are cut at any point between two syncs, as a power failure cuts them.
//!
//! What was written before the last sync of a file is there. Of what was written since, any sectors may be
//! there. Whatever they are, the store opens, is whole, and has all that was acknowledged.
//! `GREENROOM_CUTS=all` cuts everywhere.

use std::path::Path;

use super::recorder::{Deed, Part, Recorder};
use super::{Page, Text, options, text, texts};
use crate::engine::sqlite::{self, file};
use crate::limits::Limits;
use crate::records::check;
use crate::records::command::{Command, JobEnding, StoreAnswer, TakeJob};
use crate::{Job, Store};

/// What a disk writes at once.
const SECTOR: usize = 512;

/// A random number that follows from a seed: a test of cuts repeats itself.
struct Lots(u64);

impl Lots {
    fn next(&mut self) -> u64 {
        // A step of splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// How much of what was not synced is there.
#[derive(Debug, Clone, Copy)]
enum Survivors {
    Nothing,
    All,
    Sectors,
}

/// Takes a job and finishes it.
async fn finish_one(store: &Store) -> String {
    let take = TakeJob {
        // The first one of the file.
        queue: 1,
        lease: 60_000,
        attempts: None,
    };
    let taken = store.handle().call(Command::Take(take)).await;
    let Ok(StoreAnswer::Taken(job)) = taken else {
        panic!("no job: {taken:?}");
    };
    let ending = JobEnding::Done { window: 1_000_000 };
    let (seq, token) = (job.seq, job.token);
    let finish = Command::Finish { seq, token, ending };
    store.handle().call(finish).await.unwrap();
    job.id.unwrap()
}

/// Lets a store work for a while, and returns what it has done to its files.
fn record(recorder: &'static Recorder, synchronous: &'static str) -> Vec<Deed> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(&folder.path().join("texts.db"));
    options.vfs = Some(recorder.name);
    options.synchronous = synchronous;
    // So few that the WAL is copied and begins anew.
    options.wal_pages = 300;
    greenroom::run(async {
        let store = Store::new(sqlite::open(options, Limits::default()).await.unwrap());
        let queue = texts(&store).await;
        let page = store.journal::<Page>("pages", "a").snapshot_every(3);
        let mut page = page.open().await.unwrap();
        let filler = "x".repeat(30_000);
        for number in 0..120 {
            let id = number.to_string();
            let job = Job::new(Text(filler.clone()))
                .id(&id)
                .key(format!("k{}", number % 7));
            queue.put(job).await.unwrap();
            recorder.note(Deed::Put(id));
            match number % 3 {
                0 => {
                    let id = finish_one(&store).await;
                    recorder.note(Deed::Done(id));
                }
                1 => {
                    page.append([text("a").into_inner()]).await.unwrap();
                    recorder.note(Deed::Appended(page.position()));
                }
                _ => {}
            }
        }
        store.close().await;
    });
    recorder.deeds()
}

/// The two files, as they are after some deeds.
#[derive(Clone, Default)]
struct Disk {
    files: [Vec<u8>; 2],
    /// What was not synced, in the order of the deeds.
    unsynced: Vec<Deed>,
}

impl Disk {
    fn apply(&mut self, deed: &Deed) {
        match deed {
            Deed::Write { part, at, bytes } => self.write(*part, *at, bytes),
            Deed::Truncate { part, size } => self.files[*part as usize].resize(*size, 0),
            _ => {}
        }
    }

    fn write(&mut self, part: Part, at: usize, bytes: &[u8]) {
        let file = &mut self.files[part as usize];
        if file.len() < at + bytes.len() {
            file.resize(at + bytes.len(), 0);
        }
        file[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds a deed. After a sync, all that was written to its file before is there.
    fn add(&mut self, deed: &Deed) {
        let Deed::Sync(synced) = deed else {
            self.unsynced.push(deed.clone());
            return;
        };
        let is_of = |deed: &Deed| match deed {
            Deed::Write { part, .. } | Deed::Truncate { part, .. } => part == synced,
            _ => true,
        };
        let (durable, rest) = self.unsynced.drain(..).partition(is_of);
        self.unsynced = rest;
        let durable: Vec<Deed> = durable;
        durable.iter().for_each(|deed| self.apply(deed));
    }

    /// Returns the files after a power failure.
    fn cut(&self, survivors: Survivors, lots: &mut Lots) -> [Vec<u8>; 2] {
        let mut disk = self.clone();
        for deed in std::mem::take(&mut disk.unsynced) {
            match (survivors, &deed) {
                (Survivors::Nothing, _) => {}
                (Survivors::Sectors, Deed::Write { part, at, bytes }) => {
                    let mut begin = 0;
                    while begin < bytes.len() {
                        // Sectors are those of the disk, not of the write.
                        let end = (SECTOR - (at + begin) % SECTOR + begin).min(bytes.len());
                        if lots.next().is_multiple_of(2) {
                            disk.write(*part, at + begin, &bytes[begin..end]);
                        }
                        begin = end;
                    }
                }
                _ => disk.apply(&deed),
            }
        }
        disk.files
    }
}

/// What was acknowledged.
#[derive(Default)]
struct Acknowledged {
    put: Vec<String>,
    done: Vec<String>,
    events: u64,
}

impl Acknowledged {
    fn add(&mut self, deed: &Deed) {
        match deed {
            Deed::Put(id) => self.put.push(id.clone()),
            Deed::Done(id) => self.done.push(id.clone()),
            Deed::Appended(events) => self.events = *events,
            _ => {}
        }
    }

    /// Opens files, and says what is wrong with them.
    fn verify(&self, files: &[Vec<u8>; 2], folder: &Path) -> Result<(), String> {
        let path = folder.join("cut.db");
        let _ = std::fs::remove_file(folder.join("cut.db-shm"));
        std::fs::write(&path, &files[0]).unwrap();
        std::fs::write(folder.join("cut.db-wal"), &files[1]).unwrap();
        let connection = file::open(&options(&path)).map_err(|why| format!("{why:?}"))?;
        let report = check::check(&connection).map_err(|error| error.to_string())?;
        if let Some(damage) = report.damages.first() {
            return Err(damage.clone());
        }
        let mut state = connection
            .prepare("SELECT state FROM job WHERE id = ?1")
            .unwrap();
        let mut state = |id: &String| state.query_row([id], |row| row.get::<_, i64>(0)).ok();
        for id in &self.put {
            state(id).ok_or_else(|| format!("job {id} is lost"))?;
        }
        for id in &self.done {
            if state(id) != Some(4) {
                return Err(format!("job {id} is not done"));
            }
        }
        match report.events >= self.events {
            true => Ok(()),
            false => Err(format!("{} events, not {}", report.events, self.events)),
        }
    }
}

/// Cuts the files at some of the deeds. Returns what is wrong with the first one that is not whole.
fn cut_everywhere(deeds: &[Deed], every: u64) -> Result<u64, String> {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, mut known, mut cuts) = (Disk::default(), Acknowledged::default(), 0);
    let mut lots = Lots(1);
    // The first transaction has a rollback journal, which is not recorded.
    let begin = deeds
        .iter()
        .position(|deed| matches!(deed, Deed::Sync(Part::Main)));
    let begin = begin.expect("the file was made");
    for (index, deed) in deeds.iter().enumerate() {
        known.add(deed);
        disk.add(deed);
        if index < begin || !lots.next().is_multiple_of(every) {
            continue;
        }
        for survivors in [Survivors::Nothing, Survivors::All, Survivors::Sectors] {
            let files = disk.cut(survivors, &mut lots);
            let verified = known.verify(&files, folder.path());
            verified.map_err(|what| format!("cut {index}, {survivors:?}: {what}"))?;
            cuts += 1;
        }
    }
    Ok(cuts)
}

/// Returns how many deeds there are to a cut.
fn every() -> u64 {
    match std::env::var("GREENROOM_CUTS") {
        Ok(_) => 1,
        Err(_) => 60,
    }
}

#[test]
fn cuts_leave_a_whole_store_with_all_that_was_acknowledged() {
    let deeds = record(Recorder::register("cuts"), "FULL");
    let copied = deeds
        .iter()
        .filter(|deed| matches!(deed, Deed::Sync(Part::Main)));
    // One sync is of the first transaction, and one of the end.
    assert!(copied.count() > 2, "the WAL was not copied before the end");
    let cuts = cut_everywhere(&deeds, every()).unwrap();
    assert!(cuts > 50, "{cuts} cuts of {} deeds", deeds.len());
}

#[test]
fn cuts_find_a_store_that_does_not_sync_each_commit() {
    let deeds = record(Recorder::register("cuts of a mutant"), "NORMAL");
    let found = cut_everywhere(&deeds, every()).unwrap_err();
    assert!(
        found.contains("Nothing") || found.contains("Sectors"),
        "{found}"
    );
}
