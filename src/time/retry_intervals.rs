//! The pauses between the attempts of a retry.
//!
//! A value always has at least one interval, and all of its numbers were checked when it was built.

use std::fmt;
use std::time::Duration;

use crate::runtime::context;

/// The intervals between the attempts of [`retry`](crate::retry).
///
/// First come the `first_steps`, one each, then the `regular_step` again and again, if there is
/// one. A `step_limit` leaves out all after that many. With `jitter_unit`, each interval grows by a
/// random multiple of that duration, up to the interval times `jitter_share`. The random numbers
/// are those of [`sim::random`](crate::sim::random), so a simulation repeats them.
///
/// ```
/// use greenroom::time::RetryIntervals;
/// use std::time::Duration;
///
/// let ms = Duration::from_millis;
/// let intervals = RetryIntervals::builder()
///     .first_steps([ms(10), ms(50)])
///     .regular_step(ms(200))
///     .step_limit(4)
///     .build()?;
/// assert!(intervals.iter().eq([ms(10), ms(50), ms(200), ms(200)]));
/// # Ok::<(), greenroom::time::IntervalsError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RetryIntervals {
    first_steps: Vec<Duration>,
    regular_step: Option<Duration>,
    step_limit: Option<u64>,
    jitter_unit: Option<Duration>,
    jitter_share: Option<f64>,
}

impl RetryIntervals {
    /// Returns a builder without intervals.
    pub fn builder() -> RetryIntervalsBuilder {
        RetryIntervalsBuilder(RetryIntervals {
            first_steps: Vec::new(),
            regular_step: None,
            step_limit: None,
            jitter_unit: None,
            jitter_share: None,
        })
    }

    /// Creates intervals that double from `first` to `most`, and stay there without a limit.
    ///
    /// Each is longer by up to a quarter, at random, so that callers which fail together do not
    /// retry together. A `first` of zero counts as 1 ns. If `first` exceeds `most`, every interval
    /// is `most`.
    ///
    /// ```
    /// use greenroom::time::RetryIntervals;
    /// use std::time::Duration;
    ///
    /// let ms = Duration::from_millis;
    /// let third = RetryIntervals::exponential(ms(100), ms(1000)).iter().nth(2).unwrap();
    /// assert!((ms(400)..=ms(500)).contains(&third));
    /// ```
    pub fn exponential(first: Duration, most: Duration) -> Self {
        let first = first.max(Duration::from_nanos(1));
        let doubled = std::iter::successors(Some(first), |step| step.checked_mul(2));
        RetryIntervals {
            first_steps: doubled.take_while(|step| *step < most).collect(),
            regular_step: Some(most),
            step_limit: None,
            jitter_unit: Some(Duration::from_nanos(1)),
            jitter_share: Some(0.25),
        }
    }

    /// Creates intervals of this length without a limit, each of which differs at random by up to a
    /// quarter.
    pub(crate) fn around(length: Duration) -> Self {
        let least = length - length / 4;
        RetryIntervals {
            first_steps: Vec::new(),
            regular_step: Some(least),
            step_limit: None,
            jitter_unit: Some(Duration::from_nanos(1)),
            // Half of the length, as a share of three quarters of it.
            jitter_share: Some(2.0 / 3.0),
        }
    }

    /// Returns an iterator over the intervals. The random part is drawn again by each iterator.
    pub fn iter(&self) -> impl Iterator<Item = Duration> {
        (0..).map_while(|index| self.interval(index))
    }

    /// Returns the interval at this position, counted from 0, if there are that many.
    pub(crate) fn interval(&self, index: u64) -> Option<Duration> {
        if self.step_limit.is_some_and(|limit| index >= limit) {
            return None;
        }
        let first = usize::try_from(index).ok();
        let first = first.and_then(|index| self.first_steps.get(index));
        let step = first.copied().or(self.regular_step)?;
        Some(match self.jitter_unit {
            Some(unit) => step.saturating_add(jitter(step, unit, self.jitter_share.unwrap_or(1.0))),
            None => step,
        })
    }
}

/// Returns a random multiple of `unit`, up to `step` times `jitter_share`.
fn jitter(step: Duration, unit: Duration, jitter_share: f64) -> Duration {
    // A float that is too large for the integer becomes its greatest value.
    let most = (step.as_nanos() as f64 * jitter_share) as u128 / unit.as_nanos();
    let choices = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let random = context::simulated(|engine, _| engine.random()).flatten();
    let chosen = match random {
        Some(random) => random % choices,
        None => fastrand::u64(..choices),
    };
    let nanos = u128::from(chosen).saturating_mul(unit.as_nanos());
    let secs = u64::try_from(nanos / NANOS_A_SECOND).unwrap_or(u64::MAX);
    Duration::new(secs, (nanos % NANOS_A_SECOND) as u32)
}

const NANOS_A_SECOND: u128 = 1_000_000_000;

/// The options of [`RetryIntervals`]. [`build`](RetryIntervalsBuilder::build) checks all of them.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct RetryIntervalsBuilder(RetryIntervals);

impl RetryIntervalsBuilder {
    /// Sets the first intervals, one each; by default there are none.
    pub fn first_steps(mut self, steps: impl IntoIterator<Item = Duration>) -> Self {
        self.0.first_steps = steps.into_iter().collect();
        self
    }

    /// Sets the interval that is repeated after the first ones; by default there is none.
    pub fn regular_step(mut self, step: Duration) -> Self {
        self.0.regular_step = Some(step);
        self
    }

    /// Sets the greatest number of intervals in all: 1 or more, by default without a limit.
    pub fn step_limit(mut self, steps: u64) -> Self {
        self.0.step_limit = Some(steps);
        self
    }

    /// Sets the unit of the random part of an interval: 1 ns or more, by default no random part.
    #[doc(alias = "randomized")]
    pub fn jitter_unit(mut self, unit: Duration) -> Self {
        self.0.jitter_unit = Some(unit);
        self
    }

    /// Sets the greatest random part as a share of the interval: 0 or more, by default 1. It has no
    /// effect without [`jitter_unit`](RetryIntervalsBuilder::jitter_unit).
    #[doc(alias = "truncated")]
    pub fn jitter_share(mut self, share: f64) -> Self {
        self.0.jitter_share = Some(share);
        self
    }

    /// Returns the intervals.
    ///
    /// # Errors
    /// [`IntervalsError`] if there is no interval at all or an option is out of range.
    pub fn build(self) -> Result<RetryIntervals, IntervalsError> {
        let RetryIntervals {
            first_steps,
            regular_step,
            step_limit,
            jitter_unit,
            jitter_share,
        } = &self.0;
        if first_steps.is_empty() && regular_step.is_none() {
            return Err(IntervalsError::NoIntervals);
        }
        if *step_limit == Some(0) {
            return Err(IntervalsError::NoSteps);
        }
        if *jitter_unit == Some(Duration::ZERO) {
            return Err(IntervalsError::JitterUnit);
        }
        match *jitter_share {
            Some(share) if !(share.is_finite() && share >= 0.0) => {
                Err(IntervalsError::JitterShare(share))
            }
            _ => Ok(self.0),
        }
    }
}

/// The reason why [`RetryIntervals`] could not be built.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum IntervalsError {
    /// There are neither `first_steps` nor a `regular_step`.
    NoIntervals,
    /// The `step_limit` is 0.
    NoSteps,
    /// `jitter_unit` is zero.
    JitterUnit,
    /// `jitter_share` has this value, which is negative, infinite or not a number.
    JitterShare(f64),
}

impl fmt::Display for IntervalsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntervalsError::NoIntervals => {
                f.write_str("no intervals: first_steps is empty, and regular_step is not set")
            }
            IntervalsError::NoSteps => f.write_str("step_limit is 0, but must be at least 1"),
            IntervalsError::JitterUnit => {
                f.write_str("jitter_unit is 0 ns, but must be at least 1 ns")
            }
            IntervalsError::JitterShare(share) => {
                write!(
                    f,
                    "jitter_share is {share}, but must be a finite number of at least 0"
                )
            }
        }
    }
}

impl std::error::Error for IntervalsError {}
