//! Model 4: an actor that goes to rest, against those who send to it.

use std::cell::Cell;
use std::rc::Rc;

use ::loom::thread::spawn;

use super::super::{Flags, Mailbox, Queue, Rest, Wake};
use super::{Letter, Post, assert_in_order, take};

/// An actor and the one runnable that it has while it is scheduled.
struct Actor {
    mailbox: Mailbox<Letter>,
    scheduled: Cell<bool>,
}

impl Actor {
    /// Its runnable comes into being.
    fn schedule(&self) {
        assert!(!self.scheduled.replace(true), "scheduled twice");
    }

    fn tell(&self, letter: Letter) {
        match self.mailbox.tell(letter) {
            Ok(Wake::Actor) => self.schedule(),
            Ok(Wake::Nobody) => {}
            _ => panic!("it is open, and nobody else waits"),
        }
    }

    /// Its runnable is run, if there is one; gives what it found.
    fn run(&self) -> Option<Vec<(usize, usize)>> {
        self.scheduled.replace(false).then(|| {
            assert!(self.mailbox.begin().is_none(), "nobody kills it");
            let mut batch = Queue::EMPTY;
            let found = std::iter::from_fn(|| take(&self.mailbox, &mut batch)).collect();
            if let Rest::Again = self.mailbox.rest(true) {
                self.schedule();
            }
            found
        })
    }
}

/// It is never at rest with a message and without a runnable, never has two, and is never run for
/// nothing.
#[test]
fn model_04_a_send_is_never_lost_by_an_actor_going_to_rest() {
    ::loom::model(|| {
        let (mailbox, post) = (Mailbox::new(None), Rc::new(Post::default()));
        let actor = Rc::new(Actor {
            mailbox,
            scheduled: Cell::new(true),
        });
        let senders = [0, 1].map(|from| {
            let (actor, post) = (actor.clone(), post.clone());
            spawn(move || actor.tell(post.letter(from, 0)))
        });
        // The first run is the one that every new actor has.
        let mut read = actor.run().expect("it was scheduled");
        let mut run = || {
            let found = actor.run()?;
            assert!(!found.is_empty(), "run for nothing");
            read.extend(found);
            Some(())
        };
        run();
        for sender in senders {
            sender.join().unwrap();
        }
        while run().is_some() {}
        assert_in_order(&read, &[1, 1]);
        let flags = actor.mailbox.peek();
        let awake = Flags::SCHEDULED
            .or(Flags::RUNNING)
            .or(Flags::NOTIFIED)
            .or(Flags::FILLED);
        assert!(
            flags.has(Flags::RECEIVING) && !flags.has(awake),
            "it is at rest"
        );
    });
}
