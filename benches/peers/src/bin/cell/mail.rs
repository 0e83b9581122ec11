//! The interface of a mailbox, independent of its implementation.
//!
//! One word holds the undelivered messages *and* whether the actor is dormant. Its low bits:
//!
//! | bits | name | meaning |
//! |---|---|---|
//! | `1..` `..0` | dormant | the actor is neither being polled nor scheduled |
//! | `10.` | deaf | dormant, and awaits something other than a message: a waker schedules it |
//! | `11.` | receptive | dormant in `recv`: a message schedules it, in the step that delivers it |
//! | `00.` | awake | scheduled or running |
//! | `01.` | woken | awake, and a waker was used meanwhile: it has to run once more |
//! | `..1` | closed | nothing is accepted any longer |

/// No message is accepted any longer.
pub const CLOSED: usize = 0b001;
/// For an awake actor: a waker was used since it was scheduled.
pub const WOKEN: usize = 0b010;
/// For a dormant actor: a message schedules it.
pub const RECEPTIVE: usize = 0b010;
/// The actor is neither scheduled nor running.
pub const DORMANT: usize = 0b100;
/// All of these bits.
pub const FLAGS: usize = 0b111;

/// Returns the flags after a wake-up, which schedules the actor if it is dormant, and whether it
/// was.
pub fn rouse(flags: usize) -> (usize, bool) {
    if flags & DORMANT == 0 {
        (flags | WOKEN, false)
    } else {
        (flags & CLOSED, true)
    }
}

/// Returns the flags after a message or a close, which schedules the actor only if it is receptive.
pub fn deliver(flags: usize) -> (usize, bool) {
    if is_receptive(flags) {
        (flags & CLOSED, true)
    } else {
        (flags, false)
    }
}

/// Returns whether a message schedules the actor.
pub fn is_receptive(flags: usize) -> bool {
    flags & (DORMANT | RECEPTIVE) == DORMANT | RECEPTIVE
}

/// Returns whether an awake actor was woken.
pub fn is_woken(flags: usize) -> bool {
    flags & (DORMANT | WOKEN) == WOKEN
}

/// The result of `take`, when the reader has read all messages that it took before.
#[derive(PartialEq, Eq)]
pub enum More {
    /// There are messages: the next `pop` returns one.
    Some,
    /// There are no messages now.
    NotNow,
    /// There will be no messages again.
    Never,
}

/// A mailbox: any thread pushes, a single reader takes.
///
/// `push`, `wake` and `close` return `true` if the actor was dormant. It is then awake, and the
/// caller has to schedule it.
pub trait Mail<M>: Send + Sync {
    /// Creates an empty mailbox of an awake actor.
    fn new() -> Self;
    /// Delivers `message`, or returns it if the mailbox is closed.
    fn push(&self, message: M) -> Result<bool, M>;
    /// Wakes the actor, as its waker does.
    fn wake(&self) -> bool;
    /// Closes the mailbox; accepted messages stay.
    fn close(&self) -> bool;
    /// Makes the actor dormant, unless there is a reason to run again: then it returns `false`.
    fn sleep(&self, receptive: bool) -> bool;

    /// Returns the next one of the messages taken.
    ///
    /// # Safety
    /// One reader at a time.
    unsafe fn pop(&self) -> Option<M>;
    /// Takes all delivered messages. Called when `pop` has returned `None`.
    ///
    /// # Safety
    /// One reader at a time.
    unsafe fn take(&self) -> More;
}
