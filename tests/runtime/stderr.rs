//! What the library prints: a test captures it, and a broken stderr harms nothing.

use std::panic::panic_any;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::{Context, Handle, Runtime, spawn, unblock};

use crate::child::{captured, command, finish, is_for};
use crate::support::{WATCH, within};

const PANIC: &str = "nobody joins this";

/// The texts that [`give_all_kinds_of_lines`] prints.
const LINES: [&str; 3] = [
    "panicked and was not joined: nobody joins this",
    "held a worker for ",
    "held its thread for ",
];

async fn panics(_: Context<()>) {
    panic_any(PANIC);
}

async fn idle(mut cx: Context<()>) {
    cx.recv().await;
}

/// Prints lines on the threads of a runtime, and on the thread that calls this.
fn give_all_kinds_of_lines() {
    let builder = Runtime::builder().workers(1);
    let runtime = builder.long_turns(Duration::ZERO).build().unwrap();
    runtime.block_on(async {
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        // An actor that is alone on its thread may hold it.
        let _idle = spawn!(idle(_), on = &pinned);
        let actors = [spawn!(panics(_)), spawn!(panics(_), on = &pinned)];
        let ends = actors.each_ref().map(|actor| actor.address());
        let _ = actors.map(Handle::detach);
        for end in ends {
            end.closed().await;
        }
        drop(unblock(|| panic_any(PANIC)));
    });
    runtime.block_on(runtime.shutdown());
}

/// Runs a test that passes or fails in a child process, as `cargo test` does, and returns what it
/// prints.
fn said_by_a_test(test: &str, fails: bool) -> Option<String> {
    const FAILS: &str = "GREENROOM_TEST_FAILS";
    if is_for(test) {
        give_all_kinds_of_lines();
        assert!(std::env::var_os(FAILS).is_none(), "this test is to fail");
        return None;
    }
    let mut child = captured(test);
    if fails {
        child.env(FAILS, "1");
    }
    let output = finish(child.stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(output.status.success(), !fails, "{output:?}");
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Some(out + &err)
}

#[test]
fn a_test_that_passes_prints_nothing_of_the_library() {
    const TEST: &str = "stderr::a_test_that_passes_prints_nothing_of_the_library";
    let Some(text) = said_by_a_test(TEST, false) else {
        return;
    };
    assert!(text.contains("1 passed"), "{text}");
    assert!(!text.contains("greenroom: "), "{text}");
}

#[test]
fn a_test_that_fails_shows_what_the_library_printed() {
    const TEST: &str = "stderr::a_test_that_fails_shows_what_the_library_printed";
    let Some(text) = said_by_a_test(TEST, true) else {
        return;
    };
    for line in LINES {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

/// Loses lines, for which no panic hook is called: a hook may end the process.
#[test]
fn a_broken_stderr_harms_nothing() {
    const TEST: &str = "stderr::a_broken_stderr_harms_nothing";
    if is_for(TEST) {
        let others = Arc::new(AtomicUsize::new(0));
        let seen = others.clone();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref() != Some(&PANIC) {
                seen.fetch_add(1, Ordering::Relaxed);
            }
        }));
        within(WATCH, give_all_kinds_of_lines);
        assert_eq!(others.load(Ordering::Relaxed), 0);
        return;
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = finish(command(TEST).stdout(Stdio::piped()).stderr(writer));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}
