//! Actors over HTTP: a typed message arrives at an address, and its answer goes back.
//!
//! Use it to let HTTP/1.1 clients ask actors by typed messages. For sites with routes, middleware,
//! large uploads or HTTP/2, use a web framework beside the actors, such as axum.
//!
//! A [`Server`] turns requests into messages for actors of greenroom, and their answers into
//! responses. `GET /Xy?x=1&y=2` and `POST /Xy` both become the type that is registered as `Xy`.
//!
//! # Requests
//! - The last segment of the path names the type, whatever is before it.
//! - The fields are in the query, in a form (`application/x-www-form-urlencoded`) or in JSON
//!   (`application/json`), which may be within `{"value": ..}`. Those that are left out have the
//!   defaults that serde knows. A key that the type does not have is an error, if the type lists its
//!   keys: one with `#[serde(flatten)]` does not.
//! - In a query or a form, numbers, bools, lists and maps are JSON. Strings, enums, dates and what
//!   else serde reads from a string have no quotes. A type that takes any value, such as a flattened
//!   or an untagged one, gets JSON where the text is JSON, and otherwise strings.
//! - A request that is no value of its type is answered with 400, and its actor never sees it.
//! - A type is asked with `GET`, `HEAD` and `POST`. `OPTIONS` lists its methods, and all others are
//!   answered with 405. A type that changes something is [`post_only`](ServerBuilder::post_only).
//!
//! # Answers
//! - The answer is JSON, plain or in an [envelope](Answers::Envelope).
//! - A [`Refusal`](greenroom::Refusal) is answered with its
//!   [error code](greenroom::Refusal::with_error_code), if that is a status from 200 to 599: a status
//!   below 200 is no final answer of HTTP. Otherwise the status is 503 if the actor has ended or its
//!   load is heavy, 504 after a timeout, and 500 in all other cases.
//! - A refusal is JSON as well: an object with the fields `kind`, `condition`, `explanation`,
//!   `error_code` and `exit_status`, of which the last two may be `null`. A [`Client`] makes the
//!   same refusal of it. The kinds are called as in [`RefusalKind`](greenroom::RefusalKind).
//! - What the server itself refuses, such as a request with 400, 403 or 404, has the same form. The
//!   [README](https://github.com/greenroom-rs/greenroom/blob/main/http/README.md) has a table of all
//!   causes. A client whose `Accept` has no JSON gets a line of text.
//! - A number that JSON does not have, such as NaN, is answered with 500, and is a line of the
//!   [trace](greenroom::trace).
//! - The answers of a connection are sent in the order of the requests.
//! - A client that has closed its sending side gets all its answers. Its [`Reply`](greenroom::Reply) is
//!   not wanted any more when its connection is reset or a write fails, or when the time for the
//!   answer is over. A client that has closed its connection shows that by nothing else: its answers
//!   are made, and the first that is sent ends the connection.
//!
//! # Clients
//! A [`Client`] gives addresses of actors elsewhere. Their messages are requests of another server.
//!
//! # Traces
//! At the level [trace](greenroom::trace::Level::Trace), a [trace](greenroom::trace) has the lines
//! `Listening on "127.0.0.1:5050"`, `Accepted "127.0.0.1:56586"` for each connection, and one for each
//! answer, such as `GET /Xy?x=1 (status=200)`.
//!
//! With the feature `tracing` a trace of spans goes on from process to process, if the tracer of the
//! runtime has both functions of [`Propagation::remote`](https://docs.rs/greenroom/latest/greenroom/trace/struct.Propagation.html#method.remote).
//! A request is then answered within a span whose parent its field `traceparent` names. A field that is
//! not as W3C has it is ignored, and so is `tracestate`. A client adds the field, with the span of its
//! actor, which is below that of the asker. Otherwise the field is neither read nor sent.
//!
//! # Pages
//! Two pages tell how a server and its runtime fare, if they are [mounted](ServerBuilder::mount):
//! [`metrics`] for Prometheus, and [`actors_page`] for people. [`Mount::page`] makes one of the program, and
//! [`Mount::stream`] one whose body goes on. [`console()`] is for the program
//! `greenroom-console`.
//!
//! # Closed by default
//! A server listens at loopback addresses, unless it is [exposed](ServerBuilder::expose). It answers
//! those who call it by an [allowed name](ServerBuilder::hosts), and it knows no types but those that
//! are registered. Everything that a client sends has a [limit](Limits). Requests whose end can be
//! understood in two ways are refused.

#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod client;
mod counts;
mod error;
mod event;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod message;
mod reactor;
mod server;
mod values;
mod view;
mod wire;

pub use client::{Client, ClientBuilder, ConnectError};
pub use error::{ListenError, ListenProblem};
pub use event::{CloseReason, HttpEvent};
/// The bytes of a [`Body`], and the crate of the other parts of a [request](HttpRequest).
pub use hyper::{body::Bytes, http};
pub use limits::Limits;
pub use message::{Body, HttpRequest, HttpResponse};
/// The crate of the [collectors](Mount::collector).
pub use prometheus_client;
pub use reactor::{GivenListener, driver};
pub use server::{Server, ServerBuilder, StopReport};
pub use values::PortableType;
pub use values::answer::Answers;
pub use view::{Mount, Section, SectionCell, Service, actors_page, console, escape, metrics};

/// Compiles and runs the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
