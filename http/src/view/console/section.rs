//! Sections: tables of services and packages.

use std::fmt;

use serde::{Serialize, Serializer};

/// Makes a section.
pub(crate) type SectionMaker = dyn Fn() -> Section + Send + Sync;

/// A table that a service or a package shows in the [console](crate::console()).
///
/// ```
/// use greenroom_http::Section;
///
/// let nodes = Section::new(["node", "links"]).row(["shop".into(), 2.into()]);
/// assert_eq!(nodes.columns, ["node", "links"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Section {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<SectionCell>>,
}

/// A cell of a [`Section`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SectionCell {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(i128),
    /// Any other number. One that JSON does not have is sent as a text.
    Fraction(f64),
}

impl Section {
    /// Creates a section without rows.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        Section {
            columns: columns.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(mut self, cells: impl IntoIterator<Item = SectionCell>) -> Self {
        self.rows.push(cells.into_iter().collect());
        self
    }
}

impl fmt::Display for SectionCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SectionCell::Text(text) => f.write_str(text),
            SectionCell::Whole(number) => number.fmt(f),
            SectionCell::Fraction(number) => number.fmt(f),
        }
    }
}

impl Serialize for SectionCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SectionCell::Text(text) => serializer.serialize_str(text),
            SectionCell::Whole(number) => match i64::try_from(*number) {
                Ok(number) => serializer.serialize_i64(number),
                Err(_) => serializer.serialize_f64(*number as f64),
            },
            SectionCell::Fraction(number) if number.is_finite() => {
                serializer.serialize_f64(*number)
            }
            SectionCell::Fraction(number) => serializer.collect_str(number),
        }
    }
}

impl From<&str> for SectionCell {
    fn from(text: &str) -> Self {
        SectionCell::Text(text.to_owned())
    }
}

impl From<String> for SectionCell {
    fn from(text: String) -> Self {
        SectionCell::Text(text)
    }
}

impl From<f64> for SectionCell {
    fn from(number: f64) -> Self {
        SectionCell::Fraction(number)
    }
}

macro_rules! of_whole_numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for SectionCell {
            fn from(number: $number) -> Self {
                SectionCell::Whole(number as i128)
            }
        })*
    };
}

of_whole_numbers!(i32, u32, i64, u64, usize);
