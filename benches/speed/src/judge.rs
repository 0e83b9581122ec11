//! What the figures of two builds say about a case.
//!
//! A case fails only if it lags in every series. Beside other programs the figures of one build
//! differ by more than the loss that is looked for, and have two peaks: the workers got a core
//! each, or shared one. So a series compares each run of one build with each of the other.

/// A case lags if HEAD has less than this part of the base's operations a second. The loss for
/// which this was made left 0.6. Equal builds are seldom below 0.85 (docs/decisions/speed.md).
pub const LEAST: f64 = 0.85;

/// The rounds of each series. The first is short, since all cases take part; the others are longer,
/// since they decide.
pub const SERIES: [usize; 3] = [7, 21, 31];

/// The operations a second of the runs of a series.
#[derive(Default)]
pub struct Series {
    /// Those of HEAD.
    pub head: Vec<f64>,
    /// Those of the base.
    pub base: Vec<f64>,
}

impl Series {
    /// Returns the median of all quotients of a run of HEAD and a run of the base.
    pub fn ratio(&self) -> f64 {
        let quotients = self
            .head
            .iter()
            .flat_map(|head| self.base.iter().map(move |base| head / base));
        median(quotients.collect())
    }
}

/// Returns whether HEAD lags in each of these series.
pub fn lags(series: &[Series]) -> bool {
    series.iter().all(|series| series.ratio() < LEAST)
}

/// Returns the median of some values, of two in the middle the greater one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(head: &[f64], base: &[f64]) -> Series {
        let (head, base) = (head.to_vec(), base.to_vec());
        Series { head, base }
    }

    #[test]
    fn a_ratio_ignores_runs_that_were_disturbed() {
        let even = series(&[10.0, 10.1, 2.0], &[1.0, 10.0, 10.1]);
        assert!((0.9..1.1).contains(&even.ratio()), "{}", even.ratio());
        let slower = series(&[7.0, 7.1, 1.0], &[10.0, 3.0, 10.1]);
        assert!((0.6..0.8).contains(&slower.ratio()), "{}", slower.ratio());
    }

    #[test]
    fn a_ratio_of_two_peaks_lies_between_them() {
        // HEAD has hit the slow peak in four of seven runs and the base in three, by chance.
        let (slow, fast) = (5.0, 15.0);
        let head = series(
            &[slow, slow, slow, slow, fast, fast, fast],
            &[slow, slow, slow, fast, fast, fast, fast],
        );
        assert_eq!(
            median(head.head.clone()) / median(head.base.clone()),
            slow / fast
        );
        assert_eq!(head.ratio(), 1.0);
    }

    #[test]
    fn a_case_lags_if_all_its_series_agree() {
        let (slow, even) = (|| series(&[8.0], &[10.0]), || series(&[9.0], &[10.0]));
        assert!(lags(&[slow(), slow(), slow()]));
        assert!(!lags(&[slow(), slow(), even()]));
        assert!(!lags(&[even(), slow(), slow()]));
    }

    #[test]
    fn a_case_at_the_limit_does_not_lag() {
        assert!(!lags(&[series(&[LEAST], &[1.0])]));
        assert!(lags(&[series(&[LEAST - 0.001], &[1.0])]));
    }
}
