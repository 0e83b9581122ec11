//! The case `ask_timeouts`: many tasks ask one actor, which begins when all questions were sent.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Instant;

use ::tokio::sync::oneshot;

use crate::figures::{self, Figure, check, rate, sum_below};
use crate::sizes::{LIMITED, LIMITED_WAVES};

/// Ends the actor's wait once all questions of a wave were sent.
pub struct Gate {
    left: AtomicU64,
    open: Mutex<Option<oneshot::Sender<()>>>,
}

/// What the actor waits for before it receives.
pub type Opened = oneshot::Receiver<()>;

impl Gate {
    fn new() -> (Arc<Self>, Opened) {
        let (open, opened) = oneshot::channel();
        let gate = Self {
            left: AtomicU64::new(LIMITED),
            open: Mutex::new(Some(open)),
        };
        (Arc::new(gate), opened)
    }

    /// Sends the question by the first poll of `ask`, and waits for its answer.
    pub async fn ask(self: Arc<Self>, ask: impl Future<Output = u64>) -> u64 {
        let mut ask = pin!(ask);
        let polled = poll_fn(|cx| Poll::Ready(ask.as_mut().poll(cx))).await;
        assert!(polled.is_pending(), "no question is answered yet");
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let open = self.open.lock().expect("not poisoned").take();
            let opened = open.expect("only once").send(());
            opened.expect("the actor waits");
        }
        ask.await
    }
}

/// Runs the driver: `start` starts the actor of a wave, and `ask` spawns a task that asks it.
pub async fn waves<A, T>(
    start: impl Fn(Opened) -> A,
    ask: impl Fn(&A, Arc<Gate>, u64) -> T,
) -> Vec<Figure>
where
    T: Future<Output = u64>,
{
    let begin = Instant::now();
    for _ in 0..LIMITED_WAVES {
        let (gate, opened) = Gate::new();
        let actor = start(opened);
        let tasks: Vec<_> = (0..LIMITED).map(|n| ask(&actor, gate.clone(), n)).collect();
        let mut sum = 0;
        for task in tasks {
            sum += task.await;
        }
        check("answers", sum, sum_below(LIMITED));
    }
    vec![rate(figures::ASKS, LIMITED_WAVES * LIMITED, begin)]
}
