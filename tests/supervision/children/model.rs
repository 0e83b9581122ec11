//! A model of parents and children: stops, kills, panics and returns in any order.
//!
//! Each seed draws a tree, and a list of operations on its actors. Whatever the order in which they
//! take effect, these rules hold:
//!
//! - every actor ends;
//! - a stopped parent has received the result of each child when `recv` returns `None`;
//! - the result of a child arrives after the child has ended.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom::policy::Simulated;
use greenroom::{Address, Context, Handle, Runtime, spawn};

use crate::support::{WATCH, keep_bombs_quiet, within};

const SEEDS: Range<u64> = 0..400;

#[derive(Clone, Copy)]
enum Order {
    /// Adopt this many children, each with a tree of this depth below it.
    Grow(usize, usize),
    Stop,
    StopChildren,
    Return,
    Panic,
}

enum Message {
    Order(Order),
    /// The child with this number has ended.
    Ended(usize),
}

/// What is known of all actors, by their numbers.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    /// The number of the last actor; the root has 0.
    count: usize,
    addresses: Vec<Address<Message>>,
    /// The children that each actor has adopted and not heard of.
    open: HashMap<usize, Vec<usize>>,
    /// The actors that have ended, in order.
    ended: Vec<usize>,
}

impl Book {
    fn with<R>(&self, f: impl FnOnce(&mut Pages) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Enters the end of an actor when its state is dropped.
struct Ends(Book, usize);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.with(|pages| pages.ended.push(self.1));
    }
}

/// An actor of the tree. Without an order to return or to panic, it ends when it is stopped, and
/// has heard of each child by then.
async fn node(mut cx: Context<Message>, ends: Ends) {
    let Ends(book, number) = &ends;
    let number = *number;
    while let Some(message) = cx.recv().await {
        match message {
            Message::Order(Order::Grow(children, depth)) => {
                for _ in 0..children {
                    let child = book.with(|pages| {
                        pages.count += 1;
                        pages.count
                    });
                    let handle = begin(book.clone(), child);
                    book.with(|pages| {
                        pages.addresses.push(handle.address());
                        pages.open.entry(number).or_default().push(child);
                    });
                    if depth > 0 {
                        let grow = Message::Order(Order::Grow(children, depth - 1));
                        handle.tell(grow).unwrap_or(());
                    }
                    cx.adopt(handle, move |_| Message::Ended(child));
                }
            }
            Message::Order(Order::Stop) => cx.stop(),
            Message::Order(Order::StopChildren) => cx.stop_children(),
            Message::Order(Order::Return) => return,
            Message::Order(Order::Panic) => panic!("bomb of an actor"),
            Message::Ended(child) => book.with(|pages| {
                assert!(pages.ended.contains(&child), "the child has ended");
                let open = pages.open.get_mut(&number).unwrap();
                open.retain(|other| *other != child);
            }),
        }
    }
    book.with(|pages| {
        let left = pages.open.get(&number).map_or(0, Vec::len);
        assert_eq!(left, 0, "a stopped parent has heard of each child");
    });
    assert_eq!(cx.children().len(), 0);
}

fn begin(book: Book, number: usize) -> Handle<Message, ()> {
    let ends = Ends(book, number);
    spawn!(node(_, ends))
}

/// Draws numbers from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

async fn run(seed: u64) {
    let mut draws = Draws(seed * 2 + 1);
    let book = Book::default();
    let root = begin(book.clone(), 0);
    book.with(|pages| pages.addresses.push(root.address()));
    let grow = Order::Grow(1 + draws.below(3), draws.below(3));
    root.tell(Message::Order(grow)).unwrap();
    for _ in 0..draws.below(12) {
        for _ in 0..draws.below(4) {
            greenroom::yield_now().await;
        }
        let known = book.with(|pages| pages.addresses.clone());
        let one = &known[draws.below(known.len())];
        let order = match draws.below(7) {
            0 => Order::Return,
            1 => Order::Panic,
            2 => Order::StopChildren,
            3 => Order::Stop,
            4 => Order::Grow(draws.below(3), 0),
            5 => {
                one.kill();
                continue;
            }
            _ => {
                one.stop();
                continue;
            }
        };
        let _ = one.tell(Message::Order(order));
    }
    root.stop();
    drop(root);
    // Each address is given up, so that only its parent keeps an actor open.
    loop {
        let waits = book.with(|pages| std::mem::take(&mut pages.addresses));
        if waits.is_empty() {
            break;
        }
        for address in waits {
            address.downgrade().closed().await;
        }
    }
}

#[test]
fn parents_and_children_end_in_order_whatever_happens_to_them() {
    keep_bombs_quiet();
    within(WATCH, || {
        for seed in SEEDS {
            // Panics of actors whose parent has ended are no failures here.
            let runtime = Runtime::builder()
                .policy(Simulated::new(seed))
                .on_fault(|_| {});
            runtime.build().unwrap().block_on(run(seed));
        }
    });
}
