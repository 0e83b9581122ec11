//! Names for actors and for groups of actors, typed by their messages.
//!
//! Use a name where code cannot be given an address, or where the actor behind it may change.
//! Otherwise pass the [address](crate::Address): it needs no lookup and cannot be missing.
//!
//! A [`Name`] leads to one actor, and a [`Group`] to any number of them. Code that knows a name
//! needs no address. Both are constants or values that hold only the text:
//!
//! ```
//! use greenroom::registry::Name;
//! use greenroom::{Context, Reply, spawn};
//! use std::time::Duration;
//!
//! struct Load(Reply<&'static str>);
//!
//! const STORE: Name<Load> = Name::new("store");
//!
//! async fn store(mut cx: Context<Load>) {
//!     while let Some(Load(reply)) = cx.recv().await {
//!         reply.send("a rope");
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! greenroom::run(async {
//!     let store = spawn!(store(_));
//!     STORE.register(&store)?;
//!     assert_eq!(STORE.get()?.ask(Load).await?, "a rope");
//!
//!     // Elsewhere, where the store may not be there yet:
//!     let found = STORE.wait_timeout(Duration::from_secs(60)).await?;
//!     assert_eq!(found, *store);
//!     Ok(())
//! })
//! # }
//! ```
//!
//! [`Keyed`] is for actors that come and go, such as one for each user: it finds the actor of a key, or
//! starts it.
//!
//! Each runtime has names and groups of its own, so two runtimes, and two tests, share none.
//! Functions use the [current](crate::Runtime::current) runtime, unless another one is set with
//! [`Name::on`] or [`Group::on`]. An actor of any runtime can be registered with any runtime.
//!
//! A name or a group does not keep an actor open. An actor that has ended is in none: the name of
//! an actor is free when its [`closed`](crate::Address::closed) returns. An actor that is
//! [restarted](crate::ActorBuilder::restart) keeps its names and groups. An address that was made by
//! [`map`](crate::Address::map) may be registered, too.
//!
//! Names and groups are apart: a name and a group may have the same text. Any text is a name, also
//! an empty one.

mod error;
mod group;
mod keyed;
mod late;
mod member;
mod name;
mod wait;

pub use error::{JoinError, LookupError, RegisterError};
pub use group::{Broadcast, Group, GroupWatch, Membership};
pub use keyed::{KeyError, Keyed, KeyedAskError, KeyedBuilder, KeyedTellError};
pub use name::Name;
