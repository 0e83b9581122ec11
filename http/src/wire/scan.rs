//! A search for bytes in a head, eight at once.

const STEP: usize = size_of::<u64>();
/// The lowest and the highest bit of each byte.
const LOW: u64 = u64::MAX / 255;
const HIGH: u64 = LOW << 7;

/// Returns where the first byte of this value is.
pub(super) fn find(bytes: &[u8], sought: u8) -> Option<usize> {
    let sought_by_step = |step| below(step ^ (LOW * u64::from(sought)), 1);
    first(bytes, sought_by_step, |byte| byte == sought)
}

/// Returns where the first byte is that is less than `limit`, which is at most 128.
pub(super) fn find_below(bytes: &[u8], limit: u8) -> Option<usize> {
    first(bytes, |step| below(step, limit), |byte| byte < limit)
}

/// Returns whether there are no control characters but tabs.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    const DELETE: u8 = 0x7F;
    let by_step = |step| below(step, b' ') | below(step ^ (LOW * u64::from(DELETE)), 1);
    let is_control = |byte| byte < b' ' || byte == DELETE;
    let mut rest = bytes;
    while let Some(at) = first(rest, by_step, is_control) {
        if rest[at] != b'\t' {
            return false;
        }
        rest = &rest[at + 1..];
    }
    true
}

/// Returns a word that is 0 if no byte is less than `limit`. Otherwise its lowest bit is in the
/// first such byte.
fn below(step: u64, limit: u8) -> u64 {
    step.wrapping_sub(LOW * u64::from(limit)) & !step & HIGH
}

/// Returns where the first byte is that is sought: in a step, or alone.
fn first(
    bytes: &[u8],
    in_step: impl Fn(u64) -> u64,
    is_sought: impl Fn(u8) -> bool,
) -> Option<usize> {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    for (number, step) in steps.iter().enumerate() {
        let found = in_step(u64::from_le_bytes(*step));
        if found != 0 {
            return Some(number * STEP + found.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|byte| is_sought(*byte))?;
    Some(bytes.len() - rest.len() + at)
}

#[cfg(test)]
mod tests {
    use super::{find, find_below, is_text};

    /// Each byte is sought at each place, among the bytes that come nearest to it.
    #[test]
    fn the_first_byte_is_found_whatever_is_around_it() {
        for others in [0, 1, b'\r', b'\r' + 1, b' ', 0x7F, 0x80, 0xFF] {
            for sought in 0..=u8::MAX {
                for length in [1, 7, 8, 9, 16, 23] {
                    for at in 0..length {
                        let mut bytes = vec![others; length];
                        bytes[at] = sought;
                        let what = format!("{sought} at {at} of {length} {others}");
                        let expected = bytes.iter().position(|byte| *byte == sought);
                        assert_eq!(find(&bytes, sought), expected, "{what}");
                        let expected = bytes.iter().position(|byte| *byte < b'\r');
                        assert_eq!(find_below(&bytes, b'\r'), expected, "{what}");
                        let text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
                        assert_eq!(is_text(&bytes), bytes.iter().all(text), "{what}");
                    }
                }
            }
        }
    }
}
