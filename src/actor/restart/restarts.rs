//! When an actor is restarted, how often, and after which delay; and what is counted for that.
//!
//! The value is a description. Its numbers are checked when an actor is spawned with it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::bond::Bond;
use crate::error::{Fault, SpawnProblem};
use crate::instant::Instant;
use crate::time::{RetryIntervals, Sleep};

/// The rules by which an actor is [restarted](crate::ActorBuilder::restart). `T` is what the actor
/// returns.
///
/// The default restarts an actor that panicked, at once, at most 5 times within 5 seconds.
///
/// ```
/// use greenroom::supervise::Restarts;
/// use greenroom::time::RetryIntervals;
/// use greenroom::{Context, spawn};
/// use std::time::Duration;
///
/// async fn divider(mut cx: Context<(u32, u32)>) {
///     while let Some((a, b)) = cx.recv().await {
///         println!("{}", a / b);
///     }
/// }
///
/// greenroom::run(async {
///     let delays = RetryIntervals::exponential(Duration::from_millis(1), Duration::from_secs(1));
///     let restarts = Restarts::on_fault().intensity(10, Duration::from_secs(60)).delays(delays);
///     let divider = spawn!(divider(_), restart = restarts);
///     divider.tell((1, 0)).unwrap();
///     divider.tell((42, 2)).unwrap();
///     divider.join().await.unwrap();
/// });
/// ```
#[must_use = "rules do nothing until an actor is spawned with them"]
pub struct Restarts<T> {
    rule: Rule<T>,
    /// At most this many restarts within the window.
    pub(super) most: u32,
    pub(super) window: Duration,
    pub(super) delays: Option<Arc<RetryIntervals>>,
}

enum Rule<T> {
    Never,
    OnFault,
    Always,
    When(Arc<Decide<T>>),
}

type Decide<T> = dyn Fn(&Result<T, Fault>) -> bool + Send + Sync;

impl<T> Restarts<T> {
    /// Restarts an actor that panicked. An actor that returns ends.
    pub fn on_fault() -> Self {
        Restarts::by(Rule::OnFault)
    }

    /// Restarts an actor that panicked or returned.
    ///
    /// An actor whose mailbox is closed and empty ends nevertheless.
    pub fn always() -> Self {
        Restarts::by(Rule::Always)
    }

    /// Restarts an actor if the function returns true for its result.
    ///
    /// A [`kill`](crate::Address::kill) is final, so the function sees values and panics only. If
    /// the function panics, the actor ends with that panic.
    ///
    /// ```
    /// use greenroom::supervise::Restarts;
    /// use greenroom::{Context, Fault, spawn};
    ///
    /// async fn reader(mut cx: Context<u32>) -> Result<(), u32> {
    ///     match cx.recv().await {
    ///         Some(number) => Err(number),
    ///         None => Ok(()),
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let is_small = |result: &Result<_, Fault>| matches!(result, Ok(Err(0..10)));
    ///     let reader = spawn!(reader(_), restart = Restarts::when(is_small));
    ///     for number in [1, 2, 30, 3] {
    ///         reader.tell(number).unwrap();
    ///     }
    ///     assert_eq!(reader.join().await.unwrap(), Err(30));
    /// });
    /// ```
    pub fn when(rule: impl Fn(&Result<T, Fault>) -> bool + Send + Sync + 'static) -> Self {
        Restarts::by(Rule::When(Arc::new(rule)))
    }

    /// Returns rules without restarts, for an actor whose inner future restarts itself.
    pub(super) fn never() -> Self {
        Restarts::by(Rule::Never)
    }

    fn by(rule: Rule<T>) -> Self {
        Restarts {
            rule,
            most: 5,
            window: Duration::from_secs(5),
            delays: None,
        }
    }

    /// Sets the intensity: at most this many restarts within any window of this length, by default
    /// 5 within 5 seconds.
    ///
    /// An actor that would be restarted once more ends with its last result. The window is longer
    /// than 0. With 0 restarts an actor is never restarted, which [`always`](Restarts::always)
    /// refuses. Restarts by hand, with [`Supervisor::restart`](crate::supervise::Supervisor), and
    /// those that another child causes do not count.
    pub fn intensity(mut self, restarts: u32, window: Duration) -> Self {
        self.most = restarts;
        self.window = window;
        self
    }

    /// Sets the delays before the restarts in a row. By default there are none.
    ///
    /// Messages gather during a delay. An incarnation that has lived for the window of the
    /// [`intensity`](Restarts::intensity) ends the row: the next delay is the first one again.
    /// After the last delay, the actor ends with its last result.
    pub fn delays(mut self, delays: RetryIntervals) -> Self {
        self.delays = Some(Arc::new(delays));
        self
    }

    /// Sets one delay before each restart, which differs at random by up to 25 %.
    ///
    /// It replaces the delays of [`delays`](Restarts::delays).
    pub fn stand_down(self, delay: Duration) -> Self {
        self.delays(RetryIntervals::around(delay))
    }

    pub(super) fn is_never(&self) -> bool {
        matches!(self.rule, Rule::Never)
    }

    /// Returns whether this is the default.
    pub(super) fn is_default(&self) -> bool {
        let Restarts {
            rule,
            most,
            window,
            delays,
        } = Restarts::<T>::default();
        matches!((&self.rule, rule), (Rule::OnFault, Rule::OnFault))
            && (self.most, self.window) == (most, window)
            && self.delays == delays
    }

    /// Returns an error if a number is out of range.
    pub(super) fn check(&self) -> Result<(), SpawnProblem> {
        if self.window.is_zero() {
            Err(SpawnProblem::ZeroWindow)
        } else if self.most == 0 && matches!(self.rule, Rule::Always) {
            Err(SpawnProblem::ZeroIntensity)
        } else {
            Ok(())
        }
    }

    /// Returns whether an actor with this result is to be restarted. Calls user code.
    pub(super) fn wants(&self, result: &Result<T, Fault>) -> bool {
        match &self.rule {
            Rule::Never => false,
            Rule::OnFault => result.is_err(),
            Rule::Always => true,
            Rule::When(rule) => rule(result),
        }
    }
}

impl<T> Default for Restarts<T> {
    fn default() -> Self {
        Restarts::on_fault()
    }
}

impl<T> Clone for Restarts<T> {
    fn clone(&self) -> Self {
        Restarts {
            rule: match &self.rule {
                Rule::Never => Rule::Never,
                Rule::OnFault => Rule::OnFault,
                Rule::Always => Rule::Always,
                Rule::When(rule) => Rule::When(rule.clone()),
            },
            most: self.most,
            window: self.window,
            delays: self.delays.clone(),
        }
    }
}

impl<T> fmt::Debug for Restarts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = match &self.rule {
            Rule::Never => "never",
            Rule::OnFault => "on_fault",
            Rule::Always => "always",
            Rule::When(_) => "when",
        };
        f.debug_struct("Restarts")
            .field("rule", &rule)
            .field("restarts", &self.most)
            .field("window", &self.window)
            .field("delays", &self.delays)
            .finish()
    }
}

/// What most restartable actors do not need: all have the same rules, and few fail.
pub(super) struct RestartState<T> {
    pub(super) rules: Arc<Restarts<T>>,
    pub(super) bond: Option<Arc<Bond>>,
    pub(super) history: History,
    /// The number of restarts in a row.
    pub(super) row: u64,
    /// When the current incarnation began, unless it is the first.
    pub(super) begun: Option<Instant>,
    /// The wait before the next incarnation. Never set with a bond: then the supervisor waits, and
    /// orders to run afterwards.
    pub(super) delay: Option<Sleep>,
}

impl<T> RestartState<T> {
    pub(super) fn new(restarts: Option<Arc<Restarts<T>>>, bond: Option<Arc<Bond>>) -> Box<Self> {
        Box::new(RestartState {
            rules: restarts.unwrap_or_default(),
            bond,
            history: History::default(),
            row: 0,
            begun: None,
            delay: None,
        })
    }

    /// Counts a failure against the intensity, and returns the delay before the restart; `None` if
    /// either is used up.
    pub(super) fn next_delay(&mut self) -> Option<Duration> {
        let Restarts { most, window, .. } = *self.rules;
        if self.begun.is_none_or(|begun| begun.elapsed() >= window) {
            self.row = 0;
        }
        let delay = match &self.rules.delays {
            None => Duration::ZERO,
            Some(delays) => delays.interval(self.row)?,
        };
        self.row += 1;
        self.history.count(most, window).then_some(delay)
    }
}

#[derive(Default)]
pub(crate) struct History {
    /// The failures within the window: when the first ones of each entry came, and how many.
    recent: VecDeque<(Instant, u32)>,
    total: u32,
}

/// The number of entries from which on they are merged.
const FINE: usize = 1000;

impl History {
    /// Counts a failure, if at most `most` are then within the window.
    pub(crate) fn count(&mut self, most: u32, window: Duration) -> bool {
        let now = Instant::now();
        // What is older than the window does not count any more.
        while let Some((since, restarts)) = self.recent.front()
            && now - *since >= window
        {
            self.total -= restarts;
            self.recent.pop_front();
        }
        if self.total >= most {
            return false;
        }
        self.total += 1;
        let is_crowded = self.recent.len() >= FINE;
        match self.recent.back_mut() {
            Some((since, restarts)) if is_crowded && now - *since < window / FINE as u32 => {
                *restarts += 1;
            }
            _ => self.recent.push_back((now, 1)),
        }
        true
    }

    pub(crate) fn clear(&mut self) {
        *self = History::default();
    }
}
