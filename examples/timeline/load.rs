//! The load: looks for text that was copied within a folder.
//!
//! ```text
//!  walker ──> reader 0..1 ──> counter 0..3 ──> merger     every mailbox is bounded, merger is slow
//!  matcher 0..11     compare every part of a file with every other: many short turns
//!  differ            compares two parts byte by byte: one long turn for each pair that it is sent
//!  reporter          a timer: prints a line at each beat
//! ```
//!
//! `director` starts the three stages one after the other. No actor sleeps to look busy.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom::{Address, Context, Fault, Reply, spawn, yield_now};

const READERS: usize = 2;
const COUNTERS: usize = 4;
const MATCHERS: usize = 12;

/// How many messages wait in a mailbox at most. Small, so that the slow merger slows the others.
const CAPACITY: usize = 2;

/// The most files that are read, so that the load ends soon in a large folder too.
const FILES_MAX: usize = 500;

/// The largest file that is read, in bytes.
const SIZE_MAX: u64 = 1 << 20;

/// How many lines of a file are a part.
const LINES: usize = 128;

/// The most parts that are compared: the number of pairs grows with its square.
const PARTS_MAX: usize = 2000;

/// So many words in a row are compared as one.
const SHINGLE: usize = 3;

/// A part with fewer shingles is too short to compare.
const SHINGLES_MIN: usize = 100;

/// The most bytes of a part that the differ compares: its time grows with the square.
const BYTES_MAX: usize = 8192;

/// How many of the pairs that are most alike the differ is sent.
const PAIRS: usize = 10;

const BEAT: Duration = Duration::from_millis(50);

/// A part of a file.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    /// The number of its first line.
    line: usize,
    text: String,
    /// A hash of each run of [`SHINGLE`] words, sorted, each once.
    shingles: Vec<u64>,
}

/// What a counter makes of a file.
struct Counted {
    parts: Vec<Part>,
    words: HashMap<String, u64>,
}

/// What the merger returns.
struct Corpus {
    parts: Vec<Part>,
    files: usize,
    /// How many different words there are, and those that are most frequent.
    words: usize,
    frequent: Vec<String>,
}

/// Two parts, by their indices, and which share of their shingles both have.
#[derive(Debug, Clone, Copy)]
struct Pair {
    likeness: f64,
    indices: (usize, usize),
}

/// What the reporter receives.
enum News {
    Beat,
    Merged { word: String },
    Compared { pairs: usize },
}

/// Sends the files of the folder and of those below it to the readers, in turn; the first ones if
/// there are many.
async fn walker(_cx: Context<()>, folder: PathBuf, readers: Vec<Address<PathBuf>>) {
    let (mut folders, mut sent) = (vec![folder], 0);
    while let Some(folder) = folders.pop() {
        let (files, found) = greenroom::unblock(move || list(&folder)).await;
        folders.extend(found);
        for file in files {
            let reader = &readers[sent % readers.len()];
            if sent == FILES_MAX || reader.send(file).await.is_err() {
                return;
            }
            sent += 1;
        }
    }
}

/// Reads files on a thread that may block, and leaves out those that are no text.
async fn reader(mut cx: Context<PathBuf>, counters: Vec<Address<(PathBuf, String)>>) {
    let mut sent = 0;
    while let Some(path) = cx.recv().await {
        let file = path.clone();
        let Ok(text) = greenroom::unblock(move || fs::read_to_string(file)).await else {
            continue;
        };
        let counter = &counters[sent % counters.len()];
        if counter.send((path, text)).await.is_err() {
            return;
        }
        sent += 1;
    }
}

/// Counts the words of each text, and waits for room in the merger's mailbox.
async fn counter(mut cx: Context<(PathBuf, String)>, merger: Address<Counted>) {
    while let Some((path, text)) = cx.recv().await {
        if merger.send(count(&path, &text)).await.is_err() {
            return;
        }
    }
}

/// Adds up the counts of all files, and sorts them anew after each file, which makes it slow.
async fn merger(mut cx: Context<Counted>, reporter: Address<News>) -> Corpus {
    let (mut parts, mut files, mut totals) = (Vec::new(), 0, HashMap::new());
    while let Some(counted) = cx.recv().await {
        files += 1;
        for (word, count) in counted.words {
            *totals.entry(word).or_insert(0) += count;
        }
        let room = PARTS_MAX - parts.len();
        parts.extend(counted.parts.into_iter().take(room));
        if let Some(word) = rank(&totals).first() {
            let word = word.to_string();
            // A reporter that has ended misses nothing.
            let _ = reporter.tell(News::Merged { word });
        }
    }
    let frequent = rank(&totals).into_iter().take(5).map(str::to_owned);
    Corpus {
        parts,
        files,
        words: totals.len(),
        frequent: frequent.collect(),
    }
}

/// Compares each part that it is sent with all later ones, and returns the pairs that are most alike.
///
/// It yields after each part: a turn may take a batch of messages, and this one's are long.
async fn matcher(
    mut cx: Context<usize>,
    parts: Arc<Vec<Part>>,
    reporter: Address<News>,
) -> Vec<Pair> {
    let mut best = Vec::new();
    while let Some(a) = cx.recv().await {
        best.extend((a + 1..parts.len()).map(|b| Pair {
            likeness: likeness(&parts[a].shingles, &parts[b].shingles),
            indices: (a, b),
        }));
        keep_best(&mut best);
        let pairs = parts.len() - a - 1;
        let _ = reporter.tell(News::Compared { pairs });
        yield_now().await;
    }
    best
}

/// Returns how many bytes two parts have in common, in the same order. It does not yield meanwhile.
async fn differ(mut cx: Context<((usize, usize), Reply<usize>)>, parts: Arc<Vec<Part>>) {
    while let Some(((a, b), reply)) = cx.recv().await {
        let bytes = |index: usize| {
            let bytes = parts[index].text.as_bytes();
            &bytes[..bytes.len().min(BYTES_MAX)]
        };
        reply.send(common(bytes(a), bytes(b)));
    }
}

/// Prints how far the others are, at each beat, until they have ended.
async fn reporter(mut cx: Context<News>) {
    let began = Instant::now();
    let _beat = cx.send_every(BEAT, || News::Beat).background();
    let (mut files, mut compared, mut top) = (0, 0, String::new());
    while let Some(news) = cx.recv().await {
        match news {
            News::Merged { word } => (files, top) = (files + 1, word),
            News::Compared { pairs } => compared += pairs,
            News::Beat => eprintln!(
                "{:4} ms: {files} files, most frequent word `{top}`; {compared} pairs",
                began.elapsed().as_millis(),
            ),
        }
    }
}

/// Runs the stages, and returns what was found as lines of text.
pub async fn director(_cx: Context<()>, folder: PathBuf) -> Result<String, Fault> {
    let reporter = spawn!(reporter(_), name = "reporter");
    let corpus = gather(folder.clone(), reporter.address()).await?;
    let parts = Arc::new(corpus.parts);
    let mut found = format!(
        "{} files, {} parts, {} different words; the most frequent: {}\n",
        corpus.files,
        parts.len(),
        corpus.words,
        corpus.frequent.join(", "),
    );
    let pairs = compare(&parts, &reporter).await?;
    let differ = spawn!(differ(_, parts.clone()), name = "differ");
    for Pair { likeness, indices } in pairs {
        let Ok(bytes) = differ.ask(|reply| (indices, reply)).await else {
            break;
        };
        let place = |index: usize| {
            let Part { path, line, .. } = &parts[index];
            let path = path.strip_prefix(&folder).unwrap_or(path);
            format!("{}:{line}", path.display())
        };
        let (a, b) = (place(indices.0), place(indices.1));
        let percent = likeness * 100.0;
        found += &format!("{percent:3.0} % alike, {bytes:4} bytes in common: {a} and {b}\n");
    }
    differ.join().await?;
    reporter.join().await?;
    Ok(found)
}

/// Runs the first stage: reads the files and counts their words. Each actor ends after those before it.
async fn gather(folder: PathBuf, reporter: Address<News>) -> Result<Corpus, Fault> {
    let merger = spawn!(merger(_, reporter), name = "merger", capacity = CAPACITY);
    let counters = (0..COUNTERS).map(|index| {
        let (merger, name) = (merger.address(), format!("counter {index}"));
        spawn!(counter(_, merger), name = name, capacity = CAPACITY).address()
    });
    let counters: Vec<_> = counters.collect();
    let readers = (0..READERS).map(|index| {
        let (counters, name) = (counters.clone(), format!("reader {index}"));
        spawn!(reader(_, counters), name = name, capacity = CAPACITY).address()
    });
    let readers = readers.collect();
    drop(counters);
    spawn!(walker(_, folder, readers), name = "walker").detach();
    merger.join().await
}

/// Runs the second stage: compares all parts, and returns the pairs that are most alike.
async fn compare(parts: &Arc<Vec<Part>>, reporter: &Address<News>) -> Result<Vec<Pair>, Fault> {
    let matchers = (0..MATCHERS).map(|index| {
        let (parts, reporter) = (parts.clone(), reporter.clone());
        spawn!(
            matcher(_, parts, reporter),
            name = format!("matcher {index}")
        )
    });
    let matchers: Vec<_> = matchers.collect();
    for index in 0..parts.len() {
        let matcher = &matchers[index % MATCHERS];
        // Its mailbox is unbounded. A matcher that has panicked says so when it is joined.
        let _ = matcher.tell(index);
    }
    let mut best = Vec::new();
    for matcher in matchers {
        best.extend(matcher.join().await?);
    }
    keep_best(&mut best);
    Ok(best)
}

/// Returns the files of a folder that are not too large, sorted, and the folders in it.
///
/// Hidden entries, links and what cannot be read are left out.
fn list(folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else {
            continue;
        };
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if metadata.is_dir() {
            folders.push(path);
        } else if metadata.is_file() && metadata.len() <= SIZE_MAX {
            files.push(path);
        }
    }
    files.sort();
    (files, folders)
}

/// Counts the words of a file, and cuts it into parts.
fn count(path: &Path, text: &str) -> Counted {
    let mut words: HashMap<String, u64> = HashMap::new();
    let mut parts = Vec::new();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (index, lines) in lines.chunks(LINES).enumerate() {
        let text = lines.concat();
        let mut hashes = Vec::new();
        for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
            if word.is_empty() {
                continue;
            }
            hashes.push(hash_of(word));
            *words.entry(word.to_owned()).or_default() += 1;
        }
        let mut shingles: Vec<u64> = hashes.windows(SHINGLE).map(hash_of).collect();
        shingles.sort_unstable();
        shingles.dedup();
        if shingles.len() >= SHINGLES_MIN {
            parts.push(Part {
                path: path.to_owned(),
                line: index * LINES + 1,
                text,
                shingles,
            });
        }
    }
    Counted { parts, words }
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the words, the most frequent one first.
fn rank(totals: &HashMap<String, u64>) -> Vec<&str> {
    let mut ranking: Vec<(&String, &u64)> = totals.iter().collect();
    ranking.sort_unstable_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
    ranking.into_iter().map(|(word, _)| word.as_str()).collect()
}

/// Returns how many of the values of two sorted lists are in both, as a share of all.
fn likeness(a: &[u64], b: &[u64]) -> f64 {
    let (mut i, mut j, mut both) = (0, 0, 0_usize);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        both += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    both as f64 / (a.len() + b.len() - both) as f64
}

fn keep_best(pairs: &mut Vec<Pair>) {
    let order = |a: &Pair, b: &Pair| b.likeness.total_cmp(&a.likeness);
    pairs.sort_by(|a, b| order(a, b).then(a.indices.cmp(&b.indices)));
    pairs.truncate(PAIRS);
}

/// Returns the length of the longest common subsequence.
fn common(a: &[u8], b: &[u8]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (at, y) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = match x == y {
                true => diagonal + 1,
                false => above.max(row[at]),
            };
            diagonal = above;
        }
    }
    row[b.len()]
}
