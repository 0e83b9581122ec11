//! This example shows a cache: many askers of one key cause one fetch, failures are not kept, and
//! the size is bounded.
//!
//! ```text
//!  asker ──┐                      ┌─ the key is kept: answers at once
//!  asker ──┼─> cache (bounded) ───┼─ it is being fetched: keeps the reply with the others
//!  asker ──┘        │             └─ neither: fetches it, and receives meanwhile
//!                   └─ on_answer <─────── origin (slow)
//! ```
//!
//! It uses `on_answer` for the requests in flight, and keeps each `Reply` until its key is there. It
//! prints:
//!
//! ```text
//! 100 askers of one page: 1 fetch
//! a page that fails: both askers are told, and the next asker causes a fetch
//! 3 pages are kept: the one that was asked for is still there, the oldest is not
//! too many different pages at once: refused: busy (8 pages are being fetched)
//! ```

use std::collections::HashMap;
use std::time::Duration;

use greenroom::time::sleep;
use greenroom::{Address, AskError, Context, Refusal, RefusalKind, Reply, concurrently, spawn};

/// The maximum number of pages that are kept.
const SIZE: usize = 3;
/// The maximum number of pages that are fetched at the same time.
const FETCHES: usize = 8;
/// The number of askers that may wait in the mailbox. More wait for room.
const ASKERS: usize = 100;
/// The time after which a fetch has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks the origin for a page.
type Fetch = (u32, Reply<String>);

enum ToCache {
    Get(u32, Reply<String>),
    Fetched(u32, Result<String, AskError>),
}

struct Page {
    text: String,
    /// The number of the request that used it last.
    used: u64,
}

async fn cache(mut cx: Context<ToCache>, origin: Address<Fetch>) {
    let mut pages: HashMap<u32, Page> = HashMap::new();
    // Those who asked for each page that is being fetched.
    let mut waiting: HashMap<u32, Vec<Reply<String>>> = HashMap::new();
    let mut now = 0;
    while let Some(message) = cx.recv().await {
        now += 1;
        match message {
            ToCache::Get(key, reply) => {
                if let Some(page) = pages.get_mut(&key) {
                    page.used = now;
                    reply.send(page.text.clone());
                } else if let Some(askers) = waiting.get_mut(&key) {
                    askers.push(reply);
                } else if waiting.len() == FETCHES {
                    let why = format!("{FETCHES} pages are being fetched");
                    reply.refuse(Refusal::of(RefusalKind::Busy, why));
                } else {
                    waiting.insert(key, vec![reply]);
                    let fetch = origin.request(move |page| (key, page)).timeout(PATIENCE);
                    cx.on_answer(fetch, move |answer| ToCache::Fetched(key, answer));
                }
            }
            ToCache::Fetched(key, answer) => {
                for reply in waiting.remove(&key).into_iter().flatten() {
                    match &answer {
                        Ok(text) => reply.send(text.clone()),
                        Err(error) => {
                            let why = error.to_string();
                            reply.refuse(Refusal::of(RefusalKind::Unavailable, why));
                        }
                    }
                }
                if let Ok(text) = answer {
                    let oldest = pages.iter().min_by_key(|(_, page)| page.used);
                    let oldest = oldest.map(|(key, _)| *key).filter(|_| pages.len() == SIZE);
                    oldest.and_then(|oldest| pages.remove(&oldest));
                    pages.insert(key, Page { text, used: now });
                }
            }
        }
    }
}

/// Counts its fetches. The first fetch of page 13 fails, and those from page 100 on have no end.
async fn origin(mut cx: Context<Fetch>) -> HashMap<u32, usize> {
    let mut fetches = HashMap::new();
    let mut never = Vec::new();
    while let Some((key, reply)) = cx.recv().await {
        let count = fetches.entry(key).or_insert(0);
        *count += 1;
        sleep(Duration::from_millis(1)).await; // the network
        match (key, *count) {
            (13, 1) => reply.refuse(Refusal::new("unlucky", "page 13")),
            (100.., _) => never.push(reply),
            _ => reply.send(format!("page {key}")),
        }
    }
    fetches
}

fn main() {
    greenroom::run(async {
        let origin = spawn!(origin(_));
        let cache = spawn!(cache(_, origin.address()), capacity = ASKERS);
        let get = |key| cache.ask(move |reply| ToCache::Get(key, reply));

        let same = concurrently([7; 100].map(&get)).await;
        assert!(same.iter().all(|page| page.as_deref() == Ok("page 7")));

        // The second one shares the fetch that fails, unless it comes after that.
        let (first, second) = concurrently((get(13), get(13))).await;
        assert!(matches!(first, Err(AskError::Refused(_))));
        assert!(matches!(second, Err(AskError::Refused(_))) || second.as_deref() == Ok("page 13"));
        assert_eq!(get(13).await.as_deref(), Ok("page 13"));

        // Pages 7, 13 and 1 are kept. Page 7 is used, so the next one replaces page 13.
        for key in [1, 7, 2, 7, 13] {
            assert_eq!(get(key).await, Ok(format!("page {key}")));
        }

        // The origin answers none of these. So eight fetches are in flight.
        let slow = |key| {
            let (reply, answer) = Reply::pair();
            let told = cache.tell(ToCache::Get(key, reply));
            told.expect("there is room for a hundred");
            answer
        };
        let slow = concurrently((100..108).map(slow).collect::<Vec<_>>());
        let refused = get(108).await.expect_err("eight are in flight");

        cache.stop(); // drops what is in flight
        assert!(slow.await.iter().all(Result::is_err));
        cache.join().await.expect("it does not panic");
        let fetches = origin.join().await.expect("the cache had the last address");
        println!("100 askers of one page: {} fetch", fetches[&7]);
        assert_eq!(
            fetches[&13], 3,
            "failed, fetched, replaced and fetched again"
        );
        println!("a page that fails: both askers are told, and the next asker causes a fetch");
        println!(
            "{SIZE} pages are kept: the one that was asked for is still there, the oldest is not"
        );
        println!("too many different pages at once: {refused}");
    });
}
