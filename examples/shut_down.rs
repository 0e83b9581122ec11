//! This example shows a program that shuts down in order: first nothing comes in, then all that was
//! accepted is handled, and in the end each message is accounted for.
//!
//! ```text
//!  front ──> desk ──> store          audit: never ends by itself
//!  stop,     join,    join           the grace ends it
//!  join
//! ```
//!
//! A server would wait for `greenroom::ctrl_c` before it stops its front. It prints:
//!
//! ```text
//! the front is closed: order 11 came back
//! the front has accepted 10 orders, the store has 10
//! ended 0, cancelled 1, unhandled 9, left behind 0
//! not audited: 2 to 10
//! ```

use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

use greenroom::{Address, Context, Runtime, SendError, spawn};

/// The time after the stop in which actors can end by themselves.
const GRACE: Duration = Duration::from_millis(50);

async fn front(mut cx: Context<u32>, desk: Address<u32>) -> usize {
    let mut accepted = 0;
    while let Some(order) = cx.recv().await {
        accepted += 1;
        if desk.send(order).await.is_err() {
            eprintln!("order {order} is lost: the desk has ended");
        }
    }
    accepted
}

async fn desk(mut cx: Context<u32>, store: Address<String>) {
    while let Some(order) = cx.recv().await {
        if let Err(closed) = store.send(format!("order {order}")).await {
            eprintln!("{} is lost: the store has ended", closed.into_inner());
        }
    }
}

async fn store(mut cx: Context<String>) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(line) = cx.recv().await {
        lines.push(line);
    }
    lines // a real one closes its file here
}

/// Takes one order, and never ends.
async fn audit(mut cx: Context<u32>) {
    cx.recv().await;
    std::future::pending().await
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder().grace(GRACE).build()?;
    let (keep, lost) = mpsc::channel();
    let report = runtime.block_on(async {
        let store = spawn!(store(_));
        let desk = spawn!(desk(_, store.address()), capacity = 4);
        let front = spawn!(front(_, desk.address()), capacity = 4);
        let audit = spawn!(
            audit(_),
            on_undelivered = move |order| keep.send(order).unwrap()
        );
        for order in 1..=10 {
            front.send(order).await?;
            audit.send(order).await?;
        }

        front.stop();
        if let Err(order) = front.send(11).await.map_err(SendError::into_inner) {
            println!("the front is closed: order {order} came back");
        }
        let accepted = front.join().await?;
        // Without its front, the desk has no address. It ends when its mailbox is empty.
        desk.join().await?;
        let stored = store.join().await?.len();
        println!("the front has accepted {accepted} orders, the store has {stored}");
        Ok::<_, Box<dyn Error>>(runtime.shutdown().await)
    })?;
    println!(
        "ended {}, cancelled {}, unhandled {}, left behind {}",
        report.ended, report.cancelled, report.unhandled, report.left_behind
    );
    let lost: Vec<_> = lost.try_iter().collect();
    if let [first, .., last] = lost[..] {
        println!("not audited: {first} to {last}");
    }
    Ok(())
}
