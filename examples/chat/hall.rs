//! The hall: an actor that knows the rooms by their names, and opens those that are missing.

use std::collections::HashMap;

use greenroom::{Address, Context, Reply, WeakAddress, spawn};

use crate::room::{ToRoom, room};

/// The number of messages that a room has waiting. While there are more, those who speak wait.
const ROOM: usize = 1000;

/// Asks for the room of a name.
pub type Find = (String, Reply<Address<ToRoom>>);

pub async fn hall(mut cx: Context<Find>) {
    let mut rooms: HashMap<String, WeakAddress<ToRoom>> = HashMap::new();
    while let Some((name, reply)) = cx.recv().await {
        if let Some(open) = rooms.get(&name).and_then(WeakAddress::upgrade) {
            reply.send(open);
            continue;
        }
        rooms.retain(|_, room| !room.is_closed());
        let open = spawn!(room(_), capacity = ROOM).address();
        rooms.insert(name, open.downgrade());
        reply.send(open);
    }
}
