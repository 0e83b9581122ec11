//! What the askers are told when a handler of a value has panicked.

use greenroom::{Actor, AskCause, Context, Fault, Reply, spawn};

use super::{Answers, Deed, Doer, cause, panicked, text};
use crate::support::{
    Gate, Home, Log, drive, in_every_home, keep_bombs_quiet, on_threads, on_workers, poll_once,
};

in_every_home!(replies_that_are_dropped_in_panicked_are_lost_by_the_panic);

on_threads!(
    // A handler blocks its thread.
    the_asker_is_told_before_the_next_message_is_handled,
    // In a simulation nothing runs between the answer and the look.
    the_mailbox_of_a_value_that_ends_is_closed_when_its_asker_is_told,
);

/// Keeps replies, and drops them in `panicked`.
struct Keeper {
    kept: Vec<Reply<()>>,
    log: Log<bool>,
}

impl Actor for Keeper {
    type Message = Reply<()>;

    async fn handle(&mut self, reply: Reply<()>, _cx: &mut Context<Reply<()>>) {
        if self.kept.len() == 2 {
            drop(reply);
            panic!("bomb in a keeper");
        }
        self.kept.push(reply);
    }

    fn panicked(&mut self, _fault: &Fault, _cx: &mut Context<Reply<()>>) -> bool {
        self.kept.clear();
        self.log.add(true);
        self.log.len() == 1
    }
}

fn replies_that_are_dropped_in_panicked_are_lost_by_the_panic(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let log = Log::default();
        let kept = Vec::new();
        let keeper = home.spawn(Keeper { kept, log }.into_builder());
        // It goes on after the first three, and ends after the others.
        for _ in 0..2 {
            let asks = [(); 3].map(|()| keeper.request(|reply| reply));
            let [one, two, three] = asks;
            let (one, two, three) = greenroom::concurrently((one, two, three)).await;
            assert_eq!(cause(one), panicked("bomb in a keeper"));
            assert_eq!(cause(two), panicked("bomb in a keeper"));
            assert_eq!(cause(three), AskCause::ReplyDropped);
        }
        let text = text(keeper.join().await);
        assert_eq!(text.as_deref(), Some("bomb in a keeper"));
    });
}

/// Blocks its thread until a gate is open.
struct Blocks(Gate);

impl Actor for Blocks {
    type Message = Option<Reply<()>>;

    async fn handle(&mut self, fails: Self::Message, _cx: &mut Context<Self::Message>) {
        match fails {
            Some(_reply) => panic!("bomb before a block"),
            None => self.0.pass(),
        }
    }

    fn panicked(&mut self, _fault: &Fault, _cx: &mut Context<Self::Message>) -> bool {
        true
    }
}

fn the_asker_is_told_before_the_next_message_is_handled(home: &Home) {
    keep_bombs_quiet();
    let gate = Gate::default();
    let held = home.hold();
    let blocks = home.spawn(Blocks(gate.clone()).into_builder());
    let mut bad = blocks.request(Some);
    assert!(poll_once(&mut bad).is_pending());
    blocks.tell(None).unwrap();
    drop(held);
    assert_eq!(cause(drive(bad)), panicked("bomb before a block"));
    gate.open();
    drive(blocks.join()).unwrap();
}

fn the_mailbox_of_a_value_that_ends_is_closed_when_its_asker_is_told(home: &Home) {
    for _ in 0..home.many(100) {
        let seen = Log::default();
        let doer = home.spawn(Doer::that(Answers::End, &seen).into_builder());
        let answer = drive(doer.ask(|reply| Deed::Ask("bomb 1", reply)));
        assert!(doer.is_closed());
        assert_eq!(cause(answer), panicked("bomb 1"));
    }
}

/// A pinned thread refuses to wait in a task.
#[test]
fn a_value_that_blocks_in_panicked_has_told_its_asker() {
    struct Waits(Gate);
    impl Actor for Waits {
        type Message = Reply<()>;

        async fn handle(&mut self, _reply: Reply<()>, _cx: &mut Context<Reply<()>>) {
            panic!("bomb before a wait");
        }

        fn panicked(&mut self, _fault: &Fault, _cx: &mut Context<Reply<()>>) -> bool {
            greenroom::run(self.0.wait());
            false
        }
    }
    keep_bombs_quiet();
    on_workers(1, async {
        let gate = Gate::default();
        let waits = spawn!(Waits(gate.clone()));
        let answer = waits.ask(|reply| reply).await;
        gate.open();
        assert_eq!(cause(answer), panicked("bomb before a wait"));
        let text = text(waits.join().await);
        assert_eq!(text.as_deref(), Some("bomb before a wait"));
    });
}
