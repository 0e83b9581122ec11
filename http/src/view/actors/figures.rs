//! Numbers as the page shows them.

use std::time::Duration;

/// Returns a number of at most four signs and a letter, such as `1.5k`.
pub(super) fn short(number: f64) -> String {
    let scales = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let found = scales.iter().find(|(scale, _)| number >= *scale);
    let (scale, letter) = found.copied().unwrap_or((1.0, ""));
    let scaled = number / scale;
    let text = match scaled {
        scaled if scaled >= 100.0 => format!("{scaled:.0}"),
        scaled => format!("{scaled:.1}"),
    };
    // A whole number needs no fraction.
    format!("{}{letter}", text.strip_suffix(".0").unwrap_or(&text))
}

/// Returns a rate, or a dash if it is not known.
pub(super) fn rate(rate: Option<f64>) -> String {
    rate.map_or("–".to_owned(), short)
}

/// Returns a share of the time in percent, with a sign before an estimate.
pub(super) fn share(share: Option<f64>, is_measured: bool) -> String {
    let sign = if is_measured { "" } else { "≈" };
    share.map_or("–".to_owned(), |share| {
        format!("{sign}{:.1} %", 100.0 * share)
    })
}

/// Returns a time with a unit that suits it, or a dash if there is none.
pub(super) fn time(time: Option<Duration>) -> String {
    time.map_or("–".to_owned(), |time| format!("{time:.1?}"))
}

/// Returns an estimate of how long a message waits, in seconds, or a dash if none waits.
pub(super) fn wait(wait: Option<f64>) -> String {
    match wait {
        None => "–".to_owned(),
        Some(f64::INFINITY) => "stalled".to_owned(),
        Some(seconds) => format!("≈{}", time(Duration::try_from_secs_f64(seconds).ok())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_short() {
        let numbers = [
            0.0, 0.25, 7.0, 12.34, 999.4, 1000.0, 11_960.0, 1500.0, 123_456.0, 2.5e6, 3e9,
        ];
        let short = numbers.map(short);
        let expected = [
            "0", "0.2", "7", "12.3", "999", "1k", "12k", "1.5k", "123k", "2.5M", "3G",
        ];
        assert_eq!(short, expected);
    }

    #[test]
    fn a_share_and_a_wait_say_whether_they_are_estimates() {
        assert_eq!(share(Some(0.125), true), "12.5 %");
        assert_eq!(share(Some(0.125), false), "≈12.5 %");
        assert_eq!(share(None, false), "–");
        assert_eq!(time(Some(Duration::from_micros(1500))), "1.5ms");
        assert_eq!((time(None), rate(None)), ("–".to_owned(), "–".to_owned()));
        let waits = [Some(0.25), Some(f64::INFINITY), None].map(wait);
        assert_eq!(waits, ["≈250.0ms", "stalled", "–"]);
    }
}
