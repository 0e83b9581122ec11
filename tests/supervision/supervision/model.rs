//! A model of supervisors: trees of any shape, whose children fail, hang, come and go at any time.
//!
//! Each seed draws a tree, its senders, and a list of operations. Whatever their order, these rules
//! hold:
//!
//! - each accepted message is received once or undelivered, in order for each sender;
//! - an asker is told what became of its message;
//! - two incarnations of a child never overlap;
//! - with one-for-all and rest-for-one, no child begins while a younger one is live, or an
//!   incarnation that was live when it failed;
//! - children begin in the order of their start;
//! - the tree ends;
//! - only a supervisor whose intensity can be used up gives up, and it says why.

mod book;

use std::ops::Range;
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::supervise::{Restarts, Strategy, Supervisor};
use greenroom::time::{RetryIntervals, sleep};
use greenroom::{Address, Context, Reply, Runtime, actor, yield_now};

use self::book::{Book, Mark, Outcome, Sent};
use crate::support::matrix::Named;
use crate::support::{WATCH, keep_bombs_quiet, within};

const SEEDS: Range<u64> = 0..300;
const SENDERS: usize = 3;

/// What a message makes a child do.
#[derive(Clone, Copy)]
pub enum Task {
    Answer,
    Yield(usize),
    Sleep(Duration),
    Panic,
    Return,
    Stop,
    Hang,
    /// Let the context live elsewhere for a while.
    Escape(Duration),
}

pub struct Letter {
    mark: Mark,
    task: Task,
    reply: Option<Reply<()>>,
}

/// Draws numbers from a seed.
struct Draws(u64);

impl Draws {
    fn of(seed: u64, part: u64) -> Draws {
        Draws((seed * 1000 + part).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn millis(&mut self, limit: usize) -> Duration {
        Duration::from_millis(self.below(limit) as u64)
    }

    fn task(&mut self) -> Task {
        match self.below(40) {
            0..20 => Task::Answer,
            20..25 => Task::Yield(self.below(6)),
            25..29 => Task::Sleep(self.millis(2000)),
            29..35 => Task::Panic,
            35 => Task::Return,
            36 => Task::Stop,
            37 => Task::Hang,
            _ => Task::Escape(self.millis(500)),
        }
    }

    /// Returns `None` for the default.
    fn restarts(&mut self, is_patient: bool) -> Option<Restarts<()>> {
        let restarts = match self.below(5) {
            0 if !is_patient => return None,
            1 => Restarts::always(),
            2 => Restarts::when(Result::is_err),
            _ => Restarts::on_fault(),
        };
        let restarts = match self.below(4) {
            0 if !is_patient => {
                restarts.intensity(1 + self.below(5) as u32, Duration::from_secs(2))
            }
            _ => restarts.intensity(u32::MAX, Duration::from_secs(1)),
        };
        Some(match self.below(3) {
            0 => restarts.stand_down(Duration::from_millis(1 + self.below(500) as u64)),
            1 => {
                let delays = RetryIntervals::every(self.millis(100));
                restarts.delays(delays)
            }
            _ => restarts,
        })
    }

    fn strategy(&mut self) -> Strategy {
        [
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
        ][self.below(3)]
    }
}

/// Enters the begin and the end of an incarnation.
struct Life(Book, usize, u64);

impl Life {
    fn begin(book: &Book, leaf: usize, incarnation: u64) -> Life {
        book.with(|pages| pages.begin(leaf, incarnation));
        Life(book.clone(), leaf, incarnation)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.with(|pages| pages.drop(self.1, self.2));
    }
}

/// A child, which does what it is told.
async fn leaf(mut cx: Context<Letter>, book: Book, leaf: usize) {
    let number = cx.incarnation_number();
    let life = Life::begin(&book, leaf, number);
    while let Some(Letter { mark, task, reply }) = cx.recv().await {
        book.with(|pages| pages.receive(leaf, mark, number));
        match task {
            Task::Answer => {}
            Task::Yield(times) => {
                for _ in 0..times {
                    yield_now().await;
                }
            }
            Task::Sleep(time) => sleep(time).await,
            Task::Panic => {
                let text = format!("bomb {leaf}, {number}");
                book.with(|pages| pages.fail(leaf, &text));
                panic!("{text}");
            }
            Task::Return => return,
            Task::Stop => cx.stop(),
            Task::Hang => std::future::pending().await,
            Task::Escape(time) => {
                book.with(|pages| pages.escape(leaf));
                greenroom::spawn(async move {
                    sleep(time).await;
                    drop(cx);
                    drop(life);
                })
                .detach();
                return std::future::pending().await;
            }
        }
        if let Some(reply) = reply {
            reply.send(());
        }
    }
}

/// Starts a child of this supervisor, unless the supervisor stops.
fn start_leaf(book: &Book, tree: usize, draws: &mut Draws) {
    let (number, supervisor, is_patient) = book.with(|pages| {
        let is_patient = tree == 0 && !pages.may_give_up;
        let number = pages.add_leaf(tree);
        (number, pages.trees[tree].tree.clone(), is_patient)
    });
    let Some(supervisor) = supervisor else { return };
    let (own, lost) = (book.clone(), book.clone());
    let child = actor(move |cx| leaf(cx, own, number))
        .name(format!("leaf {number}"))
        .on_undelivered(move |letter: Letter| {
            lost.with(|pages| pages.undelivered(number, letter.mark));
        });
    let child = match draws.below(4) {
        0 => child.capacity(1 + draws.below(3)),
        _ => child,
    };
    let started = match draws.restarts(is_patient) {
        None => supervisor.start(child).ok(),
        Some(restarts) => supervisor.start(child.restart(restarts)).ok(),
    };
    book.with(|pages| pages.leaves[number].address = started);
}

/// Starts a supervisor, with children below it.
fn start_tree(book: &Book, parent: Option<usize>, depth: usize, draws: &mut Draws) {
    let strategy = draws.strategy();
    let intensity = match draws.below(4) {
        0 => draws.below(4) as u32,
        _ => u32::MAX,
    };
    let (number, above) = book.with(|pages| {
        if parent.is_none() {
            pages.may_give_up = intensity < u32::MAX;
        }
        let above = parent.and_then(|parent| pages.trees[parent].tree.clone());
        (pages.add_tree(parent, strategy), above)
    });
    let builder = Supervisor::builder()
        .strategy(strategy)
        .intensity(
            intensity,
            Duration::from_millis(1 + draws.below(20_000) as u64),
        )
        .grace(draws.millis(3000))
        .name(format!("tree {number}"));
    let tree = match (parent, above) {
        (None, _) => Some(builder.spawn().unwrap()),
        (Some(_), Some(above)) => above.supervisor(builder).ok(),
        (Some(_), None) => None,
    };
    book.with(|pages| pages.trees[number].tree = tree);
    for _ in 0..1 + draws.below(4) {
        match draws.below(3) {
            0 if depth > 0 => start_tree(book, Some(number), depth - 1, draws),
            _ => start_leaf(book, number, draws),
        }
    }
}

/// Sends letters to any children, and returns what became of them.
async fn sender(book: Book, sender: usize, mut draws: Draws) -> Vec<Sent> {
    let mut sent = Vec::new();
    for number in 0..draws.below(60) as u32 {
        let known = book.with(|pages| {
            let leaf = draws.below(pages.leaves.len());
            pages.leaves[leaf]
                .address
                .clone()
                .map(|address| (leaf, address))
        });
        let Some((leaf, address)) = known else {
            continue;
        };
        let mark = (sender, number);
        let letter = |task| Letter {
            mark,
            task,
            reply: None,
        };
        let task = draws.task();
        let outcome = match draws.below(4) {
            0 => accepted(address.tell(letter(task)).is_ok()),
            1 => accepted(address.send(letter(task)).await.is_ok()),
            2 => match address.reserve().await {
                Ok(permit) => {
                    for _ in 0..draws.below(4) {
                        yield_now().await;
                    }
                    permit.send(letter(task));
                    Outcome::Accepted
                }
                Err(_) => Outcome::Refused,
            },
            _ => Outcome::Asked(ask(&address, mark, task).await),
        };
        sent.push(Sent {
            leaf,
            number,
            task,
            outcome,
        });
        match draws.below(10) {
            0 => sleep(draws.millis(300)).await,
            1..5 => yield_now().await,
            _ => {}
        }
    }
    sent
}

fn accepted(is_accepted: bool) -> Outcome {
    match is_accepted {
        true => Outcome::Accepted,
        false => Outcome::Refused,
    }
}

async fn ask(address: &Address<Letter>, mark: Mark, task: Task) -> Result<(), greenroom::AskError> {
    let question = |reply| Letter {
        mark,
        task,
        reply: Some(reply),
    };
    address.ask(question).await
}

/// Does something to a child or a supervisor.
fn operate(book: &Book, draws: &mut Draws) {
    let (leaf, tree) = book.with(|pages| {
        let leaf = draws.below(pages.leaves.len());
        (leaf, draws.below(pages.trees.len()))
    });
    let (address, own) = book.with(|pages| {
        let page = &pages.leaves[leaf];
        (page.address.clone(), pages.trees[page.tree].tree.clone())
    });
    match (draws.below(16), address, own) {
        (0..4, _, _) => start_leaf(book, tree, draws),
        (4, _, _) => start_tree(book, Some(tree), 1, draws),
        (5, Some(address), _) => {
            book.with(|pages| pages.end(leaf));
            address.kill();
        }
        (6, Some(address), _) => address.stop(),
        (7, Some(address), Some(own)) => {
            book.with(|pages| pages.end(leaf));
            let _ = own.stop_child(&address);
        }
        (8..12, Some(address), Some(own)) => {
            book.with(|pages| pages.restart(leaf));
            let _ = own.restart(&address);
        }
        (12, _, _) if tree > 0 => {
            let page = book.with(|pages| {
                pages.trees[tree].is_stopped = true;
                pages.trees[tree].tree.clone()
            });
            if let Some(tree) = page {
                tree.stop();
            }
        }
        _ => {}
    }
}

async fn run(seed: u64) {
    let mut draws = Draws::of(seed, 0);
    let book = Book::default();
    start_tree(&book, None, 3, &mut draws);
    let senders = (0..SENDERS).map(|number| {
        let draws = Draws::of(seed, 1 + number as u64);
        greenroom::spawn(sender(book.clone(), number, draws))
    });
    let senders: Vec<_> = senders.collect();
    for _ in 0..draws.below(30) {
        operate(&book, &mut draws);
        match draws.below(3) {
            0 => sleep(draws.millis(1000)).await,
            1 => yield_now().await,
            _ => {}
        }
    }
    let top = book.with(|pages| {
        pages.trees[0].is_stopped = true;
        pages.trees[0].tree.clone().unwrap()
    });
    top.stop();
    let ended = top.join().await;
    let sent = futures::future::join_all(senders).await;
    // Contexts that are elsewhere are dropped by then.
    sleep(Duration::from_secs(1)).await;
    book.with(|pages| {
        for (sender, sent) in sent.iter().enumerate() {
            pages.check_sender(sender, sent);
        }
        pages.check_end();
        if let Err(escalated) = ended {
            assert!(pages.may_give_up);
            check_escalated(pages, &escalated);
        }
    });
}

/// The top gave up because of its own intensity, or that of the child.
fn check_escalated(pages: &book::Pages, escalated: &greenroom::supervise::Escalated) {
    let leaf = pages.leaves.iter().find(|page| {
        let id = page.address.as_ref().map(Address::id);
        id == Some(escalated.child().id())
    });
    let Some(leaf) = leaf else {
        assert!(escalated.child().name().unwrap().starts_with("tree"));
        return;
    };
    assert_eq!(leaf.tree, 0);
    let faults = &leaf.faults[leaf.faults.len().saturating_sub(10)..];
    assert!(escalated.faults().eq(faults), "{escalated:?}, {faults:?}");
}

#[test]
fn a_tree_keeps_its_promises_whatever_happens_to_it() {
    keep_bombs_quiet();
    within(WATCH, || {
        for seed in SEEDS {
            let _named = Named(format!("seed {seed}"));
            let runtime = Runtime::builder().policy(Simulated::new(seed));
            let runtime = runtime.on_fault(|_| {}).build().unwrap();
            runtime.block_on(run(seed));
        }
    });
}
