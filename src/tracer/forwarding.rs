//! Messages that are passed on for their senders.
//!
//! The sender is noted for the thread while a closure runs, so it applies to what the closure sends.

use std::cell::Cell;

crate::sync::thread_local! {
    /// The sender for whom this thread passes messages on.
    static FROM: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Calls `f`, and traces the messages that it sends as passed on for their sender `from`.
///
/// `from` is the [`id`](crate::Address::id) of the sender, or 0 if that is outside actors. A line
/// `Forward Job to <..> (from <..>)` then replaces `Sent Job to <..>`, and the receiver's line names
/// the sender and not the actor between. A message itself does not tell whether it was passed on.
/// Without a [`Tracer`](super::Tracer) this only calls `f`.
///
/// ```
/// use greenroom::{Address, Context, spawn, trace};
///
/// struct Job {
///     client: u64,
/// }
///
/// async fn queue(mut cx: Context<Job>, worker: Address<Job>) {
///     while let Some(job) = cx.recv().await {
///         trace::forwarding(job.client, || worker.tell(job)).unwrap();
///     }
/// }
///
/// # async fn work(mut cx: Context<Job>) -> Option<u64> { cx.recv().await.map(|job| job.client) }
/// # greenroom::run(async {
/// let worker = spawn!(work(_));
/// let queue = spawn!(queue(_, worker.address()));
/// queue.tell(Job { client: 0 }).unwrap();
/// # assert_eq!(worker.join().await.unwrap(), Some(0));
/// # });
/// ```
pub fn forwarding<R>(from: u64, f: impl FnOnce() -> R) -> R {
    /// Restores the outer sender, also if `f` panics.
    struct Outer(Option<u64>);
    impl Drop for Outer {
        fn drop(&mut self) {
            let _ = FROM.try_with(|sender| sender.set(self.0));
        }
    }
    let outer = FROM.try_with(|sender| sender.replace(Some(from)));
    let _outer = Outer(outer.unwrap_or(None));
    f()
}

/// Returns the sender for whom this thread passes messages on, if it does.
pub(crate) fn forwarded_from() -> Option<u64> {
    FROM.try_with(Cell::get).ok().flatten()
}
