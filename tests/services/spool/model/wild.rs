//! Spools whose workers fail, hang, come and go at any time. Whatever happens, these rules hold:
//!
//! - each request has exactly one outcome, and is always in one place: settled, open or waiting;
//! - the counters add up to the requests;
//! - the queue has no more requests than allowed, except those that came back;
//! - while requests wait, no worker is idle (without affinity);
//! - a request is handled as often as it may be tried, and never if it is refused for load;
//! - requests of one key are begun in order of arrival, by one worker while their number is fixed;
//! - a refusal has a cause among the options;
//! - in the end there are as many workers as before.

use std::ops::Range;

use greenroom::Overflow;
use greenroom::spool::SpoolBuilder;
use greenroom::time::timeout;

use super::*;

const SEEDS: Range<u64> = 0..1000;
const CLIENTS: usize = 4;

/// What a request makes its worker do.
#[derive(Clone, Copy)]
enum Act {
    Answer,
    Yield(usize),
    Sleep(Duration),
    /// Let another task answer after this time.
    Forward(Duration),
    ForwardAndEnd(Duration),
    Drop,
    Refuse,
    Panic,
    Return,
    Hang,
}

/// A request. Its number is its rank in the order of arrival.
#[derive(Clone)]
struct Question {
    number: usize,
    key: usize,
    act: Act,
}

type Wild = Spool<Question, usize>;
type WildWork = (Question, Reply<usize>);

#[derive(Clone)]
struct Options {
    objects: usize,
    is_external: bool,
    capacity: Option<usize>,
    size: Option<usize>,
    responsiveness: Option<Duration>,
    queue_timeout: Option<Duration>,
    overflow: Overflow,
    retries: u32,
    has_affinity: bool,
    stand_down: Duration,
    /// Whether the number of workers changes.
    changes: bool,
    hangs: bool,
}

impl Options {
    fn draw(draws: &mut Draws) -> Options {
        let is_external = draws.one_in(4);
        Options {
            objects: 1 + draws.below(4),
            is_external,
            capacity: draws.one_in(3).then(|| 1 + draws.below(2)),
            size: draws.one_in(2).then(|| 1 + draws.below(4)),
            responsiveness: (!draws.one_in(3)).then(|| seconds(0.5) + draws.millis(1500)),
            queue_timeout: draws.one_in(3).then(|| seconds(0.1) + draws.millis(5000)),
            overflow: [Overflow::Newest, Overflow::Oldest][draws.below(2)],
            retries: [0, 0, 1, 3][draws.below(4)],
            has_affinity: draws.one_in(2),
            changes: is_external || draws.one_in(2),
            hangs: draws.one_in(3),
            stand_down: seconds(0.1) + draws.millis(3000),
        }
    }

    fn builder(&self, book: &Book) -> SpoolBuilder<Question, usize> {
        let (own, book) = (self.clone(), book.clone());
        let builder = match self.is_external {
            true => Spool::external(),
            false => Spool::builder(move |number| own.worker(number, &book)),
        };
        let builder = builder.workers(self.objects).capacity(self.size);
        let builder = builder
            .responsiveness(self.responsiveness)
            .queue_timeout(self.queue_timeout);
        let builder = builder.overflow(self.overflow).retries(self.retries);
        let builder = builder.busy_pass_rate(3).stand_down(self.stand_down);
        match self.has_affinity {
            true => builder.affinity(|question: &Question| question.key),
            false => builder,
        }
    }

    fn worker(&self, number: usize, book: &Book) -> Handle<WildWork, ()> {
        let notes = book.clone();
        let worker = actor(move |cx| wild(cx, number, notes));
        let worker = match self.capacity {
            Some(capacity) => worker.capacity(capacity).spawn(),
            None => worker.spawn(),
        };
        book.with(|pages| pages.workers.push(worker.address()));
        worker
    }

    fn question(&self, draws: &mut Draws, number: usize) -> Question {
        let act = match draws.below(30) {
            0..10 => Act::Answer,
            10..13 => Act::Yield(draws.below(5)),
            13..20 => Act::Sleep(draws.millis(2000)),
            20 | 21 => Act::Forward(draws.millis(3000)),
            22 => Act::ForwardAndEnd(draws.millis(3000)),
            23 => Act::Drop,
            24 => Act::Refuse,
            25 | 26 => Act::Panic,
            27 => Act::Return,
            _ if self.hangs => Act::Hang,
            _ => Act::Answer,
        };
        let key = draws.below(5);
        Question { number, key, act }
    }
}

/// What has happened.
#[derive(Default)]
struct Pages {
    /// Which worker has begun each request, in order.
    begun: Vec<(Question, usize)>,
    sent: usize,
    workers: Vec<Address<WildWork>>,
    outcomes: Vec<(usize, Result<usize, AskError>)>,
    has_left: bool,
    is_stopped: bool,
}

#[derive(Clone, Default)]
struct Book(Arc<Mutex<Pages>>);

impl Book {
    fn with<R>(&self, note: impl FnOnce(&mut Pages) -> R) -> R {
        note(
            &mut self
                .0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }
}

async fn wild(mut cx: Context<WildWork>, worker: usize, book: Book) {
    while let Some((question, reply)) = cx.recv().await {
        if !reply.is_wanted() {
            continue;
        }
        let (number, act) = (question.number, question.act);
        book.with(|pages| pages.begun.push((question, worker)));
        match act {
            Act::Answer => reply.send(number),
            Act::Yield(times) => {
                for _ in 0..times {
                    yield_now().await;
                }
                reply.send(number);
            }
            Act::Sleep(time) => {
                sleep(time).await;
                reply.send(number);
            }
            Act::Forward(time) | Act::ForwardAndEnd(time) => {
                let answers = async move {
                    sleep(time).await;
                    reply.send(number);
                };
                greenroom::spawn(answers).detach();
                if matches!(act, Act::ForwardAndEnd(_)) {
                    return;
                }
            }
            Act::Drop => drop(reply),
            Act::Refuse => reply.refuse(Refusal::new("no", "")),
            Act::Panic => panic!("bomb"),
            Act::Return => return,
            Act::Hang => std::future::pending().await,
        }
    }
}

/// Sends requests, and notes their outcomes.
async fn client(spool: Wild, options: Options, book: Book, mut draws: Draws) {
    let mut waiting = Vec::new();
    for _ in 0..4 + draws.below(10) {
        sleep(draws.millis(1500)).await;
        let burst = [1, 1, 1, 4][draws.below(4)];
        for _ in 0..burst {
            let number = book.with(|pages| pages.sent);
            let question = options.question(&mut draws, number);
            let (reply, answer) = greenroom::Reply::pair();
            let told = match draws.below(2) {
                0 => spool.tell(question, reply),
                _ => spool.address().tell((question, reply)),
            };
            if told.is_err() {
                return;
            }
            book.with(|pages| pages.sent += 1);
            if draws.one_in(8) {
                // The asker goes away.
                let patience = draws.millis(1000);
                let leaves = async move { drop(timeout(patience, answer).await) };
                greenroom::spawn(leaves).detach();
                continue;
            }
            let notes = book.clone();
            waiting.push(greenroom::spawn(async move {
                let outcome = answer.await;
                notes.with(|pages| pages.outcomes.push((number, outcome)));
            }));
        }
        check(&spool, &options, &book);
    }
    for outcome in waiting {
        outcome.await;
    }
}

/// Checks what holds at any time.
fn check(spool: &Wild, options: &Options, book: &Book) {
    let (status, sent) = (spool.status(), book.with(|pages| pages.sent));
    let in_places = settled(status) + (status.busy + status.waiting) as u64;
    assert_eq!(in_places, sent as u64, "{status:?}");
    // Requests that come back are not refused.
    let back = 10;
    assert!(
        options
            .size
            .is_none_or(|size| status.waiting <= size + back),
        "{status:?}"
    );
    if !options.has_affinity {
        assert!(status.waiting == 0 || status.idle == 0, "{status:?}");
    }
}

/// Changes the workers.
async fn changes(spool: Wild, options: Options, book: Book, mut draws: Draws) {
    let mut joined = Vec::new();
    let joins = |joined: &mut Vec<_>, number| {
        let worker = options.worker(number, &book);
        spool.join_worker(worker.address());
        joined.push(worker);
    };
    if options.is_external {
        (0..options.objects).for_each(|number| joins(&mut joined, number));
    }
    for number in 0..draws.below(14) {
        sleep(draws.millis(1500)).await;
        match draws.below(6) {
            0 | 1 => {
                let workers = book.with(|pages| pages.workers.clone());
                workers[draws.below(workers.len())].kill();
            }
            2 if !options.hangs => {
                let workers = book.with(|pages| pages.workers.clone());
                workers[draws.below(workers.len())].stop();
            }
            3 if options.changes && !options.is_external => {
                spool.resize(1 + draws.below(5)).unwrap();
            }
            4 if options.changes => joins(&mut joined, 100 + number),
            5 if !joined.is_empty() => {
                let worker = joined.swap_remove(draws.below(joined.len()));
                book.with(|pages| pages.has_left = true);
                spool.leave(&worker.address());
                if draws.one_in(2) {
                    spool.join_worker(worker.address());
                    joined.push(worker);
                }
            }
            _ => {}
        }
        check(&spool, &options, &book);
    }
    // Those that have joined go on until they are dropped with the spool.
    joined.into_iter().for_each(Handle::detach);
}

async fn run(seed: u64) {
    let mut draws = Draws::of(seed, 0);
    let options = Options::draw(&mut draws);
    let book = Book::default();
    let spool = options.builder(&book).spawn().unwrap();
    let part = |part| {
        (
            spool.clone(),
            options.clone(),
            book.clone(),
            Draws::of(seed, part),
        )
    };
    let (own, opts, notes, drawn) = part(1);
    let changes = greenroom::spawn(changes(own, opts, notes, drawn));
    let clients: Vec<_> = (0..CLIENTS as u64)
        .map(|number| {
            let (own, opts, notes, drawn) = part(number + 2);
            greenroom::spawn(client(own, opts, notes, drawn))
        })
        .collect();
    changes.await;
    match draws.below(4) {
        0 => sleep(draws.millis(5000)).await,
        _ => sleep(seconds(200.0)).await,
    }
    check(&spool, &options, &book);
    let status = spool.status();
    let is_calm = options.responsiveness.is_some() && options.capacity.is_none();
    if is_calm && !options.changes && status.waiting + status.busy + status.standing_down == 0 {
        assert_eq!(status.idle, options.objects, "{status:?}");
    }
    book.with(|pages| pages.is_stopped = true);
    if draws.one_in(3) {
        spool.kill();
    }
    spool.stop();
    sleep(seconds(100.0)).await;
    spool.kill();
    spool.join().await.unwrap_err();
    for client in clients {
        client.await;
    }
    let status = spool.status();
    assert_eq!((status.idle, status.busy, status.waiting), (0, 0, 0));
    book.with(|pages| {
        assert_eq!(settled(status), pages.sent as u64);
        judge(pages, &options, status);
    });
}

/// Checks what holds of all requests.
fn judge(pages: &Pages, options: &Options, status: SpoolStatus) {
    let begun = |number: usize| pages.begun.iter().filter(move |it| it.0.number == number);
    for number in 0..pages.sent {
        assert!(
            begun(number).count() <= 1 + options.retries as usize,
            "{number}"
        );
    }
    for (number, outcome) in &pages.outcomes {
        match outcome {
            Ok(answer) => {
                assert_eq!(answer, number);
                assert!(begun(*number).count() >= 1);
            }
            Err(AskError::NoReply(_)) => {}
            Err(AskError::Refused(refused)) => match refused.kind() {
                RefusalKind::Overloaded | RefusalKind::Busy => {
                    let tries = options.retries > 0;
                    assert!(tries || begun(*number).count() == 0, "{refused}");
                }
                RefusalKind::TimedOut => {
                    assert!(options.responsiveness.is_some() || options.queue_timeout.is_some());
                }
                RefusalKind::Unavailable => assert!(options.is_external),
                RefusalKind::Aborted => assert!(pages.is_stopped || pages.has_left),
                _ => assert_eq!(refused.condition(), "no"),
            },
            other => panic!("{other:?}"),
        }
    }
    let mut numbers: Vec<_> = pages.outcomes.iter().map(|it| it.0).collect();
    numbers.sort_unstable();
    assert!(
        numbers.is_sorted_by(|one, next| one < next),
        "an outcome came twice"
    );
    assert!(options.size.is_some() || status.refused_overloaded == 0);
    assert!(options.responsiveness.is_some() || status.refused_busy == 0);
    if options.has_affinity {
        for key in 0..5 {
            let of_key = || pages.begun.iter().filter(move |it| it.0.key == key);
            let numbers: Vec<_> = of_key().map(|it| it.0.number).collect();
            assert!(numbers.is_sorted(), "{numbers:?}");
            let mut workers: Vec<_> = of_key().map(|it| it.1).collect();
            workers.dedup();
            assert!(options.changes || workers.len() <= 1, "{workers:?}");
        }
    }
}

#[test]
fn a_spool_keeps_its_rules_whatever_happens() {
    within(2 * WATCH, || {
        keep_bombs_quiet();
        for seed in SEEDS {
            let _named = crate::support::matrix::Named(format!("seed {seed}"));
            let runtime = Runtime::builder().policy(Simulated::new(seed));
            let runtime = runtime.on_fault(|_| {}).build().unwrap();
            runtime.block_on(run(seed));
        }
    });
}
