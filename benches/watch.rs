//! What a viewer of a runtime costs: the processor time of a walk over 100 000 actors that wait, and
//! the longest delay of a `tell` beside walks.
//!
//! `cargo bench --bench watch` prints the time of a walk, and which share of a core that is at one walk
//! a second. The goal is at most 3 %. Then it prints the slowest of many tells beside walks that follow
//! each other closely, and their ratio to those without a viewer: the medians of alternating rounds, and
//! the longest tell of all of them. In the last rounds one of the actors has a million messages in its
//! mailbox, which a walk counts. Before these each actor gets a name, and then 1000 of these change
//! before each walk.
//!
//! The longest tell without a walk is what the machine itself does to a thread. Only what is longer beside
//! walks is their cost, so on a machine that does other work the figure is noise.
//!
//! The processor time of the walking thread is known on Linux only.

use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use greenroom::registry::Name;
use greenroom::{Context, Handle, Runtime, Watch, spawn};

const WORKERS: usize = 1;
const ROUNDS: usize = 9;
const GOAL: f64 = 3.0;
const NAME: &str = "bench";

/// How much there is to do: little under `cargo test`.
struct Size {
    actors: usize,
    walks: u32,
    tells: usize,
    messages: usize,
}

async fn sink(mut cx: Context<u64>) {
    while cx.recv().await.is_some() {}
}

/// Takes messages only when it is told the end.
async fn stuck(cx: Context<u64>) {
    let _cx = cx;
    std::future::pending::<()>().await;
}

/// Returns for how long the thread of the walks has run, in nanoseconds.
fn walked() -> Option<u64> {
    let tasks = fs::read_dir("/proc/self/task").ok()?;
    let mut sum = None;
    for task in tasks.filter_map(Result::ok) {
        let read = |file| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if read("comm").trim() == format!("{NAME}-watch") {
            let ran: Option<u64> = read("schedstat").split(' ').next()?.parse().ok();
            sum = Some(sum.unwrap_or(0) + ran?);
        }
    }
    sum
}

/// Takes so many items.
fn take(runtime: &Runtime, watch: &mut Watch, items: u32) {
    runtime.block_on(async {
        for _ in 0..items {
            watch.next().await.expect("the runtime goes on");
        }
    });
}

/// Prints what a walk takes if no actor has changed, and if the item has all of them.
fn print_walks(runtime: &Runtime, size: &Size) {
    let begun = Instant::now();
    let stats = runtime.stats();
    let took = begun.elapsed();
    println!("stats() with {} actors: {took:.1?}", stats.actors.len());
    drop(stats);
    let mut watch = runtime.watch(Duration::from_millis(1));
    // The first item has all actors. In the second one may be what has changed meanwhile.
    take(runtime, &mut watch, 1);
    let whole = walked();
    take(runtime, &mut watch, 4);
    let before = walked();
    take(runtime, &mut watch, size.walks);
    let after = walked();
    let (Some(whole), Some(before), Some(after)) = (whole, before, after) else {
        return println!("the processor time of a thread is not known here");
    };
    println!("the first walk: {:.1} ms", whole as f64 / 1e6);
    print_walk("a walk", after - before, size.walks);
}

fn print_walk(what: &str, nanos: u64, walks: u32) {
    let millis = nanos as f64 / f64::from(walks) / 1e6;
    let share = millis / 10.0;
    let met = if share <= GOAL { "met" } else { "missed" };
    println!("{what}: {millis:.2} ms, {share:.2} % of a core at one a second; goal {GOAL} % {met}");
}

/// Prints what a walk takes if each actor has a name, and if one of the names changes before it.
fn print_named_walks(runtime: &Runtime, actors: &[Handle<u64, ()>], size: &Size) {
    let name = |at: usize| Name::owned(format!("actor {at}")).on(runtime);
    for (at, actor) in actors.iter().enumerate() {
        name(at).register(actor).expect("the name is free");
    }
    let mut watch = runtime.watch(Duration::from_millis(1));
    for (what, changes) in [
        ("a walk, all with names", false),
        ("a walk after 1000 changes of names", true),
    ] {
        take(runtime, &mut watch, 4);
        let before = walked();
        for walk in 0..size.walks as usize {
            for at in 0..1000.min(actors.len()) * usize::from(changes) {
                name(at).unregister();
                let other = &actors[(at + walk) % actors.len()];
                name(at).register(other).expect("the name is free");
            }
            take(runtime, &mut watch, 1);
        }
        if let (Some(before), Some(after)) = (before, walked()) {
            print_walk(what, after - before, size.walks);
        }
    }
}

/// Tells the actors in turn, and returns how long the slowest of so many tells took, and which time
/// one in 1000 exceeded.
fn tell_all(actors: &[Handle<u64, ()>], tells: usize) -> [Duration; 2] {
    let mut taken = Vec::with_capacity(tells);
    for at in 0..tells {
        // Far from the one before, as the walk is.
        let actor = &actors[at * 7919 % actors.len()];
        let begun = Instant::now();
        actor.tell(1).expect("the actor is open");
        taken.push(begun.elapsed());
        if at % 64 == 0 {
            thread::yield_now();
        }
    }
    taken.sort_unstable();
    [taken[tells - 1], taken[tells * 999 / 1000]]
}

/// Calls `f` while items are taken as fast as they come.
fn beside_walks<R>(runtime: &Runtime, f: impl FnOnce() -> R) -> R {
    let (ends, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut watch = runtime.watch(Duration::from_millis(1));
            while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                take(runtime, &mut watch, 1);
            }
        });
        let value = f();
        drop(ends);
        value
    })
}

fn median(mut taken: Vec<Duration>) -> Duration {
    taken.sort_unstable();
    taken[taken.len() / 2]
}

fn print_tells(runtime: &Runtime, actors: &[Handle<u64, ()>], size: &Size, what: &str) {
    let mut rounds = [(); 4].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        let alone = tell_all(actors, size.tells);
        let beside = beside_walks(runtime, || tell_all(actors, size.tells));
        let taken = alone.into_iter().chain(beside);
        rounds
            .iter_mut()
            .zip(taken)
            .for_each(|(all, it)| all.push(it));
    }
    let most = |at: usize| rounds[at].iter().max().copied().unwrap_or_default();
    let (most, most_beside) = (most(0), most(2));
    let [longest, rare, beside, rare_beside] = rounds.map(median);
    let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    println!("{what}, {ROUNDS} rounds of {} each:", size.tells);
    println!("  the longest tell of all: {most:.1?}, beside walks {most_beside:.1?}");
    let more = ratio(beside, longest);
    println!("  the longest of a round: {longest:.1?}, beside walks {beside:.1?}, {more:.2} x");
    let more = ratio(rare_beside, rare);
    println!(
        "  one in 1000 takes longer than {rare:.1?}, beside walks {rare_beside:.1?}, {more:.2} x"
    );
}

fn main() {
    let size = match std::env::args().any(|arg| arg == "--bench") {
        true => Size {
            actors: 100_000,
            walks: 50,
            tells: 200_000,
            messages: 1_000_000,
        },
        false => Size {
            actors: 1000,
            walks: 5,
            tells: 1000,
            messages: 1000,
        },
    };
    let builder = Runtime::builder().workers(WORKERS).thread_name(NAME);
    let runtime = builder.build().expect("a runtime with one worker");
    let actors: Vec<_> = (0..size.actors)
        .map(|_| spawn!(sink(_), on = &runtime))
        .collect();
    runtime.run_until_quiescent();
    print_walks(&runtime, &size);
    print_tells(&runtime, &actors, &size, "tells to these actors");
    print_named_walks(&runtime, &actors, &size);
    let stuck = spawn!(stuck(_), on = &runtime);
    for message in 0..size.messages {
        stuck.tell(message as u64).expect("the actor is open");
    }
    let what = format!("the same beside an actor with {} messages", size.messages);
    print_tells(&runtime, &actors, &size, &what);
}
