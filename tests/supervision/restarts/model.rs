//! A model of restarts: incarnations that panic, return, lend their context or move it away, in
//! virtual time, while the actor is told, asked, stopped or killed.
//!
//! Each seed draws the rules, the senders, and what is done with each letter. Whatever the order in
//! which things happen, these rules hold:
//!
//! - Every accepted letter is received or undelivered exactly once, in the order in which its
//!   sender's letters were accepted. A refused one is neither.
//! - An asker is answered, or is told of the panic that lost its letter.
//! - No two incarnations overlap, and no context elsewhere overlaps with the next incarnation.
//! - Restarts come after their delays, and within any window at most as many as the intensity
//!   allows. An actor leaves letters only if it was killed or its restarts are used up.
//! - `join` gives the last result.

mod book;

use std::ops::Range;
use std::pin::Pin;
use std::time::Duration;

use greenroom::supervise::Restarts;
use greenroom::time::{RetryIntervals, sleep, timeout};
use greenroom::{Address, AskError, Context, Fault, Reply, actor, sim, yield_now};

use crate::support::{WATCH, keep_bombs_quiet, within};
use book::{Alive, Book, Fate, Judged, Outcome};

const SEEDS: Range<u64> = 0..1000;
const SENDERS: usize = 3;
const SEC: Duration = Duration::from_secs(1);

/// The sender, and the number among the letters of that sender.
type Name = (usize, u32);

/// A letter, what its receiver does with it, and the reply to an ask.
struct Letter {
    name: Name,
    deed: Deed,
    reply: Option<Reply<Name>>,
}

/// What the receiver of a letter does. After the first two it answers, and before the others.
#[derive(Clone, Copy, Debug)]
enum Deed {
    PanicInHand,
    /// Wait for as many milliseconds.
    Hold(u64),
    Panic,
    /// Wait for as many turns, and as many milliseconds.
    Wait(usize, u64),
    Return,
    /// Lend the context for as many letters, and for as many milliseconds if that is not 0.
    Lend(u32, u64),
    /// Move the context to a task that reads as many letters. Then return or panic.
    Escape(u32, bool),
    Stop,
}

/// Draws numbers from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    async fn yields(&mut self, limit: u64) {
        for _ in 0..self.below(limit) {
            yield_now().await;
        }
    }

    fn deed(&mut self) -> Deed {
        match self.below(16) {
            0 | 1 => Deed::PanicInHand,
            2 => Deed::Panic,
            14 => Deed::Hold(self.below(5000)),
            3 => Deed::Return,
            4 | 5 => Deed::Lend(self.below(5) as u32, self.below(3) / 2 * self.below(3000)),
            6 | 7 => Deed::Escape(self.below(4) as u32, self.below(2) == 0),
            8 if self.below(3) == 0 => Deed::Stop,
            9 | 10 => Deed::Wait(self.below(4) as usize, self.below(2) * self.below(3000)),
            _ => Deed::Wait(0, 0),
        }
    }
}

/// Why a reader has ended.
#[derive(PartialEq)]
enum End {
    /// It has read as many letters as it was to.
    Done,
    Returned,
    Closed,
    /// Its context is elsewhere.
    Escaped,
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Reads at most `most` letters. `depth` counts the loans above.
fn read(mut cx: Context<Letter>, book: Book, depth: u32, most: u32) -> Boxed<End> {
    Box::pin(async move {
        for _ in 0..most {
            let Some(mut letter) = cx.recv().await else {
                return End::Closed;
            };
            let (name, deed) = (letter.name, letter.deed);
            book.see(name, Fate::Received);
            let text = format!("bomb at {depth} of {name:?}");
            if let Deed::PanicInHand = deed {
                book.change(name, Fate::Panicked(text.clone()));
                book.fail(depth, &text);
            }
            if let Deed::Hold(millis) = deed {
                sleep(Duration::from_millis(millis)).await;
            }
            book.change(name, Fate::Answered);
            if let Some(reply) = letter.reply.take() {
                reply.send(name);
            }
            match deed {
                Deed::PanicInHand | Deed::Panic => book.fail(depth, &text),
                Deed::Hold(_) => {}
                Deed::Wait(turns, millis) => {
                    for _ in 0..turns {
                        yield_now().await;
                    }
                    if millis > 0 {
                        sleep(Duration::from_millis(millis)).await;
                    }
                }
                Deed::Return => return End::Returned,
                Deed::Lend(letters, millis) => {
                    lend(&mut cx, &book, depth, (letters, millis)).await;
                }
                Deed::Escape(letters, panics) => {
                    escape(cx, &book, depth, letters);
                    if panics {
                        book.fail(depth, &text);
                    }
                    return End::Escaped;
                }
                Deed::Stop => cx.stop(),
            }
        }
        End::Done
    })
}

/// Lends the context for as many letters and milliseconds, unless it was lent often enough.
async fn lend(cx: &mut Context<Letter>, book: &Book, depth: u32, limits: (u32, u64)) {
    if depth % 10 >= 3 {
        return;
    }
    let (own, (letters, millis)) = (book.clone(), limits);
    let call = cx.incarnation(|cx| read(cx, own, depth + 1, letters));
    let limit = match millis {
        0 => Duration::MAX,
        _ => Duration::from_millis(millis),
    };
    match timeout(limit, call).await {
        // The letter in hand was dropped, or the context is elsewhere for good.
        Err(_) => book.with(|pages| pages.gives_up = true),
        Ok(Ok(_)) => {}
        Ok(Err(fault)) => {
            let text = format!("panicked: bomb at {} of", depth + 1);
            assert!(fault.to_string().starts_with(&text), "{fault}");
        }
    }
}

/// Moves the context to a task, which drops it after as many letters.
fn escape(mut cx: Context<Letter>, book: &Book, depth: u32, letters: u32) {
    let (own, alive) = (book.clone(), Alive::new(book));
    let holder = greenroom::spawn(async move {
        for _ in 0..letters {
            // Letters that would end a task end an incarnation of it instead.
            lend(&mut cx, &own, depth / 10 * 10 + 10, (1, 0)).await;
            yield_now().await;
        }
        drop(alive);
        drop(cx);
    });
    book.with(|pages| pages.holders.push(holder));
}

/// One incarnation of the actor.
async fn incarnate(cx: Context<Letter>, book: Book) -> u64 {
    let (number, _alive) = book.begin();
    read(cx, book.clone(), 0, u32::MAX).await;
    book.end(Outcome::Returned(number));
    number
}

/// Sends letters one after another. Enters those that were accepted, and the answers.
async fn sender(to: Address<Letter>, from: usize, mut draws: Draws, book: Book) {
    for number in 0..draws.below(16) as u32 {
        let (name, deed) = ((from, number), draws.deed());
        let letter = |reply| Letter { name, deed, reply };
        let is_accepted = match draws.below(5) {
            0 => to.tell(letter(None)).is_ok(),
            1 => to.send(letter(None)).await.is_ok(),
            2 => match to.reserve().await {
                Ok(permit) => {
                    draws.yields(6).await;
                    permit.send(letter(None));
                    true
                }
                Err(_) => false,
            },
            _ => {
                let answer = to.ask(|reply| letter(Some(reply))).await;
                let is_accepted = !matches!(answer, Err(AskError::Closed(_)));
                book.with(|pages| pages.answers.push((name, answer)));
                is_accepted
            }
        };
        if is_accepted {
            book.with(|pages| pages.accepted.push(name));
        }
        draws.yields(4).await;
        if draws.below(4) == 0 {
            sleep(Duration::from_millis(draws.below(4000))).await;
        }
    }
}

/// The rules of one run.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Whether a return leads to a restart, too.
    always: bool,
    restarts: u32,
    window: Duration,
    /// The least delay.
    delay: Duration,
    /// The number of delays, if it is limited.
    limit: Option<u64>,
}

impl Rules {
    fn draw(draws: &mut Draws) -> (Rules, Restarts<u64>) {
        let mut rules = Rules {
            always: draws.below(2) == 0,
            restarts: [1, 3, 1000, 1000][draws.below(4) as usize],
            window: SEC * (1 + draws.below(20) as u32),
            delay: Duration::ZERO,
            limit: None,
        };
        let mut restarts = match rules.always {
            true if draws.below(2) == 0 => Restarts::when(|_| true),
            true => Restarts::always(),
            false => Restarts::on_fault(),
        };
        restarts = restarts.intensity(rules.restarts, rules.window);
        match draws.below(4) {
            0 => {
                rules.delay = SEC * 3 / 2;
                restarts = restarts.stand_down(SEC * 2);
            }
            1 => {
                rules.delay = SEC;
                rules.limit = (draws.below(2) == 0).then_some(2);
                let mut delays = RetryIntervals::every(SEC * 2).with_first_steps([SEC]);
                if let Some(limit) = rules.limit {
                    delays = delays.with_step_limit(limit).unwrap();
                }
                restarts = restarts.delays(delays);
            }
            _ => {}
        }
        (rules, restarts)
    }
}

async fn run(seed: u64) {
    let mut draws = Draws(seed * 2 + 1);
    let book = Book::default();
    let (rules, restarts) = Rules::draw(&mut draws);
    let (own, undelivered) = (book.clone(), book.clone());
    let mut reader = actor(move |cx| incarnate(cx, own))
        .on_undelivered(move |letter: Letter| undelivered.see(letter.name, Fate::Undelivered));
    if draws.below(2) == 0 {
        reader = reader.capacity(1 + draws.below(3) as usize);
    }
    let reader = reader.name("reader").restart(restarts).spawn();
    let senders = (0..SENDERS).map(|from| {
        let own = Draws((seed * 8 + from as u64) * 2 + 1);
        greenroom::spawn(sender(reader.address(), from, own, book.clone()))
    });
    let senders: Vec<_> = senders.collect();
    draws.yields(30).await;
    sleep(Duration::from_millis(draws.below(2) * draws.below(9000))).await;
    let mut judged = Judged {
        rules,
        killed: false,
    };
    match draws.below(3) {
        0 => {
            judged.killed = true;
            reader.kill();
        }
        1 => reader.stop(),
        _ => {}
    }
    let weak = reader.downgrade();
    let result: Result<u64, Fault> = reader.join().await;
    futures::future::join_all(senders).await;
    while let Some(holder) = book.with(|pages| pages.holders.pop()) {
        holder.await;
    }
    assert!(weak.upgrade().is_none());
    book.with(|pages| judged.judge(pages, result));
}

#[test]
fn letters_and_incarnations_keep_the_rules_whatever_happens() {
    keep_bombs_quiet();
    within(WATCH, || sim::explore(SEEDS, run));
}
