//! greenroom beside tokio: this package has tests with crates that need tokio, an example and a
//! bench.
//!
//! An actor may wait for its mailbox and for something else at once. tokio's `select!` drops the
//! future that is not ready, and `recv` takes no message before it is ready:
//!
//! ```
//! use greenroom::{Context, spawn};
//! use tokio::sync::mpsc;
//!
//! async fn add(mut cx: Context<u64>, mut more: mpsc::Receiver<u64>, mut sum: u64) -> u64 {
//!     loop {
//!         sum += tokio::select! {
//!             message = cx.recv() => match message {
//!                 Some(number) => number,
//!                 None => return sum,
//!             },
//!             Some(number) = more.recv() => number,
//!         };
//!     }
//! }
//!
//! greenroom::run(async {
//!     let (other, more) = mpsc::channel(1);
//!     let total = spawn!(add(_, more, 0), capacity = 1);
//!     for number in 1..=1000 {
//!         other.send(number).await.unwrap();
//!         total.send(number).await.unwrap();
//!     }
//!     other.reserve().await.unwrap(); // the last one was received
//!     assert_eq!(total.join().await.unwrap(), 1_001_000);
//! });
//! ```
