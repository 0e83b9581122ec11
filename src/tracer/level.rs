//! The levels of a trace: how much it shows.
//!
//! A level shows its own events and those of all levels above it.

use std::fmt;
use std::str::FromStr;

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
