//! Back-pressure: a bounded mailbox lets a fast sender wait for a slow reader.
//!
//! Shows `capacity`, `tell` that is refused when there is no room, and `send` that waits for it.
//! However many parcels are sent, only a dozen exist at a time: ten in the mailbox, one in the hand
//! of the sender, one in that of the reader. Prints:
//!
//! ```text
//! 10 of 15 fit at once, 5 came back
//! 1000 were sent, a dozen at a time
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::{Context, TellError, spawn};

const CAPACITY: usize = 10;

static PARCELS: AtomicUsize = AtomicUsize::new(0);

/// A message that is counted as long as it exists.
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

/// Says how many parcels there were when there were most.
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
            .expect("it ends when nobody sends any more");
        assert!(most <= CAPACITY + 2, "{most} at a time");
        println!("1000 were sent, a dozen at a time");
    });
}
