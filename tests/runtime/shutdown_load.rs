//! A shutdown while workers, pinned threads and threads of the user exchange messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::{Address, Context, Fault, Handle, Pinned, Runtime, ShutdownReport, spawn};

use crate::support::{Gate, WATCH, drive, within};

/// Counts each ball and passes it on to the next address on its way.
async fn relay(mut cx: Context<Ball>, handled: Arc<AtomicUsize>, accepted: Arc<AtomicUsize>) {
    while let Some(mut ball) = cx.recv().await {
        handled.fetch_add(1, Ordering::SeqCst);
        let Some(next) = ball.way.pop() else { continue };
        if next.clone().tell(ball).is_ok() {
            accepted.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A message that goes from actor to actor.
struct Ball {
    way: Vec<Address<Ball>>,
}

/// Starts, receives no message, and never ends.
async fn stubborn(_cx: Context<Ball>) {
    std::future::pending::<()>().await;
}

#[derive(Default, Clone)]
struct Counts {
    accepted: Arc<AtomicUsize>,
    handled: Arc<AtomicUsize>,
}

impl Counts {
    fn tell(&self, to: &Address<Ball>, way: Vec<Address<Ball>>) -> bool {
        let told = to.tell(Ball { way }).is_ok();
        self.accepted.fetch_add(usize::from(told), Ordering::SeqCst);
        told
    }
}

/// A runtime with pinned threads, and actors on all its threads.
struct House {
    runtime: Runtime,
    _pinned: Vec<Pinned>,
    actors: Vec<Handle<Ball, ()>>,
    counts: Counts,
}

impl House {
    fn new(stubborn_ones: bool) -> House {
        let builder = Runtime::builder().workers(2);
        let runtime = builder.grace(Duration::from_millis(20)).build().unwrap();
        let pinned: Vec<_> = (0..2)
            .map(|at| runtime.spawn_pinned(format!("pinned-{at}")).unwrap())
            .collect();
        let counts = Counts::default();
        let mut actors = Vec::new();
        for _ in 0..4 {
            let own = || (counts.handled.clone(), counts.accepted.clone());
            let (handled, accepted) = own();
            actors.push(spawn!(relay(_, handled, accepted), on = &runtime));
            for pinned in &pinned {
                let (handled, accepted) = own();
                actors.push(spawn!(relay(_, handled, accepted), on = pinned));
            }
        }
        if stubborn_ones {
            actors.push(spawn!(stubborn(_), on = &runtime));
            actors.push(spawn!(stubborn(_), on = &pinned[0]));
        }
        House {
            runtime,
            _pinned: pinned,
            actors,
            counts,
        }
    }

    fn addresses(&self) -> Vec<Address<Ball>> {
        self.actors.iter().map(|actor| actor.address()).collect()
    }

    /// Starts a thread that sends to the actors until all of them refuse.
    fn talker(&self, begun: Gate) -> std::thread::JoinHandle<()> {
        let (counts, addresses) = (self.counts.clone(), self.addresses());
        std::thread::spawn(move || {
            let mut from = 0;
            loop {
                from += 1;
                let way = addresses.iter().cycle().skip(from % 7).take(10);
                let way: Vec<_> = way.cloned().collect();
                let took = addresses.iter().filter(|to| counts.tell(to, way.clone()));
                if took.count() == 0 {
                    return;
                }
                if from == 10 {
                    begun.open();
                }
                std::thread::yield_now();
            }
        })
    }

    /// Checks the report against the outcome of each actor and each message.
    fn assert_adds_up(self, report: &ShutdownReport) {
        let alive = self.actors.len();
        let (mut ended, mut cancelled) = (0, 0);
        for actor in self.actors {
            match drive(actor.join()) {
                Ok(()) => ended += 1,
                Err(Fault::Cancelled | Fault::NotStarted) => cancelled += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!((report.ended, report.cancelled), (ended, cancelled));
        assert_eq!(
            ended + cancelled,
            alive,
            "every actor that lived at the start of the shutdown is counted"
        );
        let counts = self.counts;
        assert_eq!(
            counts.accepted.load(Ordering::SeqCst),
            counts.handled.load(Ordering::SeqCst) + report.unhandled,
            "every accepted message was handled or is in the report"
        );
        assert_eq!(report.left_behind, 0);
    }
}

#[test]
fn the_report_is_consistent_while_all_kinds_of_threads_send() {
    for stubborn_ones in [false, true] {
        within(WATCH, move || {
            for _ in 0..15 {
                let house = House::new(stubborn_ones);
                let begun = [Gate::default(), Gate::default()];
                let talkers = begun.clone().map(|begun| house.talker(begun));
                begun.iter().for_each(Gate::pass);
                let report = drive(house.runtime.shutdown());
                for talker in talkers {
                    talker.join().unwrap();
                }
                house.assert_adds_up(&report);
            }
        });
    }
}

#[test]
fn calls_from_a_task_a_pinned_thread_and_outside_get_one_report_under_load() {
    within(WATCH, || {
        for _ in 0..10 {
            let house = House::new(true);
            let begun = Gate::default();
            let talker = house.talker(begun.clone());
            begun.pass();
            let inside = house.runtime.spawn(async {
                let report = Runtime::current().shutdown().await;
                // In the same turn, so the task returns the report.
                report
            });
            let pinned = house._pinned[1].spawn(|| async { Runtime::current().shutdown().await });
            let runtime = house.runtime.clone();
            let outside = std::thread::spawn(move || runtime.block_on(runtime.shutdown()));
            let report = drive(house.runtime.shutdown());
            assert_eq!(outside.join().unwrap(), report);
            for called in [inside, pinned] {
                // A task that called too late is cancelled.
                if let Some(told) = drive(called.fallible()) {
                    assert_eq!(told, report);
                }
            }
            assert_eq!(
                drive(house.runtime.shutdown()),
                report,
                "a later call returns the same report"
            );
            talker.join().unwrap();
            house.assert_adds_up(&report);
        }
    });
}

#[test]
fn the_last_clone_may_be_dropped_under_load() {
    within(WATCH, || {
        for _ in 0..10 {
            let House {
                runtime,
                _pinned,
                actors,
                counts,
            } = House::new(false);
            let addresses: Vec<_> = actors.iter().map(|actor| actor.address()).collect();
            let (begun, own) = (Gate::default(), addresses.clone());
            let here = begun.clone();
            let talker = std::thread::spawn(move || {
                while own.iter().any(|to| counts.tell(to, own.clone())) {
                    here.open();
                }
            });
            begun.pass();
            drop(runtime);
            for actor in actors {
                assert!(actor.is_closed());
                let _ = drive(actor.join());
            }
            talker.join().unwrap();
        }
    });
}
