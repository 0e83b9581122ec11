//! Tracers of the user.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use greenroom::policy::TaskInfo;
use greenroom::trace::{Event, Level, Tracer, note};
use greenroom::{Address, Context, Runtime, actor, spawn};

use crate::support::{WATCH, keep_bombs_quiet, within};

/// Keeps the text of each event.
#[derive(Clone, Default)]
struct Keeps(Arc<Mutex<Vec<String>>>);

impl Tracer for Keeps {
    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(event.to_string());
    }

    fn enabled(&self, level: Level) -> bool {
        level >= Level::Object
    }

    fn enter(&self, _actor: &TaskInfo, name: &str) {
        self.0.lock().unwrap().push(format!("enter {name}"));
    }

    fn exit(&self, actor: &TaskInfo) {
        self.0.lock().unwrap().push(format!("exit {}", actor.id()));
    }
}

fn traced_by(tracer: impl Tracer) -> Runtime {
    Runtime::builder()
        .long_turns(None)
        .workers(1)
        .tracer(tracer)
        .build()
        .unwrap()
}

async fn receive(mut cx: Context<u32>) -> Option<u32> {
    cx.recv().await
}

#[test]
fn an_event_has_its_parts_and_the_text_of_a_line() {
    #[derive(Clone, Default)]
    struct Looks(Arc<AtomicBool>);
    impl Tracer for Looks {
        fn event(&self, event: &Event<'_>) {
            if event.level() == Level::Console {
                let (id, name) = (event.id(), event.name());
                assert!(id > 0);
                assert_eq!((name, event.state()), ("receive", Some("NEW")));
                assert_eq!(event.kind().sign(), '^');
                assert_eq!(event.kind().to_string(), "noted");
                assert_eq!(
                    event.to_string(),
                    format!("^ <{id:08x}>receive[NEW] - noted")
                );
                self.0.store(true, Ordering::Relaxed);
            }
        }
        fn enabled(&self, _level: Level) -> bool {
            true
        }
    }
    let looks = Looks::default();
    traced_by(looks.clone()).block_on(async {
        let receive = |cx: Context<u32>| async move {
            cx.trace_state("NEW");
            note!(Level::Console, "noted");
        };
        actor(receive).name("receive").spawn().join().await.unwrap();
    });
    assert!(looks.0.load(Ordering::Relaxed));
}

#[test]
fn each_poll_of_an_actor_is_between_enter_and_exit() {
    let keeps = Keeps::default();
    traced_by(keeps.clone()).block_on(async {
        async fn noting(_cx: Context<u32>) {
            note!(Level::Console, "inside");
        }
        actor(noting).spawn().join().await.unwrap();
        greenroom::spawn(async {}).await;
    });
    let kept = keeps.0.lock().unwrap();
    let from = kept.iter().position(|text| text == "enter noting").unwrap();
    assert!(kept[from + 1].ends_with("noting - inside"));
    assert!(kept[from + 2].ends_with("noting - Returned ()"));
    assert!(kept[from + 3].ends_with("noting - Destroyed"));
    assert!(kept[from + 4].starts_with("exit "));
    let turns = kept.iter().filter(|text| text.starts_with("enter"));
    assert_eq!(turns.count(), 1, "a plain task has no turn here");
}

#[test]
fn events_of_levels_that_are_not_enabled_are_not_made() {
    struct Nothing;
    impl Tracer for Nothing {
        fn event(&self, event: &Event<'_>) {
            panic!("{event}");
        }
        fn enabled(&self, _level: Level) -> bool {
            false
        }
    }
    static CALLS: AtomicU32 = AtomicU32::new(0);
    traced_by(Nothing).block_on(async {
        let receive = actor(receive).label(|_| {
            CALLS.fetch_add(1, Ordering::Relaxed);
            "label"
        });
        let receive = receive.spawn();
        receive.tell(1).unwrap();
        receive.join().await.unwrap();
    });
    assert_eq!(CALLS.load(Ordering::Relaxed), 0);
}

#[test]
fn a_tracer_that_panics_stops_no_actor() {
    struct Bomb;
    impl Tracer for Bomb {
        fn event(&self, _event: &Event<'_>) {
            panic!("bomb");
        }
        fn enabled(&self, level: Level) -> bool {
            assert!(level != Level::Console, "bomb");
            true
        }
        fn enter(&self, _actor: &TaskInfo, _name: &str) {
            panic!("bomb");
        }
        fn exit(&self, _actor: &TaskInfo) {
            panic!("bomb");
        }
    }
    keep_bombs_quiet();
    within(WATCH, || {
        traced_by(Bomb).block_on(async {
            let receive = spawn!(receive(_));
            receive.tell(1).unwrap();
            note!(Level::Console, "boom");
            assert_eq!(receive.join().await.unwrap(), Some(1));
        });
    });
}

#[test]
fn a_tracer_may_use_actors_and_does_not_trace_itself() {
    #[derive(Clone, Default)]
    struct Tells(Arc<Mutex<Option<Address<u32>>>>, Arc<AtomicU32>);
    impl Tracer for Tells {
        fn event(&self, _event: &Event<'_>) {
            let events = self.1.fetch_add(1, Ordering::Relaxed);
            if let Some(to) = &*self.0.lock().unwrap() {
                let _ = to.tell(events);
                note!(Level::Fault, "not traced");
            }
        }
        fn enabled(&self, _level: Level) -> bool {
            true
        }
    }
    let tells = Tells::default();
    let own = tells.clone();
    within(WATCH, move || {
        let runtime = traced_by(tells.clone());
        runtime.block_on(async {
            let receive = spawn!(receive(_));
            *tells.0.lock().unwrap() = Some(receive.address());
            note!(Level::Console, "tells");
            assert_eq!(receive.join().await.unwrap(), Some(2));
            *tells.0.lock().unwrap() = None;
        });
    });
    // Started, created, the note, received, returned, destroyed, ended: at most these.
    assert!(own.1.load(Ordering::Relaxed) <= 12);
}
