//! What nodes of version 0.1.0 send, which each later one has to read and to write.
//!
//! A line of a file is a value as Rust prints it, and its bytes. A line that was published is never
//! changed: a new frame gets a new line.

use std::fmt::{Debug, Write};

/// Compares the values with the lines of a file, encoded and decoded.
pub(crate) fn compare<T: Debug + PartialEq>(
    file: &str,
    values: &[T],
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> T,
) {
    let mut lines = file.lines();
    for value in values {
        let bytes = encode(value);
        let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let line = format!("{value:?} {hex}");
        assert_eq!(Some(&*line), lines.next());
        assert_eq!(&decode(&bytes), value);
    }
    assert_eq!(lines.next(), None, "a line whose value is not here");
}
