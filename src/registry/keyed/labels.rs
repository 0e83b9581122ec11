//! The texts of keys, for those who look at actors.

use super::core::KeyedCore;
use crate::contain::{attempt, contain};
use crate::directory::LabelledKeys;

impl<K, M> LabelledKeys for KeyedCore<K, M>
where
    K: Clone + Send + 'static,
    M: Send + 'static,
{
    fn texts(&self, is_new: &mut dyn FnMut(u64) -> bool) -> Vec<(u64, String)> {
        let Some(label) = &self.label else {
            return Vec::new();
        };
        let mut texts = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let started = shard.keys.iter();
            let started = started.filter_map(|(_, key, state)| Some((state.tenant.id()?, key)));
            let new = started.filter(|(id, _)| is_new(*id));
            let new = new.map(|(id, key)| (id, attempt(|| key.clone())));
            let new: Vec<_> = new.collect();
            drop(shard);
            for (id, key) in new {
                let text = key.as_ref().ok();
                let text = text.and_then(|key| attempt(|| label(key)).ok());
                texts.push((id, text.unwrap_or_else(|| "?".to_owned())));
                contain(|| drop(key));
            }
        }
        texts
    }
}
