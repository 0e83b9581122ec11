//! Keyed actors: one actor of a key, found or started by a message to the key.

mod backlogs;
mod cycles;
mod errors;
mod idling;
mod keys;
mod limits;
mod model;
mod parts;
mod races;
mod users;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use greenroom::registry::{Keyed, KeyedBuilder};
use greenroom::{Context, Reply, actor};

use crate::support::{Gate, Home};

const MINUTE: Duration = Duration::from_secs(60);

/// What the actors of these tests are told to do.
enum Order {
    Add(u32),
    /// Answer with the number of the actor of this key, from 1, and with what was added to it.
    Look(Reply<(u32, Vec<u32>)>),
    /// Open the first gate, then wait for the other one.
    Hold(Gate, Gate),
    /// Do the same, then return.
    Last(Gate, Gate),
    Return,
    Panic,
}

/// How many actors of each key have begun, and which are alive.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<BTreeMap<u32, (u32, bool)>>>);

impl Book {
    fn begin(&self, key: u32) -> Entry {
        let mut keys = self.0.lock().unwrap();
        let (begun, is_alive) = keys.entry(key).or_default();
        assert!(!std::mem::replace(is_alive, true), "two actors of {key}");
        *begun += 1;
        Entry {
            book: self.clone(),
            key,
            number: *begun,
        }
    }

    fn begun(&self, key: u32) -> u32 {
        self.0.lock().unwrap().get(&key).map_or(0, |entry| entry.0)
    }
}

/// An actor that is alive.
struct Entry {
    book: Book,
    key: u32,
    number: u32,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut keys = self.book.0.lock().unwrap();
        keys.get_mut(&self.key).unwrap().1 = false;
    }
}

/// Does what it is told, and returns what was added.
async fn obey(mut cx: Context<Order>, key: u32, book: Book) -> Vec<u32> {
    let entry = book.begin(key);
    let mut added = Vec::new();
    while let Some(order) = cx.recv().await {
        match order {
            Order::Add(number) => added.push(number),
            Order::Look(reply) => reply.send((entry.number, added.clone())),
            Order::Hold(begun, end) => {
                begun.open();
                end.wait().await;
            }
            Order::Last(begun, end) => {
                begun.open();
                end.wait().await;
                break;
            }
            Order::Return => break,
            Order::Panic => panic!("bomb"),
        }
    }
    added
}

type Set = Keyed<u32, Order>;

/// The options of a set of such actors.
fn options(home: &Home, book: &Book) -> KeyedBuilder<u32, Order, Vec<u32>> {
    let book = book.clone();
    let make = move |key| {
        let book = book.clone();
        actor(move |cx| obey(cx, key, book))
    };
    Keyed::builder(make).on(&home.runtime)
}

fn set(home: &Home) -> (Set, Book) {
    let book = Book::default();
    (options(home, &book).build().unwrap(), book)
}

/// Lets the actor of a key wait in the message in hand. Returns what lets it go on.
async fn hold(set: &Set, key: u32) -> Gate {
    let (begun, end) = (Gate::default(), Gate::default());
    set.tell(&key, Order::Hold(begun.clone(), end.clone()))
        .unwrap();
    begun.wait().await;
    end
}

/// Polls a future once, with the waker of the task.
async fn poll_in_turn<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(pin!(&mut *future).poll(cx))).await
}
