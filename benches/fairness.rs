//! Fairness under each policy: the shares of closed groups of actors, which only send to
//! themselves.
//!
//! Some groups share a worker with one other group and some with a thousand, like the isolated
//! groups in the design of Sophie's message queue (<https://github.com/kjosib/sophie>).
//!
//! `cargo bench --bench fairness -- full` takes 100 s and fails if the default policy misses the
//! goal. Without the argument everything runs for a moment only, and nothing is judged.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};

use greenroom::policy::{Polling, Prioritized, Sharing, Stealing};
use greenroom::{Address, Builder, Context, Handle, Runtime, spawn};

/// The maximum ratio of the fastest group's messages to the slowest group's.
const BAR: f64 = 1.5;
const WORK: Duration = Duration::from_micros(1);
/// The number of groups that are placed on each of the two workers.
const PLACED: [usize; 2] = [2, 1000];
const RINGS: [usize; 2] = [2, 200];
/// The number of actors in a ring.
const RING: usize = 8;

/// The counter of one group's messages, and the flag that ends the group.
#[derive(Clone, Default)]
struct Share {
    count: Arc<Padded>,
    over: Arc<AtomicBool>,
}

/// A counter on its own cache lines, so that groups do not slow each other down.
#[derive(Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

impl Share {
    /// Handles a message; returns false if it is the last one.
    fn work(&self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < WORK {
            std::hint::spin_loop();
        }
        self.count.0.fetch_add(1, Ordering::Relaxed);
        !self.over.load(Ordering::Relaxed)
    }
}

type Actors = Vec<Handle<(), ()>>;

/// Spawns an actor that sends a message to itself again and again.
fn selfish(share: &Share) -> Actors {
    let share = share.clone();
    let actor = spawn!(|mut cx: Context<()>| async move {
        let own = cx.downgrade();
        while cx.recv().await.is_some() && share.work() {
            let _ = own.tell(());
        }
    });
    let _ = actor.tell(());
    vec![actor]
}

/// Spawns actors that pass a token round.
fn ring(share: &Share) -> Actors {
    let seats: Arc<[OnceLock<Address<()>>]> = (0..RING).map(|_| OnceLock::new()).collect();
    let member = |at: usize| {
        let (share, all) = (share.clone(), seats.clone());
        let actor = spawn!(move |mut cx: Context<()>| async move {
            let next = &all[(at + 1) % RING];
            while cx.recv().await.is_some() && share.work() {
                let _ = next.get().expect("all are seated").tell(());
            }
        });
        let _ = seats[at].set(actor.address());
        actor
    };
    let actors: Actors = (0..RING).map(member).collect();
    let _ = actors[0].tell(());
    actors
}

/// Places groups on two workers. Each worker is held until the placing tasks of both have begun.
fn place(runtime: &Runtime, groups: [&[Share]; 2], group: fn(&Share) -> Actors) -> Actors {
    let meeting = Arc::new(Barrier::new(2));
    let tasks = groups.map(|shares| {
        let (meeting, shares) = (meeting.clone(), shares.to_vec());
        runtime.spawn(async move {
            meeting.wait();
            shares.iter().flat_map(group).collect::<Actors>()
        })
    });
    let placed = tasks.map(|task| runtime.block_on(task));
    placed.into_iter().flatten().collect()
}

/// Returns the messages that the slowest and the fastest group handle between `from` and twice
/// `from`.
fn measure(
    builder: Builder,
    placed: [usize; 2],
    group: fn(&Share) -> Actors,
    from: Duration,
) -> (u64, u64) {
    let runtime = builder.workers(2).build().expect("two threads start");
    let over = Arc::new(AtomicBool::new(false));
    let share = || Share {
        over: over.clone(),
        ..Share::default()
    };
    let shares: Vec<Share> = (0..placed[0] + placed[1]).map(|_| share()).collect();
    let (few, many) = shares.split_at(placed[0]);
    let actors = place(&runtime, [few, many], group);
    let counts = || -> Vec<u64> {
        std::thread::sleep(from);
        let count = |share: &Share| share.count.0.load(Ordering::Relaxed);
        shares.iter().map(count).collect()
    };
    let (before, after) = (counts(), counts());
    over.store(true, Ordering::Relaxed);
    drop(runtime);
    drop(actors);
    let done = after
        .iter()
        .zip(&before)
        .map(|(after, before)| after - before);
    let (slowest, fastest) = (done.clone().min(), done.max());
    (slowest.unwrap_or(0), fastest.unwrap_or(0))
}

fn main() -> ExitCode {
    let full = std::env::args().any(|argument| argument == "full");
    let from = Duration::from_millis(if full { 5000 } else { 50 });
    type Policies = [(&'static str, fn(Builder) -> Builder); 5];
    let policies: Policies = [
        ("Stealing", |builder| builder),
        ("Stealing, never evened out", |builder| {
            builder.policy(Stealing::default().rebalance_interval(None))
        }),
        ("Stealing, polling", |builder| {
            builder.policy(Stealing::polling(Polling::default()))
        }),
        ("Sharing", |builder| builder.policy(Sharing::default())),
        ("Prioritized", |builder| {
            builder.policy(Prioritized::default())
        }),
    ];
    type Loads = [(&'static str, [usize; 2], fn(&Share) -> Actors); 2];
    let loads: Loads = [
        ("self-telling actors", PLACED, selfish),
        ("rings of 8", RINGS, ring),
    ];
    let mut missed = false;
    for (load, placed, group) in loads {
        println!(
            "{load}, {} on one worker and {} on the other",
            placed[0], placed[1]
        );
        for (at, (name, policy)) in policies.into_iter().enumerate() {
            let builder = policy(Runtime::builder().grace(Duration::ZERO));
            let (slowest, fastest) = measure(builder, placed, group, from);
            let ratio = fastest as f64 / slowest as f64;
            println!("  {name:24} {slowest:>9} to {fastest:>9} messages: {ratio:.2}");
            missed |= at == 0 && ratio > BAR;
        }
    }
    if full && missed {
        println!("the default misses the goal of {BAR}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
