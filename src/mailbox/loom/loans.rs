//! Models 56 and 57: a lent context comes back, or its lender gives it up.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::loom::thread::spawn;

use super::super::{Mailbox, wake_foreign};
use crate::park::Parker;
use crate::sync::UnsafeCell;

/// A mailbox whose context is lent, and the reader that goes with the context.
struct Lent {
    mailbox: Mailbox<()>,
    /// Fails the model if nothing orders two uses.
    reader: UnsafeCell<usize>,
}

impl Lent {
    /// Lends the context as many times. The keys are those of the loans.
    fn new<const LOANS: usize>() -> (Rc<Self>, [u32; LOANS]) {
        let lent = Lent {
            mailbox: Mailbox::with_capacity(None),
            reader: UnsafeCell::new(0),
        };
        let keys = [(); LOANS].map(|()| lent.mailbox.lend());
        (Rc::new(lent), keys)
    }

    /// Uses the reader, and returns how often it was used before.
    #[expect(unsafe_code, reason = "the caller has the reader")]
    fn read(&self) -> usize {
        self.reader.with_mut(|uses| {
            // SAFETY: the model finds two threads that have the reader.
            let uses = unsafe { &mut *uses };
            *uses += 1;
            *uses - 1
        })
    }

    /// Drops the context, as its holder. Returns whether a lender has it then.
    fn give_back(&self) -> bool {
        self.read();
        match self.mailbox.give_back() {
            Ok(lender) => {
                lender.into_iter().for_each(wake_foreign);
                true
            }
            Err(()) => {
                self.read();
                false
            }
        }
    }

    /// Gives up the loan with this key, as its lender. Returns whether it has the context then.
    fn give_up(&self, key: u32) -> bool {
        let has_come = !self.mailbox.revoke(key);
        if has_come {
            self.read();
        }
        has_come
    }
}

/// A waker that unparks the waiting thread.
struct Bell(Parker);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread until the context has come back.
fn wait(lent: &Lent, key: u32) {
    let bell = Arc::new(Bell(Parker::new()));
    let waker = Waker::from(bell.clone());
    let mut back = pin!(poll_fn(|cx| lent.mailbox.poll_back(key, cx.waker())));
    while Pin::new(&mut back)
        .poll(&mut Context::from_waker(&waker))
        .is_pending()
    {
        bell.0.park(None);
    }
}

/// Checks that a lender that waits is woken, and sees what the holder did with the reader.
#[test]
fn model_56_lender_is_woken_and_sees_the_last_use() {
    ::loom::model(|| {
        let (lent, [key]) = Lent::new();
        let holder = spawn({
            let lent = lent.clone();
            move || assert!(lent.give_back())
        });
        wait(&lent, key);
        assert_eq!(lent.read(), 1, "the last use is seen");
        holder.join().unwrap();
    });
}

/// Checks the same for two loans of one context: the first lender passes it on.
#[test]
fn model_56_lender_of_a_lender_is_woken_and_sees_the_last_use() {
    ::loom::model(|| {
        let (lent, [first, last]) = Lent::new();
        let holder = spawn({
            let lent = lent.clone();
            move || assert!(lent.give_back())
        });
        assert_eq!(
            lent.mailbox.poll_back(first, Waker::noop()),
            Poll::Pending,
            "it is lent further"
        );
        wait(&lent, last);
        assert!(lent.give_back());
        wait(&lent, first);
        assert_eq!(lent.read(), 2, "the last use is seen");
        holder.join().unwrap();
    });
}

/// Checks that a context that is dropped while its lender gives it up belongs to one of both.
#[test]
fn model_57_context_belongs_to_its_holder_or_its_lender() {
    ::loom::model(|| {
        let (lent, [key]) = Lent::new();
        assert!(lent.mailbox.poll_back(key, Waker::noop()).is_pending());
        let holder = spawn({
            let lent = lent.clone();
            move || lent.give_back()
        });
        let has_come = lent.give_up(key);
        let gave = holder.join().unwrap();
        assert_eq!(has_come, gave, "one of both has the reader");
    });
}

/// Checks the same with two lenders that give it up at once.
#[test]
fn model_57_context_belongs_to_its_holder_or_one_of_two_lenders() {
    ::loom::model(|| {
        let (lent, [first, last]) = Lent::new();
        let lender = spawn({
            let lent = lent.clone();
            move || lent.give_up(last)
        });
        let holder = spawn({
            let lent = lent.clone();
            move || lent.give_back()
        });
        let has_come = lent.give_up(first);
        let have_come = [has_come, lender.join().unwrap()];
        let gave = holder.join().unwrap();
        let come = have_come.iter().filter(|has_come| **has_come).count();
        assert_eq!(come, usize::from(gave), "one of both has the reader");
    });
}
