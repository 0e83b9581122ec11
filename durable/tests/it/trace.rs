//! What the trace of a runtime shows of handlers.

use std::sync::Arc;

use greenroom::Runtime;
use greenroom::market::Market;
use greenroom::policy::TaskInfo;
use greenroom::trace::{Event, EventKind, Level, Tracer, note};
use greenroom_durable::{FinalOutcome, Job, Queue, QueueWorkers, Serve, Store};

use crate::support::{Log, Note, Refused, notes};

/// Keeps the turns of actors, and what was noted in them.
#[derive(Clone, Default)]
struct Turns(Arc<Log<String>>);

impl Tracer for Turns {
    fn event(&self, event: &Event<'_>) {
        if let EventKind::Note { .. } = event.kind() {
            self.0.add(event.to_string());
        }
    }

    fn enabled(&self, level: Level) -> bool {
        level >= Level::Console
    }

    fn enter(&self, actor: &TaskInfo, name: &str) {
        self.0.add(format!("enter {name} {:08x}", actor.id()));
    }

    fn exit(&self, actor: &TaskInfo) {
        self.0.add(format!("exit {:08x}", actor.id()));
    }
}

/// Runs a test with a queue in a real file, and returns what was traced.
fn traced<Fut: Future<Output = ()>>(test: impl FnOnce(Queue<Note>) -> Fut) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let turns = Turns::default();
    let runtime = Runtime::builder().workers(1).tracer(turns.clone());
    runtime.build().unwrap().block_on(async {
        let store = Store::sqlite(&path).open().await.unwrap();
        test(notes(&store).await).await;
        store.close().await;
    });
    turns.0.all()
}

async fn is_done(queue: &Queue<Note>, workers: QueueWorkers) {
    queue.put(Job::new(Note(7)).id("seven")).await.unwrap();
    assert_eq!(queue.outcome("seven").await.unwrap(), FinalOutcome::Done);
    workers.stop().await;
}

#[test]
fn what_a_handler_notes_is_in_a_turn_of_its_worker() {
    let lines = traced(|queue| async move {
        let workers = queue.serve(Serve::workers(1), |job| async move {
            note!(Level::Console, "resizes", job = job.0);
            Ok::<(), Refused>(())
        });
        is_done(&queue, workers.await.unwrap()).await;
    });
    let note = "queue worker - resizes (job=7)";
    let at = lines.iter().position(|line| line.ends_with(note)).unwrap();
    // After the sign and a space.
    let worker = &lines[at][3..11];
    assert_eq!(lines[at - 1], format!("enter queue worker {worker}"));
    assert_eq!(lines[at], format!("^ <{worker}>{note}"));
    assert_eq!(lines[at + 1], format!("exit {worker}"));
}

#[test]
fn what_a_handler_in_a_market_notes_is_outside_of_actors() {
    let lines = traced(|queue| async move {
        let market = Market::<()>::builder().build().unwrap();
        let workers = queue.serve_blocking(Serve::workers(1), &market, |job| {
            note!(Level::Console, "resizes", job = job.0);
            Ok::<(), Refused>(())
        });
        is_done(&queue, workers.await.unwrap()).await;
    });
    let has = |start: &str, end: &str| {
        let is_it = |line: &String| line.starts_with(start) && line.ends_with(end);
        lines.iter().any(is_it)
    };
    assert!(has("^ <00000000>", " - resizes (job=7)"), "{lines:#?}");
    assert!(has("enter queue worker ", ""), "{lines:#?}");
}
