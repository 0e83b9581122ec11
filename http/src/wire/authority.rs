//! A host with its port, by the grammar of URIs.
//!
//! No two readers understand it in different ways: there is no user in it, and no second port.

use std::net::Ipv6Addr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Authority<'a> {
    /// The name without a last dot, or the address without brackets.
    pub(crate) name: &'a str,
    pub(crate) port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Reads a host that may have a port. Returns `None` if it is malformed.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (name, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                address.parse::<Ipv6Addr>().ok()?;
                (address, rest)
            }
            None => {
                let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                is_name(name).then_some(())?;
                (name.strip_suffix('.').unwrap_or(name), rest)
            }
        };
        let port = match rest {
            "" | ":" => None,
            rest => Some(port(rest.strip_prefix(':')?)?),
        };
        Some(Authority { name, port })
    }
}

fn port(digits: &str) -> Option<u16> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// Returns whether a name has only what a host may have. It may be empty.
fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    while let Some(byte) = bytes.next() {
        let is_right = match byte {
            b'%' => {
                let mut is_digit = || bytes.next().is_some_and(|it| it.is_ascii_hexdigit());
                is_digit() && is_digit()
            }
            _ => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte),
        };
        if !is_right {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::Authority;

    #[test]
    fn a_host_has_a_name_and_perhaps_a_port() {
        for (text, name, port) in [
            ("localhost", "localhost", None),
            ("localhost.", "localhost", None),
            ("LocalHost:80", "LocalHost", Some(80)),
            ("a.b-c_d.:", "a.b-c_d", None),
            ("127.0.0.1:65535", "127.0.0.1", Some(65535)),
            ("[::1]", "::1", None),
            ("[::1]:8080", "::1", Some(8080)),
            ("%41", "%41", None),
            ("", "", None),
        ] {
            assert_eq!(
                Authority::parse(text),
                Some(Authority { name, port }),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_host_is_malformed() {
        for text in [
            "[::1",
            "::1]",
            "::1",
            "[::1]80",
            "[localhost]",
            "a@localhost",
            "localhost:99999",
            "localhost:+80",
            "localhost:8a",
            "localhost:80:90",
            "a b",
            "a/b",
            "a?b",
            "a#b",
            "ä",
            "a\\b",
            "%4",
            "%zz",
            "<a>",
            "\"a\"",
        ] {
            assert_eq!(Authority::parse(text), None, "{text}");
        }
    }
}
