//! A foreign loop over file descriptors: `poll` waits for a device, and for an eventfd of the
//! stage.

#![expect(unsafe_code, reason = "eventfd and poll are called through libc")]

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use greenroom::time::{Instant, sleep};
use greenroom::{Context, Runtime, Stage, actor};

use crate::support::{WATCH, within};

/// Waits until one of the two is readable, at most until the stage's deadline; returns which ones
/// are.
fn wait(wakes: &File, device: &UnixStream, stage: &Stage) -> [bool; 2] {
    let timeout = match stage.next_deadline() {
        Some(due) => {
            let left = due.duration_since(Instant::now()).as_nanos();
            i32::try_from(left.div_ceil(1_000_000)).unwrap_or(i32::MAX)
        }
        None => -1,
    };
    let mut both = [wakes.as_raw_fd(), device.as_raw_fd()].map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: an array of two entries, passed by reference for the call only.
    let ready = unsafe { libc::poll(both.as_mut_ptr(), 2, timeout) };
    assert!(ready >= 0, "{}", std::io::Error::last_os_error());
    both.map(|one| one.revents != 0)
}

#[test]
fn a_foreign_loop_over_an_eventfd_serves_actors_on_its_thread() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let stage = runtime.pinned_here();
        // SAFETY: a new descriptor, owned by this file only.
        let wakes = unsafe { File::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
        let interrupt = wakes.try_clone().unwrap();
        stage.on_wake(move || (&interrupt).write_all(&1_u64.to_ne_bytes()).unwrap());

        let (mut device, mut keyboard) = UnixStream::pair().unwrap();
        let window = actor(|mut cx: Context<u8>| async move {
            let text = Rc::new(RefCell::new(String::new())); // GUI state never leaves this thread
            while let Some(key) = cx.recv().await {
                text.borrow_mut().push(char::from(key));
                sleep(Duration::from_millis(1)).await;
            }
            text.take()
        });
        let window = window.on(&stage).spawn();
        let mut keys = Some(window.address());
        let shown = stage.spawn(move || async move { window.join().await.unwrap() });
        let typist = runtime.spawn(async move {
            keyboard.write_all(b"green\n").unwrap();
            keyboard
        });
        while !shown.is_finished() {
            let [is_called, is_touched] = wait(&wakes, &device, &stage);
            if is_called {
                assert_eq!((&wakes).read(&mut [0; 8]).unwrap(), 8);
            }
            if is_touched {
                let mut key = [0];
                device.read_exact(&mut key).unwrap();
                match key {
                    [b'\n'] => drop(keys.take()),
                    [key] => keys.as_ref().unwrap().tell(key).unwrap(),
                }
            }
            stage.run_ready();
        }
        assert_eq!(stage.block_on(shown), "green");
        stage.block_on(typist);
    });
}
