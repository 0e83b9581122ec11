//! Custom policies for the tests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;

use greenroom::Runtime;
use greenroom::policy::{Duties, Policy, Runnable, Setup, Stealing, TaskInfo};

use crate::support::{Home, Log, WATCH, within};

#[test]
fn three_functions_make_a_policy() {
    /// Last in, first out.
    #[derive(Default)]
    struct Stack(Mutex<Vec<Runnable>>);

    impl Policy for Stack {
        type Worker = ();

        fn worker(&self, _index: usize) {}

        fn central_enqueue(&self, runnable: Runnable) {
            self.0.lock().unwrap().push(runnable);
        }

        fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
            self.0.lock().unwrap().pop()
        }
    }

    within(WATCH, || {
        let home = Home::built(1, Runtime::builder().policy(Stack::default()));
        let log = Log::default();
        let held = home.hold();
        for n in 0..10 {
            let log = log.clone();
            home.spawn_task(async move { log.add(n) }).detach();
        }
        drop(held);
        home.runtime.run_until_quiescent();
        assert_eq!(log.take(), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    });
}

/// A central queue that never parks: the newest task first, but tasks woken in their own turn last.
#[derive(Default)]
pub struct Newest(Mutex<VecDeque<Runnable>>);

impl Policy for Newest {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        self.0.lock().unwrap().push_front(runnable);
    }

    fn resume_later(&self, _worker: &(), runnable: Runnable) {
        self.0.lock().unwrap().push_back(runnable);
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        self.0.lock().unwrap().pop_front()
    }
}

/// Deals injected tasks to the workers in turn, and parks the workers itself. A worker with an
/// empty queue takes from another queue.
#[derive(Default)]
pub struct RoundRobin {
    queues: Mutex<Vec<VecDeque<Runnable>>>,
    changed: Condvar,
    next: AtomicUsize,
    /// The worker that each injected task was dealt to.
    pub dealt: Arc<Mutex<Vec<usize>>>,
}

impl Policy for RoundRobin {
    /// The index of the worker.
    type Worker = usize;

    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        let queues = (0..setup.workers).map(|_| VecDeque::new()).collect();
        self.queues = Mutex::new(queues);
        Ok(())
    }

    fn worker(&self, index: usize) -> usize {
        index
    }

    fn central_enqueue(&self, runnable: Runnable) {
        let workers = self.queues.lock().unwrap().len();
        let worker = self.next.fetch_add(1, Ordering::Relaxed) % workers;
        self.external_enqueue(worker, runnable);
        self.dealt.lock().unwrap().push(worker);
    }

    fn external_enqueue(&self, worker: usize, runnable: Runnable) {
        self.queues.lock().unwrap()[worker].push_back(runnable);
        self.changed.notify_one();
    }

    fn internal_enqueue(&self, worker: &usize, runnable: Runnable) {
        self.external_enqueue(*worker, runnable);
    }

    fn dequeue(&self, worker: &usize, duties: &Duties<'_>) -> Option<Runnable> {
        let mut queues = self.queues.lock().unwrap();
        let mut over = false;
        loop {
            let own = queues[*worker].pop_front();
            let found = own.or_else(|| queues.iter_mut().find_map(VecDeque::pop_front));
            let wait = duties.until_next();
            if found.is_some() || over || duties.must_return() {
                return found;
            }
            duties.parks();
            queues = match wait {
                None => self.changed.wait(queues).unwrap(),
                Some(wait) => {
                    over = true;
                    self.changed.wait_timeout(queues, wait).unwrap().0
                }
            };
        }
    }

    fn interrupt(&self) {
        drop(self.queues.lock().unwrap());
        self.changed.notify_all();
    }
}

/// How often each of the functions was called.
#[derive(Default)]
pub struct Calls {
    pub central: AtomicUsize,
    pub external: AtomicUsize,
    pub internal: AtomicUsize,
    pub later: AtomicUsize,
    pub dequeued: AtomicUsize,
    pub before: AtomicUsize,
    pub after: AtomicUsize,
    pub completed: AtomicUsize,
}

fn count(calls: &AtomicUsize) {
    calls.fetch_add(1, Ordering::SeqCst);
}

/// Work stealing, each function of which is called through another policy.
#[derive(Default)]
pub struct Wrapped {
    stealing: Stealing,
    pub calls: Arc<Calls>,
}

impl Policy for Wrapped {
    type Worker = <Stealing as Policy>::Worker;

    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        self.stealing.start(setup)
    }

    fn worker(&self, index: usize) -> Self::Worker {
        self.stealing.worker(index)
    }

    fn central_enqueue(&self, runnable: Runnable) {
        count(&self.calls.central);
        self.stealing.central_enqueue(runnable);
    }

    fn external_enqueue(&self, worker: usize, runnable: Runnable) {
        count(&self.calls.external);
        self.stealing.external_enqueue(worker, runnable);
    }

    fn internal_enqueue(&self, worker: &Self::Worker, runnable: Runnable) {
        count(&self.calls.internal);
        self.stealing.internal_enqueue(worker, runnable);
    }

    fn resume_later(&self, worker: &Self::Worker, runnable: Runnable) {
        count(&self.calls.later);
        self.stealing.resume_later(worker, runnable);
    }

    fn dequeue(&self, worker: &Self::Worker, duties: &Duties<'_>) -> Option<Runnable> {
        let found = self.stealing.dequeue(worker, duties);
        if found.is_some() {
            count(&self.calls.dequeued);
        }
        found
    }

    fn before_resume(&self, worker: &Self::Worker, task: &TaskInfo) {
        count(&self.calls.before);
        self.stealing.before_resume(worker, task);
    }

    fn after_resume(&self, worker: &Self::Worker, task: &TaskInfo) {
        count(&self.calls.after);
        self.stealing.after_resume(worker, task);
    }

    fn after_completion(&self, worker: &Self::Worker, task: &TaskInfo) {
        count(&self.calls.completed);
        self.stealing.after_completion(worker, task);
    }

    fn interrupt(&self) {
        self.stealing.interrupt();
    }
}

/// A call to a policy, or an event that the tests record in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Central,
    External,
    Internal,
    Later,
    Before,
    After,
    Completed,
    /// The future was polled.
    Polled,
    /// The future was dropped.
    Dropped,
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub call: Call,
    pub task: Option<TaskInfo>,
    pub thread: ThreadId,
}

/// A FIFO queue that records the calls to it.
#[derive(Clone, Default)]
pub struct Recorder {
    queue: Arc<Mutex<VecDeque<Runnable>>>,
    pub log: Log<Entry>,
}

impl Recorder {
    pub fn note(&self, call: Call, task: Option<&TaskInfo>) {
        self.log.add(Entry {
            call,
            task: task.cloned(),
            thread: std::thread::current().id(),
        });
    }

    /// Returns and clears the recorded calls.
    pub fn calls(&self) -> Vec<Call> {
        self.log.take().iter().map(|entry| entry.call).collect()
    }

    fn put(&self, call: Call, runnable: Runnable) {
        self.note(call, Some(&runnable.info()));
        self.queue.lock().unwrap().push_back(runnable);
    }
}

impl Policy for Recorder {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        self.put(Call::Central, runnable);
    }

    fn external_enqueue(&self, _worker: usize, runnable: Runnable) {
        self.put(Call::External, runnable);
    }

    fn internal_enqueue(&self, _worker: &(), runnable: Runnable) {
        self.put(Call::Internal, runnable);
    }

    fn resume_later(&self, _worker: &(), runnable: Runnable) {
        self.put(Call::Later, runnable);
    }

    fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
        self.queue.lock().unwrap().pop_front()
    }

    fn before_resume(&self, _worker: &(), task: &TaskInfo) {
        self.note(Call::Before, Some(task));
    }

    fn after_resume(&self, _worker: &(), task: &TaskInfo) {
        self.note(Call::After, Some(task));
    }

    fn after_completion(&self, _worker: &(), task: &TaskInfo) {
        self.note(Call::Completed, Some(task));
    }
}

/// A value that records its drop in a recorder.
pub struct Noted(pub Recorder);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.note(Call::Dropped, None);
    }
}
