//! The subjects of a broker, with the names of nodes and actors in them.
//!
//! A name is one token, and each token is one name. No message of another node comes under it.

use std::fmt::{self, Write};

/// The first token of each subject.
const ROOT: &str = "gr";

/// The bytes of the longest token. A name has at most 255, and an escape takes three.
#[cfg(test)]
const LONGEST_TOKEN: usize = 3 * crate::node::LONGEST_NAME;

/// A name as a token: letters, digits, `-` and `_` are as they are, and any other byte is `=` with two
/// hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(String);

impl Token {
    pub(super) fn new(name: &str) -> Token {
        let mut token = String::with_capacity(name.len());
        for byte in name.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => token.push(byte.into()),
                // A text takes all that is written.
                _ => drop(write!(token, "={byte:02X}")),
            }
        }
        Token(token)
    }

    /// Returns the name, if some name has this token.
    pub(super) fn name(&self) -> Option<String> {
        let mut bytes = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            let (byte, after) = match first {
                b'=' => {
                    let (digits, after) = after.split_at_checked(2)?;
                    let digits = str::from_utf8(digits).ok()?;
                    (u8::from_str_radix(digits, 16).ok()?, after)
                }
                _ => (*first, after),
            };
            bytes.push(byte);
            rest = after;
        }
        let name = String::from_utf8(bytes).ok()?;
        // A name has one token, so that a node cannot have two.
        (Token::new(&name) == *self).then_some(name)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a subject is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PacketSubject<'a> {
    /// Packets from one node to another one.
    To { to: &'a Token, from: &'a Token },
    /// The question who holds this name.
    Find { name: &'a Token, from: &'a Token },
    /// The names that a node has given, for those that watch.
    Names { from: &'a Token },
    /// The question which names there are.
    Watch { from: &'a Token },
}

impl PacketSubject<'_> {
    pub(super) fn text(&self) -> String {
        match self {
            PacketSubject::To { to, from } => format!("{ROOT}.to.{}.{}", to.0, from.0),
            PacketSubject::Find { name, from } => format!("{ROOT}.find.{}.{}", name.0, from.0),
            PacketSubject::Names { from } => format!("{ROOT}.names.{}", from.0),
            PacketSubject::Watch { from } => format!("{ROOT}.watch.{}", from.0),
        }
    }
}

/// Returns the patterns of all that a node publishes.
#[cfg(feature = "nats")]
pub(super) fn all_from(me: &Token) -> [String; 4] {
    let (any, from) = (&Token("*".into()), me);
    let subjects = [
        PacketSubject::To { to: any, from },
        PacketSubject::Find { name: any, from },
        PacketSubject::Names { from },
        PacketSubject::Watch { from },
    ];
    subjects.map(|subject| subject.text())
}

/// Returns the pattern of all questions for names.
#[cfg(feature = "nats")]
pub(super) fn all_questions() -> String {
    all_that_find(&Token("*".into()))
}

/// Returns the pattern of all packets to this node.
pub(super) fn all_to(me: &Token) -> String {
    format!("{ROOT}.to.{}.*", me.0)
}

/// Returns the pattern of all questions for this name.
pub(super) fn all_that_find(name: &Token) -> String {
    format!("{ROOT}.find.{}.*", name.0)
}

/// Returns the pattern of all names that nodes give.
pub(super) fn all_names() -> String {
    format!("{ROOT}.names.*")
}

/// Returns the pattern of all questions which names there are.
pub(super) fn all_watches() -> String {
    format!("{ROOT}.watch.*")
}

/// Returns whether this asks who holds a name.
pub(super) fn is_question(subject: &str) -> bool {
    let asked = subject.strip_prefix(ROOT);
    asked.is_some_and(|rest| rest.starts_with(".find.") || rest.starts_with(".watch."))
}

/// Returns the name of the node that has published this, since the last token is that of the sender.
/// The server lets a node publish only such subjects.
pub(super) fn sender(subject: &str) -> Option<String> {
    let (_, last) = subject.rsplit_once('.')?;
    Token(last.into()).name()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns names with all that means something in a subject, and some at random.
    fn names() -> Vec<String> {
        let mut names: Vec<String> = [
            "a", "a.b", "a b", "*", ">", "=", "=2E", "~", "$SYS", "_INBOX",
        ]
        .into_iter()
        .chain([
            "löwe", "狐", "🦊", "\n", "\0", "A", ".", "..", "a.", "*.desk",
        ])
        .map(Into::into)
        .collect();
        names.push("x".repeat(255));
        names.push("狐".repeat(85));
        names.push(".".repeat(255));
        for seed in 0..2000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let chars = 1 + random.usize(..60);
            names.push((0..chars).map(|_| random.char(..)).collect());
        }
        names
    }

    #[test]
    fn each_name_is_one_token_and_comes_back() {
        for name in names() {
            let token = Token::new(&name);
            assert_eq!(token.name().as_deref(), Some(&*name));
            assert!(
                !token.0.contains(['.', '*', '>', ' ', '$', '\n', '\0']),
                "{token:?}"
            );
            assert!(
                token.0.is_ascii() && token.0.len() <= LONGEST_TOKEN,
                "{token:?}"
            );
            let to = &Token::new("desk");
            let subject = PacketSubject::To { to, from: &token }.text();
            assert_eq!(sender(&subject), Some(name));
        }
    }

    #[test]
    fn two_names_never_have_one_token() {
        let mut names = names();
        names.sort();
        names.dedup();
        let mut tokens: Vec<_> = names.iter().map(|name| Token::new(name)).collect();
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), names.len());
    }

    #[test]
    fn a_token_that_no_name_has_names_nobody() {
        for token in ["=", "=4", "=G1", "=41", "=2e", "a~", "=FF"] {
            assert_eq!(sender(&format!("gr.names.{token}")), None, "{token}");
        }
    }
}
