//! Writers that fail, are full or block: they stop no actor.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use greenroom::trace::{Level, Lines, note};
use greenroom::{Context, Runtime, actor, spawn};

use super::{Memory, masked};
use crate::support::{Gate, WATCH, within};

/// A writer that does with each call what the closure says.
struct Does<F>(F);

impl<F: FnMut(&[u8]) -> io::Result<usize>> Write for Does<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lines_to(write: impl FnMut(&[u8]) -> io::Result<usize> + Send + 'static) -> Lines {
    Lines::to(Does(write), Level::Console)
}

/// Runs an actor that writes this many notes, named by their numbers, on a runtime with one worker.
fn note_all(lines: &Lines, notes: usize) {
    let lines = lines.clone();
    within(WATCH, move || {
        let runtime = Runtime::builder()
            .long_turns(None)
            .workers(1)
            .tracer(lines)
            .build()
            .unwrap();
        runtime.block_on(async {
            let noting = move |_cx: Context<()>| async move {
                for number in 0..notes {
                    note!(Level::Console, number);
                }
            };
            actor(noting).name("noting").spawn().join().await.unwrap();
        });
    });
}

#[test]
fn lines_of_a_writer_that_fails_are_counted_and_the_actor_goes_on() {
    let closed = lines_to(|_| Err(io::ErrorKind::BrokenPipe.into()));
    note_all(&closed, 100);
    assert_eq!(closed.dropped(), 100);
    let takes_nothing = lines_to(|_| Ok(0));
    note_all(&takes_nothing, 3);
    assert_eq!(takes_nothing.dropped(), 3);
}

#[test]
fn lines_of_a_writer_that_panics_are_counted() {
    crate::support::keep_bombs_quiet();
    let bomb = lines_to(|_| panic!("bomb"));
    note_all(&bomb, 2);
    assert_eq!(bomb.dropped(), 2);
    let liar = lines_to(|bytes| Ok(bytes.len() + 1));
    note_all(&liar, 2);
    assert_eq!(liar.dropped(), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_drops_lines() {
    let full = || {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        full.unwrap()
    };
    let at_once = Lines::to(full(), Level::Console);
    note_all(&at_once, 10);
    assert_eq!(at_once.dropped(), 10);
    // Those in the buffer are lost as well as those for which it has no room.
    for notes in [10, 1000] {
        let buffered = Lines::to(BufWriter::new(full()), Level::Console);
        note_all(&buffered, notes);
        assert_eq!(buffered.dropped(), notes as u64);
    }
}

#[test]
fn a_flush_that_fails_counts_the_lines_since_the_last_one_once() {
    struct FailsOnce(Memory, u32);
    impl Write for FailsOnce {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            self.1 += 1;
            match self.1 {
                2 => Err(io::ErrorKind::StorageFull.into()),
                _ => Ok(()),
            }
        }
    }
    let lines = Lines::to(FailsOnce(Memory::default(), 0), Level::Console);
    // The end of each runtime flushes.
    for (notes, dropped) in [(3, 0), (4, 4), (5, 4)] {
        note_all(&lines, notes);
        assert_eq!(lines.dropped(), dropped);
    }
}

#[test]
fn a_line_after_a_torn_one_begins_on_a_new_line() {
    let (mut memory, written) = (Memory::default(), Memory::default());
    let mut copy = written.clone();
    let mut calls = 0;
    let lines = lines_to(move |bytes| {
        calls += 1;
        match calls {
            2 => memory.write(&bytes[..20]).and(copy.write(&bytes[..20])),
            3 => Err(io::ErrorKind::StorageFull.into()),
            _ => copy.write(bytes),
        }
    });
    // Outside turns each line is written at once.
    let runtime = Runtime::builder()
        .long_turns(None)
        .workers(1)
        .tracer(lines.clone());
    runtime.build().unwrap().block_on(async {
        (0..4).for_each(|number| note!(Level::Console, number));
    });
    let text = written.text();
    let all: Vec<_> = text.lines().collect();
    assert_eq!(all.len(), 4, "{text}");
    assert_eq!(all[1].len(), 20);
    let whole = [all[0], all[2], all[3]].map(masked);
    let number = |line: &str| line.rsplit(' ').next().unwrap().to_owned();
    assert_eq!(whole.map(number), ["0", "2", "3"]);
    assert_eq!(lines.dropped(), 1);
}

#[test]
fn a_writer_that_takes_one_byte_at_a_time_or_is_interrupted_loses_nothing() {
    let written = Memory::default();
    let mut copy = written.clone();
    let mut calls = 0;
    let lines = lines_to(move |bytes| {
        calls += 1;
        match calls % 3 {
            0 => Err(io::ErrorKind::Interrupted.into()),
            _ => copy.write(&bytes[..1]),
        }
    });
    note_all(&lines, 10);
    let text = written.text();
    let numbers: Vec<_> = text.lines().map(|line| masked(line).to_owned()).collect();
    assert_eq!(numbers.len(), 10);
    assert!(numbers[9].ends_with(" - 9"));
    assert_eq!(lines.dropped(), 0);
}

#[test]
fn a_writer_that_blocks_delays_one_thread_and_the_others_drop_what_is_too_much() {
    let (begun, go_on) = (Gate::default(), Gate::default());
    let (begins, waits) = (begun.clone(), go_on.clone());
    let written = Memory::default();
    let mut copy = written.clone();
    let lines = lines_to(move |bytes| {
        begins.open();
        waits.pass();
        copy.write(bytes)
    });
    let tracer = lines.clone();
    within(WATCH, move || {
        let runtime = Runtime::builder()
            .long_turns(None)
            .workers(2)
            .tracer(tracer)
            .build()
            .unwrap();
        runtime.block_on(async {
            let blocked = |_cx: Context<()>| async { note!(Level::Console, "blocked") };
            let blocked = actor(blocked).spawn();
            begun.wait().await;
            let long = "x".repeat(1000);
            let noting = |_cx: Context<()>| async move {
                for _ in 0..2000 {
                    note!(Level::Console, long);
                }
            };
            // The one actor waits for the writer; this one ends, with lines beyond the limit.
            actor(noting).spawn().join().await.unwrap();
            go_on.open();
            blocked.join().await.unwrap();
        });
    });
    let kept = written.text().lines().count() as u64;
    assert_eq!(kept + lines.dropped(), 2001);
    assert!((900..1100).contains(&kept), "{kept}");
}

#[test]
fn a_turn_ends_after_some_writes_also_if_others_note_for_ever() {
    let (asks, asked) = mpsc::channel::<()>();
    let (notes, noted) = mpsc::channel::<()>();
    let worker = Arc::new(Mutex::new(None));
    let (writes, is_over) = (Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
    let (on, counted, over) = (worker.clone(), writes.clone(), is_over.clone());
    let (mut asks, written) = (Some(asks), Memory::default());
    let mut copy = written.clone();
    // Each write makes another thread note a line, and waits for that.
    let lines = lines_to(move |bytes| {
        if *on.lock().unwrap() == Some(std::thread::current().id()) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        match &asks {
            Some(_) if over.load(Ordering::Relaxed) => {
                asks = None;
                // The runtime shuts down meanwhile, and waits up to 5 s. Yielding as long as this
                // could take longer where others use the core.
                std::thread::sleep(Duration::from_millis(10));
            }
            Some(asks) => {
                asks.send(()).unwrap();
                noted.recv().unwrap();
            }
            None => {}
        }
        copy.write(bytes)
    });
    let others = within(WATCH, move || {
        let runtime = Runtime::builder()
            .long_turns(None)
            .workers(1)
            .tracer(lines)
            .grace(WATCH)
            .build();
        let runtime = runtime.unwrap();
        let current = runtime.clone();
        let noting = std::thread::spawn(move || {
            current.block_on(async {
                asked.iter().fold(0, |count, ()| {
                    note!(Level::Console, "more");
                    notes.send(()).unwrap();
                    count + 1
                })
            })
        });
        runtime.block_on(async {
            let begins = move |_cx: Context<()>| async move {
                *worker.lock().unwrap() = Some(std::thread::current().id());
                note!(Level::Console, "begins");
            };
            actor(begins).spawn().join().await.unwrap();
            // The turn has ended: its worker runs another task.
            greenroom::spawn(async {}).await;
        });
        is_over.store(true, Ordering::Relaxed);
        noting.join().unwrap()
    });
    assert_eq!(writes.load(Ordering::Relaxed), 8);
    assert!(others >= 8, "{others}");
    // The end of the runtime has waited for the thread that wrote the rest.
    assert_eq!(written.text().lines().count(), others + 1);
}

#[test]
fn lines_of_a_turn_are_written_when_it_ends_or_when_they_are_many() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let counted = calls.clone();
    let lines = lines_to(move |bytes| {
        counted.lock().unwrap().push(bytes.len());
        Ok(bytes.len())
    });
    note_all(&lines, 10);
    assert_eq!(std::mem::take(&mut *calls.lock().unwrap()).len(), 1);
    note_all(&lines, 1000);
    let calls = calls.lock().unwrap();
    assert!((2..5).contains(&calls.len()), "{calls:?}");
    assert!(calls.iter().all(|bytes| *bytes < 34_000), "{calls:?}");
}

#[test]
fn a_line_that_is_too_long_is_dropped() {
    let written = Memory::default();
    let lines = Lines::to(written.clone(), Level::Console);
    let tracer = lines.clone();
    within(WATCH, move || {
        let runtime = Runtime::builder()
            .long_turns(None)
            .workers(1)
            .tracer(tracer)
            .build()
            .unwrap();
        runtime.block_on(async {
            note!(Level::Console, "x".repeat(2 << 20));
            note!(Level::Console, "short");
        });
    });
    assert_eq!(written.lines(), ["^ <0> - short"]);
    assert_eq!(lines.dropped(), 1);
}

#[test]
fn a_buffered_writer_is_flushed_when_the_runtime_has_shut_down() {
    let written = Memory::default();
    let buffered = BufWriter::with_capacity(1 << 20, written.clone());
    let lines = Lines::to(buffered, Level::Object);
    let runtime = Runtime::builder()
        .long_turns(None)
        .workers(1)
        .tracer(lines.clone())
        .build();
    let runtime = runtime.unwrap();
    runtime.block_on(async { spawn!(|_cx: Context<()>| async {}).join().await.unwrap() });
    assert_eq!(written.text(), "");
    drop(runtime);
    assert!(written.lines().last().unwrap().ends_with("Ended"));
    drop(lines);
    // So it is if the level hides that end.
    let written = Memory::default();
    let buffered = BufWriter::with_capacity(1 << 20, written.clone());
    let lines = Lines::to(buffered, Level::Console);
    note_all(&lines, 1);
    assert_eq!(written.lines(), ["^ <1>noting - 0"]);
}

#[test]
fn lines_of_many_threads_are_whole_and_those_of_an_actor_are_in_order() {
    const ACTORS: usize = 8;
    const NOTES: usize = 500;
    let written = Memory::default();
    let lines = Lines::to(written.clone(), Level::Console);
    let tracer = lines.clone();
    within(WATCH, move || {
        let runtime = Runtime::builder()
            .long_turns(None)
            .workers(4)
            .tracer(tracer)
            .build()
            .unwrap();
        runtime.block_on(async {
            let noting = |_cx: Context<()>| async {
                for number in 0..NOTES {
                    note!(Level::Console, number);
                    if number % 10 == 0 {
                        greenroom::yield_now().await;
                    }
                }
            };
            let all: Vec<_> = (0..ACTORS).map(|_| actor(noting).spawn()).collect();
            for noting in all {
                noting.join().await.unwrap();
            }
        });
    });
    let mut next: HashMap<String, usize> = HashMap::new();
    for line in written.lines() {
        let (who, number) = line.split_once(" - ").unwrap();
        let expected = next.entry(who.to_owned()).or_default();
        assert_eq!(number.parse(), Ok(*expected), "{line}");
        *expected += 1;
    }
    assert_eq!(next.len(), ACTORS);
    assert!(next.values().all(|count| *count == NOTES));
    assert_eq!(lines.dropped(), 0);
}

#[test]
fn a_writer_may_send_to_an_actor_of_the_traced_runtime() {
    let to = Arc::new(Mutex::new(None::<greenroom::Address<usize>>));
    let given = to.clone();
    let lines = Lines::to(
        Does(move |bytes: &[u8]| {
            if let Some(to) = &*given.lock().unwrap() {
                let _ = to.tell(bytes.len());
            }
            Ok(bytes.len())
        }),
        Level::Object,
    );
    within(WATCH, move || {
        let runtime = Runtime::builder()
            .long_turns(None)
            .workers(1)
            .tracer(lines)
            .build()
            .unwrap();
        let bytes = runtime.block_on(async {
            let adds = |mut cx: Context<usize>| async move { cx.recv().await.unwrap() };
            let adds = actor(adds).spawn();
            *to.lock().unwrap() = Some(adds.address());
            note!(Level::Console, "a line, whose length is sent");
            adds.join().await.unwrap()
        });
        assert!(bytes > 28);
    });
}
