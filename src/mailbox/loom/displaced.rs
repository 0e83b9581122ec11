//! Model 74: a letter that gives way to a permit, while the reader takes letters and waits.

use std::rc::Rc;

use ::loom::thread::spawn;

use super::super::extras::{HookOptions, Hooks, MailboxOptions};
use super::super::{Displacing, Mailbox, Overflow};
use super::bounded::{pass_on, receive};
use super::{Letter, Post};

/// Returns a mailbox for one letter, which gives way to the next one.
fn mailbox() -> Mailbox<Letter> {
    let displacing = Displacing {
        overflow: Overflow::Oldest,
        ..Displacing::default()
    };
    let hooks = HookOptions {
        displacing: Some(displacing),
        ..HookOptions::default()
    };
    Mailbox::new(MailboxOptions {
        hooks: Some(Box::new(Hooks::new(hooks))),
        ..MailboxOptions::of(Some(1))
    })
}

/// Checks that each letter is read or gives way, once, and that the reader waits for the one of the
/// permit.
#[test]
fn model_74_a_letter_is_read_or_gives_way_to_a_permit() {
    ::loom::model(|| {
        let (mailbox, post) = (Rc::new(mailbox()), Rc::new(Post::default()));
        pass_on(
            &mailbox,
            mailbox.tell(post.letter(0, 0)).expect("it is open"),
        );
        let sender = spawn({
            let (mailbox, post) = (mailbox.clone(), post.clone());
            move || {
                let displaced = mailbox.reserve_displacing().expect("a letter gives way");
                let filled = mailbox.fill(post.letter(0, 1), None);
                pass_on(&mailbox, filled.ok().expect("the mailbox was not drained"));
                displaced.map(|displaced| displaced.message.read().1)
            }
        });
        let mut read = Vec::new();
        while read.last() != Some(&1) {
            read.push(receive(&mailbox).expect("it is open").1);
        }
        let displaced = sender.join().unwrap();
        read.splice(0..0, displaced);
        assert_eq!(read, [0, 1], "once, in order");
        let Ok(next) = mailbox.tell(post.letter(0, 2)) else {
            panic!("the room is free again");
        };
        pass_on(&mailbox, next);
        assert_eq!(receive(&mailbox).map(|letter| letter.1), Some(2));
        assert_eq!(post.under_way(), 0, "each letter is dropped once");
    });
}
