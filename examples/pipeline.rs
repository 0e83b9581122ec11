//! This example shows a pipeline: each stage is an actor with a small mailbox, so a slow stage makes
//! those before it wait.
//!
//! ```text
//!             ┌─> parse ─┐
//!  read ──────┤          ├──> write
//!             └─> parse ─┘
//!  waits for room ──>          ends first when the disk is full
//! ```
//!
//! The end travels downstream: a stage without senders receives `None`. A failure travels upstream: a
//! stage that has ended refuses what is sent to it. It prints:
//!
//! ```text
//! 1000 lines were written, never more than 16 at a time
//! the disk was full after 500 lines, and the reader stopped
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::{Address, Context, spawn};

const LINES: usize = 1000;
const PARSERS: usize = 2;
/// The number of lines that wait for one stage.
const CAPACITY: usize = 4;
/// The reader has one line in hand. Each other stage has its mailbox, and one in hand.
const MOST: usize = 1 + (PARSERS + 1) * (CAPACITY + 1);

/// Counts the lines that exist, and how many existed at most.
#[derive(Default)]
struct Count {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Line {
    number: usize,
    count: Arc<Count>,
}

impl Line {
    fn new(number: usize, count: &Arc<Count>) -> Line {
        let now = count.now.fetch_add(1, Ordering::Relaxed) + 1;
        count.most.fetch_max(now, Ordering::Relaxed);
        Line {
            number,
            count: count.clone(),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.count.now.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct DiskFull;

/// Returns the number of lines that it has read.
async fn read(_cx: Context<()>, parsers: Vec<Address<Line>>, count: Arc<Count>) -> usize {
    for number in 0..LINES {
        let parser = &parsers[number % PARSERS];
        if parser.send(Line::new(number, &count)).await.is_err() {
            return number; // a stage behind this one has ended
        }
    }
    LINES
}

async fn parse(mut cx: Context<Line>, writer: Address<Line>) {
    while let Some(line) = cx.recv().await {
        greenroom::yield_now().await; // the work
        if writer.send(line).await.is_err() {
            break;
        }
    }
}

/// Returns the number of lines that it has written, or an error once the disk is full.
async fn write(mut cx: Context<Line>, room: usize) -> Result<usize, DiskFull> {
    let mut written = vec![false; LINES];
    let mut lines = 0;
    while let Some(line) = cx.recv().await {
        if lines == room {
            return Err(DiskFull);
        }
        greenroom::yield_now().await; // the slow disk
        written[line.number] = true;
        lines += 1;
    }
    Ok(written.iter().filter(|&&is_written| is_written).count())
}

/// Runs a pipeline to its end. Returns the result of its writer, and the number of lines read.
async fn run(room: usize, count: &Arc<Count>) -> (Result<usize, DiskFull>, usize) {
    let writer = spawn!(write(_, room), capacity = CAPACITY);
    let parser = |_| spawn!(parse(_, writer.address()), capacity = CAPACITY).address();
    let parsers = (0..PARSERS).map(parser).collect();
    let reader = spawn!(read(_, parsers, count.clone()));
    // Each stage now has the only addresses of the next one. So they end one after another.
    let read = reader.join().await.expect("it does not panic");
    let written = writer.join().await.expect("it does not panic");
    (written, read)
}

fn main() {
    greenroom::run(async {
        let count = Arc::default();
        let (written, read) = run(usize::MAX, &count).await;
        let written = written.expect("there is room for all lines");
        assert_eq!((written, read), (LINES, LINES));
        assert!(count.most.load(Ordering::Relaxed) <= MOST);
        println!("{written} lines were written, never more than {MOST} at a time");

        let (written, read) = run(500, &count).await;
        assert!(matches!(written, Err(DiskFull)));
        assert!((501..=500 + MOST).contains(&read), "{read} lines were read");
        println!("the disk was full after 500 lines, and the reader stopped");
    });
}
