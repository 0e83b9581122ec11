//! A life of a process, as it sees itself: the orders of the parent, and the reports to it.

use std::io::BufRead;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::report::{Order, Report, Tallies};
use crate::system::{self, Scarce};

/// How long a resource is used up.
const MOMENT: Duration = Duration::from_millis(300);

/// The descriptors that a process has at most while they are used up, beside those it has already.
const FEW: u64 = 64;

/// Whether the load is to end.
static ENDS: AtomicBool = AtomicBool::new(false);

/// How many panics there were that were not injected.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// What counts, for the last report.
static COUNTS: OnceLock<fn() -> Tallies> = OnceLock::new();

/// Begins: obeys orders, and reports what `counts` returns each second.
pub fn begin(counts: fn() -> Tallies) {
    COUNTS.set(counts).expect("a process has one life");
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // Those that are injected have no hook.
        PANICS.fetch_add(1, Ordering::Relaxed);
        print(info);
    }));
    thread::spawn(obey);
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_secs(1));
            report();
        }
    });
    Report::Ready.say();
}

/// Returns whether the load is to end.
pub fn ends() -> bool {
    ENDS.load(Ordering::Relaxed)
}

/// Panics as a fault that is wanted. The panic hook is not called.
pub fn inject_panic() -> ! {
    std::panic::resume_unwind(Box::new("injected"))
}

/// Says that something is wrong.
pub fn wrong(sentence: impl Into<String>) {
    Report::Wrong(sentence.into()).say();
}

/// Reports what this process has counted, and what is wrong, and that it has ended.
pub fn end(sentences: Vec<String>) {
    sentences.into_iter().for_each(wrong);
    report();
    match PANICS.load(Ordering::Relaxed) {
        0 => {}
        panics => wrong(format!("{panics} panics were not injected")),
    }
    Report::Ended.say();
}

fn report() {
    let counts = COUNTS.get().map(|counts| counts()).unwrap_or_default();
    Report::Counts(counts).say();
}

/// Obeys orders to the end of the input, which ends the process.
fn obey() {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match Order::read(&line) {
            Some(Order::Descriptors) => use_up_descriptors(),
            Some(Order::Threads) => start_no_thread(),
            Some(Order::End) => ENDS.store(true, Ordering::Relaxed),
            None => wrong(format!("{line:?} is no order")),
        }
    }
    // The parent has ended.
    std::process::exit(1);
}

fn use_up_descriptors() {
    let some = system::descriptors("self").unwrap_or(FEW) + FEW;
    let Ok(before) = Scarce::Descriptors.limit(some) else {
        return wrong("the limit of descriptors cannot be set");
    };
    let files = system::all_descriptors();
    thread::sleep(MOMENT);
    drop(files);
    if Scarce::Descriptors.limit(before).is_err() {
        wrong("the limit of descriptors cannot be set back");
    }
}

fn start_no_thread() {
    let Ok(before) = Scarce::Threads.limit(0) else {
        return wrong("the limit of threads cannot be set");
    };
    thread::sleep(MOMENT);
    if Scarce::Threads.limit(before).is_err() {
        wrong("the limit of threads cannot be set back");
    }
}
