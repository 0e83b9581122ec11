//! `Index`: the lines of a part of the files by their words, and the actor that searches them.
//!
//! The path of a file alone decides to which shard it belongs, so all nodes agree.

use std::collections::HashMap;
use std::path::Path;
use std::{fs, io};

use greenroom::{Context, Reply};
use greenroom_cluster::Remote;
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

/// The characters of a line that are kept.
const WIDTH: usize = 120;

/// A question to a shard.
#[derive(Serialize, Deserialize)]
pub enum Query {
    /// Finds the lines with this word, and returns the first ones.
    Search {
        word: String,
        limit: u32,
        #[serde(with = "greenroom_cluster::reply")]
        reply: Reply<Hits>,
    },
}

impl Remote for Query {
    const KIND: &'static str = "far_search/1";
}

/// The first lines with a word, in order, and the number of all of them.
#[derive(Serialize, Deserialize, Default, PartialEq)]
pub struct Hits {
    pub lines: Vec<Line>,
    pub found: usize,
}

/// The path of a file, the number of a line from 1 on, and its text.
pub type Line = (String, u32, String);

/// Returns the name of the actor of a shard.
pub fn name(shard: usize, of: usize) -> String {
    format!("index/{shard}/{of}")
}

/// Returns the shard of a file. It is no hash of `std`, which may be another one in other versions.
fn shard_of(path: &str, of: usize) -> usize {
    let fnv = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    path.bytes().fold(0x811c_9dc5, fnv) as usize % of
}

#[derive(Default)]
pub struct Index {
    /// All lines, ordered by path and number.
    lines: Vec<Line>,
    /// Where in `lines` each word is.
    words: HashMap<String, Vec<usize>>,
}

impl Index {
    /// Reads the files of a shard below a folder. It leaves out those that are not UTF-8.
    pub fn read(folder: &Path, shard: usize, of: usize) -> io::Result<Index> {
        let mut paths = Vec::new();
        for entry in WalkDir::new(folder) {
            let entry = entry?;
            let path = entry
                .path()
                .strip_prefix(folder)
                .map_err(io::Error::other)?;
            let path = path.to_string_lossy().into_owned();
            if entry.file_type().is_file() && shard_of(&path, of) == shard {
                paths.push(path);
            }
        }
        paths.sort();
        let mut index = Index::default();
        for path in &paths {
            if let Ok(text) = fs::read_to_string(folder.join(path)) {
                index.add(path, &text);
            }
        }
        Ok(index)
    }

    fn add(&mut self, path: &str, text: &str) {
        for (number, text) in (1..).zip(text.lines()) {
            let at = self.lines.len();
            for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
                let positions = self.words.entry(word.to_owned()).or_default();
                if positions.last() != Some(&at) {
                    positions.push(at);
                }
            }
            let text = text.trim().chars().take(WIDTH).collect();
            self.lines.push((path.to_owned(), number, text));
        }
    }

    /// Returns the number of lines.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    fn search(&self, word: &str, limit: u32) -> Hits {
        let positions = self.words.get(word).map_or(&[][..], |positions| positions);
        let first = positions.iter().take(limit as usize);
        let lines = first.map(|at| self.lines[*at].clone()).collect();
        let found = positions.len();
        Hits { lines, found }
    }
}

/// Answers for a shard. It is an actor.
pub async fn index(mut cx: Context<Query>, index: Index) {
    while let Some(Query::Search { word, limit, reply }) = cx.recv().await {
        reply.send(index.search(&word, limit));
    }
}
