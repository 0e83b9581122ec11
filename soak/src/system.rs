//! What only the system can do: signals, limits, and the ends of processes.
#![expect(unsafe_code, reason = "signals and limits are set through libc")]

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A resource that a process can use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scarce {
    Descriptors,
    Threads,
    /// The bytes of its addresses.
    Memory,
    /// The bytes of what it leaves behind when it aborts.
    Core,
}

impl Scarce {
    fn number(self) -> libc::__rlimit_resource_t {
        match self {
            Scarce::Descriptors => libc::RLIMIT_NOFILE,
            Scarce::Threads => libc::RLIMIT_NPROC,
            Scarce::Memory => libc::RLIMIT_AS,
            Scarce::Core => libc::RLIMIT_CORE,
        }
    }

    /// Sets how much of it this process may have, and returns how much it was.
    pub fn limit(self, soft: u64) -> io::Result<u64> {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: plain data, passed by reference for the call only.
        if unsafe { libc::getrlimit(self.number(), &raw mut limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let before = limit.rlim_cur;
        limit.rlim_cur = soft.min(limit.rlim_max);
        // SAFETY: plain data, passed by reference for the call only.
        match unsafe { libc::setrlimit(self.number(), &raw const limit) } {
            0 => Ok(before),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A signal that the parent sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Stop,
    Continue,
}

/// Sends a signal to a process that was started by this one, and that it has not waited for.
pub fn signal(process: u32, sent: Sent) -> io::Result<()> {
    let number = match sent {
        Sent::Stop => libc::SIGSTOP,
        Sent::Continue => libc::SIGCONT,
    };
    let process = libc::pid_t::try_from(process).map_err(io::Error::other)?;
    // SAFETY: it accesses no memory. The process has not been waited for, so the id is its own.
    match unsafe { libc::kill(process, number) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets the process of a command be killed when the thread that has started it ends.
pub fn ends_with_this_thread(command: &mut Command) -> &mut Command {
    let follow = || {
        // SAFETY: it accesses no memory, and may be called between fork and exec.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec it only makes a system call.
    unsafe { command.pre_exec(follow) }
}

/// Gives up the rights of root, for which there is no limit of threads. Returns whether the limit
/// has an effect then.
pub fn obey_thread_limit() -> bool {
    // SAFETY: it changes the user of this process, and accesses no memory.
    unsafe {
        if libc::getuid() == 0 {
            let somebody = 1_000_000 + std::process::id();
            if libc::setuid(somebody) != 0 && libc::setuid(65_534) != 0 {
                return false;
            }
        }
    }
    let Ok(before) = Scarce::Threads.limit(0) else {
        return false;
    };
    let is_forbidden = std::thread::Builder::new().spawn(|| {}).is_err();
    is_forbidden && Scarce::Threads.limit(before).is_ok()
}

/// Opens files until there is no descriptor left, and returns them.
pub fn all_descriptors() -> Vec<File> {
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    files
}

/// Returns how many descriptors a process has.
pub fn descriptors(process: &str) -> Option<u64> {
    entries(process, "fd")
}

/// Returns how many threads a process has.
pub fn threads(process: &str) -> Option<u64> {
    entries(process, "task")
}

fn entries(process: &str, folder: &str) -> Option<u64> {
    let entries = std::fs::read_dir(format!("/proc/{process}/{folder}")).ok()?;
    Some(entries.count() as u64)
}

/// Returns a number of KiB that the system tells of a process, such as `VmRSS`.
pub fn kib(process: &str, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':')
        .trim()
        .strip_suffix(" kB")?
        .parse()
        .ok()
}
