//! Actors on other machines: addresses that reach across TLS, with errors for the distance.
//!
//! Use it between nodes of one operator that share their message types. The feature `sockets`, the
//! default, is for a handful of machines: each node dials each other one. The feature `nats` is for
//! more: nodes talk over NATS servers. Nothing is stored: messages that must survive a crash need a
//! queue, and foreign clients need HTTP.
//!
//! A [`Node`] gives names to actors, and finds those of other nodes. A [`RemoteAddress`] sends
//! messages to one of them. It is no [`Address`](greenroom::Address): what is far can be out of
//! reach, so its errors tell more.
//!
//! ```
//! use greenroom::{Context, Reply, spawn};
//! use greenroom_cluster::{Node, Remote};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! enum Tally {
//!     Add(u64),
//!     Total(#[serde(with = "greenroom_cluster::reply")] Reply<u64>),
//! }
//!
//! impl Remote for Tally {
//!     const KIND: &'static str = "tally/1"; // the type and its version on the wire
//! }
//!
//! async fn tally(mut cx: Context<Tally>) {
//!     let mut total = 0;
//!     while let Some(message) = cx.recv().await {
//!         match message {
//!             Tally::Add(n) => total += n,
//!             Tally::Total(reply) => reply.send(total),
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! greenroom::run(async {
//!     // On one machine:
//!     let shop = Node::builder("shop").listen_address("127.0.0.1:0").open().await?;
//!     let tally = spawn!(tally(_));
//!     let _published = shop.publish("tally", &tally)?;
//!
//!     // On another one:
//!     let desk = Node::builder("desk").seeds(shop.listen_addresses()).open().await?;
//!     let far = desk.lookup::<Tally>("tally").await?;
//!     far.tell(Tally::Add(40))?;
//!     far.send(Tally::Add(2)).await?;
//!     assert_eq!(far.ask(Tally::Total).await?, 42);
//! #   Ok(())
//! })
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod address;
mod ask;
mod counts;
mod engine;
mod error;
#[cfg(test)]
mod formats;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod link;
#[cfg(feature = "metrics")]
mod metrics;
mod node;
mod remote;
pub mod reply;
mod sim_net;
#[cfg(feature = "http")]
mod view;

pub use address::{RemoteAddress, RemoteEnd};
pub use ask::RemoteAsk;
#[cfg(feature = "nats")]
pub use engine::nats::Nats;
pub use error::{
    Distance, NotSent, OpenError, PublishError, RemoteAskError, RemoteLookupError, RenewError,
};
pub use limits::Limits;
pub use link::PeerStatus;
#[cfg(feature = "metrics")]
pub use metrics::metrics;
pub use node::{Lookup, NameChange, NameWatch, Node, NodeBuilder, NodeStatus, Published};
pub use remote::Remote;
pub use sim_net::SimNet;
#[cfg(feature = "http")]
pub use view::nodes_section;
