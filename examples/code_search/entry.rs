//! An entry: the data that the index stores for one file.
//!
//! Files that are not text have entries too, without lines, so that they are not read again.

use crate::lines::Lines;
use crate::report::Reason;
use crate::stamp::Stamp;

/// The data to store for a file.
#[derive(Debug)]
pub struct Entry {
    /// The path relative to the root.
    pub path: Vec<u8>,
    /// The state of the file that was read.
    pub stamp: Stamp,
    /// The content of the file.
    pub content: Content,
}

/// The content of a file.
#[derive(Debug)]
pub enum Content {
    /// Text.
    Text(Lines),
    /// Binary data: it contains a NUL byte.
    Nul,
    /// Data that is not valid UTF-8.
    NotUtf8,
}

impl Content {
    /// Returns the kind of the content.
    pub fn kind(&self) -> Kind {
        match self {
            Content::Text(_) => Kind::Text,
            Content::Nul => Kind::Nul,
            Content::NotUtf8 => Kind::NotUtf8,
        }
    }
}

/// The kind of a stored file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text, with its lines.
    Text = 0,
    /// Left out because of a NUL byte.
    Nul = 1,
    /// Left out because it is not valid UTF-8.
    NotUtf8 = 2,
}

impl Kind {
    /// Returns why a file of this kind is not searched.
    pub fn left_out(self) -> Option<Reason> {
        match self {
            Kind::Text => None,
            Kind::Nul => Some(Reason::Nul),
            Kind::NotUtf8 => Some(Reason::NotUtf8),
        }
    }

    /// Returns the kind that was stored as `number`.
    pub fn from_number(number: i64) -> Kind {
        match number {
            0 => Kind::Text,
            1 => Kind::Nul,
            _ => Kind::NotUtf8,
        }
    }
}

/// The stored data of a file, without its lines.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The number of the file.
    pub id: i64,
    /// The state of the file that was read.
    pub stamp: Stamp,
    /// The kind of the file.
    pub kind: Kind,
}
