//! Panics in the handlers of actors that are values: `Actor::panicked`.

mod askers;
mod drops;

use std::future::{Future, ready};
use std::panic::resume_unwind;
use std::pin::pin;

use greenroom::supervise::Restarts;
use greenroom::{Actor, AskCause, AskError, Context, Fault, Reply, Runtime, spawn};

use crate::support::{
    Bomb, Drops, Gate, Home, Log, WATCH, drive, in_every_home, keep_bombs_quiet, names, poll_here,
    poll_once, within,
};

in_every_home!(
    a_value_that_goes_on_keeps_its_state_and_its_messages,
    a_value_goes_on_after_each_of_many_panics,
    a_panic_after_a_suspension_is_caught,
    a_panic_in_the_call_of_a_handler_is_caught,
    a_value_that_does_not_say_so_ends_with_the_panic,
    a_restarted_value_begins_from_its_clone_only_if_it_does_not_go_on,
    a_panic_in_panicked_takes_the_place_of_the_first,
    a_panic_in_started_or_stopped_ends_the_value,
    a_value_that_is_stopped_in_panicked_handles_what_was_accepted,
    a_value_that_is_killed_in_panicked_handles_nothing_more,
    sources_and_children_stay,
);

/// A value that does what its messages say.
#[derive(Clone, Default)]
struct Doer {
    done: Vec<u32>,
    /// The text of each panic, with the incarnation in which it came.
    seen: Log<(u64, String)>,
    answers: Answers,
}

/// What `panicked` does.
#[derive(Clone, Default)]
enum Answers {
    #[default]
    GoOn,
    End,
    Panic,
    Stop,
    Kill,
}

enum Deed {
    Do(u32),
    /// Panics with this text, after a suspension if the flag is set.
    Fail(&'static str, bool),
    Throw(Bomb),
    Ask(&'static str, Reply<()>),
    Tell(Reply<Vec<u32>>),
}

impl Actor for Doer {
    type Message = Deed;

    async fn handle(&mut self, deed: Deed, _cx: &mut Context<Deed>) {
        match deed {
            Deed::Do(number) => self.done.push(number),
            Deed::Fail(text, late) => {
                self.done.push(0);
                if late {
                    greenroom::yield_now().await;
                }
                panic!("{text}");
            }
            Deed::Throw(bomb) => resume_unwind(Box::new(bomb)),
            Deed::Ask(text, _reply) => panic!("{text}"),
            Deed::Tell(reply) => reply.send(self.done.clone()),
        }
    }

    fn panicked(&mut self, fault: &Fault, cx: &mut Context<Deed>) -> bool {
        let Fault::Panicked(panic) = fault else {
            panic!("{fault}")
        };
        let text = panic.text().unwrap_or("no text").to_owned();
        self.seen.add((cx.incarnation_number(), text));
        match self.answers {
            Answers::GoOn => true,
            Answers::End => false,
            Answers::Panic => panic!("bomb in panicked"),
            Answers::Stop => {
                cx.stop();
                true
            }
            Answers::Kill => {
                cx.address().kill();
                true
            }
        }
    }
}

impl Doer {
    fn that(answers: Answers, seen: &Log<(u64, String)>) -> Doer {
        keep_bombs_quiet();
        Doer {
            seen: seen.clone(),
            answers,
            ..Doer::default()
        }
    }
}

/// Returns the cause of an ask without an answer.
fn cause<T: std::fmt::Debug>(answer: Result<T, AskError>) -> AskCause {
    match answer {
        Err(AskError::NoReply(detail)) => {
            assert!(detail.actor().is_some(), "{detail} names no actor");
            detail.why().clone()
        }
        other => panic!("there is a reply: {other:?}"),
    }
}

fn panicked(text: &str) -> AskCause {
    AskCause::Panicked(text.into())
}

/// Returns the text of the panic that is this result.
fn text<T>(result: Result<T, Fault>) -> Option<String> {
    match result {
        Err(Fault::Panicked(panic)) => panic.text().map(Into::into),
        Err(fault) => panic!("it did not panic, but {fault}"),
        Ok(_) => panic!("it did not panic"),
    }
}

fn a_value_that_goes_on_keeps_its_state_and_its_messages(home: &Home) {
    home.block_on(async {
        let seen = Log::default();
        let doer = home.spawn(Doer::that(Answers::GoOn, &seen).into_builder().name("doer"));
        let (id, address) = (doer.id(), doer.address());
        let held = home.is_simulated().then(|| doer.address());
        doer.tell(Deed::Do(1)).unwrap();
        let bad = doer.request(|reply| Deed::Ask("bomb 1", reply));
        let bad = bad.await;
        address.tell(Deed::Do(2)).unwrap();
        let Err(AskError::NoReply(detail)) = &bad else {
            panic!("{bad:?}")
        };
        assert_eq!(names(&detail.to_string()), "doer panicked: bomb 1");
        assert_eq!(doer.ask(Deed::Tell).await.unwrap(), [1, 2]);
        assert_eq!(doer.id(), id);
        drop((address, held));
        assert_eq!(doer.join().await.unwrap().done, [1, 2]);
        assert_eq!(seen.take(), [(0, "bomb 1".to_owned())]);
    });
}

fn a_value_goes_on_after_each_of_many_panics(home: &Home) {
    home.block_on(async {
        let seen = Log::default();
        let doer = home.spawn(Doer::that(Answers::GoOn, &seen).into_builder());
        let count = home.many(500);
        for number in 0..count {
            doer.tell(Deed::Fail("bomb", number % 3 == 0)).unwrap();
            doer.tell(Deed::Do(1)).unwrap();
        }
        assert_eq!(doer.ask(Deed::Tell).await.unwrap(), [0, 1].repeat(count));
        assert_eq!(seen.take().len(), count);
        doer.join().await.unwrap();
    });
}

fn a_panic_after_a_suspension_is_caught(home: &Home) {
    home.block_on(async {
        let seen = Log::default();
        let doer = home.spawn(Doer::that(Answers::GoOn, &seen).into_builder());
        doer.tell(Deed::Fail("bomb, late", true)).unwrap();
        assert_eq!(doer.ask(Deed::Tell).await.unwrap(), [0]);
        doer.join().await.unwrap();
        assert_eq!(seen.take(), [(0, "bomb, late".to_owned())]);
    });
}

fn a_panic_in_the_call_of_a_handler_is_caught(home: &Home) {
    struct Eager(u32);
    impl Actor for Eager {
        type Message = Reply<u32>;

        fn handle(
            &mut self,
            reply: Reply<u32>,
            _cx: &mut Context<Reply<u32>>,
        ) -> impl Future<Output = ()> + Send {
            self.0 += 1;
            assert!(self.0 != 1, "bomb in the call");
            reply.send(self.0);
            ready(())
        }

        fn panicked(&mut self, _fault: &Fault, _cx: &mut Context<Reply<u32>>) -> bool {
            true
        }
    }
    keep_bombs_quiet();
    home.block_on(async {
        let eager = home.spawn(Eager(0).into_builder());
        let answer = eager.ask(|reply| reply).await;
        assert_eq!(cause(answer), panicked("bomb in the call"));
        assert_eq!(eager.ask(|reply| reply).await, Ok(2));
        eager.join().await.unwrap();
    });
}

fn a_value_that_does_not_say_so_ends_with_the_panic(home: &Home) {
    struct Fragile(Log<&'static str>, Gate);
    impl Actor for Fragile {
        type Message = Reply<()>;

        async fn started(&mut self, _cx: &mut Context<Reply<()>>) {
            self.1.wait().await;
        }

        async fn handle(&mut self, _reply: Reply<()>, _cx: &mut Context<Reply<()>>) {
            panic!("bomb in a fragile value");
        }

        async fn stopped(&mut self, _cx: &mut Context<Reply<()>>) {
            self.0.add("stopped");
        }
    }
    keep_bombs_quiet();
    home.block_on(async {
        let (log, gate) = (Log::default(), Gate::default());
        let fragile = home.spawn(Fragile(log.clone(), gate.clone()).into_builder());
        let requests = (
            fragile.request(|reply| reply),
            fragile.request(|reply| reply),
        );
        let mut both = pin!(greenroom::concurrently(requests));
        assert!(poll_here(&mut both).await.is_pending());
        gate.open();
        let (first, second) = both.await;
        let expected = panicked("bomb in a fragile value");
        assert_eq!((cause(first), cause(second)), (expected.clone(), expected));
        let text = text(fragile.join().await);
        assert_eq!(text.as_deref(), Some("bomb in a fragile value"));
        assert_eq!(log.len(), 0);

        let seen = Log::default();
        let doer = home.spawn(Doer::that(Answers::End, &seen).into_builder());
        let answer = doer.ask(|reply| Deed::Ask("bomb 2", reply)).await;
        assert_eq!(cause(answer), panicked("bomb 2"));
        assert_eq!(self::text(doer.join().await).as_deref(), Some("bomb 2"));
        assert_eq!(seen.take(), [(0, "bomb 2".to_owned())]);
    });
}

fn a_restarted_value_begins_from_its_clone_only_if_it_does_not_go_on(home: &Home) {
    home.block_on(async {
        for (answers, expected) in [(Answers::GoOn, vec![1, 2]), (Answers::End, vec![2])] {
            let seen = Log::default();
            let doer = Doer::that(answers, &seen)
                .into_builder()
                .restart(Restarts::on_fault());
            let doer = home.spawn(doer);
            doer.tell(Deed::Do(1)).unwrap();
            let answer = doer.ask(|reply| Deed::Ask("bomb 1", reply)).await;
            assert_eq!(cause(answer), panicked("bomb 1"));
            doer.tell(Deed::Do(2)).unwrap();
            assert_eq!(doer.ask(Deed::Tell).await.unwrap(), expected);
            let is_new = u64::from(expected.len() == 1);
            let answer = doer.ask(|reply| Deed::Ask("bomb 2", reply)).await;
            assert_eq!(cause(answer), panicked("bomb 2"));
            doer.join().await.unwrap();
            let all = [(0, "bomb 1".to_owned()), (is_new, "bomb 2".to_owned())];
            assert_eq!(seen.take(), all);
        }
    });
}

fn a_panic_in_panicked_takes_the_place_of_the_first(home: &Home) {
    home.block_on(async {
        let seen = Log::default();
        let doer = home.spawn(Doer::that(Answers::Panic, &seen).into_builder());
        let answer = doer.ask(|reply| Deed::Ask("bomb 1", reply)).await;
        assert_eq!(cause(answer), panicked("bomb in panicked"));
        assert_eq!(text(doer.join().await).as_deref(), Some("bomb in panicked"));

        // The payload of the first panic is dropped meanwhile, and panics.
        let (drops, seen) = (Drops::default(), Log::default());
        let doer = home.spawn(Doer::that(Answers::Panic, &seen).into_builder());
        doer.tell(Deed::Throw(Bomb::new(true, &drops))).unwrap();
        assert_eq!(text(doer.join().await).as_deref(), Some("bomb in panicked"));
        assert_eq!(drops.count(), 1);

        let restarted = Doer::that(Answers::Panic, &seen).into_builder();
        let restarted = home.spawn(restarted.restart(Restarts::on_fault()));
        restarted.tell(Deed::Do(1)).unwrap();
        let answer = restarted.ask(|reply| Deed::Ask("bomb 1", reply)).await;
        assert_eq!(cause(answer), panicked("bomb in panicked"));
        assert_eq!(restarted.ask(Deed::Tell).await.unwrap(), []);
        restarted.join().await.unwrap();
    });
}

fn a_panic_in_started_or_stopped_ends_the_value(home: &Home) {
    struct Frame(&'static str);
    impl Actor for Frame {
        type Message = ();

        async fn started(&mut self, _cx: &mut Context<()>) {
            assert!(self.0 != "started", "bomb in started");
        }

        async fn handle(&mut self, (): (), _cx: &mut Context<()>) {}

        async fn stopped(&mut self, _cx: &mut Context<()>) {
            assert!(self.0 != "stopped", "bomb in stopped");
        }

        fn panicked(&mut self, _fault: &Fault, _cx: &mut Context<()>) -> bool {
            unreachable!("only for panics of handle")
        }
    }
    keep_bombs_quiet();
    for part in ["started", "stopped"] {
        let frame = home.spawn(Frame(part).into_builder());
        let text = text(home.block_on(frame.join()));
        assert_eq!(text, Some(format!("bomb in {part}")));
    }
}

fn a_value_that_is_stopped_in_panicked_handles_what_was_accepted(home: &Home) {
    let seen = Log::default();
    let held = home.hold();
    let doer = home.spawn(Doer::that(Answers::Stop, &seen).into_builder());
    doer.tell(Deed::Fail("bomb 1", false)).unwrap();
    doer.tell(Deed::Do(1)).unwrap();
    let address = doer.address();
    drop(held);
    assert_eq!(home.block_on(doer.join()).unwrap().done, [0, 1]);
    assert!(address.tell(Deed::Do(2)).unwrap_err().is_closed());
}

fn a_value_that_is_killed_in_panicked_handles_nothing_more(home: &Home) {
    let seen = Log::default();
    let held = home.hold();
    let doer = home.spawn(Doer::that(Answers::Kill, &seen).into_builder());
    let mut bad = doer.request(|reply| Deed::Ask("bomb 1", reply));
    let mut next = doer.request(Deed::Tell);
    assert!(poll_once(&mut bad).is_pending());
    assert!(poll_once(&mut next).is_pending());
    drop(held);
    home.block_on(async {
        assert_eq!(cause(bad.await), panicked("bomb 1"));
        assert_eq!(cause(next.await), AskCause::Killed);
        assert!(matches!(doer.join().await, Err(Fault::Killed)));
    });
}

fn sources_and_children_stay(home: &Home) {
    /// Its messages are those of a stream, and the end of its child.
    struct Parent(Vec<&'static str>);
    impl Actor for Parent {
        type Message = &'static str;

        async fn started(&mut self, cx: &mut Context<&'static str>) {
            cx.attach(futures::stream::iter(["one", "bomb", "two"]))
                .detach();
            let child = spawn!(async |mut cx: Context<()>| assert!(cx.recv().await.is_none()));
            cx.adopt(child, |_| "child");
        }

        async fn handle(&mut self, message: &'static str, cx: &mut Context<&'static str>) {
            self.0.push(message);
            match message {
                "bomb" => panic!("bomb of a parent"),
                "two" => cx.stop(),
                _ => {}
            }
        }

        fn panicked(&mut self, _fault: &Fault, cx: &mut Context<&'static str>) -> bool {
            assert_eq!(cx.children().count(), 1);
            true
        }
    }
    keep_bombs_quiet();
    let parent = home.spawn(Parent(Vec::new()).into_builder());
    let all = home.block_on(parent.join()).unwrap().0;
    assert_eq!(all, ["one", "bomb", "two", "child"]);
}

#[test]
fn a_panic_after_which_a_value_goes_on_is_not_reported() {
    keep_bombs_quiet();
    within(WATCH, || {
        let reports = Log::default();
        let reported = reports.clone();
        let runtime = Runtime::builder()
            .workers(1)
            .on_fault(move |fault| reported.add(fault.fault.to_string()))
            .build()
            .unwrap();
        runtime.block_on(async {
            let seen = Log::default();
            let goes_on = spawn!(Doer::that(Answers::GoOn, &seen));
            goes_on.tell(Deed::Fail("bomb 1", false)).unwrap();
            goes_on.ask(Deed::Tell).await.unwrap();
            goes_on.join().await.unwrap();
            let ends = spawn!(Doer::that(Answers::End, &seen));
            ends.tell(Deed::Fail("bomb 2", false)).unwrap();
            let address = ends.address();
            drop(ends);
            address.closed().await;
        });
        assert_eq!(reports.take(), ["panicked: bomb 2"]);
    });
}

#[test]
fn a_split_value_goes_on_too() {
    let seen = Log::default();
    let (address, doer) = Doer::that(Answers::GoOn, &seen).into_builder().split();
    let bad = address.request(|reply| Deed::Ask("bomb 1", reply));
    address.tell(Deed::Do(1)).unwrap();
    drop(address);
    let (bad, doer) = drive(async { futures::join!(bad, doer) });
    assert_eq!(cause(bad), panicked("bomb 1"));
    assert_eq!(doer.unwrap().done, [1]);
}
