//! Model 55: letters that are not handled, against the end of the actor.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::loom::thread::spawn;

use super::super::{HookOptions, Hooks, Mailbox, MailboxOptions, Wake};
use super::{Letter, Post};
use crate::sync::Mutex;

/// Counts the letters that it is called with, and tells by its drop that none can follow.
struct Counter(Arc<Counts>);

#[derive(Default)]
struct Counts {
    delivered: AtomicUsize,
    dropped: AtomicUsize,
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

fn mailbox() -> (Rc<Mailbox<Letter>>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let counter = Counter(counts.clone());
    let on_undelivered = move |letter: Letter| {
        letter.read();
        counter.0.delivered.fetch_add(1, Ordering::Relaxed);
    };
    let hooks = Hooks::new(HookOptions {
        on_undelivered: Some(Mutex::new(Box::new(on_undelivered))),
        ..HookOptions::default()
    });
    let mailbox = Mailbox::new(MailboxOptions {
        capacity: None,
        name: None,
        hooks: Some(Box::new(hooks)),
    });
    (Rc::new(mailbox), counts)
}

/// Ends the actor, which has no context.
fn end(mailbox: &Mailbox<Letter>) {
    let _ = mailbox.close();
    mailbox.forget_context();
    mailbox.lose(mailbox.drain());
    mailbox.finish_handling();
    mailbox.pass_undelivered(|_| panic!("the function does not panic"));
}

/// Uses a permit, as the actor layer does.
fn send(mailbox: &Mailbox<Letter>, letter: Letter) {
    match mailbox.fill(letter, None) {
        Ok(Wake::Nobody) => {}
        Ok(_) => panic!("no reader waits"),
        Err(letter) => {
            let _ = mailbox.lose_late::<false>(letter, |_| panic!("the function does not panic"));
        }
    }
}

/// Sends a letter with a permit while the actor ends.
#[test]
fn model_55_a_late_letter_is_delivered_and_the_function_dropped() {
    ::loom::model(|| {
        let ((mailbox, counts), post) = (mailbox(), Rc::new(Post::default()));
        mailbox.reserve().unwrap();
        let sender = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || send(&mailbox, post.letter(0, 0))
        });
        end(&mailbox);
        sender.join().unwrap();
        let delivered = counts.delivered.load(Ordering::Relaxed);
        assert_eq!(delivered, 1, "each letter is delivered once");
        assert_eq!(counts.dropped.load(Ordering::Relaxed), 1);
        assert_eq!(post.under_way(), 0);
    });
}

/// Uses two permits on two threads after the end. The letters are delivered by either thread.
#[test]
fn model_55_two_late_letters_are_delivered() {
    ::loom::model(|| {
        let ((mailbox, counts), post) = (mailbox(), Rc::new(Post::default()));
        mailbox.reserve().unwrap();
        mailbox.reserve().unwrap();
        end(&mailbox);
        let sender = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || send(&mailbox, post.letter(0, 0))
        });
        send(&mailbox, post.letter(1, 0));
        sender.join().unwrap();
        let delivered = counts.delivered.load(Ordering::Relaxed);
        assert_eq!(delivered, 2, "each letter is delivered once");
        assert_eq!(counts.dropped.load(Ordering::Relaxed), 1);
        assert_eq!(post.under_way(), 0);
    });
}
