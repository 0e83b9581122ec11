//! Pages that tell how a server and its runtime fare.
//!
//! A page looks at the current runtime when it is asked for. Nothing is measured before, but for the times
//! of requests to a server with a page `/metrics`.

mod actors;
mod console;
mod count_book;
mod escape;
mod metrics;
mod mount;
mod service;
mod stream;

pub use actors::actors_page;
pub use console::{Section, SectionCell, console};
pub use escape::escape;
pub(crate) use metrics::METRICS_PATH;
pub use metrics::metrics;
pub use mount::Mount;
pub use service::Service;
pub(crate) use stream::{PageStream, StreamPage, StreamRefusal, StreamRequest};
