//! The error of an ask, with details about the actor that gives no answer.
//!
//! Each detail is one pointer, so that the error stays small.

use std::fmt;
use std::sync::Arc;

use super::Refusal;
use crate::info::TaskInfo;

/// The reason why an [`ask`](crate::Address::ask) has no answer.
///
/// | error | was the question handled? | ask again? |
/// |---|---|---|
/// | `Closed` | no | no: the actor stays closed |
/// | `NoReply` | perhaps; [`why`](AskDetail::why) tells more | if the question may be handled twice |
/// | `TimedOut` | perhaps, or later | if the question may be handled twice |
/// | `Deadlock` | perhaps, or later; no if an actor asked itself in a handler | not before the actors stop waiting for each other |
/// | `Refused` | yes, unless it was refused for lack of room | as the [`Refusal`] says |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// The mailbox was closed, so the question was not delivered.
    Closed(AskDetail),
    /// The [`Reply`](crate::Reply) was dropped without an answer.
    NoReply(AskDetail),
    /// The [`timeout`](crate::Ask::timeout) elapsed first.
    TimedOut,
    /// No answer can come, for one of two reasons.
    ///
    /// - No task can run, and nothing is left that could wake one, except timeouts of asks that
    ///   lead to a cycle. Only a runtime that
    ///   [detects deadlocks](crate::Builder::detect_deadlocks) returns this.
    /// - An actor asked itself in a handler of [`handlers!`](crate::handlers!) without a context.
    ///   Every runtime returns this, at once and before the question is made.
    Deadlock(Deadlock),
    /// The actor refused the request, with [`Reply::refuse`](crate::Reply::refuse). Or its mailbox
    /// had no room for the question, because of its [`overflow`](crate::ActorBuilder::overflow).
    Refused(Refusal),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Closed(detail) => write!(f, "the mailbox is closed: {detail}"),
            AskError::NoReply(detail) => write!(f, "no reply: {detail}"),
            AskError::TimedOut => f.write_str("no answer came in time"),
            AskError::Refused(refusal) => write!(f, "refused: {refusal}"),
            AskError::Deadlock(deadlock) if deadlock.0.is_cycle => {
                write!(f, "the actors wait for each other: {deadlock}")
            }
            AskError::Deadlock(deadlock) => write!(f, "no answer can come: {deadlock}"),
        }
    }
}

impl std::error::Error for AskError {}

/// The error of an ask whose answer is a `Result`, once [`flat`](crate::Ask::flat) has made one
/// `Result` of two.
///
/// It has the text and the source of the error in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlatError<E> {
    /// There is no answer.
    Ask(AskError),
    /// The actor has answered this error.
    Answer(E),
}

impl<E> FlatError<E> {
    /// Joins the outcome of an ask and the answer in it, for instance in the function of
    /// [`on_answer`](crate::Context::on_answer).
    ///
    /// # Errors
    /// The error of either.
    ///
    /// ```
    /// use greenroom::{AskError, FlatError};
    ///
    /// let answered: Result<Result<u32, &str>, AskError> = Ok(Err("no ink"));
    /// assert_eq!(FlatError::flatten(answered), Err(FlatError::Answer("no ink")));
    /// ```
    pub fn flatten<T>(outcome: Result<Result<T, E>, AskError>) -> Result<T, Self> {
        outcome?.map_err(FlatError::Answer)
    }
}

impl<E> From<AskError> for FlatError<E> {
    fn from(error: AskError) -> Self {
        FlatError::Ask(error)
    }
}

impl<E: fmt::Display> fmt::Display for FlatError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlatError::Ask(error) => error.fmt(f),
            FlatError::Answer(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for FlatError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FlatError::Ask(error) => error.source(),
            FlatError::Answer(error) => error.source(),
        }
    }
}

/// The actor that gives no answer, and the cause.
///
/// It is displayed as a short text, such as `"tally" #7 panicked: overflow`. A clone is cheap. All
/// details are equal, so that errors can be compared without them.
///
/// ```
/// use greenroom::{AskCause, AskError, Context, Reply, spawn};
///
/// async fn fragile(mut cx: Context<Reply<u32>>) {
///     let _reply = cx.recv().await;
///     panic!("broken");
/// }
///
/// greenroom::run(async {
///     let fragile = spawn!(fragile(_), name = "fragile");
///     let Err(AskError::NoReply(detail)) = fragile.ask(|reply| reply).await else {
///         panic!("there is no reply");
///     };
///     assert_eq!(detail.actor().and_then(|actor| actor.name()), Some("fragile"));
///     assert_eq!(*detail.why(), AskCause::Panicked("broken".into()));
///     let text = format!("\"fragile\" #{} panicked: broken", fragile.id());
///     assert_eq!(detail.to_string(), text);
/// });
/// ```
#[derive(Clone)]
pub struct AskDetail(Arc<Details>);

struct Details {
    actor: Option<TaskInfo>,
    /// The actor as the text shows it, if that is another number.
    label: Option<TaskInfo>,
    why: AskCause,
    /// Whether the actor goes on, or may go on: its panic was caught in its turn.
    is_caught: bool,
}

/// The cause in an [`AskDetail`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskCause {
    /// The [`Reply`](crate::Reply) was dropped by a handler of the actor, or by any other holder.
    /// No end of an actor lost it.
    ReplyDropped,
    /// The mailbox was closed before the question came. The actor had not ended.
    Stopped,
    /// The actor was [stopped at once](crate::Address::stop_now), and the question was not in its
    /// hands.
    StoppedNow,
    /// The actor panicked, with this text. It is empty if the panic has none.
    Panicked(String),
    /// The message was in the hands of an incarnation that a
    /// [`Supervisor`](crate::supervise::Supervisor) dropped, to begin it anew.
    Restarted,
    /// The actor ended, or dropped its [`Context`](crate::Context), and left the question in the
    /// mailbox.
    Ended,
    /// The actor was [killed](crate::Address::kill).
    Killed,
    /// The actor was dropped by the shutdown of its runtime or pinned thread.
    Cancelled,
    /// The actor was never polled, because its runtime or pinned thread was shutting down.
    NotStarted,
}

impl AskDetail {
    pub(crate) fn new(actor: Option<TaskInfo>, why: AskCause) -> Self {
        AskDetail(Arc::new(Details {
            actor,
            label: None,
            why,
            is_caught: false,
        }))
    }

    /// Sets the label of the actor in the text of a new detail.
    pub(crate) fn shown_as(mut self, label: Option<TaskInfo>) -> Self {
        if let Some(details) = Arc::get_mut(&mut self.0) {
            details.label = label;
        }
        self
    }

    /// Marks a new detail as that of a panic that was caught in the actor's turn.
    pub(crate) fn of_caught(mut self) -> Self {
        if let Some(details) = Arc::get_mut(&mut self.0) {
            details.is_caught = true;
        }
        self
    }

    /// Returns whether the end of the actor with this id has lost the reply.
    pub(crate) fn is_end_of(&self, actor: u64) -> bool {
        let lives = matches!(
            self.why(),
            AskCause::ReplyDropped | AskCause::Stopped | AskCause::StoppedNow | AskCause::Restarted
        );
        !lives && !self.0.is_caught && self.actor().is_some_and(|info| info.id() == actor)
    }

    /// Names the actor that was asked, if no actor is named. `about` returns a detail about it.
    #[cold]
    #[inline(never)]
    pub(crate) fn name_actor(&mut self, about: impl FnOnce(AskCause) -> AskDetail) {
        if self.actor().is_none() {
            *self = about(self.why().clone());
        }
    }

    /// Returns the actor whose end lost the reply, with its id and its name.
    ///
    /// If no end lost the reply, this is the actor that was asked. It is `None` if no actor was
    /// asked and none ended, as with [`Reply::pair`](crate::Reply::pair).
    pub fn actor(&self) -> Option<&TaskInfo> {
        self.0.actor.as_ref()
    }

    /// Returns the cause.
    pub fn why(&self) -> &AskCause {
        &self.0.why
    }
}

/// Names no actor, and a dropped reply. Since all details are equal, it serves for comparisons.
impl Default for AskDetail {
    fn default() -> Self {
        AskDetail::new(None, AskCause::ReplyDropped)
    }
}

impl PartialEq for AskDetail {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for AskDetail {}

impl fmt::Display for AskDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.label.as_ref().or(self.actor()) {
            Some(actor) => write!(f, "{actor} ")?,
            None => f.write_str("its holder ")?,
        }
        f.write_str(match self.why() {
            AskCause::ReplyDropped => "dropped the reply",
            AskCause::Stopped => "was stopped",
            AskCause::StoppedNow => "was stopped at once",
            AskCause::Panicked(text) if text.is_empty() => "panicked",
            AskCause::Panicked(text) => return write!(f, "panicked: {text}"),
            AskCause::Restarted => "was restarted by its supervisor",
            AskCause::Ended => "has ended",
            AskCause::Killed => "was killed",
            AskCause::Cancelled => "was cancelled by the shutdown of its runtime",
            AskCause::NotStarted => "was not started because its runtime was shut down",
        })
    }
}

impl fmt::Debug for AskDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AskDetail({self})")
    }
}

/// The actors that wait in an [`AskError::Deadlock`], such as `"a" #1 → "b" #2 → "a" #1`.
///
/// `Deadlock` names the cycle that the asker's ask leads to. Without a cycle, it names the chain
/// from the asker to an actor that waits for something else. In a
/// [`Warning`](crate::Warning::EndlessWait) it is a path of waits, which may begin with `block_on`.
///
/// An actor is shown as its [`TaskInfo`] is. A long text leaves out most names and counts them. A
/// clone is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock(Arc<DeadlockNames>);

/// Behind one pointer, so that it does not enlarge the error.
#[derive(Debug, PartialEq, Eq)]
struct DeadlockNames {
    names: String,
    is_cycle: bool,
}

impl Deadlock {
    pub(crate) fn new(names: String, is_cycle: bool) -> Self {
        Deadlock(Arc::new(DeadlockNames { names, is_cycle }))
    }

    pub(crate) fn is_cycle(&self) -> bool {
        self.0.is_cycle
    }

    /// Returns the names, separated by ` → `.
    pub fn as_str(&self) -> &str {
        &self.0.names
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
