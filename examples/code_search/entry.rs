//! An entry: what the index stores of one file, and what it remembers of it.
//!
//! Files that turned out not to be text have entries too, without lines, so that they are not read
//! again and again.

use crate::lines::Lines;
use crate::report::Reason;
use crate::stamp::Stamp;

/// What is stored of a file.
#[derive(Debug)]
pub struct Entry {
    /// Relative to the root.
    pub path: Vec<u8>,
    /// The state of the file that was read.
    pub stamp: Stamp,
    /// What was in it.
    pub content: Content,
}

/// What was in a file.
#[derive(Debug)]
pub enum Content {
    /// Text.
    Text(Lines),
    /// A NUL byte.
    Nul,
    /// Something that is not UTF-8.
    NotUtf8,
}

impl Content {
    /// What it is, without the lines.
    pub fn kind(&self) -> Kind {
        match self {
            Content::Text(_) => Kind::Text,
            Content::Nul => Kind::Nul,
            Content::NotUtf8 => Kind::NotUtf8,
        }
    }
}

/// What a stored file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text, with its lines.
    Text = 0,
    /// Left out for a NUL byte.
    Nul = 1,
    /// Left out for not being UTF-8.
    NotUtf8 = 2,
}

impl Kind {
    /// Why a file of this kind is not searched.
    pub fn left_out(self) -> Option<Reason> {
        match self {
            Kind::Text => None,
            Kind::Nul => Some(Reason::Nul),
            Kind::NotUtf8 => Some(Reason::NotUtf8),
        }
    }

    /// The kind that was stored as `number`.
    pub fn from_number(number: i64) -> Kind {
        match number {
            0 => Kind::Text,
            1 => Kind::Nul,
            _ => Kind::NotUtf8,
        }
    }
}

/// What the index knows of a file.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its number.
    pub id: i64,
    /// The state that was read.
    pub stamp: Stamp,
    /// What it was.
    pub kind: Kind,
}
