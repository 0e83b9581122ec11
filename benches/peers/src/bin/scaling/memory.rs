//! The memory of dormant actors and waiting tasks: live in the allocator, and resident.

use std::future::pending;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use futures_lite::future::yield_now;
use peers::{counting, linux};

use crate::figures::{self, Figure};
use crate::way::Way;

/// The number of measured items, and how many are started before the first of them are dormant.
const COUNT: u64 = 200_000;
const AT_ONCE: u64 = 1000;
/// The number of addresses that are held.
const ADDRESSES: u64 = 1_000_000;
/// The number of actors that are spawned without a pause.
const MILLION: u64 = 1_000_000;
/// How often that is repeated.
const MORE: usize = 3;
/// The time after which all threads are idle.
const SETTLE: Duration = Duration::from_millis(100);
/// Longer than any measurement.
const HOUR: Duration = Duration::from_secs(3600);

/// The number of items that are dormant by now, or dropped.
static COUNTED: AtomicU64 = AtomicU64::new(0);

fn count_one() {
    COUNTED.fetch_add(1, Ordering::Relaxed);
}

/// Waits until this many items have been counted since the last call.
async fn counted(count: u64) {
    while COUNTED.load(Ordering::Relaxed) < count {
        yield_now().await;
    }
    assert_eq!(COUNTED.swap(0, Ordering::Relaxed), count, "counted");
}

/// Creates space for `count` items and writes to it, so that it is resident.
pub fn places<T>(count: u64) -> Vec<Option<T>> {
    // `black_box`, because the compiler would request zeroed memory instead of writing to it.
    let mut places = black_box(Vec::with_capacity(count as usize));
    places.extend((0..count).map(|_| None));
    places
}

/// The bytes of one item.
#[derive(Clone, Copy)]
struct Bytes {
    live: f64,
    resident: f64,
}

impl Bytes {
    /// Measures the bytes of one of `count` items that `make` creates; each counts itself when it
    /// is dormant.
    async fn of<T>(count: u64, mut make: impl FnMut(u64) -> T) -> (Self, Vec<Option<T>>) {
        let mut held = places(count);
        let resident = linux::resident();
        counting::start();
        for (n, place) in (0..count).zip(&mut held) {
            *place = Some(make(n));
            if (n + 1) % AT_ONCE == 0 {
                counted(AT_ONCE).await;
            }
        }
        thread::sleep(SETTLE);
        let each = |bytes: f64| bytes / count as f64;
        let bytes = Self {
            live: each(counting::stop().bytes as f64),
            resident: each(linux::resident() - resident),
        };
        (bytes, held)
    }

    fn beyond(self, other: Self) -> Self {
        Self {
            live: self.live - other.live,
            resident: self.resident - other.resident,
        }
    }

    fn figures(self) -> Vec<Figure> {
        vec![
            (figures::LIVE, self.live),
            (figures::RESIDENT, self.resident),
        ]
    }
}

/// Adds each number to its state and counts it; holds `_guard` until it is dropped.
async fn dormant<W: Way>(mut inbox: W::Inbox<u64>, mut state: u64, _guard: impl Send) {
    while let Some(number) = W::recv(&mut inbox).await {
        state += number;
        std::hint::black_box(state);
        count_one();
    }
}

/// Measures actors that have handled a message.
pub async fn actor<W: Way>() -> Vec<Figure> {
    let spawn = |n| {
        let actor = W::actor(move |inbox| dormant::<W>(inbox, n, ()));
        W::tell(&actor, 1);
        actor
    };
    Bytes::of(COUNT, spawn).await.0.figures()
}

/// Measures tasks that only wait.
pub async fn task<W: Way>() -> Vec<Figure> {
    Bytes::of(COUNT, |_| waiting::<W>()).await.0.figures()
}

fn waiting<W: Way>() -> W::Task {
    W::task(async {
        count_one();
        pending::<()>().await;
    })
}

/// Measures what an ask adds to a waiting task that holds the address of the actor. The actor's
/// list of replies is not included.
pub async fn ask<W: Way>() -> Vec<Figure> {
    let mut replies = places(COUNT);
    let keeper = W::actor(async move |mut inbox: W::Inbox<W::Reply>| {
        for place in &mut replies {
            *place = W::recv(&mut inbox).await;
            count_one();
        }
        pending::<()>().await;
    });
    let (waiting, _held) = Bytes::of(COUNT, |_| {
        let keeper = keeper.clone();
        W::task(async move {
            count_one();
            pending::<()>().await;
            drop(keeper);
        })
    })
    .await;
    let (asking, _held) = Bytes::of(COUNT, |_| {
        let keeper = keeper.clone();
        W::task(async move { W::ask(&keeper).await })
    })
    .await;
    asking.beyond(waiting).figures()
}

/// Measures what a timer adds to a waiting task.
pub async fn timer<W: Way>() -> Vec<Figure> {
    let (waiting, _held) = Bytes::of(COUNT, |_| waiting::<W>()).await;
    let (sleeping, _held) = Bytes::of(COUNT, |_| {
        W::task(async {
            count_one();
            W::sleep(HOUR).await;
        })
    })
    .await;
    sleeping.beyond(waiting).figures()
}

/// Measures addresses of one actor.
pub async fn address<W: Way>() -> Vec<Figure> {
    let actor = W::actor(|inbox| dormant::<W>(inbox, 0, ()));
    let resident = linux::resident();
    counting::start();
    let held: Vec<_> = (0..ADDRESSES).map(|_| actor.clone()).collect();
    let live = counting::stop().bytes as f64;
    let resident = linux::resident() - resident;
    drop(held);
    let each = [live, resident].map(|bytes| bytes / ADDRESSES as f64);
    vec![(figures::LIVE, each[0]), (figures::RESIDENT, each[1])]
}

/// A guard that counts its actor when it is dropped.
struct Gone;

impl Drop for Gone {
    fn drop(&mut self) {
        count_one();
    }
}

/// Spawns a million actors without a pause and sends a message to each. Waits until all are
/// dormant, drops their addresses, and waits until all are dropped.
async fn come_and_go<W: Way>(held: &mut [Option<W::Address<u64>>]) {
    for (n, place) in (0..MILLION).zip(&mut *held) {
        let actor = W::actor(move |inbox| dormant::<W>(inbox, n, Gone));
        W::tell(&actor, 1);
        *place = Some(actor);
    }
    counted(MILLION).await;
    held.fill_with(|| None);
    counted(MILLION).await;
}

/// Measures the peak while a million actors are spawned, the memory left after them, and the growth
/// by more millions, one after the other. All values are bytes for one of a million actors.
pub async fn million<W: Way>() -> Vec<Figure> {
    let mut held = places(MILLION);
    let (resident, peak) = (linux::resident(), linux::peak());
    counting::start();
    come_and_go::<W>(&mut held).await;
    thread::sleep(SETTLE);
    let live = counting::live().bytes as f64;
    let (left, first_peak) = (linux::resident() - resident, linux::peak());
    for _ in 0..MORE {
        come_and_go::<W>(&mut held).await;
    }
    let last_peak = linux::peak();
    thread::sleep(SETTLE);
    linux::trim();
    let bytes = [
        first_peak - peak,
        live,
        left,
        last_peak - first_peak,
        linux::resident() - resident,
    ];
    let figures = figures::OF_A_MILLION.into_iter().zip(bytes);
    figures
        .map(|(what, bytes)| (what, bytes / MILLION as f64))
        .collect()
}
