//! User code that panics inside of a spool, or uses the spool again.

use super::*;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

/// A spool that its own questions use.
type Own = Arc<OnceLock<Spool<Question, usize>>>;

type Worker = Address<(Question, Reply<usize>)>;

/// A question that looks at the spool when it is cloned and when it is dropped.
struct Question {
    own: Own,
    /// Whether the first clone removes the workers.
    removes: Arc<Mutex<Vec<Worker>>>,
    task: Job,
}

impl Clone for Question {
    fn clone(&self) -> Self {
        for worker in std::mem::take(&mut *self.removes.lock().unwrap()) {
            assert!(self.own.get().unwrap().leave(&worker));
            worker.stop();
        }
        Question {
            own: self.own.clone(),
            removes: self.removes.clone(),
            task: self.task.clone(),
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(spool) = self.own.get() {
            spool.status();
        }
    }
}

fn question(own: &Own, task: Job) -> Question {
    Question {
        own: own.clone(),
        removes: Arc::default(),
        task,
    }
}

async fn asked(mut cx: Context<(Question, Reply<usize>)>, number: usize) {
    while let Some((question, reply)) = cx.recv().await {
        match question.task {
            Job::Say => reply.send(number),
            Job::Take(time) => {
                sleep(time).await;
                reply.send(number);
            }
            Job::Panic => panic!("bomb"),
            _ => drop(reply),
        }
    }
}

#[test]
fn a_question_may_use_the_spool_in_its_drop() {
    simulated(|| async {
        let own = Own::default();
        let spool = Spool::builder(|number| actor(move |cx| asked(cx, number)).spawn());
        let spool = spool.workers(2).capacity(1).retries(1).responsiveness(None);
        let spool = spool.queue_timeout(seconds(2.0)).spawn().unwrap();
        let _ = own.set(spool.clone());
        let ask = |task| spool.ask(question(&own, task));
        assert!(ask(Job::Say).await.is_ok());
        assert_eq!(cause(ask(Job::Drop).await), AskCause::ReplyDropped);
        // It is tried again, and waits too long for the other worker.
        let (panics, slow) = futures::join!(ask(Job::Panic), ask(Job::Take(seconds(3.0))));
        is_refused(panics, RefusalKind::TimedOut);
        assert!(slow.is_ok());
        let requests = [0; 5].map(|_| spool.request(question(&own, Job::Take(seconds(9.0)))));
        let outcomes = greenroom::concurrently(requests).await;
        assert_eq!(
            outcomes.iter().filter(|it| it.is_ok()).count(),
            1,
            "{outcomes:?}"
        );
        // It has no more tries.
        sleep(seconds(50.0)).await;
        let (one, two) = futures::join!(ask(Job::Panic), ask(Job::Say));
        assert!(one.is_err() && two.is_ok());
        spool.kill();
        let _ = spool.join().await;
        assert_eq!(settled(spool.status()), 11);
    });
}

#[test]
fn a_question_that_comes_back_to_a_spool_without_its_worker_is_dropped() {
    everywhere(|| async {
        let own = Own::default();
        let spool = Spool::external().retries(1).spawn().unwrap();
        let _ = own.set(spool.clone());
        let first = actor(move |cx| asked(cx, 0)).spawn();
        spool.join_worker(first.address());
        let asks = question(&own, Job::Say);
        asks.removes.lock().unwrap().push(first.address());
        is_refused(spool.ask(asks).await, RefusalKind::Aborted);
        assert_eq!(spool.status().idle, 0);
    });
}

struct Fatal(Arc<AtomicU32>);

impl Clone for Fatal {
    fn clone(&self) -> Self {
        panic!("bomb in a clone");
    }
}

impl Drop for Fatal {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_question_whose_clone_panics_is_handled_and_not_tried_again() {
    everywhere(|| async {
        let spool = Spool::builder(|_| {
            actor(|mut cx: Context<(Fatal, Reply<usize>)>| async move {
                let next = cx.recv().await;
                assert!(next.is_none(), "bomb");
            })
            .spawn()
        });
        let spool = spool.workers(1).retries(3).spawn().unwrap();
        let drops = Arc::new(AtomicU32::new(0));
        let outcome = spool.ask(Fatal(drops.clone())).await;
        assert_eq!(cause(outcome), AskCause::Panicked("bomb".to_owned()));
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

struct Bomb(Arc<AtomicU32>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("bomb in a drop");
    }
}

#[test]
fn questions_whose_drop_panics_harm_no_other_request() {
    everywhere(|| async {
        let spool = Spool::builder(|number| {
            let worker = move |mut cx: Context<(Option<Bomb>, Reply<usize>)>| async move {
                while let Some((bomb, reply)) = cx.recv().await {
                    std::mem::forget(bomb);
                    reply.send(number);
                }
            };
            actor(worker).spawn()
        });
        let spool = spool.workers(1).capacity(2).spawn().unwrap();
        let drops = Arc::new(AtomicU32::new(0));
        // The worker has the first one. The others wait, are unwanted, overflow, or are aborted.
        let first = spool.request(None);
        let mut first = Box::pin(first);
        let early = crate::support::poll_here(&mut first).await;
        for _ in 0..4 {
            let (reply, answer) = greenroom::Reply::pair();
            let _ = spool.tell(Some(Bomb(drops.clone())), reply);
            drop(answer);
        }
        // On another thread the worker may have answered by then.
        let answer = match early {
            Poll::Ready(answer) => answer,
            Poll::Pending => first.await,
        };
        assert_eq!(answer, Ok(0));
        assert_eq!(spool.ask(None).await, Ok(0));
        spool.stop();
        assert_eq!(spool.join().await.unwrap_err().kind(), RefusalKind::Aborted);
        assert_eq!(settled(spool.status()), 6);
    });
}

#[test]
fn a_panic_of_the_affinity_function_reaches_the_sender() {
    everywhere(|| async {
        let spool = Spool::builder(work).affinity(|job: &Job| match job {
            Job::Panic => panic!("bomb in a key"),
            _ => 0,
        });
        let spool = spool.workers(1).spawn().unwrap();
        let asks = spool.clone();
        let asker = actor(move |_: Context<()>| async move { asks.ask(Job::Panic).await });
        let fault = asker.spawn().join().await.unwrap_err();
        assert!(fault.to_string().contains("bomb in a key"), "{fault}");
        assert_eq!(spool.ask(Job::Say).await, Ok(0));
        assert_eq!(settled(spool.status()), 1);
    });
}

#[test]
fn a_panic_of_the_factory_counts_as_a_death() {
    simulated(|| async {
        let calls = Log::default();
        let log = calls.clone();
        let spool = Spool::builder(move |number| {
            log.add(number);
            assert!(log.len() > 4, "bomb in the factory");
            work(number)
        });
        let spool = spool.workers(2).stand_down(seconds(2.0)).spawn().unwrap();
        let status = spool.status();
        assert_eq!(
            (status.deaths, status.standing_down, status.idle),
            (2, 2, 0)
        );
        assert!(spool.ask(Job::Say).await.is_ok());
        sleep(seconds(3.0)).await;
        let status = spool.status();
        assert_eq!(
            (status.deaths, status.standing_down, status.idle),
            (4, 0, 2)
        );
        assert_eq!(calls.len(), 6);
    });
}

#[test]
fn a_panic_of_the_factory_ends_a_spool_that_replaces_nobody() {
    everywhere(|| async {
        let spool = Spool::builder(|number| {
            assert!(number < 1, "bomb in the factory");
            work(number)
        });
        let spool = spool.workers(3).stand_down(None).spawn().unwrap();
        assert!(
            spool
                .join()
                .await
                .unwrap_err()
                .to_string()
                .contains("has lost a worker")
        );
        is_refused(spool.ask(Job::Say).await, RefusalKind::Aborted);
        assert_eq!(spool.status().deaths, 1);
    });
}

#[test]
fn the_factory_may_use_its_own_spool() {
    simulated(|| async {
        let own: Arc<OnceLock<Spool<Job, usize>>> = Arc::default();
        let made = Log::default();
        let (uses, log) = (own.clone(), made.clone());
        let spool = Spool::builder(move |number| {
            log.add(number);
            if let Some(spool) = uses.get() {
                spool.status();
                spool.resize(2).unwrap();
            }
            work(number)
        });
        let spool = spool.workers(1).spawn().unwrap();
        let _ = own.set(spool.clone());
        spool.resize(5).unwrap();
        sleep(seconds(1.0)).await;
        assert_eq!(spool.status().idle, 2);
        // The worker that was made for a place that is gone is stopped.
        assert_eq!(made.take(), [0, 1]);
        spool.kill();
    });
}

#[test]
fn a_worker_whose_address_panics_loses_only_its_own_request() {
    everywhere(|| async {
        let spool = Spool::external().spawn().unwrap();
        let worker = work(7);
        let address = worker.address().map(|(job, reply): Work| match job {
            Job::Panic => panic!("bomb in a map"),
            job => (job, reply),
        });
        spool.join_worker(address);
        assert!(matches!(
            spool.ask(Job::Panic).await,
            Err(AskError::NoReply(_))
        ));
        let held = hold(&spool).await;
        let waiting = [Job::Panic, Job::Say, Job::Panic, Job::Say].map(|job| post(&spool, job));
        // The worker that answers tells itself the next request.
        assert_eq!(held.free().await, Ok(7));
        let [first, second, third, fourth] = waiting;
        assert_eq!((second.await, fourth.await), (Ok(7), Ok(7)));
        assert!(matches!(first.await, Err(AskError::NoReply(_))));
        assert!(matches!(third.await, Err(AskError::NoReply(_))));
        assert!(!worker.address().is_closed());
        assert_eq!(settled(spool.status()), 6);
    });
}

#[test]
fn a_worker_that_answers_while_it_is_told_may_do_so_many_times() {
    everywhere(|| async {
        let spool = Spool::external().spawn().unwrap();
        let worker = work(7);
        spool.join_worker(worker.address().map(|(job, reply): Work| match job {
            Job::Say => {
                reply.send(8);
                (Job::Say, greenroom::Reply::pair().0)
            }
            job => (job, reply),
        }));
        let held = hold(&spool).await;
        let waiting: Vec<_> = (0..3_000).map(|_| post(&spool, Job::Say)).collect();
        assert_eq!(held.free().await, Ok(7));
        for answer in waiting {
            assert_eq!(answer.await, Ok(8));
        }
        assert_eq!((spool.status().answered, spool.status().idle), (3_001, 1));
    });
}
