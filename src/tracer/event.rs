//! An event of a trace, its level, and its text.
//!
//! A trace of a level shows the events of that level and of all levels above it. An event borrows
//! everything, and has no time. The text of an event has no control characters.

use std::fmt::{self, Write};
use std::str::FromStr;
use std::time::Duration;

use crate::error::Fault;

/// An event in the life of an actor, as a [`Tracer`](super::Tracer) receives it.
///
/// It [displays](fmt::Display) as a line without the process and the time, such as
/// `> <0000000e>ListenConnect[READY] - Sent Listening to <00000012>`. Control characters are
/// escaped.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    pub(super) id: u64,
    pub(super) name: &'a str,
    pub(super) state: Option<&'static str>,
    pub(super) kind: EventKind<'a>,
}

impl<'a> Event<'a> {
    /// Returns the [`id`](crate::Address::id) of the actor that the event is about, or 0 outside
    /// actors.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the actor's name: the one it was spawned with, or else that of its function or type.
    ///
    /// For a plain task it is what the task is [called](crate::policy::TaskInfo::called). Otherwise
    /// it is empty outside actors.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the state that the actor has [set](crate::Context::trace_state), if it has.
    pub fn state(&self) -> Option<&'static str> {
        self.state
    }

    /// Returns what has happened.
    pub fn kind(&self) -> EventKind<'a> {
        self.kind
    }

    /// Returns the level of the event.
    pub fn level(&self) -> Level {
        self.kind.level()
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <{:08x}>", self.kind.sign(), self.id)?;
        let mut escaped = Escaped(f);
        escaped.write_str(self.name)?;
        if let Some(state) = self.state {
            write!(escaped, "[{state}]")?;
        }
        write!(escaped, " - {}", self.kind)
    }
}

/// What an [`Event`] says. It displays as the text of a line.
///
/// Actors are given by the [`id`](crate::Address::id) of their addresses. The id 0 stands for code
/// outside actors: a thread, or a plain task. Messages are given by their
/// [label](crate::ActorBuilder::label) or, without one, by the name of their type without its path.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// The actor was spawned. It was not polled yet.
    #[non_exhaustive]
    Created {
        /// The actor that has spawned it.
        by: u64,
    },
    /// The actor has ended, and its state was dropped.
    Destroyed,
    /// The actor's future has returned a value, before the end.
    #[non_exhaustive]
    Returned {
        /// The name of the value's type.
        value: &'a str,
        /// The parent that receives the value, if the actor was [adopted](crate::Context::adopt).
        to: Option<u64>,
    },
    /// The actor has sent a message, or an answer.
    #[non_exhaustive]
    Sent {
        /// The message.
        message: &'a str,
        /// The receiver.
        to: u64,
    },
    /// The actor has passed a message on, by [`forwarding`](super::forwarding()).
    #[non_exhaustive]
    Forwarded {
        /// The message.
        message: &'a str,
        /// The receiver.
        to: u64,
        /// The sender, as the receiver sees it.
        from: u64,
    },
    /// The actor has received a message.
    #[non_exhaustive]
    Received {
        /// The message.
        message: &'a str,
        /// Where it comes from.
        from: MessageSource,
    },
    /// The actor has accepted a message and will not handle it.
    #[non_exhaustive]
    Dropped {
        /// The message.
        message: &'a str,
        /// The sender; `None` if that is not known.
        from: Option<u64>,
    },
    /// The actor has started a timer.
    #[non_exhaustive]
    Timer {
        /// The message that the timer will deliver.
        message: &'a str,
        /// The time until then, and between two messages.
        after: Duration,
        /// Whether the timer goes on after its first message.
        repeats: bool,
    },
    /// The actor has no result, or a part of it has panicked.
    #[non_exhaustive]
    Faulted {
        /// Why.
        fault: &'a Fault,
        /// The part that has panicked, and that alone has ended: `a source` or `on_undelivered`.
        /// Empty for the actor itself.
        part: &'a str,
    },
    /// The actor begins anew.
    #[non_exhaustive]
    Restarted {
        /// The [number](crate::Context::incarnation_number) of the incarnation that begins.
        incarnation: u64,
        /// Why the last one has ended; `None` if it has returned or was dropped.
        fault: Option<&'a Fault>,
    },
    /// A line of the program, by [`note!`](crate::trace::note).
    #[non_exhaustive]
    Note {
        /// The level that was given.
        level: Level,
        /// The text.
        text: &'a str,
    },
    /// Values of the program, by [`sample!`](crate::trace::sample).
    #[non_exhaustive]
    Sample {
        /// The name and the values.
        text: &'a str,
    },
    /// A condition that does not hold, by [`check!`](crate::trace::check).
    #[non_exhaustive]
    Check {
        /// The text, the file and the line.
        text: &'a str,
    },
    /// A runtime has started.
    #[non_exhaustive]
    Started {
        /// The number of its workers.
        workers: usize,
    },
    /// A runtime has shut down.
    Ended,
}

/// Where a message that an actor receives comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageSource {
    /// An actor or, if the id is 0, code outside actors.
    Sender(u64),
    /// A [timer](crate::Context::send_after) of the actor.
    Timer,
    /// A child, whose result it is.
    Child(u64),
    /// The answer to a request of the actor.
    Answer,
    /// Another source of the actor, such as a stream.
    Source,
}

impl fmt::Display for MessageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageSource::Sender(id) | MessageSource::Child(id) => write!(f, "<{id:08x}>"),
            MessageSource::Timer => f.write_str("timer"),
            MessageSource::Answer => f.write_str("answer"),
            MessageSource::Source => f.write_str("source"),
        }
    }
}

impl EventKind<'_> {
    /// Returns the level.
    pub fn level(&self) -> Level {
        match self {
            EventKind::Note { level, .. } => *level,
            EventKind::Faulted { fault, .. } if !matches!(fault, Fault::Panicked(_)) => {
                Level::Warning
            }
            EventKind::Faulted { .. } => Level::Fault,
            EventKind::Restarted { .. } | EventKind::Check { .. } => Level::Warning,
            EventKind::Sample { .. } => Level::Trace,
            _ => Level::Object,
        }
    }

    /// Returns the sign in front of a line.
    ///
    /// | sign | of | level |
    /// |---|---|---|
    /// | `+` `X` | an actor that was created, destroyed | object |
    /// | `>` | what an actor has sent, forwarded, returned; a timer that it has started | object |
    /// | `<` | a message that was received, or dropped | object |
    /// | `(` `)` | a runtime that has started, ended | object |
    /// | `!` `?` `^` `~` `_` | a fault, a warning, and notes at the level console, trace, debug | their own |
    /// | `&` | a sample | trace |
    /// | `=` | a check that has failed | warning |
    ///
    /// A note at the level object has the sign `~`.
    pub fn sign(&self) -> char {
        match self {
            EventKind::Created { .. } => '+',
            EventKind::Destroyed => 'X',
            EventKind::Returned { .. }
            | EventKind::Sent { .. }
            | EventKind::Forwarded { .. }
            | EventKind::Timer { .. } => '>',
            EventKind::Received { .. } | EventKind::Dropped { .. } => '<',
            EventKind::Sample { .. } => '&',
            EventKind::Check { .. } => '=',
            EventKind::Started { .. } => '(',
            EventKind::Ended => ')',
            EventKind::Note { .. } | EventKind::Faulted { .. } | EventKind::Restarted { .. } => {
                match self.level() {
                    Level::Fault => '!',
                    Level::Warning => '?',
                    Level::Console => '^',
                    Level::Object | Level::Trace => '~',
                    Level::Debug => '_',
                }
            }
        }
    }
}

impl fmt::Display for EventKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EventKind::Created { by } => write!(f, "Created by <{by:08x}>"),
            EventKind::Destroyed => f.write_str("Destroyed"),
            EventKind::Returned { value, to } => {
                write!(f, "Returned {value}")?;
                to.map_or(Ok(()), |to| write!(f, " to <{to:08x}>"))
            }
            EventKind::Sent { message, to } => write!(f, "Sent {message} to <{to:08x}>"),
            EventKind::Forwarded { message, to, from } => {
                write!(f, "Forward {message} to <{to:08x}> (from <{from:08x}>)")
            }
            EventKind::Received { message, from } => write!(f, "Received {message} from {from}"),
            EventKind::Dropped { message, from } => {
                write!(f, "Dropped {message}")?;
                from.map_or(Ok(()), |from| write!(f, " from <{from:08x}>"))
            }
            EventKind::Timer {
                message,
                after,
                repeats,
            } => {
                let when = if repeats { "every" } else { "in" };
                write!(f, "Started timer {message} {when} {after:?}")
            }
            EventKind::Faulted { fault, part: "" } => write!(f, "Fault: {fault}"),
            EventKind::Faulted { fault, part } => write!(f, "Fault of {part}: {fault}"),
            EventKind::Restarted { incarnation, fault } => {
                write!(f, "Restarted (incarnation={incarnation})")?;
                fault.map_or(Ok(()), |fault| write!(f, ": {fault}"))
            }
            EventKind::Note { text, .. }
            | EventKind::Sample { text }
            | EventKind::Check { text } => f.write_str(text),
            EventKind::Started { workers } => write!(f, "Started (workers={workers})"),
            EventKind::Ended => f.write_str("Ended"),
        }
    }
}

/// Escapes control characters, so that a text is one line and cannot steer a terminal.
struct Escaped<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The control characters beyond ASCII begin with this byte.
        let may_be_control = |byte: u8| byte.is_ascii_control() || byte == 0xc2;
        if !text.bytes().any(may_be_control) {
            return self.0.write_str(text);
        }
        let mut rest = text;
        while let Some(at) = rest.find(char::is_control) {
            let (clean, control) = rest.split_at(at);
            self.0.write_str(clean)?;
            let mut chars = control.chars();
            // A control character was found.
            for escape in chars.next().into_iter().flat_map(char::escape_default) {
                self.0.write_char(escape)?;
            }
            rest = chars.as_str();
        }
        self.0.write_str(rest)
    }
}

/// How important an event is; a trace of a level shows that level and all above it.
///
/// ```
/// use greenroom::trace::Level;
///
/// assert_eq!("debug".parse(), Ok(Level::Debug));
/// assert_eq!("FAULT".parse(), Ok(Level::Fault));
/// assert!(Level::Debug < Level::Fault);
///
/// let error = "loud".parse::<Level>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "\"loud\" is none of the levels debug, trace, object, console, warning and fault"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// What only the developer of a part understands.
    Debug,
    /// Technical progress: networks, files, devices; samples.
    Trace,
    /// The life of actors and their messages.
    Object,
    /// Milestones of the program.
    Console,
    /// What is unexpected and may impair the program; failed checks, restarts, lost results.
    Warning,
    /// What does impair the program; panics.
    Fault,
}

impl Level {
    const ALL: [(Level, &str); 6] = [
        (Level::Debug, "debug"),
        (Level::Trace, "trace"),
        (Level::Object, "object"),
        (Level::Console, "console"),
        (Level::Warning, "warning"),
        (Level::Fault, "fault"),
    ];
}

/// Displays the name in small letters.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Level::ALL[*self as usize].1)
    }
}

impl FromStr for Level {
    type Err = LevelError;

    /// Returns the level with this name, in capital or small letters.
    fn from_str(name: &str) -> Result<Self, LevelError> {
        let mut levels = Level::ALL.iter();
        let named = levels.find(|(_, own)| own.eq_ignore_ascii_case(name));
        named.map(|(level, _)| *level).ok_or_else(|| LevelError {
            name: name.to_owned(),
        })
    }
}

/// An error of [`Level::from_str`] and [`Lines::from_env`](super::Lines::from_env): there is no
/// level with this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelError {
    name: String,
}

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels = "debug, trace, object, console, warning and fault";
        write!(f, "{:?} is none of the levels {levels}", self.name)
    }
}

impl std::error::Error for LevelError {}
