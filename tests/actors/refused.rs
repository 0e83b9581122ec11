//! Errors of refused messages: they name the actor.

use greenroom::{Context, SendError, TellError, actor};

use crate::support::{Home, in_every_home, poll_once};

async fn first(mut cx: Context<u32>) -> Option<u32> {
    cx.recv().await
}

/// Asserts that this is the text of an error of the actor `one`.
#[track_caller]
fn assert_text(text: &str, state: &str) {
    let is_so = text.starts_with("the mailbox of \"one\" #") && text.ends_with(state);
    assert!(is_so, "{text}");
}

in_every_home!(
    the_error_of_tell_names_the_actor_whose_mailbox_is_full,
    the_errors_of_tell_send_and_reserve_name_the_actor_that_is_closed,
    the_error_of_a_send_that_waits_names_the_actor_that_closes,
    the_errors_behind_maps_name_the_actor,
    an_actor_without_a_name_is_shown_by_its_function,
);

fn the_error_of_tell_names_the_actor_whose_mailbox_is_full(home: &Home) {
    let held = home.hold();
    let one = home.spawn(actor(first).name("one").capacity(1));
    one.tell(1).unwrap();
    for refused in [one.tell(2), one.downgrade().tell(2)] {
        let error = refused.unwrap_err();
        assert!(error.is_full() && !error.is_closed());
        assert_eq!(error.actor().id(), one.id());
        assert_eq!(error.actor().name(), Some("one"));
        assert_text(&error.to_string(), " is full");
        assert_eq!(format!("{error:?}"), format!("TellError({error})"));
        assert_eq!(error.into_inner(), 2);
    }
    drop(held);
    assert_eq!(home.block_on(one.join()).unwrap(), Some(1));
}

fn the_errors_of_tell_send_and_reserve_name_the_actor_that_is_closed(home: &Home) {
    let one = home.spawn(actor(first).name("one"));
    one.stop();
    let told = one.tell(1).unwrap_err();
    assert!(told.is_closed() && !told.is_full());
    assert_text(&told.to_string(), " is closed");
    assert_eq!((told.actor().id(), told.into_inner()), (one.id(), 1));
    let sent = home.block_on(one.send(2)).unwrap_err();
    assert_text(&sent.to_string(), " is closed");
    assert_eq!(format!("{sent:?}"), format!("SendError({sent})"));
    assert_eq!((sent.actor().id(), sent.into_inner()), (one.id(), 2));
    let reserved = home.block_on(one.reserve()).unwrap_err();
    assert_text(&reserved.to_string(), " is closed");
    assert_eq!(reserved.actor().id(), one.id());
}

fn the_error_of_a_send_that_waits_names_the_actor_that_closes(home: &Home) {
    let held = home.hold();
    let one = home.spawn(actor(first).name("one").capacity(1));
    one.tell(1).unwrap();
    let mut waits = Box::pin(one.send(2));
    assert!(poll_once(&mut waits).is_pending());
    one.stop();
    drop(held);
    let error = home.block_on(waits).unwrap_err();
    assert_text(&error.to_string(), " is closed");
    assert_eq!(error.into_inner(), 2);
}

fn the_errors_behind_maps_name_the_actor(home: &Home) {
    let held = home.hold();
    let one = home.spawn(actor(first).name("one").capacity(1));
    let letters = one.map(|letter: char| letter as u32);
    let texts = letters.map(|text: String| text.chars().next().unwrap_or('?'));
    letters.tell('a').unwrap();
    let full = texts.tell("b".into()).unwrap_err();
    assert!(full.is_full());
    assert_text(&full.to_string(), " is full");
    assert_eq!(
        (full.actor().id(), full.into_inner()),
        (one.id(), "b".into())
    );
    one.stop();
    let closed = texts.tell("c".into()).unwrap_err();
    assert_text(&closed.to_string(), " is closed");
    drop(held);
    let sent = home.block_on(texts.send("d".into())).unwrap_err();
    assert_eq!(
        (sent.actor().id(), sent.into_inner()),
        (one.id(), "d".into())
    );
    let reserved = home.block_on(letters.reserve()).unwrap_err();
    assert_eq!(reserved.actor().name(), Some("one"));
}

fn an_actor_without_a_name_is_shown_by_its_function(home: &Home) {
    let nobody = home.spawn(actor(first));
    nobody.stop();
    let error = nobody.tell(1).unwrap_err();
    assert_eq!(error.actor().name(), None);
    assert_eq!(error.actor().called(), "first");
    let text = error.to_string();
    assert!(text.starts_with("the mailbox of first #"), "{text}");
}

#[test]
fn the_result_of_a_tell_or_a_send_is_one_pointer_whatever_the_message_is() {
    let pointer = size_of::<usize>();
    assert_eq!(size_of::<Result<(), TellError<()>>>(), pointer);
    assert_eq!(size_of::<Result<(), TellError<[usize; 4]>>>(), pointer);
    assert_eq!(size_of::<Result<(), SendError<[usize; 4]>>>(), pointer);
}
