//! A job that is to be offered: its work, its key and its priority.

use std::fmt;

/// A closure for a market, with the key that it shares with other jobs, and its priority.
///
/// `K` is the type of the market's keys. A job without a key excludes no other job.
#[must_use = "a job does nothing until it is offered"]
pub struct Job<K, F> {
    pub(super) work: F,
    pub(super) key: Option<K>,
    pub(super) priority: u32,
}

impl<K, F> Job<K, F> {
    /// Creates a job of priority 0, without a key.
    pub fn new<T>(work: F) -> Self
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Job {
            work,
            key: None,
            priority: 0,
        }
    }

    /// Sets the key. Jobs of one key never run at the same time.
    #[doc(alias = "player")]
    pub fn key(mut self, key: K) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the priority. A job of a higher one goes first.
    pub fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }
}

impl<K, F> Job<K, F> {
    /// Boxes the work, which is large.
    pub(super) fn boxed(self) -> Job<K, Box<F>> {
        Job {
            work: Box::new(self.work),
            key: self.key,
            priority: self.priority,
        }
    }
}

impl<K, F> Job<K, Box<F>> {
    /// Undoes [`boxed`](Job::boxed).
    pub(super) fn unbox(self) -> Job<K, F> {
        Job {
            work: *self.work,
            key: self.key,
            priority: self.priority,
        }
    }
}

impl<K: fmt::Debug, F> fmt::Debug for Job<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("key", &self.key)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
