//! Warnings of a runtime: long turns, and workers that are all held.

mod exempt;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::policy::TaskInfo;
use greenroom::trace::{Event, EventKind, Level, Tracer};
use greenroom::{
    Builder, Context, Detached, Handle, LongTurn, Observer, Pinned, Reply, Runtime, Warning, actor,
    spawn,
};

use crate::support::{Gate, Log, WATCH, burn, names, within};

/// Below this limit no turn of a test is long; above it, none can be.
const NEVER: Duration = Duration::from_secs(3600);

/// Returns a builder with this limit, and the warnings that the runtime will give.
fn warning(limit: Duration) -> (Builder, Log<Warning>) {
    let warnings = Log::default();
    let log = warnings.clone();
    let builder = Runtime::builder()
        .long_turns(limit)
        .on_warning(move |warning| log.add(warning.clone()));
    (builder, warnings)
}

/// Ends the runtime, after which it gives no more warnings, and returns those of long turns.
fn long_turns(runtime: Runtime, warnings: &Log<Warning>) -> Vec<LongTurn> {
    runtime.block_on(runtime.shutdown());
    drop(runtime);
    let all = warnings.take().into_iter();
    let long = all.filter_map(|warning| match warning {
        Warning::LongTurn(turn) => Some(turn),
        _ => None,
    });
    long.collect()
}

/// Returns the place of a long turn, as it is displayed.
fn place(turn: &LongTurn) -> String {
    format!("{}:{}", turn.spawned_at.file(), turn.spawned_at.line())
}

async fn answer(mut cx: Context<Reply<()>>) {
    while let Some(reply) = cx.recv().await {
        reply.send(());
    }
}

/// Gives the actor several turns.
async fn keep_busy(actor: &Handle<Reply<()>, ()>) {
    for _ in 0..5 {
        actor.ask(|reply| reply).await.unwrap();
        greenroom::yield_now().await;
    }
}

#[test]
fn a_long_turn_is_reported_once_an_actor_with_its_name_and_place() {
    within(WATCH, || {
        let (builder, warnings) = warning(Duration::ZERO);
        let runtime = builder.workers(2).build().unwrap();
        let line = line!() + 2;
        let actors = runtime.block_on(async {
            let named = spawn!(answer(_), name = "crawl");
            let unnamed = actor(answer).spawn();
            keep_busy(&named).await;
            keep_busy(&unnamed).await;
            [named, unnamed]
        });
        let [named, unnamed] = actors.each_ref().map(|actor| actor.id());
        let long = long_turns(runtime, &warnings);
        let texts: Vec<_> = long
            .iter()
            .map(|turn| {
                assert_eq!(turn.task.is_actor(), turn.on_worker);
                (
                    turn.to_string(),
                    Warning::LongTurn(turn.clone()).to_string(),
                )
            })
            .collect();
        let named = format!("\"crawl\" #{named} ({}:{line})", file!());
        let unnamed = format!("answer #{unnamed} ({}:{})", file!(), line + 1);
        assert_eq!(long.len(), 2, "{long:?}");
        for name in [named, unnamed] {
            // Either may be reported first.
            let turn = long.iter().find(|turn| turn.to_string() == name).unwrap();
            let ms = turn.took.as_millis();
            let processor = turn.processor.map_or(String::new(), |time| {
                format!(", of which {} ms of processor time", time.as_millis())
            });
            let text = format!(
                "{name} held a worker for {ms} ms{processor}; blocking calls belong in `unblock`"
            );
            assert!(texts.contains(&(name, text)), "{texts:?}");
        }
    });
}

#[test]
fn the_time_of_a_long_turn_is_all_of_it() {
    within(WATCH, || {
        let pause = Duration::from_millis(30);
        let (builder, warnings) = warning(pause);
        let runtime = builder.workers(2).build().unwrap();
        runtime.block_on(runtime.spawn(async move { std::thread::sleep(pause) }));
        let long = long_turns(runtime, &warnings);
        let took = long.iter().map(|turn| turn.took).max().unwrap();
        assert!(took >= pause, "{took:?}");
    });
}

#[test]
fn plain_tasks_are_reported_once_a_place() {
    within(WATCH, || {
        let (builder, warnings) = warning(Duration::ZERO);
        let runtime = builder.workers(2).build().unwrap();
        let line = line!() + 2;
        for _ in 0..3 {
            runtime.block_on(runtime.spawn(async {}));
        }
        runtime.block_on(async { greenroom::spawn(greenroom::yield_now()).await });
        let long = long_turns(runtime, &warnings);
        let mut places: Vec<_> = long.iter().map(LongTurn::to_string).collect();
        places.sort();
        let at = |called, line| format!("{called} ({}:{line})", file!());
        let here = "plain_tasks_are_reported_once_a_place";
        assert_eq!(places, [at(here, line), at("yield_now", line + 2)]);
    });
}

#[test]
fn a_turn_below_the_limit_is_not_reported() {
    within(WATCH, || {
        let (builder, warnings) = warning(NEVER);
        let runtime = builder.workers(1).build().unwrap();
        runtime.block_on(async { keep_busy(&spawn!(answer(_))).await });
        assert_eq!(long_turns(runtime, &warnings).len(), 0);
        assert_eq!(warnings.len(), 0);
    });
}

#[test]
fn without_a_limit_nothing_is_reported_and_no_place_is_kept() {
    within(WATCH, || {
        let (builder, warnings) = warning(Duration::ZERO);
        let builder = builder.workers(1).long_turns(None).endless_waits(false);
        let runtime = builder.build().unwrap();
        let actor = runtime.block_on(async {
            let actor = spawn!(answer(_));
            keep_busy(&actor).await;
            actor
        });
        assert!(runtime.stats().actors[0].spawned_at.is_none());
        drop(actor);
        assert_eq!(long_turns(runtime, &warnings).len(), 0);
    });
}

#[test]
fn the_default_limit_is_100_ms_in_debug_builds_alone() {
    let default = format!("{:?}", Runtime::builder());
    let limit = if cfg!(debug_assertions) {
        "long_turns: Some(100ms)"
    } else {
        "long_turns: None"
    };
    assert!(default.contains(limit), "{default}");
}

#[test]
fn stats_tell_the_place_and_the_addresses_of_an_actor() {
    within(WATCH, || {
        let (builder, _) = warning(NEVER);
        let runtime = builder.workers(1).build().unwrap();
        let handle = spawn!(answer(_), on = &runtime);
        let line = line!() - 1;
        let others = [handle.address(), handle.address()];
        let [status] = &runtime.stats().actors[..] else {
            panic!("one actor lives")
        };
        let place = status.spawned_at.unwrap();
        assert_eq!((place.file(), place.line()), (file!(), line));
        assert_eq!(status.addresses, 1 + others.len());
    });
}

/// Returns a function for `on_warning` that opens the gate once all workers are held.
fn opens(gate: &Gate, log: &Log<Warning>) -> impl Fn(&Warning) + Send + Sync + use<> {
    let (gate, log) = (gate.clone(), log.clone());
    move |warning| {
        log.add(warning.clone());
        if let Warning::WorkersHeld(_) = warning {
            gate.open();
        }
    }
}

#[test]
fn workers_that_are_all_held_are_reported_meanwhile_with_what_runs_on_each() {
    within(WATCH, || {
        let (gate, log) = (Gate::default(), Log::default());
        let runtime = Runtime::builder()
            .workers(2)
            .long_turns(Duration::from_millis(1))
            .on_warning(opens(&gate, &log))
            .build()
            .unwrap();
        let line = line!() + 2;
        let blocks = gate.clone();
        let task = runtime.spawn(async move { blocks.pass() });
        let blocks = gate.clone();
        let blocks = actor(async move |_cx: Context<()>| blocks.pass());
        let crawl = blocks.name("crawl").on(&runtime).spawn();
        // Only the report ends these turns.
        runtime.block_on(task);
        let id = crawl.id();
        runtime.block_on(crawl.join()).unwrap();
        runtime.block_on(runtime.shutdown());
        drop(runtime);
        let all = log.take();
        let held = all.iter().find_map(|warning| match warning {
            Warning::WorkersHeld(turns) => Some((warning.to_string(), turns)),
            _ => None,
        });
        let (text, turns) = held.unwrap();
        let mut places: Vec<_> = turns.iter().map(place).collect();
        places.sort();
        let at = |line| format!("{}:{line}", file!());
        assert_eq!(places, [at(line), at(line + 3)]);
        assert!(text.starts_with("all 2 workers are held: "), "{text}");
        let called = "workers_that_are_all_held_are_reported_meanwhile_with_what_runs_on_each";
        assert!(
            text.contains(&format!("{called} ({}) for ", at(line))),
            "{text}"
        );
        let crawl = format!("\"crawl\" #{id} ({}) for ", at(line + 3));
        assert!(text.contains(&crawl), "{text}");
        assert!(text.ends_with(" ms so far; blocking calls belong in `unblock`"));
    });
}

#[test]
fn a_worker_that_is_held_again_is_reported_again_for_another_actor_alone() {
    within(WATCH, || {
        let (gate, log) = (Gate::default(), Log::default());
        let other = Gate::default();
        let (opened, both) = (opens(&gate, &log), (gate.clone(), other.clone()));
        let runtime = Runtime::builder()
            .workers(1)
            .long_turns(Duration::from_millis(1))
            .on_warning(move |warning| {
                opened(warning);
                let is_held = matches!(warning, Warning::WorkersHeld(_));
                if is_held && warning.to_string().contains("second") {
                    both.1.open();
                }
            })
            .build()
            .unwrap();
        let blocks = |name: &str, gate: Gate| {
            let blocks = actor(async move |mut cx: Context<()>| {
                while cx.recv().await.is_some() {
                    gate.pass();
                    // Longer than the limit, so that it might be reported again.
                    burn(Duration::from_millis(3));
                    greenroom::yield_now().await;
                }
            });
            blocks.name(name).on(&runtime).spawn()
        };
        let (first, second) = (blocks("first", gate), blocks("second", other));
        for _ in 0..3 {
            first.tell(()).unwrap();
        }
        runtime.block_on(first.join()).unwrap();
        second.tell(()).unwrap();
        runtime.block_on(second.join()).unwrap();
        runtime.block_on(runtime.shutdown());
        drop(runtime);
        let of = |name: &str| {
            let is_held = |warning: &Warning| matches!(warning, Warning::WorkersHeld(_));
            let held = log.take();
            let texts = held.iter().filter(|it| is_held(it)).map(Warning::to_string);
            let texts: Vec<_> = texts.collect();
            held.into_iter().for_each(|warning| log.add(warning));
            let own = texts.iter().filter(|text| text.contains(name));
            assert!(
                texts
                    .iter()
                    .all(|it| it.starts_with("the only worker is held: "))
            );
            own.count()
        };
        assert_eq!((of("first"), of("second")), (1, 1));
    });
}

#[test]
fn turns_of_pinned_threads_and_stages_are_reported_as_holding_their_thread() {
    within(WATCH, || {
        let (builder, warnings) = warning(Duration::ZERO);
        let runtime = builder.workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        // The actor is not alone on its thread.
        let value = runtime.block_on(pinned.host(|| 1)).unwrap();
        let line = line!() + 1;
        let one = spawn!(answer(_), name = "pinned", on = &pinned);
        runtime.block_on(keep_busy(&one));
        drop((one, value, pinned));
        let stage = runtime.pinned_here();
        let two = spawn!(answer(_), name = "stage", on = &stage);
        stage.block_on(keep_busy(&two));
        let task = stage.spawn(|| async {});
        stage.block_on(task);
        drop((two, stage));
        let long = long_turns(runtime, &warnings);
        let mut texts: Vec<_> = long.iter().map(|it| names(&it.to_string())).collect();
        texts.sort();
        let at = |line| format!("({}:{line})", file!());
        let [one, two] = [line, line + 4].map(at);
        let here = "turns_of_pinned_threads_and_stages_are_reported_as_holding_their_thread";
        let expected = [
            format!("pinned {one}"),
            format!("stage {two}"),
            format!("{here} {}", at(line + 6)),
        ];
        assert_eq!(texts, expected);
        for turn in &long {
            assert!(!turn.on_worker);
            let text = Warning::LongTurn(turn.clone()).to_string();
            assert!(text.contains(" held its thread for "), "{text}");
        }
    });
}

#[test]
fn turns_that_may_block_are_not_reported() {
    within(WATCH, || {
        let (builder, warnings) = warning(Duration::ZERO);
        let runtime = builder.workers(1).build().unwrap();
        let detached = runtime.block_on(async {
            let detached = spawn!(answer(_), on = Detached);
            keep_busy(&detached).await;
            detached.join().await
        });
        detached.unwrap();
        let pinned = runtime.spawn_pinned("values").unwrap();
        let own = runtime.clone();
        runtime.block_on(async move {
            let value = pinned.host(|| 1).await.unwrap();
            assert_eq!(value.with(|value| value + 1).await.unwrap(), 2);
            // The worker makes way.
            greenroom::spawn(async move { own.block_on(async {}) }).await;
        });
        let long = long_turns(runtime, &warnings);
        assert_eq!(long.len(), 0, "{long:?}");
    });
}

#[test]
fn a_blocked_turn_has_less_processor_time_than_time_in_debug_builds() {
    within(WATCH, || {
        let pause = Duration::from_millis(30);
        let (builder, warnings) = warning(pause);
        let runtime = builder.workers(1).build().unwrap();
        runtime.block_on(runtime.spawn(async move { std::thread::sleep(pause) }));
        let long = long_turns(runtime, &warnings);
        let turn = long.iter().max_by_key(|turn| turn.took).unwrap();
        let is_measured = cfg!(all(
            debug_assertions,
            any(target_os = "linux", target_os = "macos")
        ));
        assert_eq!(turn.processor.is_some(), is_measured);
        // A thread that sleeps runs on no processor.
        assert!(
            turn.processor.is_none_or(|time| time < turn.took),
            "{turn:?}"
        );
    });
}

#[test]
fn a_stage_of_no_runtime_warns_as_well() {
    // Its limit is the default one, so only the place is kept.
    within(WATCH, || {
        let stage = Pinned::here();
        let task = stage.spawn(|| async { 42 });
        assert_eq!(stage.block_on(task), 42);
    });
}

/// Collects the texts of warnings in a trace.
#[derive(Clone, Default)]
struct Warnings(Log<String>);

impl Tracer for Warnings {
    fn event(&self, event: &Event<'_>) {
        if let EventKind::Note { text, .. } = event.kind() {
            assert_eq!((event.level(), event.name()), (Level::Warning, "greenroom"));
            self.0.add(text.to_owned());
        }
    }

    fn enabled(&self, level: Level) -> bool {
        level >= Level::Warning
    }
}

#[test]
fn a_warning_goes_to_the_tracer_unless_a_function_receives_it() {
    within(WATCH, || {
        let warnings = Warnings::default();
        let traced = || {
            let builder = Runtime::builder().long_turns(Duration::ZERO).workers(2);
            builder.tracer(warnings.clone())
        };
        let run = |builder: Builder| {
            let runtime = builder.build().unwrap();
            runtime.block_on(async { keep_busy(&spawn!(answer(_), name = "crawl")).await });
            runtime.block_on(runtime.shutdown());
        };
        run(traced());
        let traced_texts = warnings.0.take();
        assert_eq!(traced_texts.len(), 1, "{traced_texts:?}");
        assert!(names(&traced_texts[0]).starts_with("crawl ("));
        let log = Log::default();
        let heard = log.clone();
        run(traced().on_warning(move |warning| heard.add(warning.to_string())));
        assert_eq!((log.len(), warnings.0.len()), (1, 0));
    });
}

#[test]
fn a_panic_of_on_warning_ends_nothing() {
    within(WATCH, || {
        let calls = Arc::new(AtomicUsize::new(0));
        let counts = calls.clone();
        let runtime = Runtime::builder()
            .workers(1)
            .long_turns(Duration::ZERO)
            .on_warning(move |_| {
                counts.fetch_add(1, Ordering::SeqCst);
                std::panic::resume_unwind(Box::new("on_warning"));
            })
            .build()
            .unwrap();
        runtime.block_on(async {
            for _ in 0..3 {
                keep_busy(&spawn!(answer(_))).await;
            }
        });
        runtime.block_on(runtime.shutdown());
        assert!(calls.load(Ordering::SeqCst) >= 3);
    });
}

/// Counts the polls of actors.
struct Polls(Arc<AtomicUsize>);

impl Observer for Polls {
    fn before_run(&self, _: &TaskInfo) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn an_observer_observes_as_before() {
    within(WATCH, || {
        let polls = Arc::new(AtomicUsize::new(0));
        let (builder, warnings) = warning(Duration::ZERO);
        let runtime = builder.workers(1).observer(Polls(polls.clone()));
        let runtime = runtime.build().unwrap();
        runtime.block_on(runtime.spawn(async {}));
        assert_eq!(long_turns(runtime, &warnings).len(), 1);
        assert_eq!(polls.load(Ordering::SeqCst), 1);
    });
}

/// Runs in a separate process, because other tests use the same timer thread.
#[test]
#[cfg(target_os = "linux")]
fn an_idle_runtime_is_not_looked_at() {
    use crate::support::naps::{asleep, naps};
    use crate::support::{MANY_HAND_OVERS, hand_over};
    crate::child::alone("warnings::an_idle_runtime_is_not_looked_at", || {
        let (builder, _) = warning(Duration::from_millis(1));
        let runtime = builder.workers(1).build().unwrap();
        runtime.block_on(async { keep_busy(&spawn!(answer(_))).await });
        // The last look comes after the last turn.
        hand_over(MANY_HAND_OVERS);
        let before = asleep("greenroom-timer");
        assert_eq!(before.len(), 1);
        hand_over(MANY_HAND_OVERS);
        assert_eq!(before, naps("greenroom-timer"));
    });
}
