//! The algorithm of a spool once more, for workers that only sleep and answer.
//!
//! It looks at one event after another and searches plain lists. Each request arrives at a time of
//! its own within a second, and all other times are whole seconds. So no two events are at once.

use std::ops::Range;

use greenroom::Overflow;

use super::*;

const SEEDS: Range<u64> = 0..1500;

/// Millis.
type Time = u64;

struct Options {
    objects: usize,
    size: Option<usize>,
    /// A little more than whole seconds, so that no average equals it.
    responsiveness: Option<Duration>,
    pass_rate: u32,
    queue_timeout: Option<Time>,
    overflow: Overflow,
    /// When each request arrives, and how long it takes.
    requests: Vec<(Time, Time)>,
}

/// The outcome of a request: its worker, or the kind of the refusal, with its text's number.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Answered(usize),
    Overloaded(usize),
    Busy,
    TimedOut,
}

impl Options {
    fn draw(seed: u64) -> Options {
        let mut draws = Draws::of(seed, 0);
        let requests = 4 + draws.below(40);
        let pace = 200 + draws.below(2500) as Time;
        let mut time = 0;
        let requests = (0..requests as Time).map(|number| {
            time += draws.below(pace as usize) as Time;
            // Each has a part of the second that no other one has.
            let arrives = time / 1000 * 1000 + 1000 + 20 * number;
            (arrives, 1000 * draws.below(5) as Time)
        });
        let mut requests: Vec<_> = requests.collect();
        requests.sort_unstable();
        Options {
            objects: 1 + draws.below(3),
            size: (!draws.one_in(3)).then(|| 1 + draws.below(5)),
            responsiveness: (!draws.one_in(3)).then(|| {
                Duration::from_secs(1 + draws.below(3) as u64) + Duration::from_micros(320)
            }),
            pass_rate: 1 + draws.below(4) as u32,
            queue_timeout: draws.one_in(3).then(|| 1000 * (1 + draws.below(4) as Time)),
            overflow: [Overflow::Newest, Overflow::Oldest][draws.below(2)],
            requests,
        }
    }
}

struct Naive<'a> {
    options: &'a Options,
    now: Time,
    /// The numbers of idle workers. The first has been idle longest.
    idle: Vec<usize>,
    /// The requests that wait.
    waiting: Vec<usize>,
    /// The request, the worker, when it was given and when it would be answered.
    open: Vec<(usize, usize, Time, Time)>,
    /// When each worker has done what it was given.
    done: Vec<Time>,
    spans: Vec<Time>,
    judged: u32,
    outcomes: Vec<Option<Outcome>>,
}

impl Naive<'_> {
    fn run(options: &Options) -> Vec<Outcome> {
        let mut naive = Naive {
            options,
            now: 0,
            idle: (0..options.objects).collect(),
            waiting: Vec::new(),
            open: Vec::new(),
            done: vec![0; options.objects],
            spans: Vec::new(),
            judged: 0,
            outcomes: vec![None; options.requests.len()],
        };
        for (request, (arrives, _)) in options.requests.iter().enumerate() {
            naive.advance(*arrives);
            naive.arrive(request);
        }
        naive.advance(Time::MAX);
        naive.outcomes.into_iter().map(Option::unwrap).collect()
    }

    /// Lets all happen that does before this time.
    fn advance(&mut self, until: Time) {
        while let Some(next) = self.next_event().filter(|next| *next < until) {
            self.now = next;
            let limit = self.options.queue_timeout.unwrap_or(Time::MAX / 2);
            let arrived = |request: usize| self.options.requests[request].0;
            if let Some(at) = self
                .waiting
                .iter()
                .position(|it| arrived(*it) + limit <= next)
            {
                let request = self.waiting.remove(at);
                self.outcomes[request] = Some(Outcome::TimedOut);
                continue;
            }
            let ends =
                |it: &(usize, usize, Time, Time)| it.3 <= next || it.2 + self.limit() <= next;
            let at = self.open.iter().position(ends).unwrap();
            let (request, worker, _, answered) = self.open.remove(at);
            if answered <= next {
                self.spans.push(answered - self.options.requests[request].0);
                self.outcomes[request] = Some(Outcome::Answered(worker));
            } else {
                self.outcomes[request] = Some(Outcome::TimedOut);
            }
            self.idle.push(worker);
            while !self.idle.is_empty() && !self.waiting.is_empty() {
                let request = self.waiting.remove(0);
                self.give(request);
            }
        }
        self.now = until;
    }

    fn limit(&self) -> Time {
        self.options
            .responsiveness
            .map_or(Time::MAX / 2, |it| 5 * it.as_micros() as Time / 1000)
    }

    fn next_event(&self) -> Option<Time> {
        let open = self.open.iter().map(|it| it.3.min(it.2 + self.limit()));
        let expires = self
            .waiting
            .iter()
            .filter_map(|it| Some(self.options.requests[*it].0 + self.options.queue_timeout?));
        open.chain(expires).min()
    }

    fn is_refused_for_load(&mut self) -> bool {
        let Some(limit) = self.options.responsiveness else {
            return false;
        };
        let last = &self.spans[self.spans.len().saturating_sub(32)..];
        let sum: Time = last.iter().sum();
        let is_busy = sum as f64 >= limit.as_secs_f64() * 1000.0 * last.len() as f64;
        if last.is_empty() || !is_busy {
            return false;
        }
        self.judged += 1;
        !self.judged.is_multiple_of(self.options.pass_rate)
    }

    fn arrive(&mut self, request: usize) {
        let has_worker = !self.idle.is_empty();
        if self.is_refused_for_load() {
            self.outcomes[request] = Some(Outcome::Busy);
        } else if has_worker {
            self.give(request);
        } else if self
            .options
            .size
            .is_none_or(|size| self.waiting.len() < size)
        {
            self.waiting.push(request);
        } else {
            let pending = self.waiting.len();
            let refused = match self.options.overflow == Overflow::Oldest {
                false => request,
                true => {
                    self.waiting.push(request);
                    self.waiting.remove(0)
                }
            };
            self.outcomes[refused] = Some(Outcome::Overloaded(pending));
        }
    }

    fn give(&mut self, request: usize) {
        let worker = self.idle.remove(0);
        let begins = self.now.max(self.done[worker]);
        self.done[worker] = begins + self.options.requests[request].1;
        self.open
            .push((request, worker, self.now, self.done[worker]));
    }
}

/// What a spool really does.
async fn really(options: &Options) -> Vec<Outcome> {
    let spool = Spool::builder(work).workers(options.objects);
    let spool = spool
        .capacity(options.size)
        .responsiveness(options.responsiveness);
    let spool = spool
        .busy_pass_rate(options.pass_rate)
        .overflow(options.overflow);
    let spool = spool.queue_timeout(options.queue_timeout.map(Duration::from_millis));
    let spool = spool.spawn().unwrap();
    let begun = greenroom::time::Instant::now();
    let mut answers = Vec::new();
    for (arrives, takes) in &options.requests {
        let arrives = Duration::from_millis(*arrives);
        sleep(arrives.saturating_sub(begun.elapsed())).await;
        answers.push(post(&spool, Job::Take(Duration::from_millis(*takes))));
        let status = spool.status();
        assert!(status.busy <= options.objects);
        assert!(options.size.is_none_or(|size| status.waiting <= size));
        assert!(status.waiting == 0 || status.idle == 0);
    }
    let mut outcomes = Vec::new();
    for answer in answers {
        outcomes.push(match answer.await {
            Ok(worker) => Outcome::Answered(worker),
            refused => {
                let refused = refusal(refused);
                match refused.kind() {
                    RefusalKind::Overloaded => Outcome::Overloaded(refused.pending().unwrap()),
                    RefusalKind::Busy => Outcome::Busy,
                    RefusalKind::TimedOut => Outcome::TimedOut,
                    _ => panic!("{refused}"),
                }
            }
        });
    }
    assert_eq!(settled(spool.status()), outcomes.len() as u64);
    outcomes
}

#[test]
fn each_request_has_the_outcome_that_the_algorithm_gives_it() {
    within(WATCH, || {
        let mut seen = [0; 4];
        for seed in SEEDS {
            let _named = crate::support::matrix::Named(format!("seed {seed}"));
            let options = Options::draw(seed);
            let policy = Simulated::new(seed).timer_jitter(Duration::ZERO);
            let runtime = Runtime::builder().policy(policy).build().unwrap();
            let real = runtime.block_on(really(&options));
            assert_eq!(real, Naive::run(&options));
            for outcome in real {
                seen[match outcome {
                    Outcome::Answered(_) => 0,
                    Outcome::Overloaded(_) => 1,
                    Outcome::Busy => 2,
                    Outcome::TimedOut => 3,
                }] += 1;
            }
        }
        assert!(seen.iter().all(|seen| *seen > 1000), "{seen:?}");
    });
}
