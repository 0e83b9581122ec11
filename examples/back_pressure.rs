//! This example shows back-pressure: a bounded mailbox makes a fast sender wait for a slow reader.
//!
//! It uses `capacity`, `tell`, which is refused when the mailbox is full, and `send`, which waits
//! for room. However many parcels are sent, at most twelve exist at a time: ten in the mailbox, one
//! at the sender, one at the reader. It prints:
//!
//! ```text
//! 10 of 15 fit at once, 5 came back
//! 1000 were sent, a dozen at a time
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::{Context, TellError, spawn};

const CAPACITY: usize = 10;

static PARCELS: AtomicUsize = AtomicUsize::new(0);

/// A message; `PARCELS` counts those that exist.
struct Parcel;

impl Parcel {
    fn new() -> Parcel {
        PARCELS.fetch_add(1, Ordering::Relaxed);
        Parcel
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        PARCELS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Never reads.
async fn deaf(_cx: Context<Parcel>) {
    std::future::pending().await
}

/// Returns the largest number of parcels that existed at one time.
async fn slow(mut cx: Context<Parcel>) -> usize {
    let mut most = 0;
    while let Some(_parcel) = cx.recv().await {
        most = most.max(PARCELS.load(Ordering::Relaxed));
        greenroom::yield_now().await; // the work
    }
    most
}

fn main() {
    greenroom::run(async {
        let deaf = spawn!(deaf(_), capacity = CAPACITY);
        let told: Vec<_> = (0..15).map(|_| deaf.tell(Parcel::new())).collect();
        let full =
            |told: &&Result<(), TellError<Parcel>>| told.as_ref().is_err_and(|e| e.is_full());
        let refused = told.iter().filter(full).count();
        println!("{} of 15 fit at once, {refused} came back", 15 - refused);
        deaf.kill();
        deaf.closed().await;
        drop(told);

        let reader = spawn!(slow(_), capacity = CAPACITY);
        for _ in 0..1000 {
            reader.send(Parcel::new()).await.expect("it is open");
        }
        let most = reader
            .join()
            .await
            .expect("the reader ends when no address is left");
        assert!(most <= CAPACITY + 2, "{most} at a time");
        println!("1000 were sent, a dozen at a time");
    });
}
