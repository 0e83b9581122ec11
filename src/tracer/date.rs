//! Dates of the Gregorian calendar, in UTC.
//!
//! A date is computed from the days since 1970 alone, without a table of leap seconds or zones.

use std::time::Duration;

/// Appends a time since 1970 as `YYYY-MM-DDTHH:MM:SS.mmm`.
pub(super) fn append(line: &mut Vec<u8>, since_1970: Duration) {
    let seconds = since_1970.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let clock = seconds % 86_400;
    for (number, width, end) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (clock / 3600, 2, b':'),
        (clock / 60 % 60, 2, b':'),
        (clock % 60, 2, b'.'),
        (u64::from(since_1970.subsec_millis()), 3, b' '),
    ] {
        digits(line, number, width);
        line.push(end);
    }
}

/// Appends a number with at least this many digits.
pub(super) fn digits(line: &mut Vec<u8>, number: u64, width: u32) {
    let mut unit = 10_u64.pow(width - 1);
    while number / unit >= 10 {
        unit *= 10;
    }
    while unit > 0 {
        line.push(b'0' + (number / unit % 10) as u8);
        unit /= 10;
    }
}

/// Returns year, month and day of the day with this number, counted from 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that a leap day is the last day of its year. 719 468 days lead
    // from 0000-03-01 to 1970-01-01, and 400 years have 146 097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Five months from March on have 153 days, whichever five they are.
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use std::time::Duration;

    use super::append;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00.007 "),
            (951_782_399, "2000-02-28T23:59:59.007 "),
            (951_782_400, "2000-02-29T00:00:00.007 "),
            (951_868_800, "2000-03-01T00:00:00.007 "),
            (1_735_689_599, "2024-12-31T23:59:59.007 "),
            (4_107_542_400, "2100-03-01T00:00:00.007 "),
            (253_402_300_800, "10000-01-01T00:00:00.007 "),
        ] {
            let mut line = Vec::new();
            append(&mut line, Duration::from_millis(seconds * 1000 + 7));
            assert_eq!(String::from_utf8(line).unwrap(), shown);
        }
    }
}
