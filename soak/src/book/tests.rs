//! Each rule of a book is kept by an honest one, and broken by one that is not.

use greenroom::{AskDetail, AskError, Refusal};

use super::{AskOutcome, Book, Totals};
use crate::report::Tallies;

/// Makes a book with everything that may happen to a message.
macro_rules! book_of_all {
    () => {{
        static BOOK: Book = Book::new("all");
        BOOK.message().handled();
        BOOK.message().refused();
        BOOK.message().displaced();
        BOOK.message().undelivered();
        BOOK.fault(1);
        BOOK.message().take();
        for outcome in [
            Ok(()),
            Err(AskError::Closed(AskDetail::default())),
            Err(AskError::Refused(Refusal::new("no", "room"))),
            Err(AskError::NoReply(AskDetail::default())),
        ] {
            BOOK.asked(&outcome);
        }
        BOOK.question().handled();
        drop(BOOK.question());
        BOOK.question().displaced();
        BOOK.question().undelivered();
        &BOOK
    }};
}

#[track_caller]
fn breaks(totals: &Totals, rule: &str) {
    let sentences = totals.uneven();
    let names = |sentence: &String| sentence.contains(rule) && sentence.starts_with("all: ");
    assert!(sentences.iter().any(names), "{sentences:?}");
}

#[test]
fn a_book_in_which_each_message_has_one_fate_is_even() {
    let book = book_of_all!();
    assert_eq!(book.read().uneven(), Vec::<String>::new());
    let mut tallies = Tallies::new();
    book.read().add_to(&mut tallies);
    let count = |name: &str| tallies[name];
    assert_eq!((count("all"), count("sent"), count("asked")), (9, 5, 4));
    assert_eq!((count("handled"), count("refused")), (2, 2));
    assert_eq!((count("displaced"), count("undelivered")), (2, 2));
    assert_eq!((count("lost"), count("faults")), (1, 1));
}

#[test]
fn a_message_that_is_never_dropped_makes_a_book_uneven() {
    let book = book_of_all!();
    std::mem::forget(book.message());
    breaks(&book.read(), "not each that was sent has one fate");
}

#[test]
fn a_message_that_vanishes_makes_a_book_uneven() {
    let book = book_of_all!();
    drop(book.message());
    breaks(&book.read(), "messages vanished");
}

#[test]
fn a_message_that_is_lost_without_a_fault_makes_a_book_uneven() {
    let book = book_of_all!();
    book.message().take();
    breaks(&book.read(), "more were lost than by faults");
}

#[test]
fn a_question_without_an_outcome_makes_a_book_uneven() {
    let book = book_of_all!();
    book.question().handled();
    breaks(&book.read(), "not each who asked was told");
}

#[test]
fn an_answer_to_a_question_that_nobody_handled_makes_a_book_uneven() {
    let book = book_of_all!();
    book.told(AskOutcome::Answered);
    book.question().undelivered();
    breaks(&book.read(), "Answered does not agree");
    breaks(&book.read(), "NoReply does not agree");
}

#[test]
fn a_question_that_timed_out_may_have_any_fate_but_has_one() {
    let book = book_of_all!();
    book.told(AskOutcome::TimedOut);
    let question = book.question();
    breaks(&book.read(), "not each that was sent has one fate");
    question.handled();
    assert_eq!(book.read().uneven(), Vec::<String>::new());
}

#[test]
fn a_message_out_of_order_makes_a_book_uneven() {
    let book = book_of_all!();
    book.out_of_order();
    breaks(&book.read(), "out of order");
}
