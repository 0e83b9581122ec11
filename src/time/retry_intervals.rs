//! The pauses between the attempts of a retry.
//!
//! A value always has at least one interval, and each of its numbers was checked when it was set.

use std::fmt;
use std::time::Duration;

use crate::runtime::context;

/// The intervals between the attempts of [`retry`](crate::retry).
///
/// First come the first steps, one each, then the regular step again and again, if there is one.
/// A step limit leaves out all after that many. With a unit of jitter, each interval grows by a
/// random multiple of that duration, up to a share of the interval. The random numbers are those of
/// [`sim::random`](crate::sim::random), so a simulation repeats them.
///
/// ```
/// use greenroom::time::RetryIntervals;
/// use std::time::Duration;
///
/// let ms = Duration::from_millis;
/// let intervals = RetryIntervals::every(ms(200)).with_first_steps([ms(10), ms(50)]);
/// let intervals = intervals.with_step_limit(4)?;
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
    /// Creates intervals that are all of this length, without a limit.
    pub fn every(regular_step: Duration) -> Self {
        RetryIntervals {
            first_steps: Vec::new(),
            regular_step: Some(regular_step),
            step_limit: None,
            jitter_unit: None,
            jitter_share: None,
        }
    }

    /// Creates intervals of these lengths, one each.
    ///
    /// # Errors
    /// [`IntervalsError::NoIntervals`] if there are none.
    pub fn steps(steps: impl IntoIterator<Item = Duration>) -> Result<Self, IntervalsError> {
        let first_steps: Vec<_> = steps.into_iter().collect();
        if first_steps.is_empty() {
            return Err(IntervalsError::NoIntervals);
        }
        Ok(RetryIntervals {
            first_steps,
            regular_step: None,
            step_limit: None,
            jitter_unit: None,
            jitter_share: None,
        })
    }

    /// Creates intervals that double from `first` to `most`, and stay there. Their number has no
    /// limit until [`with_step_limit`](RetryIntervals::with_step_limit) sets one.
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
    ///
    /// let five = RetryIntervals::exponential(ms(100), ms(1000)).with_step_limit(5)?;
    /// assert_eq!(five.iter().count(), 5);
    /// # Ok::<(), greenroom::time::IntervalsError>(())
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

    /// Puts these intervals first, one each, instead of the first steps so far.
    pub fn with_first_steps(mut self, steps: impl IntoIterator<Item = Duration>) -> Self {
        self.first_steps = steps.into_iter().collect();
        self
    }

    /// Leaves out all intervals after this many, of whatever kind they are. A
    /// [`retry`](crate::retry()) then makes one attempt more.
    ///
    /// # Errors
    /// [`IntervalsError::NoSteps`] if the limit is 0.
    #[doc(alias = "limit")]
    pub fn with_step_limit(mut self, steps: u64) -> Result<Self, IntervalsError> {
        if steps == 0 {
            return Err(IntervalsError::NoSteps);
        }
        self.step_limit = Some(steps);
        Ok(self)
    }

    /// Lets each interval grow by a random multiple of this unit, 1 ns or more.
    ///
    /// # Errors
    /// [`IntervalsError::JitterUnit`] if the unit is zero.
    #[doc(alias = "randomized")]
    pub fn with_jitter_unit(mut self, unit: Duration) -> Result<Self, IntervalsError> {
        if unit.is_zero() {
            return Err(IntervalsError::JitterUnit);
        }
        self.jitter_unit = Some(unit);
        Ok(self)
    }

    /// Limits the random part to this share of the interval: 0 or more, otherwise 1. It has no
    /// effect without a [unit](RetryIntervals::with_jitter_unit).
    ///
    /// # Errors
    /// [`IntervalsError::JitterShare`] if the share is negative, infinite or not a number.
    #[doc(alias = "truncated")]
    pub fn with_jitter_share(mut self, share: f64) -> Result<Self, IntervalsError> {
        if !(share.is_finite() && share >= 0.0) {
            return Err(IntervalsError::JitterShare(share));
        }
        self.jitter_share = Some(share);
        Ok(self)
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

/// The reason why [`RetryIntervals`] are refused.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum IntervalsError {
    /// There are no steps.
    NoIntervals,
    /// The step limit is 0.
    NoSteps,
    /// The unit of the jitter is zero.
    JitterUnit,
    /// The share of the jitter has this value, which is negative, infinite or not a number.
    JitterShare(f64),
}

impl fmt::Display for IntervalsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntervalsError::NoIntervals => f.write_str("no intervals: there are no steps"),
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
