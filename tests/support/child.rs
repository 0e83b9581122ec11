//! Child processes for tests that signal, limit or hook the whole process.
//!
//! A child is this test binary again; it runs only the test that started it.

#![expect(
    unsafe_code,
    reason = "limits, signals and affinity are set through libc"
)]
#![allow(dead_code, reason = "no test program uses all of it")]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::{WATCH, within};

/// The environment variable that names the test for which the process was started.
const ALONE: &str = "GREENROOM_TEST_ALONE";

/// Runs `body` in a child process; `test` is the full name of the calling test.
pub fn alone(test: &str, body: impl FnOnce() + Send + 'static) {
    if is_for(test) {
        return within(WATCH, body);
    }
    let output = finish(command(test).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    for skipped in text.lines().filter(|line| line.starts_with("SKIPPED")) {
        eprintln!("{skipped}");
    }
    assert!(
        output.status.success(),
        "{test}, alone, {}:\n{text}",
        output.status
    );
    assert!(
        text.contains("1 passed"),
        "there is no test named {test}:\n{text}"
    );
}

/// Returns whether this process was started for this test.
pub fn is_for(test: &str) -> bool {
    std::env::var_os(ALONE).is_some_and(|name| name == test)
}

/// Returns whether this process was started by one of the tests.
pub fn is_one() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// Returns a command that runs only `test` in this test binary, and shows what it prints. A SIGINT
/// ends the child even if this process ignores SIGINT, as a shell's background job does.
pub fn command(test: &str) -> Command {
    let mut command = captured(test);
    command.arg("--nocapture");
    command
}

/// Returns the same command, but the test harness captures what the test prints.
pub fn captured(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--test-threads=1"])
        .env(ALONE, test)
        .env_remove("RUST_TEST_NOCAPTURE");
    // SAFETY: between fork and exec it calls only async-signal-safe functions.
    unsafe { command.pre_exec(|| set_interrupt(libc::SIG_DFL)) };
    command
}

/// Returns a command that runs this test binary without marking it as a child.
pub fn all_over() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env_remove(ALONE);
    command
}

/// Runs the command to its end, and kills it and panics if it takes too long.
///
/// Its stderr is returned without warnings of long turns, which a busy machine can cause.
pub fn finish(command: &mut Command) -> Output {
    let child = command.spawn().unwrap();
    let id = child.id();
    let (done, outcome) = mpsc::channel();
    let waiting = std::thread::spawn(move || done.send(child.wait_with_output()));
    let Ok(output) = outcome.recv_timeout(WATCH + Duration::from_secs(30)) else {
        // SAFETY: the child has not been waited for, so the id is still its own.
        unsafe { libc::kill(libc::pid_t::try_from(id).unwrap(), libc::SIGKILL) };
        panic!("hung: a child process did not end in time");
    };
    let _ = waiting.join().unwrap();
    let mut output = output.unwrap();
    let lines = output.stderr.split_inclusive(|&byte| byte == b'\n');
    let said = lines.filter(|line| !line.ends_with(b"; blocking calls belong in `unblock`\n"));
    output.stderr = said.collect::<Vec<_>>().concat();
    output
}

/// Returns an example of this crate, which cargo builds beside the tests.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent);
    let example = profile.unwrap().join("examples").join(name);
    assert!(
        example.is_file(),
        "{} is not built: `cargo test` builds it, `cargo test --test NAME` alone does not, so run \
         `cargo build --examples --profile test` with the same options first",
        example.display(),
    );
    example
}

/// Sends SIGINT to a child process.
pub fn interrupt_child(child: &Child) {
    let id = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: the child has not been waited for, so the id is still its own.
    assert_eq!(unsafe { libc::kill(id, libc::SIGINT) }, 0);
}

/// Makes this process, which is a child, ignore SIGINT.
pub fn ignore_interrupts() {
    assert!(is_one(), "this would change the whole process");
    set_interrupt(libc::SIG_IGN).unwrap();
}

fn set_interrupt(disposition: libc::sighandler_t) -> std::io::Result<()> {
    // SAFETY: the disposition is no handler but one of the two constants.
    match unsafe { libc::signal(libc::SIGINT, disposition) } {
        libc::SIG_ERR => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Raises SIGTERM in this process.
pub fn terminate() {
    // SAFETY: `kill` raises a signal and accesses no memory.
    assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGTERM) }, 0);
}

/// Sends SIGINT to this process.
pub fn interrupt() {
    // SAFETY: `kill` raises a signal and accesses no memory.
    assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGINT) }, 0);
}

/// Makes all threads of this process run on one core.
pub fn use_one_core() {
    // SAFETY: `cpu_set_t` is plain data, for which all zeros is valid; it is passed by reference
    // for the call only.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(
            libc::sched_getaffinity(0, size_of_val(&set), &raw mut set),
            0
        );
        let core = (0..libc::CPU_SETSIZE as usize).find(|&core| libc::CPU_ISSET(core, &set));
        let core = core.expect("the process may run on some core");
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(core, &mut set);
        assert_eq!(
            libc::sched_setaffinity(0, size_of_val(&set), &raw const set),
            0
        );
    }
}

/// A limit that forbids or allows this process, which is a child, to start threads.
pub struct ThreadLimit {
    hard: libc::rlim_t,
}

impl ThreadLimit {
    /// Sets the limit up, or returns `None` and prints that the test is skipped where threads
    /// cannot be forbidden.
    ///
    /// The limit does not hold for root, so this process changes to an unused user id.
    pub fn new(test: &str) -> Option<ThreadLimit> {
        assert!(is_one(), "this would change the whole process");
        // SAFETY: changes the user id of this process; the limits are plain data.
        let hard = unsafe {
            if libc::getuid() == 0 {
                let somebody = 1_000_000 + std::process::id();
                if libc::setuid(somebody) != 0 && libc::setuid(65_534) != 0 {
                    eprintln!("SKIPPED {test}: root cannot change its user id");
                    return None;
                }
            }
            let mut limit: libc::rlimit = std::mem::zeroed();
            assert_eq!(libc::getrlimit(libc::RLIMIT_NPROC, &raw mut limit), 0);
            limit.rlim_max
        };
        let limit = ThreadLimit { hard };
        limit.forbid();
        let forbidden = std::thread::Builder::new().spawn(|| {}).is_err();
        limit.allow();
        if !forbidden {
            eprintln!("SKIPPED {test}: the limit on threads has no effect here");
        }
        forbidden.then_some(limit)
    }

    /// Forbids to start threads from now on.
    pub fn forbid(&self) {
        self.set(0);
    }

    /// Allows `more` threads from now on in addition to the existing ones.
    pub fn allow_only(&self, more: usize) {
        self.set((crate::child::threads_named("") + more) as libc::rlim_t);
    }

    pub fn allow(&self) {
        self.set(self.hard);
    }

    fn set(&self, soft: libc::rlim_t) {
        let limit = libc::rlimit {
            rlim_cur: soft,
            rlim_max: self.hard,
        };
        // SAFETY: plain data, passed by reference for the call only.
        let done = unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit) };
        assert_eq!(done, 0);
    }
}

/// Returns how many threads of this process have a name with this prefix. Linux keeps 15 bytes of a
/// name.
pub fn threads_named(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end between listing the tasks and reading its name.
    let names = tasks.filter_map(|task| std::fs::read(task.ok()?.path().join("comm")).ok());
    names
        .filter(|name| name.starts_with(prefix.as_bytes()))
        .count()
}
