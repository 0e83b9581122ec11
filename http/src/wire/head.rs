//! The head of a request, checked by its bytes.
//!
//! A head that is passed on has one request line and fields that no two readers understand in
//! different ways: one `Host`, and at most one length of the body.

use hyper::Uri;

use super::authority::Authority;
use super::chunks::Chunks;
use super::framing::{HostRule, RequestPart};
use super::scan::{find, find_control};
use crate::limits::Limits;

/// Why a request is refused, and its connection is not read further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpRefusal {
    pub(crate) status: u16,
    pub(crate) why: &'static str,
    /// The limit that was hit, by its name in `Limits`.
    pub(crate) limit: Option<&'static str>,
}

pub(super) const fn bad(why: &'static str) -> HttpRefusal {
    HttpRefusal {
        status: 400,
        why,
        limit: None,
    }
}

/// Checks a head, from its first byte to the empty line. Returns its length, and what follows it.
pub(super) fn check(
    bytes: &[u8],
    limits: &Limits,
    host: HostRule,
) -> Result<(usize, RequestPart), HttpRefusal> {
    const MALFORMED: HttpRefusal = bad("malformed request line");
    let end = find(bytes, b'\r').ok_or(MALFORMED)?;
    let (line, mut rest) = split(bytes, end).ok_or(MALFORMED)?;
    let line = request_line(line, limits)?;
    let mut fields = Fields::default();
    let mut count = 0;
    // The empty line ends the head.
    while !rest.starts_with(b"\r\n") {
        count += 1;
        if count > limits.headers {
            return Err(HttpRefusal {
                status: 431,
                why: "too many header fields",
                limit: Some("headers"),
            });
        }
        rest = fields.read(rest, limits)?;
    }
    let length = bytes.len() - rest.len() + 2;
    fields.body(line, host).map(|body| (length, body))
}

/// Returns the line that ends there with CRLF, and what follows it.
fn split(lines: &[u8], end: usize) -> Option<(&[u8], &[u8])> {
    let (line, rest) = lines.split_at_checked(end)?;
    Some((line, rest.strip_prefix(b"\r\n")?))
}

/// What a request line says beside its target.
#[derive(Clone, Copy)]
struct RequestLine {
    /// It is of HTTP/1.0.
    is_old: bool,
    /// The target names the host, and `Host` says nothing.
    has_host: bool,
}

#[inline(never)] // As `Fields::read`.
fn request_line(line: &[u8], limits: &Limits) -> Result<RequestLine, HttpRefusal> {
    const MALFORMED: HttpRefusal = bad("malformed request line");
    let (method, line) = word(line, |byte| IN_TOKEN[byte], b' ').ok_or(MALFORMED)?;
    let (target, version) = word(line, |byte| IN_TARGET[byte] <= ESCAPED, b' ').ok_or(MALFORMED)?;
    if target.len() > limits.uri {
        return Err(HttpRefusal {
            status: 414,
            why: "the URI is too long",
            limit: Some("uri"),
        });
    }
    if !is_target(method, target) {
        return Err(MALFORMED);
    }
    let must_escape = |byte: &u8| IN_TARGET[usize::from(*byte)] == ESCAPED;
    if target.iter().any(must_escape) {
        return Err(bad("a sign of the URI must be written as %XX"));
    }
    let has_host = !matches!(target, [b'/' | b'*', ..]);
    let line = |is_old| RequestLine { is_old, has_host };
    // HTTP/2 and later ones are other protocols, which get an answer of their own.
    match version {
        b"HTTP/1.1" => Ok(line(false)),
        b"HTTP/1.0" => Ok(line(true)),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Err(HttpRefusal {
                status: 505,
                why: "the version is not supported",
                limit: None,
            })
        }
        _ => Err(MALFORMED),
    }
}

/// Returns the word of these bytes before a sign, and what follows it. It is not empty.
fn word(bytes: &[u8], has: impl Fn(usize) -> bool, sign: u8) -> Option<(&[u8], &[u8])> {
    let mut end = 0;
    while has(usize::from(*bytes.get(end)?)) {
        end += 1;
    }
    (end > 0 && bytes[end] == sign).then(|| (&bytes[..end], &bytes[end + 1..]))
}

/// A byte that a target has only as `%XX`.
const ESCAPED: u8 = 1;

/// What a byte is in a target: itself, one that must be escaped, or one that cannot be there.
const IN_TARGET: [u8; 256] = {
    let mut table = [ESCAPED + 1; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        table[byte as usize] = matches!(byte, b'"' | b'<' | b'>' | b'`' | b'#') as u8 * ESCAPED;
        byte += 1;
    }
    table
};

/// Returns whether a request of this method may have a target of this form.
fn is_target(method: &[u8], target: &[u8]) -> bool {
    match target {
        // It has the name of another host alone, and hyper drops the body of its answer.
        _ if method == b"CONNECT" => false,
        [b'/', ..] => true,
        // PRI is of the preface of HTTP/2, which is refused by its version.
        b"*" => matches!(method, b"OPTIONS" | b"PRI"),
        // To a proxy. hyper takes its parts apart, so it must be able to.
        _ => Uri::try_from(target).is_ok_and(|uri| {
            let host = uri.authority().map(|host| Authority::parse(host.as_str()));
            uri.scheme().is_some() && host.flatten().is_some()
        }),
    }
}

/// The fields on which the framing depends.
#[derive(Default)]
struct Fields {
    hosts: usize,
    /// A `Host` is malformed.
    is_malformed: bool,
    length: Option<u64>,
    is_chunked: bool,
}

impl Fields {
    /// Reads the field at the begin of these lines. Returns the lines that follow it.
    #[inline(never)] // In a function of its own, the loops have registers enough.
    fn read<'a>(&mut self, lines: &'a [u8], limits: &Limits) -> Result<&'a [u8], HttpRefusal> {
        const MALFORMED: HttpRefusal = bad("malformed header field");
        // A line that continues the field before it begins with a space, which is in no name.
        let (name, after) = word(lines, |byte| IN_TOKEN[byte], b':').ok_or(MALFORMED)?;
        let end = find_control(after).ok_or(MALFORMED)?;
        let (value, rest) = split(after, end).ok_or(MALFORMED)?;
        let value = value.trim_ascii();
        if value.len() > limits.header_value {
            return Err(HttpRefusal {
                status: 431,
                why: "a header value is too long",
                limit: Some("header_value"),
            });
        }
        if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
            let host = std::str::from_utf8(value).ok();
            self.is_malformed |= host.and_then(Authority::parse).is_none();
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let length = length(value).ok_or(bad("malformed Content-Length"))?;
            if self.length.replace(length).is_some() {
                return Err(bad("more than one Content-Length"));
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(bad("unsupported Transfer-Encoding"));
            }
            self.is_chunked = true;
        }
        Ok(rest)
    }

    /// Returns what follows the head: a body, or another head.
    fn body(&self, line: RequestLine, host: HostRule) -> Result<RequestPart, HttpRefusal> {
        let RequestLine { is_old, has_host } = line;
        let may_lack = is_old || host == HostRule::Optional;
        if self.hosts > 1 || self.hosts == 0 && !may_lack {
            return Err(bad("there must be one Host"));
        }
        if self.is_malformed && !has_host {
            return Err(bad("malformed Host"));
        }
        match (self.is_chunked, self.length) {
            (true, Some(_)) => Err(bad("Content-Length beside Transfer-Encoding")),
            (true, None) if is_old => Err(bad("unsupported Transfer-Encoding")),
            (true, None) => Ok(RequestPart::Chunked(Chunks::new())),
            (false, None | Some(0)) => Ok(RequestPart::Head(0)),
            (false, Some(length)) => Ok(RequestPart::Sized(length)),
        }
    }
}

/// Reads a length: digits alone, less than 2^63.
fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length: i64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    u64::try_from(length).ok()
}

/// Whether a byte may be in a name.
pub(super) const IN_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut signs: &[u8] = b"!#$%&'*+-.^_`|~";
    while let [sign, rest @ ..] = signs {
        table[*sign as usize] = true;
        signs = rest;
    }
    table
};
