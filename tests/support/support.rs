//! Test support: watchdogs, homes, gates, drop counters, bombs and counting wakers.
//!
//! No helper here sleeps for a fixed time. A test that must wait for an event waits at a [`Gate`].
//! A test that might hang runs under [`within`], which turns a hang into a failure.

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test program uses a part"
)]

mod draws;
mod home;
pub mod matrix;
#[cfg(target_os = "linux")]
pub mod naps;
pub mod scenarios;
pub mod simulated;

pub use draws::Draws;
pub use home::Home;
pub(crate) use home::{in_every_home, on_threads};
pub use matrix::Homes;

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::channel::oneshot;
use greenroom::Runtime;

/// The watchdog's limit: longer than any test takes on a busy machine.
pub const WATCH: Duration = Duration::from_secs(180);

/// Returns how often to repeat something: a tenth as often without optimization, where it takes ten
/// times as long. The tests also run in release mode.
pub const fn tenth_in_debug(count: usize) -> usize {
    if cfg!(debug_assertions) {
        count.div_ceil(10)
    } else {
        count
    }
}

/// How many things that hold each other are dropped, so that dropping each within another would
/// overflow every stack. Frames are larger without optimization.
pub const DEEP: usize = tenth_in_debug(100_000);

/// Runs `test` on a separate thread and fails if it does not return within `limit`.
pub fn within<R: Send + 'static>(limit: Duration, test: impl FnOnce() -> R + Send + 'static) -> R {
    let given = Arc::new(Mutex::new(None));
    let gives = given.clone();
    let body = move || {
        let value = test();
        *gives.lock().unwrap() = Some(value);
    };
    watched(limit, Box::new(body));
    let value = given.lock().unwrap().take();
    value.expect("the test has returned")
}

/// Runs a test under the watchdog. Not generic, since hundreds of tests would each instantiate it.
fn watched(limit: Duration, test: Box<dyn FnOnce() + Send>) {
    keep_bombs_quiet();
    let (done, outcome) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("watched".into());
    let thread = thread
        .spawn(move || {
            let _ = done.send(catch_unwind(AssertUnwindSafe(test)));
        })
        .unwrap();
    match outcome.recv_timeout(limit) {
        Ok(outcome) => {
            // The thread has sent its outcome but still has thread-locals to drop.
            thread.join().unwrap();
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }
        Err(_) => panic!("hung: not done within {limit:?}"),
    }
}

/// Runs a future on `workers` workers, under the watchdog.
pub fn on_workers<R, F>(workers: usize, future: F) -> R
where
    R: Send + 'static,
    F: Future<Output = R> + Send + 'static,
{
    within(WATCH, move || {
        Runtime::builder()
            .workers(workers)
            .build()
            .unwrap()
            .block_on(future)
    })
}

/// A gate: closed at first, then open for good. Threads block at it, tasks await it.
#[derive(Clone, Default)]
pub struct Gate(Arc<Inside>);

#[derive(Default)]
struct Inside {
    /// Whether the gate is open, and the wakers of the waiting tasks.
    state: Mutex<(bool, Vec<Waker>)>,
    opened: Condvar,
}

impl Gate {
    pub fn open(&self) {
        let mut state = self.0.state.lock().unwrap();
        state.0 = true;
        let wakers = std::mem::take(&mut state.1);
        drop(state);
        self.0.opened.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn is_open(&self) -> bool {
        self.0.state.lock().unwrap().0
    }

    /// Blocks the thread until the gate is open.
    pub fn pass(&self) {
        if self.is_open() || simulated::drive(self.wait()).is_ok() {
            return;
        }
        let mut state = self.0.state.lock().unwrap();
        while !state.0 {
            state = self.0.opened.wait(state).unwrap();
        }
    }

    /// Waits, in a task, until the gate is open.
    pub async fn wait(&self) {
        std::future::poll_fn(|cx| {
            let mut state = self.0.state.lock().unwrap();
            if state.0 {
                return Poll::Ready(());
            }
            state.1.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// A guard that opens its gate when it is dropped.
pub struct OpenOnDrop(pub Gate);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A drop counter; each value made by [`Drops::one`] counts once.
#[derive(Clone, Default)]
pub struct Drops(Arc<AtomicUsize>);

impl Drops {
    pub fn one(&self) -> Dropped {
        Dropped(self.clone())
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A value that counts its own drop.
pub struct Dropped(Drops);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A value that counts its drop, and then panics in it if `live` is set.
pub struct Bomb {
    pub live: bool,
    _counted: Dropped,
}

impl Bomb {
    pub fn new(live: bool, drops: &Drops) -> Bomb {
        Bomb {
            live,
            _counted: drops.one(),
        }
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.live {
            panic!("bomb in a drop");
        }
    }
}

/// Installs a panic hook that prints nothing for panics whose text begins with "bomb": they are
/// intended.
pub fn keep_bombs_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let payload = panic.payload();
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            let text = text.unwrap_or("");
            LAST_PANIC.with(|last| {
                let at = panic.location().map(|at| (at.file().to_owned(), at.line()));
                *last.borrow_mut() = at.map(|(file, line)| (text.to_owned(), file, line));
            });
            if !text.starts_with("bomb") && !QUIET.with(std::cell::Cell::get) {
                loud(panic);
            }
        }));
    });
}

thread_local! {
    static QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static LAST_PANIC: std::cell::RefCell<Option<(String, String, u32)>> =
        const { std::cell::RefCell::new(None) };
}

/// Returns the text, file and line of the panic that `call` raises on this thread.
#[track_caller]
pub fn panic_of<R>(call: impl FnOnce() -> R) -> (String, String, u32) {
    keep_bombs_quiet();
    QUIET.with(|quiet| quiet.set(true));
    let outcome = catch_unwind(AssertUnwindSafe(call));
    QUIET.with(|quiet| quiet.set(false));
    assert!(outcome.is_err(), "it did not panic");
    LAST_PANIC
        .with(|last| last.borrow_mut().take())
        .expect("the hook has recorded the panic")
}

/// Returns a text of the library with each `"a" #1` as `a`. The numbers of actors differ from run
/// to run.
pub fn names(text: &str) -> String {
    let mut parts = text.split('"');
    let mut names = parts.next().unwrap_or_default().to_owned();
    while let (Some(name), Some(after)) = (parts.next(), parts.next()) {
        let numbered = after.strip_prefix(" #").expect("a number follows a name");
        names.push_str(name);
        names.push_str(numbered.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    names
}

/// A waker that counts how often it is woken.
#[derive(Default)]
pub struct CountingWaker {
    count: Mutex<usize>,
    woken: Condvar,
}

impl CountingWaker {
    pub fn new() -> (Arc<CountingWaker>, Waker) {
        let counting = Arc::new(CountingWaker::default());
        (counting.clone(), Waker::from(counting))
    }

    pub fn count(&self) -> usize {
        *self.count.lock().unwrap()
    }

    /// Blocks the thread until the waker was woken.
    pub fn pass(&self) {
        if simulated::until(&|| self.count() > 0) {
            return;
        }
        let mut count = self.count.lock().unwrap();
        while *count == 0 {
            count = self.woken.wait(count).unwrap();
        }
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *self.count.lock().unwrap() += 1;
        self.woken.notify_all();
    }
}

/// Polls once with a waker that does nothing.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls the future once within the task that awaits this, and returns the result of the poll.
pub async fn poll_here<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}

/// Drives a future on this thread without a runtime, or in the simulation if this thread has one.
pub fn drive<F: Future>(future: F) -> F::Output {
    let future: Pin<Box<dyn Future<Output = F::Output> + '_>> = Box::pin(future);
    drive_boxed(future)
}

fn drive_boxed<T>(future: Pin<Box<dyn Future<Output = T> + '_>>) -> T {
    let future = match simulated::drive(future) {
        Ok(value) => return value,
        Err(future) => future,
    };
    struct Thread(std::thread::Thread);
    impl Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Thread(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Opens the gate when the awaited future returns pending.
pub async fn open_when_pending<F: Future>(gate: Gate, future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            gate.open();
        }
        polled
    })
    .await
}

/// Counts how often the wrapped future is polled.
pub async fn counted<F: Future>(polls: Arc<AtomicUsize>, future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        polls.fetch_add(1, Ordering::SeqCst);
        future.as_mut().poll(cx)
    })
    .await
}

/// A shared list; entries are in the order in which they were added.
pub struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Log(self.0.clone())
    }
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Log(Arc::default())
    }
}

impl<T> Log<T> {
    pub fn add(&self, entry: T) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(entry);
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Checks the condition again and again until it holds; the test's watchdog bounds this.
///
/// For changes that the operating system makes asynchronously, such as removing an ended thread
/// from the list of threads.
pub fn until(is_so: impl Fn() -> bool) {
    if simulated::until(&is_so) {
        return;
    }
    while !is_so() {
        std::thread::yield_now();
    }
}

/// Keeps this thread busy for `time`: for turns that have to be long.
pub fn burn(time: Duration) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A number of hand-overs during which a thread that runs without need would run several times.
pub const MANY_HAND_OVERS: usize = 2_000;

/// Makes two threads hand over to each other `times` times. Meanwhile every other thread may run,
/// and the ready ones do. For checks that something does not happen, which a test cannot wait for.
pub fn hand_over(times: usize) {
    let (there, comes) = mpsc::sync_channel(0);
    let (back, returns) = mpsc::sync_channel(0);
    std::thread::scope(|scope| {
        scope.spawn(move || comes.iter().try_for_each(|()| back.send(())));
        for _ in 0..times {
            there.send(()).unwrap();
            returns.recv().unwrap();
        }
        drop(there);
    });
}

/// Waits for the next message of the channel.
pub fn received<T>(from: &mpsc::Receiver<T>) -> T {
    let next = RefCell::new(None);
    let has_come = || {
        *next.borrow_mut() = from.try_recv().ok();
        next.borrow().is_some()
    };
    if simulated::until(&has_come) {
        return next.take().expect("the message has arrived");
    }
    from.recv().unwrap()
}

/// A call or future on another thread; in a simulation it is a task.
pub enum Elsewhere<R> {
    Thread(JoinHandle<R>),
    Task(oneshot::Receiver<R>),
}

/// Makes the call on another thread. In a simulation the call is a job and must not block.
pub fn elsewhere<R: Send + 'static>(call: impl FnOnce() -> R + Send + 'static) -> Elsewhere<R> {
    match simulated::job(call) {
        Ok(outcome) => Elsewhere::Task(outcome),
        Err(call) => Elsewhere::Thread(std::thread::spawn(call)),
    }
}

/// Drives a future on another thread without any runtime; in a simulation it is a task.
pub fn drive_elsewhere<F>(future: F) -> Elsewhere<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    match simulated::task(future) {
        Ok(outcome) => Elsewhere::Task(outcome),
        Err(future) => Elsewhere::Thread(std::thread::spawn(|| drive(future))),
    }
}

impl<R> Elsewhere<R> {
    pub fn join(self) -> R {
        match self {
            Elsewhere::Thread(thread) => thread.join().unwrap(),
            Elsewhere::Task(outcome) => drive(outcome).expect("the task has not panicked"),
        }
    }
}

/// Calls `call` where the runtime is the current one.
pub fn inside<R>(runtime: &Runtime, call: impl FnOnce() -> R) -> R {
    runtime.block_on(async { call() })
}
