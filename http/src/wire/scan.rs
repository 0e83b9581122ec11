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

/// Returns where the first control character is, which is no tab.
pub(super) fn find_control(bytes: &[u8]) -> Option<usize> {
    const DELETE: u8 = 0x7F;
    let by_step = |step| below(step, b' ') | below(step ^ (LOW * u64::from(DELETE)), 1);
    let is_control = |byte| byte < b' ' || byte == DELETE;
    let mut seen = 0;
    loop {
        let at = seen + first(&bytes[seen..], by_step, is_control)?;
        if bytes[at] != b'\t' {
            return Some(at);
        }
        seen = at + 1;
    }
}

/// Returns a word that is 0 if no byte is less than `limit`. Otherwise its lowest bit is in the
/// first such byte.
fn below(step: u64, limit: u8) -> u64 {
    step.wrapping_sub(LOW * u64::from(limit)) & !step & HIGH
}

/// Returns where the first byte is that is sought: in a step, or alone if there are few.
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
    if rest.is_empty() {
        return None;
    }
    let Some(last) = bytes.last_chunk() else {
        return rest.iter().position(|byte| is_sought(*byte));
    };
    // It overlaps the step before, in which nothing was found.
    let found = in_step(u64::from_le_bytes(*last));
    (found != 0).then(|| bytes.len() - STEP + found.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::{find, find_below, find_control};

    /// Seeks each byte at each index, among the bytes that come nearest to it.
    #[test]
    fn the_first_byte_is_found_whatever_is_around_it() {
        for others in [0, 1, b'\r', b'\r' + 1, b' ', 0x7F, 0x80, 0xFF] {
            for sought in 0..=u8::MAX {
                // Less than a step, whole steps, and a last step that overlaps the one before.
                for length in [1, 7, 8, 9, 16, 23] {
                    for at in 0..length {
                        let mut bytes = vec![others; length];
                        bytes[at] = sought;
                        let what = format!("{sought} at {at} of {length} {others}");
                        let expected = bytes.iter().position(|byte| *byte == sought);
                        assert_eq!(find(&bytes, sought), expected, "{what}");
                        let expected = bytes.iter().position(|byte| *byte < b'\r');
                        assert_eq!(find_below(&bytes, b'\r'), expected, "{what}");
                        let is_text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
                        let expected = bytes.iter().position(|byte| !is_text(byte));
                        assert_eq!(find_control(&bytes), expected, "{what}");
                    }
                }
            }
        }
    }
}
