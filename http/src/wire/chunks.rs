//! The end of a chunked body, found byte by byte.

use super::head::{HttpRefusal, IN_TOKEN, bad};

/// The bytes that the lines between chunks, and those after the last one, may have in all.
const LINES: usize = 16 * 1024;
/// The digits of the largest size, which is less than 2^31.
const DIGITS: usize = 8;

/// How much of a chunked body was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunks {
    position: ChunkPosition,
    /// The bytes of lines since the last chunk.
    lines: usize,
}

/// The part of a chunked body to which the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkPosition {
    /// In the line before a chunk: its size so far, and the digits.
    Size(u64, usize),
    /// After the size: an extension, which is ignored.
    Extension(u64, ExtensionPosition),
    /// After the CR of that line.
    SizeEnd(u64),
    Data(u64),
    /// At the CR, then at the LF, that follow the data.
    DataEnd,
    DataEndLf,
    /// In a line after the last chunk: whether it is empty so far.
    Trailer(bool),
    TrailerLf(bool),
    Over,
}

/// The part of the extensions of a chunk to which the next byte belongs. Each extension is `;name`,
/// `;name=value` or `;name="value"`, with spaces between its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExtensionPosition {
    /// Before a `;`.
    Space,
    /// Before a name.
    Begin,
    Name,
    /// After a name and a space.
    NameEnd,
    /// Before a value.
    Equals,
    Value,
    Quoted,
    /// After a backslash between quotes.
    Escaped,
    /// After the last quote.
    QuotedEnd,
}

impl ExtensionPosition {
    /// Returns the position after a byte, or `None` if the byte may not be there.
    fn step(self, byte: u8) -> Option<ExtensionPosition> {
        use ExtensionPosition::{
            Begin, Equals, Escaped, Name, NameEnd, Quoted, QuotedEnd, Space, Value,
        };
        let is_token = IN_TOKEN[usize::from(byte)];
        Some(match (self, byte) {
            (Begin | Name, _) if is_token => Name,
            (Equals | Value, _) if is_token => Value,
            (Space | Name | NameEnd | Value | QuotedEnd, b';') => Begin,
            (Name | NameEnd, b'=') => Equals,
            (Equals, b'"') => Quoted,
            (Quoted, b'"') => QuotedEnd,
            (Quoted, b'\\') => Escaped,
            (Quoted | Escaped, b'\t' | b' '..=b'~' | 0x80..) => Quoted,
            (Name | NameEnd, b'\t' | b' ') => NameEnd,
            (Space | Value | QuotedEnd, b'\t' | b' ') => Space,
            (Begin | Equals, b'\t' | b' ') => self,
            _ => return None,
        })
    }

    /// Returns whether the line may end here.
    fn may_end(self) -> bool {
        use ExtensionPosition::{Name, QuotedEnd, Value};
        matches!(self, Name | Value | QuotedEnd)
    }
}

impl Chunks {
    pub(super) fn new() -> Self {
        Chunks {
            position: ChunkPosition::Size(0, 0),
            lines: 0,
        }
    }

    pub(super) fn is_over(self) -> bool {
        self.position == ChunkPosition::Over
    }

    /// Reads bytes up to the end of the body. Returns how many of them belong to it.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<usize, HttpRefusal> {
        let mut read = 0;
        while read < bytes.len() && !self.is_over() {
            // Data is skipped as a whole, and only lines are read byte by byte.
            if let ChunkPosition::Data(left) = self.position {
                let rest = bytes.len() - read;
                let now = left.min(rest as u64);
                read += now as usize;
                self.lines = 0;
                self.position = match left - now {
                    0 => ChunkPosition::DataEnd,
                    left => ChunkPosition::Data(left),
                };
                continue;
            }
            self.lines += 1;
            if self.lines > LINES {
                return Err(bad("the lines between chunks are too long"));
            }
            self.position = self.step(bytes[read])?;
            read += 1;
        }
        Ok(read)
    }

    /// Returns the position after a byte of a line.
    fn step(&self, byte: u8) -> Result<ChunkPosition, HttpRefusal> {
        let malformed = Err(bad("malformed chunk"));
        Ok(match (self.position, byte) {
            (ChunkPosition::Size(size, digits), byte) if byte.is_ascii_hexdigit() => {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                let size = size * 16 + u64::from(digit);
                if digits == DIGITS || size > i32::MAX as u64 {
                    return Err(bad("a chunk is too large"));
                }
                ChunkPosition::Size(size, digits + 1)
            }
            // A size has at least one digit.
            (ChunkPosition::Size(_, 0), _) => return malformed,
            (ChunkPosition::Size(size, _), b'\r') => ChunkPosition::SizeEnd(size),
            (ChunkPosition::Extension(size, position), b'\r') if position.may_end() => {
                ChunkPosition::SizeEnd(size)
            }
            (ChunkPosition::Size(size, _), b';' | b' ' | b'\t') => {
                let next = ExtensionPosition::Space.step(byte);
                ChunkPosition::Extension(size, next.unwrap_or(ExtensionPosition::Space))
            }
            (ChunkPosition::Extension(size, position), byte) => match position.step(byte) {
                Some(next) => ChunkPosition::Extension(size, next),
                None => return malformed,
            },
            (ChunkPosition::SizeEnd(0), b'\n') => ChunkPosition::Trailer(true),
            (ChunkPosition::SizeEnd(size), b'\n') => ChunkPosition::Data(size),
            (ChunkPosition::DataEnd, b'\r') => ChunkPosition::DataEndLf,
            (ChunkPosition::DataEndLf, b'\n') => ChunkPosition::Size(0, 0),
            (ChunkPosition::Trailer(is_empty), b'\r') => ChunkPosition::TrailerLf(is_empty),
            (ChunkPosition::Trailer(_), b'\t' | b' '..=b'~' | 0x80..) => {
                ChunkPosition::Trailer(false)
            }
            (ChunkPosition::TrailerLf(true), b'\n') => ChunkPosition::Over,
            (ChunkPosition::TrailerLf(false), b'\n') => ChunkPosition::Trailer(true),
            _ => return malformed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Chunks;

    /// Reads a body in pieces of each size. Returns how many bytes belong to it.
    fn read(text: &str) -> Result<Option<usize>, &'static str> {
        let read = |step| {
            let (mut chunks, mut read) = (Chunks::new(), 0);
            for piece in text.as_bytes().chunks(step) {
                let now = chunks.read(piece).map_err(|refused| refused.why)?;
                read += now;
                // The body has ended, and the next request begins within this piece.
                if now < piece.len() {
                    break;
                }
            }
            Ok(chunks.is_over().then_some(read))
        };
        let whole = read(text.len());
        for step in 1..text.len() {
            assert_eq!(read(step), whole, "in pieces of {step}");
        }
        whole
    }

    #[test]
    fn a_body_ends_with_the_empty_line_after_its_last_chunk() {
        for body in [
            "0\r\n\r\n",
            "3\r\nabc\r\n0\r\n\r\n",
            "00A;name=\"x y\"\r\n0123456789\r\n1\r\n\r\r\n0\r\nA: b\r\n\r\n",
            "1;a\r\nx\r\n1;a=b;c\r\nx\r\n1 ; a = b ;c=\"\\\"é\"\r\nx\r\n0;d\r\n\r\n",
        ] {
            assert_eq!(read(body), Ok(Some(body.len())), "{body:?}");
            assert_eq!(read(&format!("{body}GET /")), Ok(Some(body.len())));
            assert_eq!(read(&body[..body.len() - 1]), Ok(None));
        }
    }

    #[test]
    fn malformed_and_huge_chunks_are_refused() {
        for body in [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            "+1\r\na\r\n",
            " 1\r\na\r\n",
            "1 \r\na\r\n",
            "1\na",
            "1\r\nab\r\n",
            "1\r\na\n0\r\n\r\n",
            "0x1\r\na",
            "1;\n",
            "0\r\n\n",
            "0\r\nA: b\n\r\n",
            "1;\0\r\n",
            "1;\r\na\r\n",
            "1;=b\r\na\r\n",
            "1;a=\r\na\r\n",
            "1;a b\r\na\r\n",
            "1;a=b c\r\na\r\n",
            "1;a=\"b\r\na\r\n",
            "1;a=\"b\"c\r\na\r\n",
            "1;(\r\na\r\n",
            "1;a \r\na\r\n",
        ] {
            assert_eq!(read(body), Err("malformed chunk"), "{body:?}");
        }
        // One more than the largest size, then one digit too many, whatever the size.
        for body in ["80000000\r\n", "000000001\r\n", "fffffffff\r\n"] {
            assert_eq!(read(body), Err("a chunk is too large"), "{body:?}");
        }
        let long = format!("1;{}", "x".repeat(super::LINES));
        assert_eq!(Chunks::new().read(long.as_bytes()).unwrap_err().status, 400);
        let trailers = format!("0\r\n{}", "a: b\r\n".repeat(super::LINES / 6 + 1));
        assert_eq!(
            Chunks::new().read(trailers.as_bytes()).unwrap_err().status,
            400
        );
    }
}
