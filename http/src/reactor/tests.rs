//! Sockets of the reactor, without a server.

use std::future::poll_fn;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_lite::future::{block_on, poll_once, zip};

use super::poller::PollerLock;
use super::worker::WorkerWaker;
use super::{Acceptor, Reactor, Socket};

/// The tests that count what the process has run one after another.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Returns both ends of a connection: one of the reactor, and one of the standard library.
fn pair() -> (Socket, TcpStream) {
    let acceptor = Acceptor::bind(&[loopback()]).unwrap();
    let far = TcpStream::connect(acceptor.local_addr().unwrap()).unwrap();
    let (near, peer) = block_on(acceptor.accept()).unwrap();
    assert_eq!(peer, far.local_addr().unwrap());
    (near, far)
}

async fn read(socket: &Socket, bytes: &mut [u8]) -> io::Result<usize> {
    poll_fn(|cx| socket.poll_read(cx, bytes)).await
}

#[test]
fn an_end_that_comes_with_the_last_bytes_is_read_after_them() {
    let _alone = alone();
    for _ in 0..500 {
        let (near, mut far) = pair();
        let writer = thread::spawn(move || far.write_all(b"bytes").unwrap());
        let (mut bytes, mut came) = ([0; 64], Vec::new());
        loop {
            match block_on(read(&near, &mut bytes)).unwrap() {
                0 => break,
                read => came.extend_from_slice(&bytes[..read]),
            }
        }
        assert_eq!(came, b"bytes");
        // The end can be read again.
        assert_eq!(block_on(read(&near, &mut bytes)).unwrap(), 0);
        writer.join().unwrap();
    }
}

#[test]
fn a_reset_ends_reads_and_writes() {
    let _alone = alone();
    let (near, far) = pair();
    block_on(near.write_all(b"not read")).unwrap();
    // To close a connection with bytes that were not read resets it.
    drop(far);
    let ended = block_on(read(&near, &mut [0; 8]));
    assert!(ended.is_err() || matches!(ended, Ok(0)), "{ended:?}");
    let mut writes = (0..1000).map(|_| block_on(near.write_all(&[0; 1000])));
    assert!(writes.any(|write| write.is_err()));
}

#[test]
fn many_bytes_go_through_sockets_that_are_full() {
    const BYTES: usize = 8 << 20;
    let _alone = alone();
    let acceptor = Acceptor::bind(&[loopback()]).unwrap();
    let name = acceptor.local_addr().unwrap().to_string();
    let (near, far) = block_on(zip(Socket::connect(&name), acceptor.accept()));
    let (near, (far, _)) = (near.unwrap(), far.unwrap());
    let writes = async {
        let sent: Vec<u8> = (0..BYTES).map(|at| at as u8).collect();
        near.write_all(&sent).await.unwrap();
        near.end_writing().unwrap();
    };
    let reads = async {
        let (mut bytes, mut at) = ([0; 5000], 0);
        loop {
            let read = read(&far, &mut bytes).await.unwrap();
            assert!(
                bytes[..read]
                    .iter()
                    .zip(at..)
                    .all(|(byte, at)| *byte == at as u8)
            );
            at += read;
            if read == 0 {
                return at;
            }
        }
    };
    assert_eq!(block_on(zip(writes, reads)).1, BYTES);
}

#[test]
fn a_connection_that_nothing_accepts_is_an_error() {
    let _alone = alone();
    // It has the port, so that no other test listens there.
    let bound = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    bound.bind(&loopback().into()).unwrap();
    let address = bound.local_addr().unwrap().as_socket().unwrap();
    let refused = block_on(Socket::connect(&address.to_string()));
    assert_eq!(
        refused.unwrap_err().kind(),
        io::ErrorKind::ConnectionRefused
    );
    assert!(block_on(Socket::connect("no port")).is_err());
}

/// Returns how many sockets the process has open.
#[cfg(target_os = "linux")]
fn descriptors() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    let links = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links
        .filter(|link| link.to_string_lossy().starts_with("socket:"))
        .count()
}

#[test]
#[cfg(target_os = "linux")]
fn sockets_that_are_dropped_leave_nothing() {
    let _alone = alone();
    let reactor = Reactor::get().unwrap();
    let before = (reactor.sockets().len(), descriptors());
    for number in 0..300 {
        let (near, mut far) = pair();
        // A wait leaves a waker behind.
        assert!(block_on(poll_once(read(&near, &mut [0]))).is_none());
        match number % 3 {
            0 => far.write_all(b"unread").unwrap(),
            1 => drop(far),
            _ => block_on(near.write_all(b"unread")).unwrap(),
        }
    }
    assert_eq!((reactor.sockets().len(), descriptors()), before);
}

/// A worker that counts how often it runs after a wake.
#[derive(Default)]
struct Counted {
    wakes: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

/// Wakes from other threads reach workers that poll, that wait for the poller, and that run.
#[test]
fn no_wake_of_a_worker_is_lost() {
    const WAKES: usize = 20_000;
    let _alone = alone();
    let reactor = Reactor::get().unwrap();
    let workers: Vec<_> = (0..3).map(|_| Arc::new(Counted::default())).collect();
    let threads: Vec<_> = workers
        .iter()
        .cloned()
        .map(|own| {
            thread::spawn(move || {
                let mut last = 0;
                let worker = pin!(poll_fn(|cx| {
                    *own.waker.lock().unwrap() = Some(cx.waker().clone());
                    // Each wake waits for the one before, so a lost one stops the test.
                    let wakes = own.wakes.fetch_and(!1, Ordering::SeqCst);
                    last = last.max(wakes);
                    match last >= 2 * WAKES {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    }
                }));
                reactor.drive(worker as Pin<&mut dyn Future<Output = ()>>);
            })
        })
        .collect();
    for number in 1..=WAKES {
        for worker in &workers {
            // An odd number asks for a run, which makes it even.
            worker.wakes.store(2 * number + 1, Ordering::SeqCst);
            let waker = worker.waker.lock().unwrap().clone();
            waker.iter().for_each(Waker::wake_by_ref);
        }
        for worker in &workers {
            while worker.wakes.load(Ordering::SeqCst) & 1 == 1 {
                thread::yield_now();
            }
        }
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

/// Returns a thread that drives a worker, which runs `turn` until it is ready.
fn driven(mut turn: impl FnMut(&mut Context<'_>) -> Poll<()> + Send + 'static) -> JoinHandle<()> {
    let reactor = Reactor::get().unwrap();
    thread::spawn(move || {
        let worker = pin!(poll_fn(|cx| turn(cx)));
        reactor.drive(worker as Pin<&mut dyn Future<Output = ()>>);
    })
}

/// Nothing else wakes a thread that could poll: the watchdog wakes the idle worker, or looks itself.
#[test]
fn a_socket_is_attended_to_while_the_worker_that_polled_has_a_long_turn() {
    let _alone = alone();
    for has_idle in [false, true] {
        let (near, mut far) = pair();
        let (begins, has_begun) = channel();
        let (goes_on, ends) = channel();
        // The first byte lets the worker poll, and the second one begins a long turn.
        let busy = driven(move |cx| {
            let mut bytes = [0];
            while let Poll::Ready(read) = near.poll_read(cx, &mut bytes) {
                assert_eq!(read.unwrap(), 1);
                begins.send(()).unwrap();
                if bytes[0] == 2 {
                    ends.recv().unwrap();
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        });
        far.write_all(&[1]).unwrap();
        has_begun.recv().unwrap();
        let (waits, stop) = channel();
        let idle = has_idle.then(|| {
            let mut waits = Some(waits);
            let is_over = Arc::new(AtomicUsize::new(0));
            let own = is_over.clone();
            let thread = driven(move |cx| {
                let first = waits.take().map(|waits| waits.send(cx.waker().clone()));
                first.transpose().unwrap();
                match own.load(Ordering::SeqCst) {
                    0 => Poll::Pending,
                    _ => Poll::Ready(()),
                }
            });
            (thread, stop.recv().unwrap(), is_over)
        });
        let (other, mut far_other) = pair();
        far.write_all(&[2]).unwrap();
        has_begun.recv().unwrap();
        let (came, comes) = channel();
        let reader = thread::spawn(move || {
            came.send(block_on(read(&other, &mut [0])).unwrap())
                .unwrap();
        });
        far_other.write_all(&[3]).unwrap();
        let read = comes.recv_timeout(Duration::from_secs(60));
        assert_eq!(read, Ok(1), "with an idle worker: {has_idle}");
        goes_on.send(()).unwrap();
        for thread in [busy, reader] {
            thread.join().unwrap();
        }
        if let Some((thread, waker, is_over)) = idle {
            is_over.store(1, Ordering::SeqCst);
            waker.wake();
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_worker_that_was_woken_does_not_nap() {
    let poll = mio::Poll::new().unwrap();
    let kick = mio::Waker::new(poll.registry(), mio::Token(0)).unwrap();
    let worker = Arc::new(WorkerWaker::new(Arc::new(kick)));
    worker.run();
    worker.wake_by_ref();
    worker.park(Some(Duration::MAX));
    assert!(worker.is_woken());
    // A nap of no time leaves a worker that can be woken.
    worker.run();
    worker.park(Some(Duration::ZERO));
    assert!(!worker.is_woken());
    worker.wake_by_ref();
    worker.park(None);
}

#[test]
fn a_worker_naps_only_while_another_one_runs_and_the_poller_is_free() {
    let poll = mio::Poll::new().unwrap();
    let kick = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap());
    let [own, other] = [(); 2].map(|()| Arc::new(WorkerWaker::new(kick.clone())));
    let lock = PollerLock::new(poll);
    assert!(!lock.note_if_others_run(&own, 1));
    assert!(lock.note_if_others_run(&own, 2));
    lock.forget(&own);
    let poller = lock.try_lock();
    assert!(lock.try_lock_or_note(&other).is_none());
    assert!(!lock.note_if_others_run(&own, 3));
    drop(poller);
    assert!(!lock.note_if_others_run(&own, 2));
    assert!(lock.note_if_others_run(&own, 3));
}
