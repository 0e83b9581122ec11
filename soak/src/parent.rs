//! The parent: it starts the processes, injects faults, and judges the ledgers at the end.

mod broker;
mod clock;
mod faults;
pub mod jobs;
pub mod options;
mod roles;
mod samples;
mod table;
mod ward;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use self::broker::NatsProgram;
use self::clock::{STEPS, SteppedClock};
use self::faults::{Injected, Planned, Rates, plan};
use self::jobs::JobLedger;
use self::options::RunOptions;
use self::roles::{CRAMPED, QUEUE, free_address, roles};
use self::ward::Ward;
use crate::{certificates, shop};

/// How often the parent looks at what is to be done.
const LOOK: Duration = Duration::from_millis(20);

/// How often it looks at what the processes take.
const SAMPLE: Duration = Duration::from_secs(1);

/// How often it tells that it goes on.
const TELL: Duration = Duration::from_secs(60);

/// A process that has aborted begins anew after this.
const PAUSE: Duration = Duration::from_secs(3);

/// How long a process is stopped at most, in milliseconds: longer than the leases of nodes.
const STOPPED: std::ops::Range<u64> = 100..3500;

/// How often the date is stepped within an hour.
const STEPPED: Rates = &[(Injected::Stepped, 60)];

/// Only a longer run shows whether something grows, in minutes.
const LONG: u64 = 10;

struct SoakRun {
    wards: Vec<Ward>,
    clock: Option<SteppedClock>,
    steps: u64,
    folder: PathBuf,
    jobs: JobLedger,
    rng: Rng,
}

/// Runs, prints the table, and returns whether all ledgers are even.
pub fn run(options: &RunOptions) -> ExitCode {
    let folder = tempfile::tempdir().expect("a folder");
    eprintln!(
        "soak: {} minutes, seed {}, in {}",
        options.minutes,
        options.seed,
        folder.path().display()
    );
    let names: &[&str] = &shop::NODES;
    certificates::write(folder.path(), names).expect("certificates");
    let broker = broker(options);
    let at_broker = broker.as_ref().map(|broker| &*broker.address);
    let roles = roles(folder.path(), at_broker, options.seed);
    let mut run = SoakRun {
        clock: clock(folder.path()),
        wards: roles.into_iter().map(Ward::new).collect(),
        steps: 0,
        folder: folder.path().to_owned(),
        jobs: JobLedger::default(),
        rng: Rng::with_seed(options.seed),
    };
    run.go(options.minutes);
    run.end();
    drop(broker);
    let sentences = run.judge(options.minutes > LONG);
    println!(
        "{}",
        table::table(options, &run.wards, &run.jobs, run.steps)
    );
    for sentence in &sentences {
        println!("- {sentence}");
    }
    match sentences.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Starts the NATS server, if there is one.
fn broker(options: &RunOptions) -> Option<NatsProgram> {
    let Some(program) = &options.nats else {
        println!("SKIPPED nodes at NATS: no server program is given");
        return None;
    };
    match NatsProgram::start(program, &free_address()) {
        Ok(broker) => Some(broker),
        Err(why) => {
            println!("SKIPPED nodes at NATS: {why}");
            None
        }
    }
}

/// Builds the library with which the date is stepped, if there is a compiler.
fn clock(folder: &Path) -> Option<SteppedClock> {
    match SteppedClock::build(folder) {
        Ok(clock) => Some(clock),
        Err(why) => {
            println!("SKIPPED steps of the date: {why}");
            None
        }
    }
}

impl SoakRun {
    /// Runs the load with its faults.
    fn go(&mut self, minutes: u64) {
        let mut rates: Vec<Rates> = self.wards.iter().map(|ward| ward.role.rates).collect();
        rates.push(STEPPED);
        let mut plan = plan(&mut self.rng, minutes, &rates);
        for number in 0..self.wards.len() {
            self.start(number);
        }
        let (begin, whole) = (Instant::now(), Duration::from_secs(60 * minutes));
        let (mut sampled, mut told, mut aborted) = (begin, begin, None);
        while begin.elapsed() < whole {
            let now = Instant::now();
            let at = (now - begin).as_secs_f64() / whole.as_secs_f64();
            for number in 0..self.wards.len() {
                self.look_after(number, now, &mut aborted);
            }
            while plan.last().is_some_and(|planned| planned.at <= at) {
                plan.pop().into_iter().for_each(|it| self.inject(it));
            }
            if now - sampled >= SAMPLE {
                sampled = now;
                self.wards.iter_mut().for_each(|ward| ward.sample(at));
            }
            if now - told >= TELL {
                told = now;
                eprintln!("soak: {:.0} % of the time is over", 100.0 * at);
            }
            thread::sleep(LOOK);
        }
    }

    /// Hears a process, lets it go on, and starts it again if its life is over.
    fn look_after(&mut self, number: usize, now: Instant, aborted: &mut Option<Instant>) {
        let ward = &mut self.wards[number];
        ward.hear();
        ward.go_on(now);
        if ward.is_over() {
            self.read_ledger(number);
            match self.wards[number].role.aborts {
                true => *aborted = Some(now),
                false => self.start(number),
            }
        }
        let is_due = aborted.is_some_and(|at| now - at >= PAUSE);
        if self.wards[number].role.aborts && is_due {
            *aborted = None;
            self.start(number);
        }
    }

    fn start(&mut self, number: usize) {
        let ward = &mut self.wards[number];
        let life = ward.lives + 1;
        let more = match ward.role.name {
            QUEUE => {
                let ledger = ledger_of(&self.folder, life).display().to_string();
                vec![ledger, life.to_string()]
            }
            _ => Vec::new(),
        };
        // What has few addresses has no place for the library.
        let clock = self.clock.as_ref().filter(|_| ward.role.name != CRAMPED);
        if let Err(error) = ward.start(clock, &more) {
            let name = ward.role.name;
            ward.sentences
                .push(format!("{name} cannot be started: {error}"));
        }
    }

    fn inject(&mut self, planned: Planned) {
        if planned.fault == Injected::Stepped {
            let step = *self.rng.choice(&STEPS).expect("there are steps");
            if let Some(clock) = &self.clock {
                clock.set(step).expect("the file of the step");
                self.steps += 1;
            }
            return;
        }
        let time = Duration::from_millis(self.rng.u64(STOPPED));
        self.wards[planned.process].inject(planned.fault, time);
        if planned.fault == Injected::Killed {
            self.read_ledger(planned.process);
            self.start(planned.process);
        }
    }

    /// Reads what the life of the queue that is over has written.
    fn read_ledger(&mut self, number: usize) {
        let ward = &mut self.wards[number];
        if ward.role.name != QUEUE {
            return;
        }
        let path = ledger_of(&self.folder, ward.lives);
        // A life that was killed at once has none.
        if let Ok(file) = File::open(&path) {
            self.jobs.read(BufReader::new(file));
            let _ = std::fs::remove_file(&path);
        }
    }

    /// Ends the processes: those that send before those that answer.
    fn end(&mut self) {
        for number in 0..self.wards.len() {
            self.wards[number].end();
            self.read_ledger(number);
        }
    }

    /// Returns all that is wrong.
    fn judge(&self, is_long: bool) -> Vec<String> {
        let mut sentences = self.jobs.uneven();
        for ward in &self.wards {
            sentences.extend(ward.sentences.iter().cloned());
            if ward.counts().values().sum::<u64>() == 0 {
                sentences.push(format!("{} has counted nothing", ward.role.name));
            }
            if is_long {
                sentences.extend(ward.samples.growth(ward.role.name));
            }
        }
        sentences
    }
}

/// Returns the ledger of a life of the queue.
fn ledger_of(folder: &Path, life: u64) -> PathBuf {
    folder.join(format!("ledger-{life}"))
}
