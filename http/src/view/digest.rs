//! The digest of a style, by which a page allows it and no other one.
//!
//! It is SHA-256 of FIPS 180-4. A page has one style, which is hashed once, so nothing here is fast.

/// Returns the source by which `style-src` allows this style: `'sha256-..'`.
pub(super) fn source_of(style: &str) -> String {
    format!("'sha256-{}'", base64(&sha256(style.as_bytes())))
}

/// Returns the first 32 bits of the fractional part of a root of a prime.
fn fraction(root: f64) -> u32 {
    // Exact: a root below 32 keeps 48 bits of its fraction.
    (root.fract() * 4_294_967_296.0) as u32
}

fn primes() -> impl Iterator<Item = u32> {
    (2u32..).filter(|number| (2..*number).all(|other| number % other != 0))
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut state = [0; 8];
    for (word, prime) in state.iter_mut().zip(primes()) {
        *word = fraction(f64::from(prime).sqrt());
    }
    let mut constants = [0; 64];
    for (word, prime) in constants.iter_mut().zip(primes()) {
        *word = fraction(f64::from(prime).cbrt());
    }
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        compress(&mut state, block, &constants);
    }
    let mut digest = [0; 32];
    for (place, word) in digest.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn compress(state: &mut [u32; 8], block: &[u8], constants: &[u32; 64]) {
    let mut words = [0u32; 64];
    for (word, four) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = four
            .iter()
            .fold(0, |word, byte| (word << 8) | u32::from(*byte));
    }
    for n in 16..64 {
        let (two, fifteen) = (words[n - 2], words[n - 15]);
        let one = fifteen.rotate_right(7) ^ fifteen.rotate_right(18) ^ (fifteen >> 3);
        let other = two.rotate_right(17) ^ two.rotate_right(19) ^ (two >> 10);
        let sum = words[n - 16].wrapping_add(one);
        words[n] = sum.wrapping_add(words[n - 7]).wrapping_add(other);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, constant) in words.into_iter().zip(constants) {
        let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let first = [sum, choice, *constant, word]
            .into_iter()
            .fold(h, u32::wrapping_add);
        let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let second = sum.wrapping_add(majority);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(more);
    }
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let mut bits = 0;
        for n in 0..3 {
            bits = (bits << 8) | usize::from(three.get(n).copied().unwrap_or(0));
        }
        for n in 0..4 {
            let sign = SIGNS[(bits >> (18 - 6 * n)) & 63];
            text.push(if n <= three.len() { sign.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_standard() {
        // `printf '%s' TEXT | openssl dgst -sha256 -binary | base64`
        let known = [
            ("", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
            ("abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="),
        ];
        for (text, digest) in known {
            assert_eq!(source_of(text), format!("'sha256-{digest}'"));
        }
        let long = "a".repeat(1_000);
        let digest = "Qe3s5C1j6Nm/UVqbppMuHCDLyfWl0TRkWttdsblzfqM=";
        assert_eq!(source_of(&long), format!("'sha256-{digest}'"));
    }
}
