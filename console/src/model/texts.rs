//! The texts of a model, each of them kept once.
//!
//! Most actors share their functions and places, but names and keys may be many. So all texts are in
//! one string, and an actor has numbers of four bytes.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// The number of a text; that of the empty text is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TextId(u32);

impl TextId {
    /// Returns whether this is the empty text, which stands for none.
    pub fn is_empty(self) -> bool {
        self == TextId(0)
    }
}

/// All texts of a model.
#[derive(Debug, Default)]
pub struct Texts {
    all: String,
    /// Where the text of each number ends. It begins where the one before ends.
    ends: Vec<u32>,
    /// The number of the text of a hash. If two have one hash, the second is at the next free hash.
    numbers: HashMap<u64, u32, HashedAlready>,
    hasher: RandomState,
}

/// The keys of the map are hashes already.
type HashedAlready = std::hash::BuildHasherDefault<AsItIs>;

#[derive(Debug, Default)]
struct AsItIs(u64);

impl std::hash::Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

impl Texts {
    /// Returns the number of a text, in which control characters are escaped.
    pub fn number(&mut self, text: &str) -> TextId {
        if text.is_empty() {
            return TextId(0);
        }
        if is_dangerous(text) {
            let escaped = escape(text);
            return self.number_of_clean(&escaped);
        }
        self.number_of_clean(text)
    }

    fn number_of_clean(&mut self, text: &str) -> TextId {
        let mut hash = self.hasher.hash_one(text);
        while let Some(&number) = self.numbers.get(&hash) {
            if self.get(TextId(number)) == text {
                return TextId(number);
            }
            hash = hash.wrapping_add(1);
        }
        // Beyond 4 GiB all texts are one: a console that has so much has no memory left.
        let Ok(end) = u32::try_from(self.all.len() + text.len()) else {
            return TextId(0);
        };
        self.all.push_str(text);
        self.ends.push(end);
        let number = self.ends.len() as u32;
        self.numbers.insert(hash, number);
        TextId(number)
    }

    /// Returns the text of a number.
    pub fn get(&self, id: TextId) -> &str {
        let Some(at) = (id.0 as usize).checked_sub(1) else {
            return "";
        };
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[begin as usize..self.ends[at] as usize]
    }

    /// Returns how many texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// Returns whether a text would do something to a terminal, or look like another one.
fn is_dangerous(text: &str) -> bool {
    text.chars().any(is_dangerous_char)
}

fn is_dangerous_char(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        )
}

/// Returns a text in which control characters, and those that change the direction, are escaped.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match is_dangerous_char(c) {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{Texts, escape};

    #[test]
    fn a_text_is_kept_once_and_found_by_its_number() {
        let mut texts = Texts::default();
        let first = texts.number("cart");
        let other = texts.number("stock");
        assert_eq!(texts.number("cart"), first);
        assert_eq!((texts.get(first), texts.get(other)), ("cart", "stock"));
        assert_eq!(texts.len(), 2);
        let none = texts.number("");
        assert!(none.is_empty());
        assert_eq!(texts.get(none), "");
    }

    #[test]
    fn control_characters_and_changes_of_direction_are_escaped() {
        assert_eq!(escape("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(escape("ab\u{202e}c"), "ab\\u{202e}c");
        assert_eq!(escape("Größe 大"), "Größe 大");
        let mut texts = Texts::default();
        let id = texts.number("bell\x07");
        assert_eq!(texts.get(id), "bell\\u{7}");
    }
}
