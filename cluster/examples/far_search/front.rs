//! `Front`: asks all shards, and merges their answers.
//!
//! A shard that does not answer costs time and its lines. Those of others are shown.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures::future::join_all;
use greenroom_cluster::{NameChange, Node, RemoteAddress};

use crate::Trouble;
use crate::index::{self, Hits, Query};

/// How long a question waits until a shard is found, and then for its answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Front {
    node: Node,
    /// The addresses of the shards that have answered the last question.
    known: Vec<Option<RemoteAddress<Query>>>,
}

/// The answers of all shards.
#[derive(PartialEq)]
pub struct Answer {
    hits: Hits,
    /// The shards that have not answered, with the reasons.
    pub missing: BTreeMap<usize, String>,
    shards: usize,
}

impl Front {
    /// Waits until any shard is found. Its name says how many there are.
    pub async fn open(node: Node) -> Result<Front, Trouble> {
        let mut names = node.watch_names("index/");
        let found = greenroom::time::timeout(PATIENCE, names.next()).await;
        let Ok(Some(NameChange::Come { name, .. })) = found else {
            let unreached = node.status().unreached.join("; ");
            return Err(format!("no shard was found: {unreached}").into());
        };
        let of: u8 = name.rsplit('/').next().unwrap_or_default().parse()?;
        let known = vec![None; of.into()];
        Ok(Front { node, known })
    }

    /// Asks all shards at once.
    pub async fn ask(&mut self, word: &str, limit: u32) -> Answer {
        let Front { node, known } = self;
        let shards = known.len();
        let asked = known.iter_mut().enumerate().map(|(shard, known)| {
            let name = index::name(shard, shards);
            ask(node, name, known, word, limit)
        });
        let (mut hits, mut missing) = (Hits::default(), BTreeMap::new());
        for (shard, answer) in join_all(asked).await.into_iter().enumerate() {
            match answer {
                Ok(of_shard) => {
                    hits.found += of_shard.found;
                    hits.lines.extend(of_shard.lines);
                }
                Err(why) => drop(missing.insert(shard, why.to_string())),
            }
        }
        hits.lines.sort();
        hits.lines.truncate(limit as usize);
        Answer {
            hits,
            missing,
            shards,
        }
    }
}

/// Asks a shard. One that does not answer is looked up anew the next time: its node may come back.
async fn ask(
    node: &Node,
    name: String,
    known: &mut Option<RemoteAddress<Query>>,
    word: &str,
    limit: u32,
) -> Result<Hits, Trouble> {
    let far = match known.take() {
        Some(far) => far,
        None => node.lookup(name).timeout(PATIENCE).await?,
    };
    let word = word.to_owned();
    let asked = far.ask(|reply| Query::Search { word, limit, reply });
    let hits = asked.timeout(PATIENCE).await?;
    *known = Some(far);
    Ok(hits)
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, number, text) in &self.hits.lines {
            writeln!(f, "{path}:{number}: {text}")?;
        }
        let (shown, found) = (self.hits.lines.len(), self.hits.found);
        let (answers, of) = (self.shards - self.missing.len(), self.shards);
        writeln!(f, "{shown} of {found} lines, from {answers} of {of} shards")?;
        let mut missing = self.missing.iter();
        missing.try_for_each(|(shard, why)| writeln!(f, "shard {shard} is missing: {why}"))
    }
}
