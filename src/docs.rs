//! Guides: how to use greenroom, what it guarantees, what it costs and where its limits are.
//!
//! The programs in these pages are compiled and run with the other documentation tests. Some are
//! examples of the repository.

#[doc = include_str!("docs/guide.md")]
#[doc = include_str!("../docs/timeline.svg")]
#[doc = ""]
#[doc = include_str!("docs/timeline.md")]
pub mod guide {
    #[doc = include_str!("docs/guide/sockets.md")]
    #[doc = "```rust"]
    #[doc = "# fn main() {}"]
    #[doc = "# mod room {"]
    #[doc = include_str!("../examples/chat/room.rs")]
    #[doc = "# }"]
    #[doc = "```"]
    #[doc = include_str!("docs/guide/sockets_end.md")]
    pub mod sockets {}

    #[doc = include_str!("docs/guide/pipelines.md")]
    #[doc = "```rust"]
    #[doc = include_str!("../examples/pipeline.rs")]
    #[doc = "```"]
    #[doc = include_str!("docs/guide/pipelines_end.md")]
    pub mod pipelines {}

    #[doc = include_str!("docs/guide/caches.md")]
    #[doc = "```rust"]
    #[doc = include_str!("../examples/cache.rs")]
    #[doc = "```"]
    #[doc = include_str!("docs/guide/caches_end.md")]
    pub mod caches {}

    #[doc = include_str!("docs/guide/keys.md")]
    pub mod keys {}

    #[doc = include_str!("docs/guide/retries.md")]
    pub mod retries {}

    #[doc = include_str!("docs/guide/rates.md")]
    pub mod rates {}

    #[doc = include_str!("docs/guide/timeouts.md")]
    pub mod timeouts {}

    #[doc = include_str!("docs/guide/shutting_down.md")]
    #[doc = "```rust"]
    #[doc = include_str!("../examples/shut_down.rs")]
    #[doc = "```"]
    #[doc = include_str!("docs/guide/shutting_down_end.md")]
    pub mod shutting_down {}

    #[doc = include_str!("docs/guide/panic_hooks.md")]
    #[doc = "```rust"]
    #[doc = include_str!("../examples/panic_hook.rs")]
    #[doc = "```"]
    #[doc = include_str!("docs/guide/panic_hooks_end.md")]
    pub mod panic_hooks {}

    #[doc = include_str!("docs/guide/sqlite.md")]
    pub mod sqlite {}

    #[doc = include_str!("docs/guide/gui_loops.md")]
    pub mod gui_loops {}

    #[doc = include_str!("docs/guide/look.md")]
    pub mod look {}

    #[doc = include_str!("docs/guide/measuring.md")]
    pub mod measuring {}
}

#[doc = include_str!("docs/with_tokio.md")]
pub mod with_tokio {}

#[doc = include_str!("docs/from_tokio.md")]
pub mod from_tokio {}

#[doc = include_str!("docs/from_actors.md")]
pub mod from_actors {}

#[doc = include_str!("docs/guarantees.md")]
pub mod guarantees {}

#[doc = include_str!("docs/limits.md")]
pub mod limits {}

#[doc = include_str!("docs/performance.md")]
pub mod performance {}
