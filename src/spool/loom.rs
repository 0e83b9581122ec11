//! `model_58`: a worker answers while its request times out, and the next one is given to it.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use ::loom::thread::spawn;

use super::limits::SpoolLimits;
use super::pool::Pool;
use crate::actor::{Reply, actor};
use crate::instant::{Instant, clock};

type Work = (u32, Reply<u32>);

const LIMIT: Duration = Duration::from_secs(1);

fn pool() -> Arc<Pool<u32, u32>> {
    let limits = SpoolLimits {
        capacity: None,
        responsiveness: Some(LIMIT),
        busy_pass_rate: 1,
        stand_down: None,
        queue_timeout: None,
        refuse_oldest: false,
        retries: 0,
        has_affinity: false,
        is_external: true,
    };
    Pool::new(limits, 0, None, None, false)
}

/// Checks that each request has its own outcome: the late answer to the first one, which times out,
/// does not reach the second one, and the second one is not left.
#[test]
fn model_58_a_late_answer_is_not_that_of_the_next_request() {
    ::loom::model(|| {
        let pool = pool();
        let received = Rc::new(RefCell::new(Vec::new()));
        let receives = received.clone();
        let (worker, mut running) = actor(|mut cx: crate::Context<Work>| async move {
            while let Some(work) = cx.recv().await {
                receives.borrow_mut().push(work);
            }
        })
        .split();
        let now = Instant::now();
        pool.change(|it, outbox| it.join(worker, now, outbox));
        let (client, mut first) = Reply::pair();
        pool.submit(1, client);
        let (client, mut second) = Reply::pair();
        pool.submit(2, client);
        let mut polls = TaskContext::from_waker(Waker::noop());
        let mut next = || {
            assert!(pin!(&mut running).poll(&mut polls).is_pending());
            received.borrow_mut().pop().expect("a request was sent")
        };
        let (_, answer) = next();
        let mut task = TaskContext::from_waker(Waker::noop());
        clock::advance(LIMIT * 5);
        let late = Instant::now();
        let answers = spawn(move || answer.send(1));
        pool.change(|it, outbox| it.sweep(late, outbox));
        answers.join().unwrap();
        let outcome = Pin::new(&mut first).poll(&mut task);
        assert!(outcome.is_ready(), "the first request has an outcome");
        let outcome = Pin::new(&mut second).poll(&mut task);
        assert!(
            outcome.is_pending(),
            "nothing has answered the second request"
        );
        let (_, answer) = next();
        answer.send(2);
        let outcome = Pin::new(&mut second).poll(&mut task);
        assert_eq!(outcome, Poll::Ready(Ok(2)));
        pool.change(|it, outbox| it.end(outbox));
    });
}
