//! A bug that needs three orderings at once, so only two changes of priority reveal it.
//!
//! A task that signals and then waits does so through a helper. So no task is woken during its own
//! turn, and the guarantee of the PCT paper holds: at least one seed in `tasks · within²` finds the
//! bug.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use greenroom::policy::Simulated;
use greenroom::spawn;

/// The number of tasks, including the future of the run.
const TASKS: u64 = 6;
/// The run takes fewer steps than this.
const WITHIN: u64 = 32;

type Log = Arc<Mutex<Vec<&'static str>>>;
type Sender = UnboundedSender<()>;
type Receiver = UnboundedReceiver<()>;

fn signal(sender: &Sender) {
    sender.unbounded_send(()).unwrap();
}

/// Passes two signals on, each from its own receiver to its own sender.
async fn helper(mut from: [Receiver; 2], to: [Sender; 2]) {
    for (from, to) in from.iter_mut().zip(&to) {
        from.next().await;
        signal(to);
    }
}

/// Runs the task that begins first. It waits for its helper between its two orderings.
async fn slow(log: Log, [begin, hand, go]: [Sender; 3], [mut begun, mut back]: [Receiver; 2]) {
    signal(&begin);
    begun.next().await;
    signal(&hand);
    signal(&go);
    back.next().await;
    log.lock().unwrap().push("slow is back");
}

async fn middle(log: Log, [begun, hand, go]: [Sender; 3], mut from: [Receiver; 3]) {
    from[0].next().await;
    log.lock().unwrap().push("middle begins");
    signal(&begun);
    from[1].next().await;
    signal(&hand);
    signal(&go);
    from[2].next().await;
    log.lock().unwrap().push("middle is back");
}

async fn watcher(log: Log, go: Sender, [mut first, mut second]: [Receiver; 2]) {
    log.lock().unwrap().push("watcher begins");
    first.next().await;
    signal(&go);
    second.next().await;
    log.lock().unwrap().push("watcher is done");
}

/// Returns whether the three orderings occurred.
async fn three_orders() -> bool {
    let log = Log::default();
    let (begin, begins) = unbounded();
    let (chain, chained) = unbounded();
    let (start, starts) = unbounded();
    let (begun, has_begun) = unbounded();
    let (hand, handed) = unbounded();
    let (back, is_back) = unbounded();
    let (hand_on, handed_on) = unbounded();
    let (back_on, is_back_on) = unbounded();
    let (to_watcher, watched) = unbounded();
    let (to_middle, from_watcher) = unbounded();
    let (done, is_done) = unbounded();
    let tasks = [
        spawn(slow(
            log.clone(),
            [begin, hand, to_watcher],
            [has_begun, is_back],
        )),
        spawn(middle(
            log.clone(),
            [begun, hand_on, done],
            [starts, from_watcher, is_back_on],
        )),
        spawn(watcher(log.clone(), to_middle, [watched, is_done])),
        spawn(helper([begins, handed], [chain, back])),
        spawn(helper([chained, handed_on], [start, back_on])),
    ];
    for task in tasks {
        task.await;
    }
    let log = log.lock().unwrap();
    let at = |what| log.iter().position(|is| *is == what).unwrap();
    at("middle begins") < at("watcher begins")
        && at("watcher is done") < at("middle is back")
        && at("middle is back") < at("slow is back")
}

/// Counts the seeds below `seeds` with which the orderings occur.
fn found(changes: u32, seeds: u64) -> usize {
    let comes_about = |&seed: &u64| {
        let run = Simulated::new(seed).priorities(changes, WITHIN);
        let run = run.try_run(three_orders()).unwrap();
        assert!(run.steps < WITHIN);
        run.value
    };
    (0..seeds).filter(comes_about).count()
}

#[test]
fn two_changes_find_the_bug_as_often_as_pct_guarantees() {
    let seeds = 10_000;
    let promised = seeds / (TASKS * WITHIN * WITHIN);
    let found_with = found(2, seeds);
    assert!(
        found_with as u64 >= promised,
        "{found_with} of {seeds} seeds, but at least {promised} are guaranteed"
    );
    assert_eq!(found(0, seeds), 0);
}
