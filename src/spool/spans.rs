//! The last response times of a spool, and the judgement whether it is busy.
//!
//! At most 32 spans count. While the average has reached the limit, one of several requests passes,
//! so that shorter spans can bring the average down.

use std::time::Duration;

/// The number of spans that the average covers.
const SPANS: usize = 32;

/// Spans are in nanoseconds, of at most 2⁵⁸ (nine years), so that a sum fits in 64 bits.
const SPAN_MAX: u64 = 1 << 58;

#[derive(Default)]
pub(super) struct Spans {
    sum: u64,
    /// The number of spans, of which the last ones are kept.
    count: usize,
    /// How many requests were judged while the spool was busy.
    judged: u64,
    last: [u64; SPANS],
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).map_or(SPAN_MAX, |nanos| nanos.min(SPAN_MAX))
}

impl Spans {
    pub(super) fn push(&mut self, span: Duration) {
        let span = nanos(span);
        let oldest = std::mem::replace(&mut self.last[self.count % SPANS], span);
        self.sum = self.sum - oldest + span;
        self.count += 1;
    }

    fn len(&self) -> u64 {
        self.count.min(SPANS) as u64
    }

    /// Returns the average, which is 0 before the first span.
    pub(super) fn average(&self) -> Duration {
        Duration::from_nanos(self.sum / self.len().max(1))
    }

    /// Judges a request. Returns the average if the spool is busy and the request does not pass:
    /// only every `pass_rate`-th one does.
    pub(super) fn judge(&mut self, limit: Option<Duration>, pass_rate: u32) -> Option<Duration> {
        let is_busy = self.count > 0 && self.sum >= nanos(limit?) * self.len();
        if !is_busy {
            return None;
        }
        self.judged += 1;
        (!self.judged.is_multiple_of(u64::from(pass_rate))).then(|| self.average())
    }
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_average_that_equals_the_limit_is_busy_and_one_below_is_not() {
        let limit = Duration::from_secs(1);
        let mut spans = Spans::default();
        assert_eq!(spans.judge(Some(limit), 10), None, "nothing has come yet");
        spans.push(limit / 2);
        spans.push(limit + limit / 2 - Duration::from_nanos(1));
        assert_eq!(
            spans.judge(Some(limit), 10),
            None,
            "half a nanosecond below"
        );
        spans.push(limit + Duration::from_nanos(1));
        assert_eq!(spans.judge(Some(limit), 10), Some(limit));
        assert_eq!(spans.judge(None, 10), None, "there is no limit");
    }
}
