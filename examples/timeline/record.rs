//! The recorder: what an observer and the runtime's counters say of a run, in bounded memory.
//!
//! - A *turn* is one poll of a task. The observer is called after each one, on the thread that made
//!   it, with the time that the runtime measured. The end is read from the clock in that call, and
//!   the start is the end less that time.
//! - Steals, parks and queue lengths are no events of an observer. A thread beside the workers reads
//!   [`Runtime::stats`] at an interval; what happened in between is a difference of two counters.
//!
//! A turn is written to a log of its worker, behind a lock that only its worker takes during the run.
//! The thread's name says which worker it is. All other threads share one more log: pinned ones, and
//! those that take the place of a worker that waits in `block_on`.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::mem;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use greenroom::policy::TaskInfo;
use greenroom::{Observer, Runtime, WorkerStats};

/// The name of the runtime's threads: worker 3 is the thread `worker-3`.
pub const THREAD_NAME: &str = "worker";

/// The most turns that a log keeps, 40 bytes each: 4 MB per worker. Later ones are only counted.
pub const TURNS_MAX: usize = 100_000;

/// The most actors that a log tells apart. The turns of further ones are counted together.
const ACTORS_MAX: usize = 10_000;

/// The most samples of the counters. Beyond that every second one is dropped, and the interval
/// doubles.
const SAMPLES_MAX: usize = 4096;

/// The interval between two samples at first.
const INTERVAL: Duration = Duration::from_millis(1);

/// All that was seen of a run.
#[derive(Debug, Default)]
pub struct Recording {
    /// How long the run took. Every time in a recording counts from its start.
    pub took: Duration,
    /// The workers by their index, then one lane of all other threads that had turns.
    pub lanes: Vec<Lane>,
    /// The actors that had turns; [`Turn::actor`] is an index of this.
    pub actors: Vec<Actor>,
    /// In order of time.
    pub samples: Vec<Sample>,
}

/// The turns of one worker.
#[derive(Debug, Default)]
pub struct Lane {
    pub name: String,
    /// In the order in which they ended.
    pub turns: Vec<Turn>,
    /// How many turns were not kept, since there was no room.
    pub left_out: u64,
    /// How long all turns took, those that were not kept included.
    pub busy: Duration,
}

/// One poll of a task or actor.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    pub start: Duration,
    pub took: Duration,
    pub actor: usize,
}

/// What an actor did in all, turns that were not kept included.
#[derive(Debug, Clone, Default)]
pub struct Actor {
    pub name: String,
    pub runs: u64,
    pub busy: Duration,
}

/// The counters at one moment.
#[derive(Debug, Clone)]
pub struct Sample {
    pub at: Duration,
    /// How many tasks and actors were ready and waited for a worker, in all queues.
    pub queued: usize,
    pub workers: Vec<WorkerStats>,
}

impl Sample {
    /// Returns whether this worker was parked: it has gone to sleep once more than it has woken up.
    pub fn is_parked(&self, worker: usize) -> bool {
        let stats = self.workers.get(worker);
        stats.is_some_and(|stats| stats.parks > stats.wake_ups)
    }
}

impl Turn {
    pub fn end(&self) -> Duration {
        self.start + self.took
    }
}

/// The observer. Its clones share what they record.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    began: Instant,
    /// One for each worker, and one for all other threads.
    logs: Vec<Mutex<Log>>,
}

// The alignment keeps the logs of two workers on different cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Log {
    turns: Vec<Turn>,
    left_out: u64,
    busy: Duration,
    indices: HashMap<Key, usize>,
    actors: Vec<Actor>,
}

/// Tells actors apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Actor(u64),
    /// All plain tasks: their ids are used again.
    Tasks,
    /// All actors beyond [`ACTORS_MAX`].
    Others,
}

impl Recorder {
    /// Starts the clock of a recording of so many workers.
    pub fn new(workers: usize) -> Self {
        let log = || {
            Mutex::new(Log {
                // No turn pays for a reallocation; the system gives the pages when they are used.
                turns: Vec::with_capacity(TURNS_MAX),
                ..Log::default()
            })
        };
        Recorder(Arc::new(Shared {
            began: Instant::now(),
            logs: (0..=workers).map(|_| log()).collect(),
        }))
    }

    /// Starts to sample the counters of the runtime that this observes.
    pub fn sample(&self, runtime: &Runtime) -> Sampler {
        let (stop, stopped) = mpsc::channel::<()>();
        let (runtime, began) = (runtime.clone(), self.0.began);
        let thread = thread::spawn(move || {
            let (mut samples, mut interval) = (Vec::new(), INTERVAL);
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                if samples.len() == SAMPLES_MAX {
                    let mut index = 0;
                    samples.retain(|_| {
                        index += 1;
                        index % 2 == 0
                    });
                    interval *= 2;
                }
                samples.push(look(&runtime, began));
            }
            samples.push(look(&runtime, began));
            samples
        });
        Sampler { stop, thread }
    }

    /// Ends the recording, and returns it. Turns that end later are in no recording.
    pub fn finish(&self, sampler: Sampler) -> Recording {
        let samples = sampler.finish();
        let took = self.0.began.elapsed();
        let (mut lanes, mut actors) = (Vec::new(), Vec::new());
        let mut indices = HashMap::new();
        for (index, log) in self.0.logs.iter().enumerate() {
            let log = mem::take(&mut *lock(log));
            let is_worker = index + 1 < self.0.logs.len();
            let name = match is_worker {
                true => format!("{THREAD_NAME} {index}"),
                false => "other threads".to_owned(),
            };
            let lane = log.merge_into(&mut actors, &mut indices, name);
            if is_worker || !lane.turns.is_empty() {
                lanes.push(lane);
            }
        }
        Recording {
            took,
            lanes,
            actors,
            samples,
        }
    }
}

impl Observer for Recorder {
    fn after_run(&self, task: &TaskInfo, took: Duration) {
        let start = self.0.began.elapsed().saturating_sub(took);
        let others = self.0.logs.len() - 1;
        let index = worker_here().unwrap_or(others).min(others);
        lock(&self.0.logs[index]).add(task, start, took);
    }
}

/// Returns which worker this thread is, as its name says.
fn worker_here() -> Option<usize> {
    thread_local! {
        static INDEX: OnceCell<Option<usize>> = const { OnceCell::new() };
    }
    let of_name = || {
        let thread = thread::current();
        let index = thread.name()?.strip_prefix(THREAD_NAME)?.strip_prefix('-');
        index?.parse().ok()
    };
    INDEX.with(|index| *index.get_or_init(of_name))
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().expect("nothing panics while it holds a log")
}

fn look(runtime: &Runtime, began: Instant) -> Sample {
    let at = began.elapsed();
    let stats = runtime.stats();
    Sample {
        at,
        queued: stats.queued,
        workers: stats.workers,
    }
}

impl Log {
    fn add(&mut self, task: &TaskInfo, start: Duration, took: Duration) {
        let actor = self.index_of(task);
        let totals = &mut self.actors[actor];
        totals.runs += 1;
        totals.busy += took;
        self.busy += took;
        if self.turns.len() < TURNS_MAX {
            self.turns.push(Turn { start, took, actor });
        } else {
            self.left_out += 1;
        }
    }

    fn index_of(&mut self, task: &TaskInfo) -> usize {
        let key = match task.is_actor() {
            true => Key::Actor(task.id()),
            false => Key::Tasks,
        };
        if let Some(index) = self.indices.get(&key) {
            return *index;
        }
        let is_full = self.indices.len() >= ACTORS_MAX;
        let (indices, actors) = (&mut self.indices, &mut self.actors);
        match key {
            Key::Tasks => index_in(indices, actors, key, || "plain tasks".to_owned()),
            _ if is_full => index_in(indices, actors, Key::Others, || "other actors".to_owned()),
            _ => index_in(indices, actors, key, || task.called().into_owned()),
        }
    }

    /// Adds its actors to those of all logs.
    fn merge_into(
        mut self,
        actors: &mut Vec<Actor>,
        indices: &mut HashMap<Key, usize>,
        name: String,
    ) -> Lane {
        let mut moved = vec![0; self.actors.len()];
        for (key, own) in self.indices {
            let actor = mem::take(&mut self.actors[own]);
            moved[own] = index_in(indices, actors, key, || actor.name);
            let totals = &mut actors[moved[own]];
            totals.runs += actor.runs;
            totals.busy += actor.busy;
        }
        for turn in &mut self.turns {
            turn.actor = moved[turn.actor];
        }
        self.turns.shrink_to_fit();
        Lane {
            name,
            turns: self.turns,
            left_out: self.left_out,
            busy: self.busy,
        }
    }
}

/// Returns the index of an actor, which is added if it is new.
fn index_in(
    indices: &mut HashMap<Key, usize>,
    actors: &mut Vec<Actor>,
    key: Key,
    name: impl FnOnce() -> String,
) -> usize {
    *indices.entry(key).or_insert_with(|| {
        actors.push(Actor {
            name: name(),
            ..Actor::default()
        });
        actors.len() - 1
    })
}

/// The thread that samples the counters.
pub struct Sampler {
    /// Stops it when it is dropped.
    stop: Sender<()>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Sampler {
    fn finish(self) -> Vec<Sample> {
        drop(self.stop);
        self.thread.join().expect("sampling does not panic")
    }
}
