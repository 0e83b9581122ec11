//! A search for bytes, many at once.

/// The bytes that are looked at together, as the registers of most processors have them.
const STEP: usize = 16;

/// Returns where the first byte is of which `is_sought` holds.
pub(super) fn find(bytes: &[u8], is_sought: impl Fn(u8) -> bool) -> Option<usize> {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    // Without an early end, the compiler compares all bytes of a step at once.
    let has = |step: &[u8; STEP]| step.iter().fold(false, |has, byte| has | is_sought(*byte));
    let full = steps.iter().position(has).unwrap_or(steps.len()) * STEP;
    let rest = if full < steps.len() * STEP {
        &bytes[full..full + STEP]
    } else {
        rest
    };
    let at = rest.iter().position(|byte| is_sought(*byte))?;
    Some(full + at)
}

/// Returns whether `is_right` holds of all bytes.
pub(super) fn all(bytes: &[u8], is_right: impl Fn(u8) -> bool) -> bool {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let holds = |step: &[u8; STEP]| step.iter().fold(true, |all, byte| all & is_right(*byte));
    steps.iter().all(holds) && rest.iter().all(|byte| is_right(*byte))
}

#[cfg(test)]
mod tests {
    use super::{all, find};

    #[test]
    fn a_byte_is_found_wherever_it_is() {
        for length in 0..70 {
            let mut bytes = vec![b'a'; length];
            assert_eq!(find(&bytes, |byte| byte == b'b'), None);
            assert!(all(&bytes, |byte| byte == b'a'));
            for at in (0..length).rev() {
                bytes[at] = b'b';
                assert_eq!(find(&bytes, |byte| byte == b'b'), Some(at));
                assert!(!all(&bytes, |byte| byte == b'a'), "{at} of {length}");
            }
        }
    }
}
