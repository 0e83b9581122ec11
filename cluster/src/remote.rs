//! `Remote`: messages that may come from another machine.
//!
//! The kind is compared before the first message of a sender is decoded.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A message type that may travel to an actor on another machine.
///
/// [`KIND`](Remote::KIND) names the type and its version on the wire. A node compares it before it
/// decodes a message, so two programs never misread each other.
///
/// # Replies
/// A [`Reply`](greenroom::Reply) has no serde of its own, so its field has the attribute
/// `#[serde(with = "greenroom_cluster::reply")]`. [`handlers!`](greenroom::handlers!) cannot add
/// that. So messages of a handler with a result cannot be `Remote`: write the enum by hand.
///
/// # When a type changes
/// The encoding is [postcard](https://docs.rs/postcard): fields and variants have no names. So a
/// new field, another order or another type changes the format, and needs another `KIND`:
/// `"tally/1"` becomes `"tally/2"`. Two changes keep it: a variant that is added at the end of an
/// enum, if it is sent only to nodes that know it, and other names for types, fields and variants.
/// A program that serves old and new clients publishes an actor for each kind, for example two
/// [mapped](greenroom::Address::map) addresses of the same actor.
///
/// # Values that nest
/// A type that contains itself, such as a tree, is decoded recursively. A value that is nested more
/// than 256 times, or that needs more than 512 KiB of stack, is
/// [undecodable](crate::Distance::Undecodable). So is one whose lists have more than 65 536 elements
/// without bytes, such as those of a `Vec<()>`.
///
/// ```
/// use greenroom::Reply;
/// use greenroom_cluster::Remote;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// enum Tally {
///     Add(u64),
///     Total(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
/// }
///
/// impl Remote for Tally {
///     const KIND: &'static str = "tally/1";
/// }
/// ```
pub trait Remote: Serialize + DeserializeOwned + Send + 'static {
    /// The name and version of the type, such as `"tally/1"`. At most 255 bytes are allowed.
    const KIND: &'static str;
}
