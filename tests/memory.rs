//! The memory that mailboxes and actors allocate, and that they free it.
//!
//! One allocator counts for the whole process, so each test has a process of its own.

#![expect(unsafe_code, reason = "an allocator that forwards every call")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use greenroom::looper::{Controller, Looper};
use greenroom::market::{Job, JobError, Market};
use greenroom::registry::{Keyed, KeyedBuilder};
use greenroom::spool::Spool;
use greenroom::supervise::Restarts;
use greenroom::{Context, Handle, Reply, Runtime, actor, spawn};

static LIVE: AtomicIsize = AtomicIsize::new(0);

struct Counting;

// SAFETY: every call is forwarded to `System` unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(
            size.cast_signed() - layout.size().cast_signed(),
            Ordering::Relaxed,
        );
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The limit of the block caches. There are three sizes: two of messages, one of actors. For each,
/// the sending thread and the worker cache 16 KiB each, and a shared cache holds 64 KiB.
const KEPT_MAX: isize = 3 * (2 * 16 + 64) * 1024;

/// What the span takes that may come with a message or a job.
const SPAN: isize = if cfg!(feature = "tracing") { 16 } else { 0 };

fn live() -> isize {
    LIVE.load(Ordering::SeqCst)
}

/// Gives each test a process of its own: runs it in a child process and returns `None` there where
/// it is called first. In the child it ends the process if the test hangs.
fn alone() -> Option<mpsc::Sender<()>> {
    const ALONE: &str = "GREENROOM_TEST_ALONE";
    let thread = std::thread::current();
    // With one test thread the harness runs all tests on its own, so no two run at the same time.
    if std::env::var_os(ALONE).is_none()
        && let Some(test) = thread.name().filter(|&name| name != "main")
    {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", test, "--test-threads=1"])
            .env(ALONE, test);
        let ended = child.output().unwrap();
        let said = [ended.stdout, ended.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let is_passed = ended.status.success() && said.contains("1 passed");
        assert!(is_passed, "{test}, alone, {}:\n{said}", ended.status);
        return None;
    }
    let (over, watch) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if watch.recv_timeout(Duration::from_secs(1200)) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("hung");
            std::process::exit(1);
        }
    });
    while threads("greenroom") + threads("soak") > 0 {
        std::thread::yield_now();
    }
    Some(over)
}

/// Returns how often to repeat something: a tenth as often without optimization, where it takes ten
/// times as long. The tests also run in release mode.
const fn tenth_in_debug(count: u64) -> u64 {
    if cfg!(debug_assertions) {
        count.div_ceil(10)
    } else {
        count
    }
}

/// Returns the number of threads of this process whose names begin like this.
fn threads(name: &str) -> usize {
    // Where there is no such folder, none is found.
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let names = threads
        .flatten()
        .map(|thread| std::fs::read_to_string(thread.path().join("comm")));
    // The timer thread of the process never ends.
    let own = names.flatten().filter(|it| it.trim() != "greenroom-timer");
    own.filter(|it| it.starts_with(name)).count()
}

fn one_worker() -> Runtime {
    Runtime::builder()
        .long_turns(None)
        .endless_waits(false)
        .workers(1)
        .build()
        .unwrap()
}

enum Load<M> {
    Burst(M),
    Done(Reply<()>),
}

/// Drops each message, and answers an ask when it reaches it.
async fn drain<M: Send>(mut cx: Context<Load<M>>) {
    while let Some(message) = cx.recv().await {
        match message {
            Load::Burst(message) => drop(message),
            Load::Done(reply) => reply.send(()),
        }
    }
}

fn drained<M: Send + 'static>(runtime: &Runtime, handle: &Handle<Load<M>, ()>) {
    runtime.block_on(handle.ask(Load::Done)).unwrap();
    // The actor's turn is over when the next task of the only worker has run.
    runtime.block_on(runtime.spawn(greenroom::yield_now()));
}

#[test]
fn a_burst_of_a_million_messages_frees_its_memory() {
    const MESSAGES: usize = 1_000_000;
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let handle = actor(drain).on(&runtime).spawn();
    drained(&runtime, &handle);
    let before = live();
    for _ in 0..3 {
        for _ in 0..MESSAGES {
            handle.tell(Load::Burst([1_u8; 256])).unwrap();
        }
        drained(&runtime, &handle);
        let kept = live() - before;
        assert!(kept <= KEPT_MAX, "{kept} bytes were not freed");
    }
}

#[test]
fn a_burst_that_is_not_received_frees_its_memory_when_dropped() {
    const MESSAGES: isize = 1_000_000;
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let (gate, opened) = mpsc::channel::<()>();
    let before = live();
    let held = runtime.spawn(async move { opened.recv().is_err() });
    let handle = actor(drain).on(&runtime).spawn();
    for _ in 0..MESSAGES {
        handle.tell(Load::Burst([1_u8; 256])).unwrap();
    }
    let each = (live() - before) / MESSAGES;
    // Three fit into a block of 1032 bytes.
    assert!(each <= 344, "{each} bytes for a message of 256");
    handle.kill();
    let kept = live() - before;
    assert!(kept <= KEPT_MAX + 4096, "{kept} bytes were not freed");
    drop(gate);
    assert!(runtime.block_on(held));
}

#[test]
fn waiting_senders_free_their_memory() {
    const SENDERS: usize = 100_000;
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let handle = actor(drain).capacity(1).on(&runtime).spawn();
    drained(&runtime, &handle);
    let before = live();
    let sends = (0..SENDERS).map(|_| handle.send(Load::Burst([1_u8; 256])));
    let sent = runtime.block_on(futures::future::join_all(sends));
    assert!(sent.iter().all(Result::is_ok));
    drop(sent);
    drained(&runtime, &handle);
    let kept = live() - before;
    assert!(kept <= KEPT_MAX, "{kept} bytes were not freed");
}

#[test]
fn a_dormant_mailbox_holds_no_buffer() {
    const ACTORS: usize = 5_000;
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let handles: Vec<_> = (0..ACTORS)
        .map(|_| actor(drain::<[u8; 256]>).on(&runtime).spawn())
        .collect();
    for handle in &handles {
        drained(&runtime, handle);
    }
    let before = live();
    for handle in &handles {
        (0..10).for_each(|_| handle.tell(Load::Burst([1; 256])).unwrap());
    }
    for handle in &handles {
        drained(&runtime, handle);
    }
    let kept = live() - before;
    assert!(
        kept <= KEPT_MAX,
        "{kept} bytes were not freed for {ACTORS} mailboxes"
    );
}

#[test]
fn a_huge_capacity_needs_no_more_memory_than_a_small_one() {
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let cost = |capacity| {
        bytes_of_each(&runtime, || {
            actor(drain).capacity(capacity).on(&runtime).spawn()
        })
    };
    // The first ones leave some of their memory in the block caches.
    let _warm = cost(1);
    let (small, huge) = (cost(1), cost(usize::MAX));
    // The block caches move it by a byte; a word would be more.
    assert!(huge < small + 8, "{huge} bytes instead of {small}");
}

#[test]
fn actors_that_start_and_end_free_their_memory() {
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let come_and_go = |count: usize| {
        for _ in 0..count {
            let handle = actor(drain::<u32>).name("short-lived").on(&runtime).spawn();
            handle.tell(Load::Burst(1)).unwrap();
            let (weak, address) = (handle.downgrade(), handle.address());
            drop(address);
            assert!(weak.upgrade().is_some());
            runtime.block_on(handle.join()).unwrap();
            assert!(weak.upgrade().is_none());
        }
        runtime.block_on(runtime.spawn(greenroom::yield_now()));
    };
    come_and_go(100);
    let before = live();
    come_and_go(20_000);
    let kept = live() - before;
    assert!(kept <= KEPT_MAX, "{kept} bytes were not freed");
}

#[test]
fn actors_free_their_memory_however_they_end() {
    let Some(_alone) = alone() else { return };
    std::panic::set_hook(Box::new(|_| {}));
    let runtime = Runtime::builder()
        .long_turns(None)
        .endless_waits(false)
        .workers(1)
        .on_fault(|_| {})
        .build()
        .unwrap();
    let round = |count: usize| {
        for number in 0..count {
            let spawn = actor(async move |mut cx: Context<Load<[u8; 64]>>| {
                let _state = [number; 16];
                if number % 4 == 3 {
                    cx.recv().await;
                    std::panic::resume_unwind(Box::new(number));
                }
                while cx.recv().await.is_some() {}
            });
            let handle = spawn.on(&runtime).spawn();
            // An actor that panics may have ended when the second message is sent.
            (0..5).for_each(|_| drop(handle.tell(Load::Burst([0; 64]))));
            let address = handle.address();
            match number % 4 {
                0 => address.stop(),
                1 => handle.kill(),
                2 => {
                    handle.stop();
                    runtime.block_on(handle.join()).unwrap();
                }
                _ => drop(handle),
            }
            runtime.block_on(address.closed());
        }
        runtime.block_on(runtime.spawn(greenroom::yield_now()));
    };
    round(100);
    let before = live();
    round(10_000);
    let kept = live() - before;
    let _ = std::panic::take_hook();
    assert!(kept <= KEPT_MAX, "{kept} bytes were not freed");
}

#[test]
fn asks_free_their_memory() {
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let handle = actor(async |mut cx: Context<(u32, Reply<[u8; 128]>)>| {
        while let Some((number, reply)) = cx.recv().await {
            if number % 2 == 0 {
                reply.send([1; 128]);
            }
        }
    });
    let handle = handle.on(&runtime).spawn();
    let ask = |count: u32| {
        for number in 0..count {
            let ask = handle
                .ask(|reply| (number, reply))
                .timeout(Duration::from_secs(1_000));
            assert_eq!(runtime.block_on(ask).is_ok(), number % 2 == 0);
        }
        runtime.block_on(runtime.spawn(greenroom::yield_now()));
    };
    ask(100);
    let before = live();
    ask(20_000);
    let kept = live() - before;
    assert!(kept <= KEPT_MAX, "{kept} bytes were not freed");
}

#[test]
fn a_request_that_waits_in_a_spool_takes_at_most_100_bytes() {
    // Just below a power of two, so that tables are nearly full.
    const REQUESTS: u64 = 62_500;
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let (open, opened) = futures::channel::oneshot::channel::<()>();
    let mut gate = Some(opened);
    let spool = runtime.block_on(async {
        let workers = Spool::builder(move |_| {
            let gate = gate.take().expect("no worker dies");
            spawn!(async move |mut cx: Context<(u64, Reply<u64>)>| {
                gate.await.unwrap();
                while let Some((number, reply)) = cx.recv().await {
                    reply.send(number);
                }
            })
        });
        let workers = workers.workers(1).responsiveness(None);
        workers.spawn().unwrap()
    });
    let asks: Vec<_> = (0..=REQUESTS).map(|_| Reply::pair()).collect();
    let (replies, answers): (Vec<_>, Vec<_>) = asks.into_iter().unzip();
    let before = live();
    for (number, reply) in (0..).zip(replies) {
        spool.tell(number, reply).unwrap();
    }
    // The list of replies was freed meanwhile.
    let list = (REQUESTS as usize * size_of::<Reply<u64>>()).cast_signed();
    let each = (live() - before + list) / REQUESTS.cast_signed() as isize;
    assert_eq!(spool.status().waiting, REQUESTS as usize);
    assert!(each <= 100, "{each} bytes for each");
    open.send(()).unwrap();
    runtime.block_on(async {
        for (number, answer) in (0..).zip(answers) {
            assert_eq!(answer.await, Ok(number));
        }
    });
}

#[test]
fn a_million_restarts_free_their_memory() {
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    // An incarnation handles one message, and then returns or panics.
    let spawn = actor(async |mut cx: Context<Load<u32>>| {
        let _state = [7_u64; 16];
        match cx.recv().await {
            Some(Load::Burst(number)) if number % 16 == 0 => {
                std::panic::resume_unwind(Box::new(number));
            }
            Some(Load::Done(reply)) => reply.send(()),
            _ => {}
        }
    });
    let hour = Duration::from_secs(3_600);
    let rules = Restarts::always().intensity(u32::MAX, hour);
    let handle = spawn.restart(rules).on(&runtime).spawn();
    let restart = |count: u32| {
        for number in 0..count {
            handle.tell(Load::Burst(number)).unwrap();
            if number % 1_000 == 0 {
                drained(&runtime, &handle);
            }
        }
        drained(&runtime, &handle);
    };
    restart(10_000);
    let before = live();
    restart(tenth_in_debug(1_000_000) as u32);
    let kept = live() - before;
    assert!(kept <= KEPT_MAX, "{kept} bytes were not freed");
}

#[test]
fn contexts_that_are_lent_free_their_memory() {
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let lends = actor(async |mut cx: Context<Load<u32>>| {
        loop {
            let inner = cx.incarnation(async |mut cx: Context<Load<u32>>| {
                match cx.recv().await {
                    Some(Load::Burst(number)) if number % 16 == 0 => {
                        std::panic::resume_unwind(Box::new(number));
                    }
                    // The context is dropped elsewhere.
                    Some(Load::Burst(number)) if number % 16 == 1 => {
                        greenroom::spawn(async move { drop(cx) }).detach();
                    }
                    Some(Load::Done(reply)) => reply.send(()),
                    Some(Load::Burst(_)) => {}
                    None => return false,
                }
                true
            });
            if let Ok(false) = inner.await {
                return;
            }
        }
    });
    let handle = lends.on(&runtime).spawn();
    let lend = |count: u32| {
        for number in 0..count {
            handle.tell(Load::Burst(number)).unwrap();
            if number % 1_000 == 0 {
                drained(&runtime, &handle);
            }
        }
        drained(&runtime, &handle);
    };
    lend(1_000);
    let before = live();
    lend(100_000);
    let kept = live() - before;
    assert!(kept <= KEPT_MAX, "{kept} bytes were not freed");
}

#[test]
fn restartable_actors_free_their_memory_however_they_end() {
    let Some(_alone) = alone() else { return };
    let runtime = Runtime::builder()
        .long_turns(None)
        .endless_waits(false)
        .workers(1)
        .on_fault(|_| {})
        .build()
        .unwrap();
    let round = |count: usize| {
        for number in 0..count {
            let spawn = actor(async move |mut cx: Context<Load<u32>>| {
                cx.recv().await;
                std::panic::resume_unwind(Box::new(number));
            });
            let rules = Restarts::<()>::on_fault().intensity(2, Duration::from_secs(3_600));
            // In half of the cases the end comes during a delay that never ends.
            let rules = match number % 2 {
                0 => rules.stand_down(Duration::MAX),
                _ => rules,
            };
            let handle = spawn.restart(rules).on(&runtime).spawn();
            handle.tell(Load::Burst(1)).unwrap();
            let place = runtime.block_on(handle.reserve());
            runtime.block_on(runtime.spawn(greenroom::yield_now()));
            let address = handle.address();
            match number / 2 % 3 {
                0 => address.stop(),
                1 => handle.kill(),
                _ => {
                    let weak = address.downgrade();
                    drop((handle, address));
                    runtime.block_on(runtime.spawn(greenroom::yield_now()));
                    drop(place);
                    if let Some(address) = weak.upgrade() {
                        address.stop();
                    }
                    runtime.block_on(weak.closed());
                    continue;
                }
            }
            drop(place);
            runtime.block_on(address.closed());
        }
        runtime.block_on(runtime.spawn(greenroom::yield_now()));
    };
    round(100);
    let before = live();
    round(10_000);
    let kept = live() - before;
    assert!(kept <= KEPT_MAX, "{kept} bytes were not freed");
}

/// The number of things whose bytes are counted: so many that the block caches, which hold some of
/// the memory, move an average by a few bytes only.
const THINGS: usize = 20_000;

/// Returns the live bytes of each of these. What little is allocated or freed beside them does not
/// count.
fn bytes_of_things<T>(make: impl Fn() -> T) -> (isize, Vec<T>) {
    bytes_once_settled(make, || ())
}

/// Returns the live bytes of each of these after `settle`.
fn bytes_once_settled<T>(make: impl Fn() -> T, settle: impl Fn()) -> (isize, Vec<T>) {
    let mut all = Vec::with_capacity(THINGS);
    let before = live();
    all.extend((0..THINGS).map(|_| make()));
    settle();
    let things = THINGS.cast_signed();
    ((live() - before + things / 2).div_euclid(things), all)
}

/// Returns the live bytes of an actor that has handled a message and is dormant.
fn bytes_of_each(runtime: &Runtime, spawn: impl Fn() -> Handle<Load<u64>, ()>) -> isize {
    let make = || {
        let handle = spawn();
        handle.tell(Load::Burst(2)).unwrap();
        handle
    };
    let (bytes, handles) = bytes_once_settled(make, || runtime.block_on(runtime.quiescent()));
    handles.iter().for_each(|handle| handle.stop());
    for handle in handles {
        runtime.block_on(handle.join()).unwrap();
    }
    bytes
}

/// Returns how many bytes a restartable actor takes more than a plain one and a clone of what is
/// spawned. That clone has `CLONE` bytes.
fn bytes_to_restart<const CLONE: usize>(runtime: &Runtime) -> isize {
    let builder = || {
        let state = [1_u8; CLONE];
        let body = move |mut cx: Context<Load<u64>>| async move {
            while let Some(message) = cx.recv().await {
                match message {
                    Load::Burst(number) => assert!(state.iter().all(|&own| number > own.into())),
                    Load::Done(reply) => reply.send(()),
                }
            }
        };
        assert_eq!(size_of_val(&body), CLONE);
        actor(body).on(runtime)
    };
    let plain = || bytes_of_each(runtime, || builder().spawn());
    let restartable = || bytes_of_each(runtime, || builder().restart(Restarts::on_fault()).spawn());
    // The first ones leave some of their memory in the block caches.
    let _ = (plain(), restartable());
    restartable() - plain() - CLONE.cast_signed()
}

#[test]
fn a_restartable_actor_takes_at_most_64_bytes_more_and_its_clone() {
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let more = [
        bytes_to_restart::<0>(&runtime),
        bytes_to_restart::<8>(&runtime),
        bytes_to_restart::<40>(&runtime),
    ];
    assert!(more.iter().all(|&more| more <= 64), "{more:?} bytes more");
}

#[test]
fn an_unlocked_lock_takes_at_most_128_bytes_whatever_the_number_of_priorities() {
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let controllers = [0, u8::MAX].map(|highest| {
        let builder = Controller::builder().on(&runtime).priorities(highest);
        let controller = builder.build().unwrap();
        // The first task starts a lane.
        let posted = controller.looper().post(|| ()).unwrap();
        runtime.block_on(posted).unwrap();
        (controller, highest)
    });
    runtime.block_on(runtime.quiescent());
    let bytes = controllers.each_ref().map(|(controller, highest)| {
        let fresh = (
            bytes_of_things(|| controller.lock()).0,
            bytes_of_things(|| controller.guarded(1_u64)).0,
        );
        // A lock that was waited for keeps nothing of that.
        let (holder, waiter) = (controller.looper(), controller.looper());
        let used = bytes_of_things(|| {
            let lock = controller.lock();
            assert_eq!(holder.attempt(lock.exclusive()), Ok(true));
            let waits = waiter.priority(*highest).with(lock.exclusive());
            let waits = waits.post(|()| ()).unwrap();
            holder.unlock(&lock).unwrap();
            runtime.block_on(waits).unwrap();
            lock
        });
        (fresh, used.0)
    });
    let [((one, value), used), ((more, other_value), other_used)] = bytes;
    assert_eq!((one, value, used), (more, other_value, other_used));
    // The value is in an allocation of its own.
    assert!(one.max(used) <= 128, "{bytes:?} bytes");
}

#[test]
fn an_idle_looper_takes_at_most_200_bytes() {
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let controller = Controller::builder().on(&runtime).build().unwrap();
    let run = |looper: &Looper, count: usize| {
        let lock = controller.lock();
        let tasks: Vec<_> = (0..count)
            .map(|_| looper.with(lock.exclusive()).post(|()| ()).unwrap())
            .collect();
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
    };
    // The first one starts a lane.
    run(&controller.looper(), 10);
    // The table of the loopers has room for as many as there were.
    let (fresh, loopers) = bytes_of_things(|| controller.looper());
    drop(loopers);
    let (again, loopers) = bytes_of_things(|| controller.looper());
    drop(loopers);
    let (used, loopers) = bytes_of_things(|| {
        let looper = controller.looper();
        run(&looper, 10);
        looper
    });
    drop(loopers);
    let table = fresh - again;
    assert!(again + table <= 200, "{fresh} bytes");
    assert!(
        used + table <= 200,
        "{used} bytes, and {table} in the table"
    );
}

#[test]
fn a_job_that_waits_in_a_market_takes_at_most_200_bytes_and_224_with_its_key() {
    // Just below a power of two, so that tables are nearly full.
    const JOBS: u64 = 62_500;
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    for is_keyed in [false, true] {
        let builder = Market::<u64>::builder().on(&runtime).max_workers(1);
        let market = builder.capacity(JOBS as usize).build().unwrap();
        let (open, opened) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let gate = Job::new(move || {
            begin.send(()).unwrap();
            opened.recv()
        });
        drop(market.try_offer(gate).unwrap());
        begun.recv().unwrap();
        let before = live();
        for number in 0..JOBS {
            let job = Job::new(move || number);
            let job = if is_keyed { job.key(number) } else { job };
            drop(market.try_offer(job).unwrap());
        }
        let each = (live() - before) / JOBS.cast_signed() as isize;
        assert_eq!(market.status().waiting, JOBS as usize);
        let closure = size_of::<u64>() as isize;
        let most = if is_keyed { 224 } else { 200 };
        assert!(
            each <= most + closure + SPAN,
            "{each} bytes for each, keys: {is_keyed}"
        );
        open.send(()).unwrap();
        runtime.block_on(market.drain());
    }
}

/// A set of actors that are found by numbers.
fn numbered(runtime: &Runtime) -> KeyedBuilder<u64, Load<u64>, ()> {
    Keyed::builder(|_| actor(drain::<u64>)).on(runtime)
}

#[test]
fn a_live_key_takes_at_most_160_bytes_beside_its_actor() {
    // Just below a power of two for each of 16 locks, and just above.
    const KEYS: [u64; 2] = [62_000, 70_000];
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let plain = || bytes_of_each(&runtime, || actor(drain::<u64>).on(&runtime).spawn());
    // The first ones leave some of their memory in the block caches.
    let plain = [plain(), plain()][1];
    for (keys, has_results) in KEYS
        .into_iter()
        .flat_map(|keys| [(keys, false), (keys, true)])
    {
        let builder = numbered(&runtime)
            .idle(Duration::from_secs(10_000))
            .limit(100_000);
        let set = match has_results {
            false => builder.build().unwrap(),
            true => builder.on_end(|_, _| ()).build().unwrap(),
        };
        let before = live();
        for key in 0..keys {
            set.tell(&key, Load::Burst(key)).unwrap();
        }
        for key in 0..keys {
            runtime.block_on(set.ask(&key, Load::Done)).unwrap();
        }
        let each = (live() - before) / keys.cast_signed() as isize;
        let beside = each - plain;
        assert!(
            beside <= 160 + SPAN,
            "{beside} bytes beside {plain} of the actor, of {keys}"
        );
        set.stop();
        runtime.block_on(set.ended());
        let kept = live() - before;
        assert!(
            kept <= KEPT_MAX + 16 * 64 * 100,
            "{kept} bytes were not freed"
        );
    }
}

#[test]
fn a_hundred_thousand_keys_that_came_and_went_leave_no_memory() {
    let Some(_alone) = alone() else { return };
    let runtime = one_worker();
    let idle = Duration::from_millis(1);
    let set = numbered(&runtime).idle(idle).build().unwrap();
    let come_and_go = |keys: std::ops::Range<u64>| {
        for key in keys {
            set.tell(&key, Load::Burst(key)).unwrap();
        }
        runtime.block_on(set.ended());
        assert!(set.is_empty());
    };
    come_and_go(0..1_000);
    let before = live();
    for round in 1..=10 {
        let keys = tenth_in_debug(100_000);
        come_and_go(round * keys..(round + 1) * keys);
        let kept = live() - before;
        assert!(
            kept <= KEPT_MAX + 16 * 64 * 100,
            "{kept} bytes were not freed"
        );
    }
}

/// Waits until a runtime named `soak` has one thread for blocking calls.
fn until_one_blocking_thread_is_left() {
    while threads("soak-blocking") > 1 {
        std::thread::yield_now();
    }
}

#[test]
fn a_burst_of_blocking_calls_leaves_one_thread_and_at_most_64_kib() {
    const CALLS: usize = 100_000;
    let Some(_alone) = alone() else { return };
    let runtime = Runtime::builder()
        .long_turns(None)
        .endless_waits(false)
        .workers(1)
        .thread_name("soak");
    let runtime = runtime.blocking_idle(Duration::from_millis(1));
    let runtime = runtime.build().unwrap();
    let burst = |calls: usize| {
        let (open, opened) = std::sync::mpsc::channel::<()>();
        runtime.block_on(async {
            let waits = greenroom::unblock(move || opened.recv().is_err());
            let calls: Vec<_> = (0..calls).map(|n| greenroom::unblock(move || n)).collect();
            drop(open);
            assert!(waits.await, "the gate is opened by its drop");
            for (n, call) in calls.into_iter().enumerate() {
                assert_eq!(call.await, n);
            }
        });
        until_one_blocking_thread_is_left();
    };
    burst(100);
    let before = live();
    burst(CALLS);
    let kept = live() - before;
    assert!(kept <= 64 * 1024, "{kept} bytes were not freed");
}

#[test]
fn a_hundred_thousand_workers_of_markets_leave_neither_memory_nor_threads() {
    const WORKERS: u64 = tenth_in_debug(100_000);
    const PRODUCERS: u64 = 4;
    let Some(_alone) = alone() else { return };
    std::panic::set_hook(Box::new(|_| {}));
    let runtime = Runtime::builder()
        .long_turns(None)
        .endless_waits(false)
        .workers(1)
        .on_fault(|_| {});
    let runtime = runtime.blocking_idle(Duration::from_millis(1));
    let runtime = runtime.thread_name("soak").build().unwrap();
    let soak = |workers: u64| {
        let market = Market::<u64>::builder().on(&runtime).max_workers(3);
        let market = market.capacity(2).build().unwrap();
        let market = &market;
        let produce = |producer: u64| {
            let [
                mut offered,
                mut refused,
                mut done,
                mut panicked,
                mut cancelled,
            ] = [0; 5];
            while market.status().created < workers {
                offered += 1;
                let job = Job::new(move || assert!(offered % 100 != 1, "one of a hundred"));
                // Two producers share a key.
                let Ok(job) = market.offer_blocking(job.key(producer % 3)) else {
                    refused += 1;
                    continue;
                };
                if offered % 10 == 0 {
                    job.cancel();
                }
                match smol::block_on(job) {
                    Ok(()) => done += 1,
                    Err(JobError::Panicked(_)) => panicked += 1,
                    Err(error) => {
                        assert!(matches!(error, JobError::Cancelled));
                        cancelled += 1;
                    }
                }
            }
            assert_eq!(offered, refused + done + panicked + cancelled);
            panicked
        };
        let panicked: u64 = std::thread::scope(|scope| {
            let producers = (0..PRODUCERS).map(|producer| scope.spawn(move || produce(producer)));
            let producers: Vec<_> = producers.collect();
            let ends = producers.into_iter().map(|it| it.join().unwrap());
            ends.sum()
        });
        runtime.block_on(market.drain());
        let status = market.status();
        assert_eq!((status.waiting, status.running), (0, 0));
        assert_eq!(status.created, status.died);
        panicked
    };
    soak(WORKERS / 100);
    until_one_blocking_thread_is_left();
    let before = live();
    let panicked = soak(WORKERS);
    assert!(panicked > WORKERS / 500, "{panicked} jobs have panicked");
    until_one_blocking_thread_is_left();
    let kept = live() - before;
    assert!(kept <= KEPT_MAX, "{kept} bytes were not freed");
}
