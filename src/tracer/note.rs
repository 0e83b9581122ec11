//! The text of a note: words, then named values.
//!
//! The macros collect both. A text is made only if a tracer or a simulation wants it.

use std::fmt::{Display, Write};

use super::event::EventKind;
use super::event::Level;

/// What a program may write into a trace.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum NoteKind {
    Note(Level),
    Sample,
    Check,
}

impl NoteKind {
    pub(crate) fn event(self, text: &str) -> EventKind<'_> {
        match self {
            NoteKind::Note(level) => EventKind::Note { level, text },
            NoteKind::Sample => EventKind::Sample { text },
            NoteKind::Check => EventKind::Check { text },
        }
    }
}

/// Returns the text of these words and named values: `a b (n=1,m=2)`.
#[doc(hidden)]
pub fn text_of(words: &[&dyn Display], values: &[(&str, &dyn Display)]) -> String {
    let mut text = String::new();
    for word in words {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a string fails only if a `Display` does.
        let _ = write!(text, "{space}{word}");
    }
    let (open, close) = match text.is_empty() {
        true => ("", ""),
        false => (" (", ")"),
    };
    for (index, (name, value)) in values.iter().enumerate() {
        let before = if index == 0 { open } else { "," };
        let _ = write!(text, "{before}{name}={value}");
    }
    if !values.is_empty() {
        text.push_str(close);
    }
    text
}

/// Writes a line into the [trace](crate::trace): words, then named values.
///
/// The line is of the actor that runs, and goes to the tracer of its runtime. Outside actors it goes
/// to that of the current runtime. In a simulation it goes into the trace of the run, too. The words
/// and values are evaluated only if a trace shows them.
///
/// `note!(Level::Console, "a", "b", n = 1)` gives the text `a b (n=1)`.
///
/// ```
/// use greenroom::trace::{self, Level};
///
/// greenroom::run(async {
///     let addr = "127.0.0.1:5050";
///     trace::note!(Level::Trace, "Listening on", addr);
///     trace::note!(Level::Warning, "few files are left", open = 1000, limit = 1024);
/// });
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __trace_note {
    ($level:expr $(, $($rest:tt)*)?) => {
        $crate::__trace_text!($crate::trace::NoteKind::Note($level), [] [] $($($rest)*)?)
    };
}

/// Writes values of the program into the [trace](crate::trace), with the sign `&`.
///
/// The first argument is the name of the series. Otherwise this is
/// [`note!`](crate::trace::note) at the [level](crate::trace::Level) trace.
///
/// ```
/// greenroom::run(async {
///     greenroom::trace::sample!("load", busy = 3, waiting = 14);
/// });
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __trace_sample {
    ($($rest:tt)*) => {
        $crate::__trace_text!($crate::trace::NoteKind::Sample, [] [] $($rest)*)
    };
}

/// Returns whether a condition holds. If it does not, writes words, named values and the location into
/// the [trace](crate::trace), with the sign `=`.
///
/// Otherwise this is [`note!`](crate::trace::note) at
/// the [level](crate::trace::Level) warning.
///
/// ```
/// greenroom::run(async {
///     let sum = 40 + 2;
///     assert!(greenroom::trace::check!(sum == 42, "the sum is right"));
/// });
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __trace_check {
    ($condition:expr $(, $($rest:tt)*)?) => {{
        let holds: bool = $condition;
        if !holds {
            $crate::__trace_text!(
                $crate::trace::NoteKind::Check, [] [] $($($rest)*)?,
                @ ::core::concat!("(", ::core::file!(), ":", ::core::line!(), ")")
            );
        }
        holds
    }};
}

/// Parses words and named values, and writes them: kind, words so far, values so far, the rest. A
/// word after `@` is the last.
#[doc(hidden)]
#[macro_export]
macro_rules! __trace_text {
    ($kind:expr, [$($word:tt)*] [$($value:tt)*] $(,)? @ $last:expr) => {
        $crate::__trace_text!($kind, [$($word)* ($last)] [$($value)*])
    };
    ($kind:expr, [$($word:tt)*] [$($value:tt)*] $name:ident = $is:expr $(, $($rest:tt)*)?) => {
        $crate::__trace_text!($kind, [$($word)*] [$($value)* ($name $is)] $($($rest)*)?)
    };
    ($kind:expr, [$($word:tt)*] [$($value:tt)*] $is:expr $(, $($rest:tt)*)?) => {
        $crate::__trace_text!($kind, [$($word)* ($is)] [$($value)*] $($($rest)*)?)
    };
    ($kind:expr, [$(($word:expr))*] [$(($name:ident $value:expr))*]) => {{
        let kind = $kind;
        if $crate::trace::is_noted(kind) {
            $crate::trace::write_note(kind, &$crate::trace::text_of(
                &[$(&$word as &dyn ::core::fmt::Display),*],
                &[$((::core::stringify!($name), &$value as &dyn ::core::fmt::Display)),*],
            ));
        }
    }};
}
