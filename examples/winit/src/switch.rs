//! The switch: an actor on the workers, which decides when the lamp is on.

use std::time::Duration;

use greenroom::{Address, Context};

use crate::lamp::ToLamp;

/// The time between two changes of a lamp that blinks.
const PERIOD: Duration = Duration::from_millis(100);
/// The number of changes of a lamp that blinks.
const CHANGES: u32 = 20;

/// A mouse button or a key was pressed, or it is time for the next change.
pub struct Press;

/// Switches the lamp at each press. Returns how often. A lamp that does not stay blinks, and is
/// stopped in the end.
pub async fn switch(mut cx: Context<Press>, lamp: Address<ToLamp>, stays: bool) -> u32 {
    let blink = (!stays).then(|| cx.send_every(PERIOD, || Press));
    let mut changes = 0;
    while let Some(Press) = cx.recv().await {
        changes += 1;
        if lamp.tell(ToLamp::Set(changes % 2 == 1)).is_err() {
            break;
        }
        if !stays && changes == CHANGES {
            lamp.stop();
            break;
        }
    }
    drop(blink);
    changes
}
