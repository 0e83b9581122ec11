//! Model 4: an actor that goes dormant, against threads that send to it.

use std::rc::Rc;

use ::loom::thread::spawn;

use super::super::{Batch, Flags, Mailbox, RunOutcome, RunStart, Wake};
use super::{Letter, Post, assert_in_order, take};
use crate::sync::atomic::{AtomicBool, Ordering};

/// An actor, and whether its one runnable exists.
struct Actor {
    mailbox: Mailbox<Letter>,
    scheduled: AtomicBool,
}

impl Actor {
    /// Creates the actor's runnable.
    fn schedule(&self) {
        assert!(
            !self.scheduled.swap(true, Ordering::AcqRel),
            "scheduled twice"
        );
    }

    fn tell(&self, letter: Letter) {
        match self.mailbox.tell(letter) {
            Ok(Wake::Actor) => self.schedule(),
            Ok(Wake::Nobody) => {}
            _ => panic!("the mailbox is open, and `recv` waits in no other task"),
        }
    }

    /// Runs the actor if it has a runnable, and returns the letters that it found.
    fn run(&self) -> Option<Vec<(usize, usize)>> {
        self.scheduled.swap(false, Ordering::AcqRel).then(|| {
            assert!(
                matches!(self.mailbox.state.begin(), RunStart::Usual),
                "no thread kills the actor"
            );
            let mut batch = Batch::EMPTY;
            let found = std::iter::from_fn(|| take(&self.mailbox, &mut batch)).collect();
            if let RunOutcome::Again = self.mailbox.state.rest(true, false) {
                self.schedule();
            }
            found
        })
    }

    /// Runs the actor as `run` does, and asserts that it found something. Not for its first turn.
    fn run_for_something(&self) -> Option<Vec<(usize, usize)>> {
        let found = self.run();
        assert!(
            found.as_ref().is_none_or(|found| !found.is_empty()),
            "run without a message"
        );
        found
    }
}

/// Runs two senders against the turns of a new actor, or of a dormant one.
fn misses_nothing(new: bool) {
    ::loom::model(move || {
        let (mailbox, post) = (Mailbox::with_capacity(None), Rc::new(Post::default()));
        let actor = Rc::new(Actor {
            mailbox,
            scheduled: AtomicBool::new(true),
        });
        if !new {
            assert_eq!(actor.run(), Some(Vec::new()), "there is no message yet");
        }
        let senders = [0, 1].map(|from| {
            let (actor, post) = (actor.clone(), post.clone());
            spawn(move || actor.tell(post.letter(from, 0)))
        });
        let runner = spawn({
            let actor = actor.clone();
            move || {
                let mut read = Vec::new();
                if new {
                    read.extend(actor.run().expect("it was scheduled"));
                }
                read.extend(actor.run_for_something().unwrap_or_default());
                read
            }
        });
        for sender in senders {
            sender.join().unwrap();
        }
        let mut read = runner.join().unwrap();
        while let Some(found) = actor.run_for_something() {
            read.extend(found);
        }
        assert_in_order(&read, &[1, 1]);
        let flags = actor.mailbox.state.peek();
        let awake = Flags::ACTIVE.or(Flags::NOTIFIED).or(Flags::FILLED);
        assert!(
            flags.has(Flags::RECEIVING) && !flags.has(awake),
            "the actor is dormant"
        );
    });
}

/// Checks that the actor is never dormant while it has a message, and never has two runnables.
#[test]
fn model_04_a_message_to_an_actor_that_goes_dormant_is_not_lost() {
    misses_nothing(true);
}

/// Checks that a dormant actor is scheduled once for several messages, and never runs without one.
#[test]
fn model_04_a_dormant_actor_is_scheduled_once_for_several_messages() {
    misses_nothing(false);
}
