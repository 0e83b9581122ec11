//! The texts of a model, each of them kept once.
//!
//! Most actors share their functions and locations, but names and keys may be many. So all texts are in
//! one string, and an actor has numbers of four bytes.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

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
    /// The numbers of all texts, by their hashes.
    ids: HashTable<TextId>,
    hasher: RandomState,
}

impl Texts {
    /// Returns the number of a text, in which control characters are escaped.
    pub fn number(&mut self, text: &str) -> TextId {
        if text.is_empty() {
            return TextId(0);
        }
        if text.chars().any(is_dangerous) {
            return self.number(&escape(text));
        }
        let Texts { all, ends, ids, .. } = self;
        let hash = self.hasher.hash_one(text);
        if let Some(id) = ids.find(hash, |id| text_of(all, ends, *id) == text) {
            return *id;
        }
        // Beyond 4 GiB all texts are one: a console that has so much has no memory left.
        let Ok(end) = u32::try_from(all.len() + text.len()) else {
            return TextId(0);
        };
        all.push_str(text);
        ends.push(end);
        let id = TextId(ends.len() as u32);
        let hash_of = |id: &TextId| self.hasher.hash_one(text_of(all, ends, *id));
        ids.insert_unique(hash, id, hash_of);
        id
    }

    /// Returns the text of a number.
    pub fn get(&self, id: TextId) -> &str {
        text_of(&self.all, &self.ends, id)
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

fn text_of<'a>(all: &'a str, ends: &[u32], id: TextId) -> &'a str {
    let Some(at) = (id.0 as usize).checked_sub(1) else {
        return "";
    };
    let begin = at.checked_sub(1).map_or(0, |before| ends[before]);
    &all[begin as usize..ends[at] as usize]
}

/// Returns whether a character would do something to a terminal, or make a text look like another one.
fn is_dangerous(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{feff}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{fff9}'..='\u{fffb}'
        )
}

/// Returns a text in which control characters, and those that change the direction, are escaped.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match is_dangerous(c) {
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
