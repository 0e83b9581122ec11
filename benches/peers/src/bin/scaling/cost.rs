//! The cost of a message and of a spawn while a number of actors live.

use std::iter::repeat_n;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_lite::future::yield_now;
use peers::linux::processor_time;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::figures::{self, Figure, Operation};
use crate::lines::{self, Counts};
use crate::point::BESIDE_MANY;
use crate::way::Way;

/// The number of rings that all actors form, with one token each, so that every worker has work.
/// Several tokens in one ring would catch up with each other, and be handled together from then on.
const RINGS: usize = 16;
/// The sum that all finished tokens send together.
const TOKENS: u64 = RINGS as u64;
/// The number of messages before the measurement and in it, for any number of actors.
const WARM_HOPS: u64 = 1 << 18;
const HOPS: u64 = 1 << 20;
/// The number of tasks that send to one actor, of their messages before the measurement and in it,
/// and of messages after which a task yields.
const TELLERS: u64 = 64;
const WARM_TOLD: u64 = 1 << 16;
const TOLD: u64 = 1 << 18;
const BETWEEN_YIELDS: u64 = 64;
/// The number of actors that are spawned before the last ones have ended.
const WAVE: u64 = 1000;
/// The number of waves before the measurement and in it.
const WARM_WAVES: usize = 20;
const WAVES: usize = 200;

/// Measures messages, and then spawns, while `live` actors live; beside [`BESIDE_MANY`] of them also
/// messages to one actor.
pub async fn run<W: Way>(live: u64) -> Vec<Figure> {
    lines::start();
    let (done, mut sums) = adder::<W>([live, TOKENS, TOKENS, live].into_iter());
    let stations = stations::<W>(live, &done);
    for ring in rings(&stations) {
        close::<W>(ring);
    }
    check(&mut sums, "stations", live).await;

    go_round::<W>(&stations, WARM_HOPS);
    check(&mut sums, "tokens", TOKENS).await;
    let watch = Stopwatch::start();
    go_round::<W>(&stations, HOPS);
    check(&mut sums, "tokens", TOKENS).await;
    let message = watch.figures(&figures::MESSAGE, HOPS);

    let to_one = match live {
        BESIDE_MANY => to_one::<W>().await,
        _ => Vec::new(),
    };
    let spawn = spawns::<W>().await;

    for station in &stations {
        W::tell(station, Message::Leave);
    }
    check(&mut sums, "hops", WARM_HOPS + HOPS).await;
    [message, to_one, spawn].concat()
}

/// Measures the time, the processor time of all threads together, and what [`lines`] counts.
struct Stopwatch {
    begin: Instant,
    processor: Duration,
    counts: Option<Counts>,
}

impl Stopwatch {
    fn start() -> Self {
        Self {
            begin: Instant::now(),
            processor: processor_time(),
            counts: lines::counts(),
        }
    }

    fn figures(&self, of: &Operation, count: u64) -> Vec<Figure> {
        let nanoseconds = |time: Duration| time.as_secs_f64() * 1e9 / count as f64;
        let times = [
            (of.time, nanoseconds(self.begin.elapsed())),
            (
                of.processor_time,
                nanoseconds(processor_time() - self.processor),
            ),
        ];
        let before = self.counts.unwrap_or_default();
        let counts = lines::counts().unwrap_or(before).into_iter().zip(before);
        let each = counts.map(|(after, before)| (after - before) as f64 / count as f64);
        let counts = self.counts.map(|_| of.counts.into_iter().zip(each));
        times
            .into_iter()
            .chain(counts.into_iter().flatten())
            .collect()
    }
}

/// Spawns an actor that adds up a number of numbers, sends the sum, and continues with the next
/// count.
fn adder<W: Way>(
    counts: impl Iterator<Item = u64> + Send + 'static,
) -> (W::Address<u64>, UnboundedReceiver<u64>) {
    let (sums, receiver) = unbounded_channel();
    (W::actor(|inbox| add::<W>(inbox, counts, sums)), receiver)
}

async fn add<W: Way>(
    mut inbox: W::Inbox<u64>,
    counts: impl Iterator<Item = u64> + Send,
    sums: UnboundedSender<u64>,
) {
    for count in counts {
        let mut sum = 0;
        for _ in 0..count {
            sum += W::recv(&mut inbox).await.expect("all are told");
        }
        sums.send(sum).expect("the driver waits");
    }
}

/// Panics if the next sum is wrong.
async fn check(sums: &mut UnboundedReceiver<u64>, what: &str, expected: u64) {
    let sum = sums.recv().await.expect("there is one more sum");
    assert_eq!(sum, expected, "wrong result: {what}");
}

enum Message<W: Way> {
    Next(W::Address<Message<W>>),
    Hop(u64),
    Leave,
}

/// Passes tokens on until they have no hops left; sends its number of hops to `done` at its end.
async fn station<W: Way>(mut inbox: W::Inbox<Message<W>>, done: W::Address<u64>) {
    let (mut seen, mut next) = (0, None);
    while let Some(message) = W::recv(&mut inbox).await {
        match message {
            Message::Next(station) => {
                next = Some(station);
                W::tell(&done, 1);
            }
            Message::Hop(left) => {
                seen += 1;
                match (left.checked_sub(1), &next) {
                    (Some(left), Some(next)) => W::tell(next, Message::Hop(left)),
                    _ => W::tell(&done, 1),
                }
            }
            Message::Leave => break,
        }
    }
    W::tell(&done, seen);
}

/// Spawns `live` actors; their order is independent of their positions in memory.
fn stations<W: Way>(live: u64, done: &W::Address<u64>) -> Vec<W::Address<Message<W>>> {
    let station = |_| {
        let done = done.clone();
        W::actor(|inbox| station::<W>(inbox, done))
    };
    let mut stations: Vec<_> = (0..live).map(station).collect();
    Rng::with_seed(live).shuffle(&mut stations);
    stations
}

/// Splits the stations into equal parts; some are longer by one.
fn rings<T>(stations: &[T]) -> impl Iterator<Item = &[T]> {
    let begin = |ring| ring * stations.len() / RINGS;
    (0..RINGS).map(move |ring| &stations[begin(ring)..begin(ring + 1)])
}

/// Sends the address of the next station to each one.
fn close<W: Way>(ring: &[W::Address<Message<W>>]) {
    for (station, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        W::tell(station, Message::Next(next.clone()));
    }
}

/// Sends its token to every ring, with its share of the hops.
fn go_round<W: Way>(stations: &[W::Address<Message<W>>], hops: u64) {
    for ring in rings(stations) {
        W::tell(&ring[0], Message::Hop(hops / TOKENS - 1));
    }
}

/// Lets tasks send to one actor.
async fn to_one<W: Way>() -> Vec<Figure> {
    let (adder, mut sums) = adder::<W>([WARM_TOLD, TOLD].into_iter());
    let mut watch = Stopwatch::start();
    for messages in [WARM_TOLD, TOLD] {
        watch = Stopwatch::start();
        let teller = |_| {
            let adder = adder.clone();
            W::task(async move {
                for n in 0..messages / TELLERS {
                    W::tell(&adder, 1);
                    if n % BETWEEN_YIELDS == 0 {
                        yield_now().await;
                    }
                }
            })
        };
        let _tellers: Vec<_> = (0..TELLERS).map(teller).collect();
        check(&mut sums, "messages to one actor", messages).await;
    }
    watch.figures(&figures::TO_ONE, TOLD)
}

/// The state of a spawned actor, which is sent when it is dropped.
struct Total<W: Way> {
    sum: u64,
    collector: W::Address<u64>,
}

impl<W: Way> Drop for Total<W> {
    fn drop(&mut self) {
        W::tell(&self.collector, self.sum);
    }
}

async fn visitor<W: Way>(mut inbox: W::Inbox<u64>, mut total: Total<W>) {
    while let Some(number) = W::recv(&mut inbox).await {
        total.sum += number;
    }
}

/// Spawns actors in waves, which receive one message each and end. The next wave starts after all
/// actors of the last one were dropped, so no wave needs new memory.
async fn spawns<W: Way>() -> Vec<Figure> {
    let (collector, mut sums) = adder::<W>(repeat_n(WAVE, WARM_WAVES + WAVES));
    let mut watch = Stopwatch::start();
    for wave in 0..WARM_WAVES + WAVES {
        if wave == WARM_WAVES {
            watch = Stopwatch::start();
        }
        for sum in 0..WAVE {
            let collector = collector.clone();
            let total = Total { sum, collector };
            let visitor = W::actor(|inbox| visitor::<W>(inbox, total));
            W::tell(&visitor, 1);
        }
        check(&mut sums, "sum", WAVE * (WAVE - 1) / 2 + WAVE).await;
    }
    watch.figures(&figures::SPAWN, WAVE * WAVES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_station_is_in_one_ring_and_the_rings_are_equal() {
        let stations: Vec<usize> = (0..100).collect();
        assert_eq!(rings(&stations).collect::<Vec<_>>().concat(), stations);
        assert!(rings(&stations).all(|ring| [6, 7].contains(&ring.len())));
    }

    #[test]
    fn every_token_has_the_same_number_of_hops() {
        assert_eq!([WARM_HOPS % TOKENS, HOPS % TOKENS], [0, 0]);
        assert_eq!([WARM_TOLD % TELLERS, TOLD % TELLERS], [0, 0]);
    }
}
