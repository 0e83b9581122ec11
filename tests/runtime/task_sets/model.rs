//! Random histories of sets in simulations, each beside a book of its tasks.
//!
//! Tasks yield, sleep, panic and end. The book says which result is next, how many tasks may run, and
//! after a shutdown that none is left.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::time::{sleep, timeout};

use super::*;
use crate::support::{Draws, matrix};

const SEEDS: u64 = 300;
const OPERATIONS: usize = 60;

#[derive(Default)]
struct Book {
    spawned: usize,
    running: usize,
    /// Those that have begun last, and have ended and are not taken.
    last: Option<usize>,
    ended: VecDeque<(usize, bool)>,
    taken: usize,
}

type SharedBook = Arc<Mutex<Book>>;

/// A task that runs. Its drop tells the book of its end.
struct Running {
    book: SharedBook,
    number: usize,
    has_value: bool,
}

impl Running {
    fn begin(book: &SharedBook, number: usize, limit: Option<usize>) -> Running {
        let mut own = book.lock().unwrap();
        own.running += 1;
        assert!(limit.is_none_or(|limit| own.running <= limit));
        let before = own.last.replace(number);
        assert!(limit != Some(1) || before < Some(number));
        Running {
            book: book.clone(),
            number,
            has_value: false,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut book = self.book.lock().unwrap();
        book.running -= 1;
        book.ended.push_back((self.number, self.has_value));
    }
}

async fn task(book: SharedBook, number: usize, limit: Option<usize>, mut draws: Draws) -> usize {
    let mut running = Running::begin(&book, number, limit);
    for _ in 0..draws.below(4) {
        match draws.one_in(2) {
            true => yield_now().await,
            false => sleep(draws.millis(5)).await,
        }
    }
    assert!(!draws.one_in(5), "bomb in a set");
    running.has_value = true;
    number
}

/// A set, and the book of its tasks.
struct Booked {
    set: TaskSet<usize>,
    limit: Option<usize>,
    book: SharedBook,
}

impl Booked {
    fn new(draws: &mut Draws) -> Booked {
        let limit = draws.one_in(2).then(|| 1 + draws.below(3));
        let set = TaskSet::new();
        Booked {
            set: match limit {
                Some(limit) => set.limit(limit),
                None => set,
            },
            limit,
            book: SharedBook::default(),
        }
    }

    fn spawn(&mut self, draws: Draws) {
        let mut book = self.book.lock().unwrap();
        book.spawned += 1;
        let number = book.spawned;
        drop(book);
        let task = task(self.book.clone(), number, self.limit, draws);
        self.set.spawn(task);
    }

    /// Takes a result, and compares it with the book. Gives up after some time.
    async fn next(&mut self, patience: Duration) {
        let Ok(next) = timeout(patience, self.set.next()).await else {
            return;
        };
        let mut book = self.book.lock().unwrap();
        let Some(result) = next else {
            assert_eq!(book.taken, book.spawned);
            return;
        };
        book.taken += 1;
        let (number, has_value) = book.ended.pop_front().expect("a task has ended");
        match result {
            Ok(value) => assert!(has_value && value == number, "{value} before {number}"),
            Err(Fault::Panicked(_)) => assert!(!has_value, "of {number}"),
            Err(fault) => panic!("{fault}"),
        }
    }

    async fn shut_down(&mut self) {
        self.set.shutdown().await;
        let mut book = self.book.lock().unwrap();
        assert_eq!(book.running, 0);
        book.ended.clear();
        book.taken = book.spawned;
    }

    fn check(&self) {
        let book = self.book.lock().unwrap();
        assert_eq!(self.set.len(), book.spawned - book.taken);
        assert!(book.running + book.ended.len() <= self.set.len());
    }
}

async fn history(seed: u64) {
    let mut draws = Draws::of(seed, 0);
    let (mut booked, mut dropped) = (Booked::new(&mut draws), Vec::new());
    for operation in 0..OPERATIONS {
        match draws.below(16) {
            0..7 => booked.spawn(Draws::of(seed, 1 + operation as u64)),
            7..13 => booked.next(draws.millis(6)).await,
            13 => sleep(draws.millis(4)).await,
            14 if draws.one_in(3) => booked.shut_down().await,
            15 if draws.one_in(3) => {
                let Booked { set, book, .. } =
                    std::mem::replace(&mut booked, Booked::new(&mut draws));
                drop(set);
                dropped.push(book);
            }
            _ => yield_now().await,
        }
        booked.check();
    }
    while !booked.set.is_empty() {
        booked.next(Duration::MAX).await;
    }
    booked.check();
    // All tasks of sets that were dropped have their turn before time passes.
    sleep(Duration::from_millis(1)).await;
    for book in dropped {
        assert_eq!(book.lock().unwrap().running, 0);
    }
}

#[test]
fn random_histories_agree_with_a_book_of_all_tasks() {
    within(WATCH, || {
        keep_bombs_quiet();
        for seed in 0..SEEDS {
            let _named = matrix::Named(format!("seed {seed}"));
            let runtime = Runtime::builder().policy(Simulated::new(seed));
            let runtime = runtime.on_fault(|_| {}).build().unwrap();
            runtime.block_on(history(seed));
        }
    });
}
