//! Values on the wire: what a request becomes, and what an answer looks like.
//!
//! Everything here is a function of bytes and types: no sockets, no actors.

pub(crate) mod answer;
pub(crate) mod faulted;
mod fields;
mod json;
mod members;
mod pairs;
mod portable;
mod problem;
mod rules;
mod strict;
mod text;

pub(crate) use fields::{decode_part, fields};
pub(crate) use json::{from_json, from_value};
pub(crate) use members::from_fields;
pub use portable::PortableType;
pub(crate) use portable::name_of;
pub(crate) use problem::{DecodeProblem, shown};
pub(crate) use rules::JsonRules;
pub(crate) use strict::{MapForm, Strict};
