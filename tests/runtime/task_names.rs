//! What plain tasks are called: their names, or their types, in lists, faults, traces and hooks.

use std::future::pending;
use std::time::Duration;

use greenroom::policy::TaskInfo;
use greenroom::trace::{Event, Level, Tracer};
use greenroom::{Observer, Runtime, TaskSet, task, trace, yield_now};

use crate::support::{Home, Log, WATCH, drive, in_every_home, within};

in_every_home!(
    a_list_of_the_tasks_has_their_names,
    a_task_without_a_name_is_called_after_its_type,
);

/// Returns what the pending tasks are called, once there are so many.
async fn called(home: &Home, count: usize) -> Vec<String> {
    while home.runtime.stats().tasks < count {
        yield_now().await;
    }
    let tasks = home.runtime.tasks();
    let mut called: Vec<_> = tasks.iter().map(|it| it.called().into_owned()).collect();
    called.sort();
    called
}

fn a_list_of_the_tasks_has_their_names(home: &Home) {
    home.block_on(async {
        let named = task("reader").spawn_on(&home.runtime, pending::<()>());
        let mut set = TaskSet::new().named("writer");
        set.spawn_on(&home.runtime, pending::<()>());
        set.spawn_on(&home.runtime, pending::<()>());
        assert_eq!(called(home, 3).await, ["reader", "writer", "writer"]);
        named.cancel().await;
        set.shutdown().await;
        assert!(home.runtime.tasks().is_empty());
    });
}

async fn fetch<const LENGTH: usize>() {
    let large = [0_u8; LENGTH].map(|byte| byte);
    pending::<()>().await;
    assert_eq!(large.len(), LENGTH);
}

fn a_task_without_a_name_is_called_after_its_type(home: &Home) {
    home.block_on(async {
        // A large one is boxed.
        let tasks = (
            home.runtime.spawn(fetch::<1>()),
            home.runtime.spawn(fetch::<100_000>()),
        );
        let here = home.runtime.spawn(async { pending::<()>().await });
        let mut set = TaskSet::new();
        set.spawn_on(&home.runtime, fetch::<2>());
        let function = "a_task_without_a_name_is_called_after_its_type";
        assert_eq!(called(home, 4).await, [function, "fetch", "fetch", "fetch"]);
        assert!(home.runtime.tasks()[0].to_string().starts_with("task #"));
        drop((tasks, here));
    });
}

#[test]
fn tasks_of_pinned_threads_are_listed_too() {
    Home::watch(Home::pinned, |home| {
        let pinned = home.runtime.spawn_pinned("local").unwrap();
        let spawned = pinned.spawn(|| async {
            let local = task("local").spawn_local(pending::<()>());
            let called = loop {
                let tasks = Runtime::current().tasks();
                if let Some(named) = tasks.iter().find(|task| task.name().is_some()) {
                    break named.to_string();
                }
                yield_now().await;
            };
            drop(local);
            called
        });
        assert!(drive(spawned).starts_with("\"local\" #"));
    });
}

#[test]
fn the_text_of_a_fault_has_the_name() {
    within(WATCH, || {
        let faults = Log::default();
        let log = faults.clone();
        let runtime = Runtime::builder().workers(1).on_fault(move |fault| {
            let task = fault.task.expect("it is of a task");
            log.add((fault.to_string(), task.called().into_owned()));
        });
        let runtime = runtime.build().unwrap();
        let bomb = || async { panic!("bomb in a task") };
        task("reader").spawn_on(&runtime, bomb()).detach();
        runtime.run_until_quiescent();
        let text = "task \"reader\" panicked: bomb in a task".to_owned();
        assert_eq!(faults.take(), [(text, "reader".to_owned())]);
    });
}

#[test]
fn the_warning_of_a_long_turn_has_the_name() {
    within(WATCH, || {
        let warnings = Log::default();
        let log = warnings.clone();
        // Each turn is long.
        let runtime = Runtime::builder().workers(1).long_turns(Duration::ZERO);
        let runtime = runtime.on_warning(move |warning| log.add(warning.to_string()));
        let runtime = runtime.build().unwrap();
        drive(task("reader").spawn_on(&runtime, async {}));
        drive(runtime.spawn(async {}));
        runtime.run_until_quiescent();
        let warnings = warnings.take().concat();
        let named = ["\"reader\" (", "the_warning_of_a_long_turn_has_the_name ("];
        assert!(
            named.iter().all(|name| warnings.contains(name)),
            "{warnings}"
        );
    });
}

/// Logs the names in the hooks of an observer, and those of events.
#[derive(Clone, Default)]
struct Names(Log<String>);

impl Observer for Names {
    fn before_run(&self, task: &TaskInfo) {
        self.0.add(format!("runs {}", task.called()));
    }

    fn completed(&self, task: &TaskInfo) {
        self.0.add(format!("completed {}", task.called()));
    }
}

impl Tracer for Names {
    fn event(&self, event: &Event<'_>) {
        self.0.add(format!("{}: {}", event.name(), event.kind()));
    }

    fn enabled(&self, level: Level) -> bool {
        level >= Level::Console
    }
}

#[test]
fn an_observer_gets_the_name_in_each_run_and_at_the_end() {
    within(WATCH, || {
        let names = Names::default();
        let runtime = Runtime::builder().workers(1).observer(names.clone());
        let runtime = runtime.build().unwrap();
        drive(task("reader").spawn_on(&runtime, yield_now()));
        drop(task("writer").spawn_on(&runtime, pending::<()>()));
        drop(runtime);
        let log = names.0.take();
        assert_eq!(log[..3], ["runs reader", "runs reader", "completed reader"]);
        assert_eq!(log.last().unwrap(), "completed writer");
    });
}

#[test]
fn a_note_of_a_task_has_its_name_in_the_trace() {
    within(WATCH, || {
        let names = Names::default();
        let runtime = Runtime::builder().workers(1).tracer(names.clone());
        let runtime = runtime.build().unwrap();
        drive(task("reader").spawn_on(&runtime, async {
            trace::note!(Level::Warning, "few files are left");
        }));
        drive(runtime.spawn(async { trace::note!(Level::Warning, "by its type") }));
        let log = names.0.take();
        let notes: Vec<_> = log
            .iter()
            .filter_map(|note| note.split_once(": "))
            .collect();
        let by_type = "a_note_of_a_task_has_its_name_in_the_trace";
        for (name, text) in [("reader", "few files are left"), (by_type, "by its type")] {
            assert!(notes.contains(&(name, text)), "{notes:?}");
        }
    });
}

#[test]
fn a_name_may_be_any_text_and_is_shared_by_its_tasks() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let builder = task(String::from("any \0 text"));
        let tasks: Vec<_> = (0..3)
            .map(|_| builder.clone().spawn_on(&runtime, pending::<()>()))
            .collect();
        runtime.run_until_quiescent();
        assert_eq!(runtime.tasks().len(), 3);
        assert!(
            runtime
                .tasks()
                .iter()
                .all(|it| it.name() == Some("any \0 text"))
        );
        drop(tasks);
    });
}
