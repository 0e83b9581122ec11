//! This example shows timers: messages that an actor sends itself, once later or repeatedly.
//!
//! It uses `send_after` for a timeout that every message restarts, `send_every` for a beat, and
//! `time::Interval` in a plain task. It prints:
//!
//! ```text
//! beat 1
//! beat 2
//! beat 3
//! quiet for 50 ms: the watchdog bites
//! 3 ticks of a plain task
//! ```

use std::time::Duration;

use greenroom::time::Interval;
use greenroom::{Context, spawn};

const PATIENCE: Duration = Duration::from_millis(50);

enum Sign {
    OfLife(u32),
    Silence,
}

/// Waits for signs of life, each time for at most `PATIENCE`.
async fn watchdog(mut cx: Context<Sign>) {
    let mut timer = cx.send_after(PATIENCE, Sign::Silence);
    while let Some(sign) = cx.recv().await {
        match sign {
            Sign::OfLife(beat) => {
                println!("beat {beat}");
                // The old guard is dropped, and its timer with it.
                timer = cx.send_after(PATIENCE, Sign::Silence);
            }
            Sign::Silence => {
                println!("quiet for {} ms: the watchdog bites", PATIENCE.as_millis());
                cx.stop();
            }
        }
    }
    drop(timer);
}

/// Sends three beats. Its timer keeps it open, although no address is left.
async fn heart(mut cx: Context<()>, dog: greenroom::Address<Sign>) {
    let timer = cx.send_every(Duration::from_millis(5), || ());
    for beat in 1..=3 {
        cx.recv().await;
        let _ = dog.tell(Sign::OfLife(beat));
    }
    drop(timer);
}

fn main() {
    greenroom::run(async {
        let dog = spawn!(watchdog(_));
        spawn!(heart(_, dog.address()))
            .join()
            .await
            .expect("the heart ends after three beats");
        dog.join().await.expect("the watchdog stops itself");

        let mut ticks = Interval::new(Duration::from_millis(5));
        for _ in 0..3 {
            ticks.tick().await;
        }
        println!("3 ticks of a plain task");
    });
}
