//! What an incarnation owned is dropped before the next one begins, and before its delay.

use std::panic::resume_unwind;

use futures::stream;
use greenroom::supervise::Restarts;
use greenroom::{Context, Fault, Reply, actor, spawn};

use super::{HOUR, ever, never, text_of};
use crate::support::{Drops, Gate, Home, Log, OpenOnDrop, in_every_home, keep_bombs_quiet};

in_every_home!(
    each_incarnation_begins_with_a_clone_of_what_was_spawned,
    the_state_of_an_incarnation_is_dropped_before_the_next_one,
    the_state_is_dropped_before_the_delay,
    the_result_is_dropped_before_the_next_incarnation,
    the_payload_of_a_panic_is_dropped_before_the_next_incarnation,
    sources_of_an_incarnation_end_with_it,
    requests_in_flight_of_an_incarnation_end_with_it,
    children_of_an_incarnation_are_stopped,
    the_next_incarnation_begins_when_the_context_is_dropped_elsewhere,
    sources_of_a_context_elsewhere_are_dropped_before_the_next_incarnation,
    everything_is_dropped_at_the_end,
);

/// Writes when it is cloned, and when it is dropped.
struct Mark(&'static str, Log<String>);

impl Mark {
    fn new(what: &'static str, log: &Log<String>) -> Mark {
        Mark(what, log.clone())
    }
}

impl Clone for Mark {
    fn clone(&self) -> Self {
        self.1.add(format!("{} is cloned", self.0));
        Mark(self.0, self.1.clone())
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.1.add(format!("{} is dropped", self.0));
    }
}

fn each_incarnation_begins_with_a_clone_of_what_was_spawned(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let (mut count, own) = (40, log.clone());
        let counts = actor(move |mut cx: Context<bool>| async move {
            while let Some(panics) = cx.recv().await {
                count += 1;
                own.add(count);
                if panics {
                    panic!("bomb");
                }
            }
        });
        let counts = home.spawn(counts.restart(ever()));
        for panics in [false, true, false, false, true, false] {
            counts.tell(panics).unwrap();
        }
        counts.join().await.unwrap();
        assert_eq!(log.take(), [41, 42, 41, 42, 43, 41]);
    });
}

fn the_state_of_an_incarnation_is_dropped_before_the_next_one(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let (captured, own) = (Mark::new("captured", &log), log.clone());
        let panics = actor(move |cx: Context<()>| {
            own.add(format!("{} begins", cx.incarnation_number()));
            async move {
                let _captured = captured;
                let _local = Mark::new("local", &own);
                greenroom::yield_now().await;
                panic!("bomb");
            }
        });
        let rules = Restarts::<()>::on_fault().intensity(1, HOUR);
        let panics = home.spawn(panics.restart(rules));
        panics.closed().await;
        let one = |begins: &'static str| {
            let ends = ["local is dropped", "captured is dropped"];
            [["captured is cloned", begins], ends].concat()
        };
        let expected = [one("0 begins"), one("1 begins")].concat();
        let log = log.take();
        assert_eq!(log[..8], expected);
        assert_eq!(log[8..], ["captured is dropped"], "what was spawned");
    });
}

fn the_state_is_dropped_before_the_delay(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let dropped = Gate::default();
        let opens = dropped.clone();
        let panics = actor(move |_cx: Context<()>| async move {
            let _state = OpenOnDrop(opens);
            greenroom::yield_now().await;
            panic!("bomb");
        });
        let panics = home.spawn(panics.restart(Restarts::<()>::on_fault().delays(never())));
        dropped.wait().await;
        panics.kill();
        panics.closed().await;
    });
}

fn the_result_is_dropped_before_the_next_incarnation(home: &Home) {
    home.block_on(async {
        let log = Log::default();
        let own = log.clone();
        let returns = actor(move |cx: Context<()>| async move {
            own.add(format!("{} begins", cx.incarnation_number()));
            Mark::new("result", &own)
        });
        let rules = Restarts::always().intensity(2, HOUR);
        let returns = home.spawn(returns.restart(rules));
        returns.closed().await;
        let expected = [
            "0 begins",
            "result is dropped",
            "1 begins",
            "result is dropped",
            "2 begins",
        ];
        assert_eq!(log.take(), expected);
        let result = returns.join().await.unwrap();
        assert_eq!(log.take(), [""; 0]);
        drop(result);
        assert_eq!(log.take(), ["result is dropped"]);
    });
}

fn the_payload_of_a_panic_is_dropped_before_the_next_incarnation(home: &Home) {
    home.block_on(async {
        let log = Log::default();
        let own = log.clone();
        let panics = actor(move |cx: Context<()>| async move {
            own.add(format!("{} begins", cx.incarnation_number()));
            resume_unwind(Box::new(Mark::new("payload", &own)));
        });
        let rules = Restarts::<()>::on_fault().intensity(1, HOUR);
        let panics = home.spawn(panics.restart(rules));
        panics.closed().await;
        assert_eq!(log.take(), ["0 begins", "payload is dropped", "1 begins"]);
        let Err(Fault::Panicked(panic)) = panics.join().await else {
            panic!("it panicked")
        };
        assert_eq!(panic.text(), None);
        assert!(panic.into_payload().is::<Mark>());
        assert_eq!(log.take(), ["payload is dropped"]);
    });
}

fn sources_of_an_incarnation_end_with_it(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let own = log.clone();
        let attaches = actor(move |mut cx: Context<&'static str>| async move {
            own.add(format!("{} begins", cx.incarnation_number()));
            // None of them is ready before the panic.
            let mark = Mark::new("stream", &own);
            cx.attach(stream::pending().inspect_dropped(mark)).detach();
            cx.send_after(std::time::Duration::MAX, "late").detach();
            while let Some(text) = cx.recv().await {
                own.add(text.to_owned());
                match text {
                    "panic" => panic!("bomb"),
                    "end" => return,
                    _ => {}
                }
            }
        });
        let attaches = home.spawn(attaches.restart(ever()));
        for text in ["one", "panic", "two", "panic", "end"] {
            attaches.tell(text).unwrap();
        }
        attaches.join().await.unwrap();
        let end = "stream is dropped";
        let first = ["0 begins", "one", "panic", end];
        let second = ["1 begins", "two", "panic", end];
        let third = ["2 begins", "end", end];
        assert_eq!(log.take(), [&first[..], &second, &third].concat());
    });
}

trait InspectDropped: Sized {
    /// Adds a value that is dropped with the stream.
    fn inspect_dropped(self, mark: Mark) -> WithMark<Self> {
        WithMark(self, mark)
    }
}

impl<S> InspectDropped for S {}

/// A stream with a value that is dropped with it.
struct WithMark<S>(
    S,
    #[expect(dead_code, reason = "only its drop counts")] Mark,
);

impl futures::Stream for WithMark<stream::Pending<&'static str>> {
    type Item = &'static str;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<&'static str>> {
        std::pin::Pin::new(&mut self.0).poll_next(cx)
    }
}

fn requests_in_flight_of_an_incarnation_end_with_it(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        enum Word {
            Begin(Reply<()>),
            Answer(u32),
        }
        let replies = Log::default();
        let keeps = replies.clone();
        let other = home.spawn(actor(move |mut cx: Context<Reply<u32>>| async move {
            while let Some(reply) = cx.recv().await {
                keeps.add(reply);
            }
        }));
        let log = Log::default();
        let (own, address) = (log.clone(), other.address());
        let asks = actor(move |mut cx: Context<Word>| async move {
            while let Some(word) = cx.recv().await {
                match word {
                    Word::Begin(_reply) if cx.incarnation_number() == 0 => {
                        let request = address.request(|reply| reply);
                        cx.on_answer(request, |answer| Word::Answer(answer.unwrap_or(0)));
                        cx.recv().await;
                        panic!("bomb");
                    }
                    Word::Begin(reply) => reply.send(()),
                    Word::Answer(number) => own.add(number),
                }
            }
        });
        let asks = home.spawn(asks.restart(ever()));
        let first = asks.ask(Word::Begin);
        let second = async {
            while replies.len() == 0 {
                greenroom::yield_now().await;
            }
            asks.tell(Word::Answer(7)).unwrap();
            asks.ask(Word::Begin).await
        };
        let (first, second) = futures::join!(first, second);
        assert!(first.is_err());
        assert_eq!(second, Ok(()));
        for reply in replies.take() {
            assert!(!reply.is_wanted(), "who asked has ended");
            reply.send(1);
        }
        assert_eq!(asks.ask(Word::Begin).await, Ok(()));
        assert_eq!(log.take(), []);
    });
}

fn children_of_an_incarnation_are_stopped(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        enum Word {
            Panic,
            Children(Reply<usize>),
            Ended,
        }
        let log = Log::default();
        let own = log.clone();
        let parent = actor(move |mut cx: Context<Word>| async move {
            let number = cx.incarnation_number();
            for _ in 0..3 {
                let log = own.clone();
                let child = spawn!(move |mut cx: Context<()>| async move {
                    while cx.recv().await.is_some() {}
                    log.add(number);
                });
                cx.adopt(child, |_| Word::Ended);
            }
            while let Some(word) = cx.recv().await {
                match word {
                    Word::Panic => panic!("bomb"),
                    Word::Children(reply) => reply.send(cx.children().len()),
                    Word::Ended => own.add(100 + number),
                }
            }
        });
        let parent = home.spawn(parent.restart(ever()));
        parent.tell(Word::Panic).unwrap();
        assert_eq!(parent.ask(Word::Children).await, Ok(3));
        parent.tell(Word::Panic).unwrap();
        assert_eq!(parent.ask(Word::Children).await, Ok(3));
        parent.stop();
        parent.join().await.unwrap();
        // The children of the first two incarnations were stopped, and may end a little later.
        let mut ended = Vec::new();
        while ended.len() < 12 {
            ended.extend(log.take());
            greenroom::yield_now().await;
        }
        ended.sort_unstable();
        assert_eq!(ended, [0, 0, 0, 1, 1, 1, 2, 2, 2, 102, 102, 102]);
    });
}

fn the_next_incarnation_begins_when_the_context_is_dropped_elsewhere(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for returns in [false, true] {
            let (log, escaped, gone) = (Log::default(), Log::default(), Gate::default());
            let (own, escapes, ends) = (log.clone(), escaped.clone(), gone.clone());
            let escapes = actor(move |mut cx: Context<u32>| async move {
                own.add(1000 + cx.incarnation_number() as u32);
                if cx.incarnation_number() > 0 {
                    while let Some(number) = cx.recv().await {
                        own.add(number);
                    }
                    return;
                }
                escapes.add(cx);
                let _tells = OpenOnDrop(ends);
                if !returns {
                    panic!("bomb");
                }
            });
            let escapes = home.spawn(escapes.restart(Restarts::always()));
            gone.wait().await;
            let mut cx = escaped.take().pop().unwrap();
            for number in 1..=4 {
                escapes.tell(number).unwrap();
            }
            // What the holder receives, the next incarnation does not.
            assert_eq!(cx.recv().await, Some(1));
            for _ in 0..10 {
                home.spawn_task(greenroom::yield_now()).await;
            }
            assert_eq!(cx.recv().await, Some(2));
            assert_eq!(log.take(), [1000]);
            assert!(!escapes.is_closed());
            drop(cx);
            escapes.join().await.unwrap();
            assert_eq!(log.take(), [1001, 3, 4]);
        }
    });
}

fn sources_of_a_context_elsewhere_are_dropped_before_the_next_incarnation(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (log, escaped, gone) = (Log::default(), Log::default(), Gate::default());
        let (own, escapes, ends) = (log.clone(), escaped.clone(), gone.clone());
        let attaches = actor(move |cx: Context<&'static str>| async move {
            own.add(format!("{} begins", cx.incarnation_number()));
            if cx.incarnation_number() == 0 {
                escapes.add(cx);
                let _tells = OpenOnDrop(ends);
                panic!("bomb");
            }
        });
        let attaches = home.spawn(attaches.restart(ever()));
        gone.wait().await;
        let mut cx = escaped.take().pop().unwrap();
        let mark = Mark::new("stream", &log);
        cx.attach(stream::pending().inspect_dropped(mark)).detach();
        assert_eq!(cx.try_recv(), None);
        drop(cx);
        attaches.join().await.unwrap();
        assert_eq!(log.take(), ["0 begins", "stream is dropped", "1 begins"]);
    });
}

fn everything_is_dropped_at_the_end(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for restarts in [0, 1, 5] {
            let drops = Drops::default();
            let (spawned, state) = (std::sync::Arc::new(drops.one()), drops.clone());
            let panics = actor(move |_cx: Context<()>| async move {
                let _both = (spawned, state.one());
                panic!("bomb");
            });
            let rule_owns = drops.one();
            let rules = Restarts::<()>::when(move |_| {
                let _owns = &rule_owns;
                true
            });
            let panics = home.spawn(panics.restart(rules.intensity(restarts, HOUR)));
            panics.closed().await;
            // One that was spawned, one of the rules, and one of each incarnation.
            assert_eq!(drops.count(), restarts as usize + 3);
            assert_eq!(text_of(panics.join().await), "bomb");
        }
    });
}
