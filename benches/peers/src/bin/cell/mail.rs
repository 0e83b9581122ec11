//! What a mailbox word has to do, whatever it is made of.
//!
//! One word holds the undelivered messages *and* whether the actor sleeps. Its low bits:
//!
//! | bits | name | meaning |
//! |---|---|---|
//! | `1..` `..0` | dormant | nothing polls the actor and nothing has scheduled it |
//! | `10.` | deaf | dormant, and awaits something else than a message: only a waker schedules it |
//! | `11.` | receptive | dormant in `recv`: a message schedules it, in the step that delivers it |
//! | `00.` | awake | scheduled or running |
//! | `01.` | woken | awake, and a waker was used meanwhile: it has to run once more |
//! | `..1` | closed | nothing is accepted any more |

/// Nothing is accepted any more.
pub const CLOSED: usize = 0b001;
/// Of an awake actor: a waker was used since it was scheduled.
pub const WOKEN: usize = 0b010;
/// Of a dormant actor: a message schedules it.
pub const RECEPTIVE: usize = 0b010;
/// Neither scheduled nor running.
pub const DORMANT: usize = 0b100;
/// All of these bits.
pub const FLAGS: usize = 0b111;

/// The flags after something that schedules the actor if it is dormant; and whether it was.
pub fn rouse(flags: usize) -> (usize, bool) {
    if flags & DORMANT == 0 {
        (flags | WOKEN, false)
    } else {
        (flags & CLOSED, true)
    }
}

/// The flags after a message (or closing), which schedules the actor only if it is receptive.
pub fn deliver(flags: usize) -> (usize, bool) {
    if is_receptive(flags) {
        (flags & CLOSED, true)
    } else {
        (flags, false)
    }
}

/// Whether a message schedules the actor.
pub fn is_receptive(flags: usize) -> bool {
    flags & (DORMANT | RECEPTIVE) == DORMANT | RECEPTIVE
}

/// Whether an awake actor was woken.
pub fn is_woken(flags: usize) -> bool {
    flags & (DORMANT | WOKEN) == WOKEN
}

/// What the reader finds when it has read all that it took.
#[derive(PartialEq, Eq)]
pub enum More {
    /// Messages: the next `pop` gives one.
    Some,
    /// Nothing for now.
    NotNow,
    /// Nothing ever.
    Never,
}

/// A mailbox: any thread pushes, one reader takes.
///
/// `true` from `push`, `wake` and `close` means: the actor was dormant, is awake from now on, and
/// the caller has to schedule it.
pub trait Mail<M>: Send + Sync {
    /// An empty mailbox of an awake actor.
    fn new() -> Self;
    /// Delivers `message`, or gives it back if the mailbox is closed.
    fn push(&self, message: M) -> Result<bool, M>;
    /// What a waker does.
    fn wake(&self) -> bool;
    /// Closes; what was accepted stays.
    fn close(&self) -> bool;
    /// Falls asleep, unless there is a reason to run again: then `false`, and still awake.
    fn sleep(&self, receptive: bool) -> bool;

    /// The next message of those taken.
    ///
    /// # Safety
    /// One reader at a time.
    unsafe fn pop(&self) -> Option<M>;
    /// Takes all that was delivered. To be called when `pop` has given `None`.
    ///
    /// # Safety
    /// One reader at a time.
    unsafe fn take(&self) -> More;
}
