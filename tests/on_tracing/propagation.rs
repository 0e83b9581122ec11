//! Spans of messages: below the span of the sender, or following it, and none without the option.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::machine::{Machine, Next};
use greenroom::market::{Job, Market};
use greenroom::policy::Simulated;
use greenroom::registry::Keyed;
use greenroom::spool::Spool;
use greenroom::supervise::Restarts;
use greenroom::time::sleep;
use greenroom::trace::{CarriedSpan, Propagation, Tracer, Tracing};
use greenroom::{Address, AskError, Context, Reply, Runtime, actor, spawn};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Span, info_span};
use tracing_subscriber::layer::{Context as LayerContext, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

/// What a layer has seen: a line a span, and how many spans are open.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<(Vec<String>, usize)>>);

/// The name by which a span is shown, kept in the span.
struct Shown(String);

/// The value of `otel.name`.
struct OtelName(Option<String>);

impl Visit for OtelName {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "otel.name" {
            self.0 = Some(format!("{value:?}").trim_matches('"').into());
        }
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Seen {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: LayerContext<'_, S>) {
        let mut name = OtelName(None);
        attributes.record(&mut name);
        let span = context.span(id).unwrap();
        let own = name.0.unwrap_or_else(|| span.name().into());
        let parent = span.parent().map(|parent| {
            let extensions = parent.extensions();
            extensions.get::<Shown>().unwrap().0.clone()
        });
        span.extensions_mut().insert(Shown(own.clone()));
        let line = parent.map_or(own.clone(), |parent| format!("{own} < {parent}"));
        let mut seen = self.0.lock().unwrap();
        seen.1 += 1;
        seen.0.push(line);
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: LayerContext<'_, S>) {
        let shown = |id| {
            let span = context.span(id).unwrap();
            let extensions = span.extensions();
            extensions.get::<Shown>().unwrap().0.clone()
        };
        let line = format!("{} follows {}", shown(id), shown(follows));
        self.0.lock().unwrap().0.push(line);
    }

    fn on_close(&self, _id: Id, _context: LayerContext<'_, S>) {
        self.0.lock().unwrap().1 -= 1;
    }

    fn enabled(&self, metadata: &tracing::Metadata<'_>, _context: LayerContext<'_, S>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }
}

/// Runs a program in a simulation with this tracer, and returns the spans that it has made, sorted.
/// All of them are closed.
fn spans_with(tracer: impl Tracer, program: impl Future<Output = ()>) -> Vec<String> {
    let seen = Seen::default();
    let subscriber = Registry::default().with(seen.clone());
    // All of a simulation runs on this thread, which has the subscriber.
    tracing::subscriber::with_default(subscriber, || {
        let policy = Simulated::new(1).whole_turns();
        let runtime = Runtime::builder().policy(policy).tracer(tracer).build();
        runtime.unwrap().block_on(program);
    });
    let (mut lines, open) = std::mem::take(&mut *seen.0.lock().unwrap());
    assert_eq!(open, 0, "spans are left open: {lines:?}");
    lines.sort();
    lines
}

fn spans(program: impl Future<Output = ()>) -> Vec<String> {
    spans_with(Tracing.propagating(Propagation::parent()), program)
}

/// Calls `f` within a span of this name.
fn within<R>(name: &str, f: impl FnOnce() -> R) -> R {
    info_span!("request", otel.name = name).in_scope(f)
}

/// Polls a future once, which waits.
fn assert_pending<F: Future>(future: std::pin::Pin<&mut F>) {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(future.poll(&mut context).is_pending());
}

/// Receives messages until the mailbox is closed.
async fn sink<M: Send + 'static>(mut cx: Context<M>) {
    while cx.recv().await.is_some() {}
}

/// Tells each number to the next actor.
async fn relay(mut cx: Context<u32>, next: Address<u32>) {
    while let Some(number) = cx.recv().await {
        next.tell(number).unwrap();
    }
}

async fn echo(mut cx: Context<(u32, Reply<u32>)>) {
    while let Some((number, reply)) = cx.recv().await {
        reply.send(number);
    }
}

#[test]
fn a_told_message_is_handled_below_the_span_of_its_sender_and_so_is_what_its_handler_tells() {
    let seen = spans(async {
        let last = spawn!(sink(_), name = "last");
        let first = spawn!(relay(_, last.address()), name = "first");
        within("a", || first.tell(1)).unwrap();
        within("b", || first.tell(2)).unwrap();
        first.tell(3).unwrap();
        first.join().await.unwrap();
        last.join().await.unwrap();
    });
    let expected = [
        "a",
        "b",
        "first u32",
        "first u32 < a",
        "first u32 < b",
        "last u32 < first u32",
        "last u32 < first u32",
        "last u32 < first u32",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn each_way_to_send_carries_the_span() {
    let seen = spans(async {
        let told = |name| spawn!(sink(_), name = name, capacity = 1);
        let (waits, permit, urgent) = (told("waits"), told("permit"), actor(sink::<u32>));
        let urgent = urgent.name("urgent").urgent(4).spawn();
        within("room", || waits.tell(1)).unwrap();
        let mut waiting = Box::pin(waits.send(2));
        within("line", || assert_pending(waiting.as_mut()));
        waiting.await.unwrap();
        let reserved = permit.reserve().await.unwrap();
        within("permit", || reserved.send(3));
        within("urgent", || urgent.urgent().unwrap().tell(4)).unwrap();
        let mapped = told("mapped");
        let map = mapped.address().map(|number: u8| u32::from(number));
        within("map", || map.tell(5)).unwrap();
        drop(map);
        let asked = spawn!(echo(_), name = "asked");
        let mut ask = Box::pin(asked.ask(|reply| (6, reply)));
        within("ask", || assert_pending(ask.as_mut()));
        assert_eq!(ask.await.unwrap(), 6);
        let newest = actor(sink::<u32>).name("newest").capacity(1);
        let newest = newest.conflate(|_: &u32| 0_u32).spawn();
        within("old", || newest.tell(7)).unwrap();
        within("new", || newest.tell(8)).unwrap();
        for actor in [waits, permit, urgent, mapped, newest] {
            actor.join().await.unwrap();
        }
        asked.join().await.unwrap();
    });
    let tied = |of: &str| {
        seen.iter()
            .filter(|line| line.starts_with(of))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(tied("waits"), ["waits u32 < line", "waits u32 < room"]);
    assert_eq!(tied("permit u"), ["permit u32 < permit"]);
    assert_eq!(tied("urgent u"), ["urgent u32 < urgent"]);
    assert_eq!(tied("mapped"), ["mapped u32 < map"]);
    assert_eq!(tied("asked ").len(), 1);
    assert!(tied("asked ")[0].ends_with("< ask"), "{seen:?}");
    assert_eq!(tied("newest"), ["newest u32 < new"]);
}

#[test]
fn a_message_that_waits_for_the_actor_of_its_key_keeps_its_span() {
    let seen = spans(async {
        let set: Arc<Mutex<Option<Keyed<u32, u32>>>> = Arc::default();
        let own = set.clone();
        // While its actor is made, the key gets messages: one has room, and the other one waits.
        let make = move |key: u32| {
            let set = own.lock().unwrap().clone().unwrap();
            within("early", || set.tell(&key, 2)).unwrap();
            within("late", || set.tell(&key, 3)).unwrap();
            actor(sink::<u32>).name("of key").capacity(2)
        };
        let keyed = Keyed::builder(make).build().unwrap();
        *set.lock().unwrap() = Some(keyed.clone());
        within("first", || keyed.tell(&7, 1)).unwrap();
        // Virtual time: all messages are handled then.
        sleep(Duration::from_secs(1)).await;
        set.lock().unwrap().take();
        keyed.stop();
        keyed.ended().await;
    });
    let tied: Vec<_> = seen
        .iter()
        .filter(|line| line.starts_with("of key"))
        .collect();
    assert_eq!(
        tied,
        [
            "of key u32 < early",
            "of key u32 < first",
            "of key u32 < late"
        ]
    );
}

/// Starts timers for each number, and handles their messages.
async fn wakes(mut cx: Context<u32>) {
    let mut timers = Vec::new();
    while let Some(number) = cx.recv().await {
        match number {
            0 => timers.push(cx.send_after(Duration::from_secs(1), 10)),
            1 => timers.push(cx.send_every(Duration::from_secs(2), || 20)),
            20 => cx.stop(),
            _ => {}
        }
    }
}

#[test]
fn a_timer_carries_the_span_in_which_it_was_started() {
    let seen = spans(async {
        let wakes = spawn!(wakes(_), name = "wakes");
        within("after", || wakes.tell(0)).unwrap();
        within("every", || wakes.tell(1)).unwrap();
        wakes.closed().await;
        drop(wakes);
    });
    let below: Vec<_> = seen
        .iter()
        .filter(|line| line.ends_with("< wakes u32"))
        .collect();
    // One message of each timer.
    assert_eq!(below.len(), 2, "{seen:?}");
}

#[test]
fn a_request_through_a_spool_carries_the_span_in_which_it_was_sent_to_the_spool() {
    let seen = spans(async {
        let work = |_| actor(echo).name("worker").spawn();
        let spool = Spool::builder(work).workers(1).spawn().unwrap();
        let (first, second) = (spool.address(), spool.address());
        let mut first = std::pin::pin!(first.ask(|reply| (1, reply)));
        let mut second = std::pin::pin!(second.ask(|reply| (2, reply)));
        within("first", || assert_pending(first.as_mut()));
        // It waits in the line of the spool.
        within("second", || assert_pending(second.as_mut()));
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (1, 2));
        drop(spool);
    });
    let below = |name: &str| {
        let end = format!("< {name}");
        seen.iter()
            .filter(|line| line.starts_with("worker ") && line.ends_with(&end))
            .count()
    };
    assert_eq!((below("first"), below("second")), (1, 1), "{seen:?}");
}

#[test]
fn a_job_of_a_market_runs_in_a_span_below_that_in_which_it_was_offered() {
    let seen = spans(async {
        let market = Market::<()>::builder().build().unwrap();
        let job = Job::new(|| info_span!("in the job").in_scope(|| ()));
        let job = within("offer", || market.try_offer(job)).unwrap();
        job.await.unwrap();
        market.drain().await;
    });
    assert_eq!(seen, ["in the job < job", "job < offer", "offer"]);
}

type Answered = Option<Result<u32, AskError>>;

/// Asks once for each `None`.
async fn asker(mut cx: Context<Answered>, echo: Address<(u32, Reply<u32>)>) {
    while let Some(message) = cx.recv().await {
        let name = if message.is_none() {
            "asks"
        } else {
            "answered"
        };
        let _span = info_span!("step", otel.name = name).entered();
        match message {
            None => cx.on_answer(echo.request(|reply| (1, reply)), Some),
            Some(answer) => assert_eq!(answer, Ok(1)),
        }
    }
}

#[test]
fn the_answer_of_a_request_carries_the_span_in_which_the_request_was_made() {
    let seen = spans(async {
        let echo = spawn!(echo(_), name = "echo");
        let asker = spawn!(asker(_, echo.address()), name = "asker");
        within("told", || asker.tell(None)).unwrap();
        asker.join().await.unwrap();
        echo.join().await.unwrap();
    });
    let asks = "asks";
    let found = |of: &str, below: &str| {
        let end = format!("< {below}");
        seen.iter()
            .any(|line| line.starts_with(of) && line.ends_with(&end))
    };
    assert!(
        found("asker ", "told") && found("echo ", asks) && found("asker ", asks),
        "{seen:?}"
    );
}

#[test]
fn a_restart_ends_the_span_of_the_message_that_has_panicked_and_the_next_one_has_its_own() {
    let seen = spans(async {
        let fragile = actor(async |mut cx: Context<u32>| {
            while let Some(number) = cx.recv().await {
                assert_ne!(number, 1, "bomb");
                drop(info_span!("survives"));
            }
        });
        let fragile = fragile
            .name("fragile")
            .restart(Restarts::on_fault())
            .spawn();
        within("bomb", || fragile.tell(1)).unwrap();
        within("next", || fragile.tell(2)).unwrap();
        fragile.join().await.unwrap();
    });
    let expected = [
        "bomb",
        "fragile u32 < bomb",
        "fragile u32 < next",
        "next",
        "survives < fragile u32",
    ];
    assert_eq!(seen, expected);
}

/// Saves numbers until it was told 0.
struct Gate;

impl Machine for Gate {
    type State = bool;
    type Message = u32;
    type Value = ();

    async fn on(&mut self, is_open: &bool, number: u32, _cx: &mut Context<u32>) -> Next<Self> {
        match (is_open, number) {
            (false, 0) => Next::To(true),
            (false, number) => Next::Save(number),
            (true, _) => {
                drop(info_span!("passed"));
                Next::Done(())
            }
        }
    }
}

#[test]
fn a_message_that_a_machine_has_saved_comes_again_with_its_span() {
    let seen = spans(async {
        let gate = Gate.into_builder(false).name("gate").spawn();
        within("early", || gate.tell(1)).unwrap();
        within("opens", || gate.tell(0)).unwrap();
        gate.join().await.unwrap();
    });
    let expected = [
        "early",
        "gate u32 < early",
        "gate u32 < early",
        "gate u32 < opens",
        "opens",
        "passed < gate u32",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_handler_that_waits_keeps_its_span_and_others_run_outside_of_it() {
    let seen = spans(async {
        let sleeps = actor(async |mut cx: Context<&'static str>| {
            while cx.recv().await.is_some() {
                sleep(Duration::from_secs(1)).await;
                drop(info_span!("after the wait"));
            }
            drop(info_span!("after the last message"));
        });
        let sleeps = sleeps.name("sleeps").spawn();
        within("told", || sleeps.tell("")).unwrap();
        sleep(Duration::from_millis(500)).await;
        drop(info_span!("meanwhile"));
        sleeps.join().await.unwrap();
    });
    let expected = [
        "after the last message",
        "after the wait < sleeps &str",
        "meanwhile",
        "sleeps &str < told",
        "told",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_killed_actor_ends_its_span_and_those_of_messages_that_it_has_not_handled() {
    // `spans` asserts that none is left open.
    let seen = spans(async {
        let stuck = actor(async |mut cx: Context<u32>| {
            cx.recv().await;
            std::future::pending::<()>().await;
        });
        let stuck = stuck.name("stuck").spawn();
        within("first", || stuck.tell(1)).unwrap();
        within("second", || stuck.tell(2)).unwrap();
        sleep(Duration::from_secs(1)).await;
        stuck.kill();
        stuck.join().await.unwrap_err();
    });
    assert_eq!(seen, ["first", "second", "stuck u32 < first"]);
}

#[test]
fn a_span_that_follows_is_the_root_of_a_trace() {
    let program = async {
        let last = spawn!(sink(_), name = "last");
        let first = spawn!(relay(_, last.address()), name = "first");
        within("a", || first.tell(1)).unwrap();
        first.join().await.unwrap();
        last.join().await.unwrap();
    };
    let seen = spans_with(Tracing.propagating(Propagation::follows_from()), program);
    let expected = [
        "a",
        "first u32",
        "first u32 follows a",
        "last u32",
        "last u32 follows first u32",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn without_the_option_no_message_has_a_span() {
    let program = async {
        let sink = spawn!(sink(_), name = "sink");
        within("a", || sink.tell(1)).unwrap();
        let remote = CarriedSpan::remote(|| unreachable!("it is not on"));
        assert_eq!(CarriedSpan::current_context(), None);
        remote.in_scope(|| sink.tell(2)).unwrap();
        sink.join().await.unwrap();
    };
    assert_eq!(spans_with(Tracing, program), ["a"]);
}

#[test]
fn a_context_goes_to_another_process_and_comes_back_as_the_parent() {
    let joined = Arc::new(Mutex::new(Vec::new()));
    let log = joined.clone();
    let how = Propagation::parent().remote(
        |span: &Span| Some(span.metadata()?.name().to_owned()),
        move |span: &Span, context: &str| {
            log.lock()
                .unwrap()
                .push((span.metadata().unwrap().name(), context.to_owned()));
        },
    );
    let seen = spans_with(Tracing.propagating(how), async {
        assert_eq!(CarriedSpan::current_context(), None);
        let context = within("out", CarriedSpan::current_context).unwrap();
        assert_eq!(context, "request");
        let sink = actor(sink::<u32>).name("sink").spawn();
        let remote = CarriedSpan::remote(|| ("in".into(), Some(context)));
        remote.in_scope(|| sink.tell(1)).unwrap();
        let alone = CarriedSpan::remote(|| ("alone".into(), None));
        alone.in_scope(|| sink.tell(2)).unwrap();
        sink.join().await.unwrap();
    });
    let expected = ["alone", "in", "out", "sink u32 < alone", "sink u32 < in"];
    assert_eq!(seen, expected);
    assert_eq!(*joined.lock().unwrap(), [("remote", "request".to_owned())]);
}
