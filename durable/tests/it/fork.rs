//! A child of `fork`, in which the thread of its parent's store does not exist.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "a process is forked and ended through libc")]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use greenroom_durable::{Job, Store, StoreProblem};

use crate::support::{Note, notes};

#[test]
fn a_child_of_fork_is_refused_and_its_parent_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    greenroom::run(async {
        let store = Store::sqlite(folder.path().join("notes.db"))
            .open()
            .await
            .unwrap();
        let queue = notes(&store).await;
        // SAFETY: the child only asks for a job, which is refused, and ends without destructors.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let put =
                pin!(queue.put(Job::new(Note(1)))).poll(&mut Context::from_waker(Waker::noop()));
            let is_refused =
                matches!(put, Poll::Ready(Err(error)) if error.why == StoreProblem::Forked);
            let closed = pin!(store.close()).poll(&mut Context::from_waker(Waker::noop()));
            drop(store);
            // SAFETY: it ends this process at once.
            unsafe {
                libc::_exit(if is_refused && closed.is_ready() {
                    0
                } else {
                    1
                })
            };
        }
        assert!(child > 0);
        let mut status = 0;
        // SAFETY: the status is plain data, passed by reference for the call only.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        assert!(queue.put(Job::new(Note(2))).await.unwrap());
        assert_eq!(queue.status().await.unwrap().waiting, 1);
        store.close().await;
    });
}
