//! `Job`: what is put into a queue.

use std::fmt;
use std::time::Duration;

use crate::error::StoreProblem;

/// A job to be [put](crate::Queue::put) into a queue.
///
/// ```
/// use greenroom_durable::Job;
/// use std::time::Duration;
///
/// # struct Resize;
/// # let resize = Resize;
/// let job = Job::new(resize).id("upload-17").key("alice").after(Duration::from_secs(30));
/// # assert_eq!(job.priority(2).into_inner(), Resize);
/// # impl PartialEq for Resize { fn eq(&self, _: &Self) -> bool { true } }
/// # impl std::fmt::Debug for Resize {
/// #     fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { Ok(()) }
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a job does nothing until it is put"]
pub struct Job<J> {
    pub(super) payload: J,
    pub(super) id: Option<String>,
    pub(super) key: Option<String>,
    pub(super) priority: u8,
    pub(super) delay: Duration,
}

impl<J> Job<J> {
    /// Creates a job of priority 0 that is due at once, without an id and a key.
    pub fn new(payload: J) -> Self {
        Job {
            payload,
            id: None,
            key: None,
            priority: 0,
            delay: Duration::ZERO,
        }
    }

    /// Sets the id. A second job of this id is not stored, until the first one has ended and its
    /// [window](crate::QueueBuilder::window) is over. So it is safe to put a job with an id again.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the key. Jobs of one key run one at a time, in the order of their due times and then in
    /// that in which they were put.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the priority. Of jobs that are due, one of the highest priority is taken first. Within a
    /// key it makes no difference.
    ///
    /// A look for a job takes a step for each priority in use. So use few of them.
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Lets the job wait for at least this long, rounded up to milliseconds.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Returns the payload.
    pub fn into_inner(self) -> J {
        self.payload
    }
}

impl<J> fmt::Debug for Job<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("id", &self.id)
            .field("key", &self.key)
            .field("priority", &self.priority)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

/// A job that was not put, and the reason.
///
/// After [`StoreProblem::Unknown`] the job may be stored: put it again if it has an id.
#[derive(Clone)]
pub struct PutError<J> {
    /// The job, as it was.
    pub job: Job<J>,
    /// The reason.
    pub why: StoreProblem,
}

impl<J> fmt::Display for PutError<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the job was not put: {}", self.why)
    }
}

impl<J> fmt::Debug for PutError<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutError")
            .field("job", &self.job)
            .field("why", &self.why)
            .finish()
    }
}

impl<J> std::error::Error for PutError<J> {}
