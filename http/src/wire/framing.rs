//! Where requests begin and end in the bytes of a connection.
//!
//! Bytes pass only as a whole head that was checked, or as a part of a body. So the end of each
//! request is where hyper sees it too.

use super::chunks::Chunks;
use super::head::{self, HttpRefusal, bad};
use super::scan::find_below;
use crate::limits::Limits;

/// Finds where requests begin and end.
pub(crate) struct Framing<'a> {
    limits: &'a Limits,
    host: HostRule,
    part: RequestPart,
    /// The number of heads that have passed.
    heads: u64,
    /// An empty line before the next head has passed.
    has_skipped: bool,
}

/// Whether a request of HTTP/1.1 must have a `Host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostRule {
    Required,
    /// Clients of layer_cake send none.
    Optional,
}

/// The part of a request to which the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestPart {
    /// In a head, of which so many bytes need not be looked at again.
    Head(usize),
    /// In a body, of which so many bytes are left.
    Sized(u64),
    Chunked(Chunks),
}

impl<'a> Framing<'a> {
    pub(crate) fn new(limits: &'a Limits, host: HostRule) -> Self {
        Framing {
            limits,
            host,
            part: RequestPart::Head(0),
            heads: 0,
            has_skipped: false,
        }
    }

    pub(crate) fn heads(&self) -> u64 {
        self.heads
    }

    /// Returns whether the next byte belongs to a head, or begins one.
    pub(crate) fn is_in_head(&self) -> bool {
        matches!(self.part, RequestPart::Head(_))
    }

    /// Returns how many of the next bytes may pass: a whole head, an empty line before it, which hyper
    /// skips, or bytes of a body. None may while a head is not complete: then it must be called again
    /// with the same bytes and more.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Result<usize, HttpRefusal> {
        let passed = match &mut self.part {
            RequestPart::Head(0) if !self.has_skipped && bytes.starts_with(b"\r\n") => {
                self.has_skipped = true;
                return Ok(2);
            }
            RequestPart::Head(seen) => {
                let (end, next) = match whole(bytes, *seen, self.limits, self.host) {
                    Some(whole) => whole,
                    None => {
                        let Some(end) = find_end(bytes, seen, self.limits)? else {
                            return Ok(0);
                        };
                        head::check(&bytes[..end], self.limits, self.host)?
                    }
                };
                self.part = next;
                self.heads += 1;
                self.has_skipped = false;
                return Ok(end);
            }
            RequestPart::Sized(left) => {
                let now = (*left).min(bytes.len() as u64);
                *left -= now;
                now as usize
            }
            RequestPart::Chunked(chunks) => chunks.read(bytes)?,
        };
        // After the last byte of a body comes the next head.
        let is_over = match self.part {
            RequestPart::Sized(left) => left == 0,
            RequestPart::Chunked(chunks) => chunks.is_over(),
            RequestPart::Head(_) => false,
        };
        if is_over {
            self.part = RequestPart::Head(0);
        }
        Ok(passed)
    }
}

/// Returns the length of a head that has come at once and is right, and what follows it. Most do.
fn whole(
    bytes: &[u8],
    seen: usize,
    limits: &Limits,
    host: HostRule,
) -> Option<(usize, RequestPart)> {
    let checked = (seen == 0).then(|| head::check(bytes, limits, host).ok());
    checked.flatten().filter(|(end, _)| *end <= limits.head)
}

/// Returns the number of bytes of the head, if all of them are there. All line ends are CRLF.
fn find_end(bytes: &[u8], seen: &mut usize, limits: &Limits) -> Result<Option<usize>, HttpRefusal> {
    let end = bytes.len().min(limits.head);
    // No other byte below it matters, and few heads have one.
    const SPECIAL: u8 = b'\r' + 1;
    while let Some(skipped) = find_below(&bytes[*seen..end], SPECIAL) {
        let at = *seen + skipped;
        let next = bytes[..end].get(at + 1);
        match (bytes[at], next) {
            (b'\r', Some(b'\n')) => {}
            (b'\r', None) => {
                *seen = at;
                break;
            }
            (b'\r' | b'\n' | 0, _) => return Err(bad("malformed line end in the head")),
            _ => {
                *seen = at + 1;
                continue;
            }
        }
        if at == 0 {
            return Err(bad("malformed request line"));
        }
        *seen = at + 2;
        if bytes[..at].ends_with(b"\r\n") {
            return Ok(Some(*seen));
        }
    }
    if bytes.len() < limits.head {
        return Ok(None);
    }
    // Which line the limit was reached in decides what is too long.
    let is_first_line = !bytes[..end].contains(&b'\n');
    Err(match is_first_line {
        true => HttpRefusal {
            status: 414,
            why: "the URI is too long",
            limit: Some("uri"),
        },
        false => HttpRefusal {
            status: 431,
            why: "the head is too long",
            limit: Some("head"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{Framing, HostRule, Limits};

    /// Reads bytes that come in pieces of this size. Returns the lengths that passed at once, with
    /// bodies in one piece, or the status and the reason of a refusal.
    fn read(bytes: &[u8], step: usize) -> Result<Vec<usize>, (u16, &'static str)> {
        let limits = Limits {
            head: 512,
            uri: 100,
            header_value: 64,
            headers: 8,
            ..Limits::default()
        };
        let mut framing = Framing::new(&limits, HostRule::Required);
        let (mut buffer, mut passed, mut was_body) = (Vec::new(), Vec::new(), false);
        for piece in bytes.chunks(step) {
            buffer.extend_from_slice(piece);
            loop {
                let is_body = !framing.is_in_head();
                let now = framing.pass(&buffer).map_err(|it| (it.status, it.why))?;
                if now == 0 {
                    break;
                }
                buffer.drain(..now);
                // A body passes in as many parts as it comes, which the result is not to show.
                match passed.last_mut() {
                    Some(last) if is_body && was_body => *last += now,
                    _ => passed.push(now),
                }
                was_body = is_body;
            }
        }
        Ok(passed)
    }

    fn both(bytes: &[u8]) -> Result<Vec<usize>, (u16, &'static str)> {
        let whole = read(bytes, bytes.len());
        assert_eq!(read(bytes, 1), whole);
        whole
    }

    #[test]
    fn requests_pass_one_after_another() {
        let get = b"GET /Xy?x=1 HTTP/1.1\r\nHost: a\r\n\r\n";
        let post = b"POST /Xy HTTP/1.1\r\nHost: a\r\ncontent-length: 3\r\n\r\n";
        let chunked = b"POST /Xy HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n";
        let body = b"3\r\nabc\r\n0\r\n\r\n";
        let old = b"GET / HTTP/1.0\r\n\r\n";
        let any = b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n";
        let whole = b"GET HTTP://a:1/Xy HTTP/1.1\r\nHost: a:1\r\n\r\n";
        let all = [
            &any[..],
            whole,
            get,
            &post[..],
            b"abc",
            chunked,
            body,
            old,
            get,
        ]
        .concat();
        let lengths = [
            any.len(),
            whole.len(),
            get.len(),
            post.len(),
            3,
            chunked.len(),
            body.len(),
            old.len(),
            get.len(),
        ];
        assert_eq!(both(&all), Ok(lengths.to_vec()));
    }

    #[test]
    fn an_empty_line_before_a_head_passes_alone() {
        let get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let all = [b"\r\n", &get[..], b"\r\n", get].concat();
        assert_eq!(both(&all), Ok(vec![2, get.len(), 2, get.len()]));
    }

    #[test]
    fn a_host_says_nothing_beside_an_absolute_target_and_may_be_optional() {
        let whole = b"GET http://a/ HTTP/1.1\r\nHost: [::1\r\n\r\n";
        assert_eq!(both(whole), Ok(vec![whole.len()]));
        let none = b"GET / HTTP/1.1\r\n\r\n";
        let limits = Limits::default();
        for (host, is_ok) in [(HostRule::Required, false), (HostRule::Optional, true)] {
            assert_eq!(Framing::new(&limits, host).pass(none).is_ok(), is_ok);
        }
    }

    #[test]
    fn a_target_has_a_form_of_its_method_and_no_bare_signs() {
        for line in [
            "GET * HTTP/1.1",
            "OPTIONS ** HTTP/1.1",
            "GET host HTTP/1.1",
            "GET host:80 HTTP/1.1",
            "CONNECT example.org:80 HTTP/1.1",
            "CONNECT /Xy HTTP/1.1",
            "CONNECT http://a/Xy HTTP/1.1",
            "GET http:// HTTP/1.1",
            "GET http:/Xy HTTP/1.1",
            "GET /Xy#part HTTP/1.1",
            "GET /Xy?x=\"1\" HTTP/1.1",
            "GET /<Xy> HTTP/1.1",
            "GET /`Xy HTTP/1.1",
        ] {
            let head = format!("{line}\r\nHost: a\r\n\r\n");
            assert_eq!(both(head.as_bytes()).unwrap_err().0, 400, "{line}");
        }
    }

    #[test]
    fn malformed_heads_are_refused() {
        let of_line = |line: &str| format!("{line}\r\nHost: a\r\n\r\n");
        let of_field = |field: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n");
        let lines = [
            "GET /",
            "GET  / HTTP/1.1",
            "GET / HTTP/1.1 ",
            " GET / HTTP/1.1",
            "GET /a b HTTP/1.1",
            "GET /\u{e9} HTTP/1.1",
            "GET / http/1.1",
            "GET / HTTP/1.1.1",
            "GET\t/ HTTP/1.1",
            "G(T / HTTP/1.1",
            "/ HTTP/1.1",
            "GET example.org:80 HTTP/1.1",
            "GET /\u{7f} HTTP/1.1",
            "GET / HTTP/11",
        ];
        let fields = [
            "Transfer-Encoding : chunked",
            " folded",
            "A: b\r\n c",
            "A",
            ": b",
            "A b: c",
            "A: \u{1}",
            "Host: b",
            "Content-Length: -1",
            "Content-Length: +1",
            "Content-Length: 1, 1",
            "Content-Length: 0x1",
            "Content-Length:",
            "Content-Length: 99999999999999999999",
            "Content-Length: 1\r\nContent-Length: 1",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: identity",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "A: \u{7f}",
        ];
        let lines = lines.iter().map(|line| of_line(line));
        let fields = fields.iter().map(|field| of_field(field));
        let others = [
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\rHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n",
            "GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n",
            "GET http://b:x/ HTTP/1.1\r\nHost: b\r\n\r\n",
            "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "\u{16}\u{3}\u{1}\r\n\r\n",
        ];
        for head in lines.chain(fields).chain(others.map(str::to_owned)) {
            let refused = both(head.as_bytes()).unwrap_err();
            assert_eq!(refused.0, 400, "{head:?}");
        }
        // The preface of HTTP/2 is a well-formed line of a version that is not spoken here.
        assert_eq!(
            both(of_line("PRI * HTTP/2.0").as_bytes()).unwrap_err().0,
            505
        );
    }

    #[test]
    fn each_limit_of_a_head_has_its_status() {
        let status = |head: String| match both(head.as_bytes()) {
            Ok(_) => 200,
            Err((status, _)) => status,
        };
        let uri = |length: usize| {
            status(format!(
                "GET /{} HTTP/1.1\r\nHost: a\r\n\r\n",
                "x".repeat(length)
            ))
        };
        // With its slash, the first one has the length of the limit. The last exceeds a whole head.
        assert_eq!((uri(99), uri(100), uri(600)), (200, 414, 414));
        let value = |length: usize| {
            status(format!(
                "GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n",
                "x".repeat(length)
            ))
        };
        assert_eq!((value(64), value(65), value(600)), (200, 431, 431));
        let fields = |count: usize| {
            status(format!(
                "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
                "A: b\r\n".repeat(count)
            ))
        };
        assert_eq!((fields(7), fields(8), fields(200)), (200, 431, 431));
    }
}
