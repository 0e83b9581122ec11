//! Model 75: urgent letters beside a plain one, of which the reader takes each and then waits.

use std::rc::Rc;

use ::loom::thread::spawn;

use super::super::Mailbox;
use super::super::extras::{HookOptions, Hooks, MailboxOptions};
use super::bounded::{pass_on, receive};
use super::{Letter, Post, assert_in_order};

/// Returns a mailbox of which one urgent letter is read in a row.
fn mailbox() -> Mailbox<Letter> {
    let hooks = HookOptions {
        urgent: Some(2),
        urgent_in_a_row: Some(1),
        ..HookOptions::default()
    };
    Mailbox::new(MailboxOptions {
        hooks: Some(Box::new(Hooks::new(hooks))),
        ..MailboxOptions::of(None)
    })
}

/// Checks that the letters of both queues are read once, in order, whichever is read first.
#[test]
fn model_75_urgent_and_plain_letters_are_all_read() {
    ::loom::model(|| {
        let (mailbox, post) = (Rc::new(mailbox()), Rc::new(Post::default()));
        pass_on(
            &mailbox,
            mailbox.tell(post.letter(0, 0)).expect("it is open"),
        );
        let sender = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || {
                for number in 0..2 {
                    mailbox.reserve_in::<true>().expect("there is room");
                    let filled = mailbox.fill_urgent(post.letter(1, number), None);
                    pass_on(&mailbox, filled.ok().expect("the mailbox was not drained"));
                }
            }
        });
        let read = [(); 3].map(|()| receive(&mailbox).expect("it is open"));
        sender.join().unwrap();
        assert_in_order(&read, &[1, 2]);
        assert_eq!(post.under_way(), 0, "each letter is dropped once");
    });
}
