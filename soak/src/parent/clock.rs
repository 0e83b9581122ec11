//! A library that shows the processes another date, which the parent steps. All other clocks stay.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable with the file of the step.
pub const STEP: &str = "GREENROOM_SOAK_STEP";

/// The library finds the clock of the system behind itself, so that reading it stays fast. The file has
/// the step in seconds, as eight bytes.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long none;
static volatile long *step = &none;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("GREENROOM_SOAK_STEP");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *page = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        if (page != MAP_FAILED) {
            step = page;
        }
        close(file);
    }
}

int clock_gettime(clockid_t id, struct timespec *now) {
    if (!real) {
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    }
    int result = real(id, now);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += *step;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return result;
}

time_t time(time_t *given) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (given) {
        *given = exact.tv_sec;
    }
    return exact.tv_sec;
}
"#;

const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;

/// The steps from the true date, in seconds.
pub const STEPS: [i64; 7] = [0, 1, -1, HOUR, -HOUR, 10 * YEAR, -10 * YEAR];

/// The library, and the file of its step.
pub struct SteppedClock {
    pub library: PathBuf,
    pub file: PathBuf,
}

impl SteppedClock {
    /// Builds the library with the C compiler.
    pub fn build(folder: &Path) -> io::Result<SteppedClock> {
        let [source, library, file] = ["step.c", "step.so", "step"].map(|name| folder.join(name));
        fs::write(&source, LIBRARY)?;
        fs::write(&file, 0i64.to_ne_bytes())?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O2", "-o"]);
        compiler.arg(&library).arg(&source).arg("-ldl");
        match compiler.status()?.success() {
            true => Ok(SteppedClock { library, file }),
            false => Err(io::Error::other("the C compiler has failed")),
        }
    }

    /// Shows all processes a date that is off by so many seconds.
    pub fn set(&self, seconds: i64) -> io::Result<()> {
        // In place, since the processes have mapped the file.
        let mut file = fs::OpenOptions::new().write(true).open(&self.file)?;
        io::Write::write_all(&mut file, &seconds.to_ne_bytes())
    }
}
