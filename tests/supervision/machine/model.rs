//! The order of saved messages beside a naive model, in simulations.

use fastrand::Rng;
use greenroom::machine::{Machine, Next};
use greenroom::policy::Simulated;
use greenroom::{AskError, Context, Reply, Runtime, yield_now};

use crate::support::{Log, WATCH, within};

const SEEDS: u64 = 500;
const MESSAGES: usize = 30;

/// What the machine does with a message.
#[derive(Clone, Copy, Debug)]
enum Act {
    Stay,
    To,
    Save,
    Ignore,
    Done,
}

/// What the machine does with a message each time that it comes; at last it stays.
#[derive(Clone, Debug)]
struct Plan {
    id: usize,
    acts: Vec<Act>,
}

impl Plan {
    fn random(id: usize, random: &mut Rng) -> Plan {
        let act = |random: &mut Rng| match random.u8(..40) {
            0..8 => Act::Stay,
            8..16 => Act::To,
            16..36 => Act::Save,
            36..39 => Act::Ignore,
            _ => Act::Done,
        };
        let acts = (0..random.usize(..6)).map(|_| act(random)).collect();
        Plan { id, acts }
    }

    fn next(&mut self) -> Act {
        match self.acts.is_empty() {
            true => Act::Stay,
            false => self.acts.remove(0),
        }
    }
}

/// What has happened: the messages in the order in which they came, and those that were left and
/// refused.
#[derive(Clone, Debug, Default, PartialEq)]
struct Outcome {
    handled: Vec<usize>,
    refused: Vec<usize>,
    left: Vec<usize>,
    value: Option<usize>,
}

/// One list of all messages, of which the first `due` come again.
fn model(plans: &[Plan], limit: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let (mut queue, mut saved, mut due) = (plans.to_vec(), Vec::<Plan>::new(), 0);
    while !queue.is_empty() && outcome.value.is_none() {
        let mut plan = queue.remove(0);
        due = usize::saturating_sub(due, 1);
        outcome.handled.push(plan.id);
        match plan.next() {
            Act::Stay | Act::Ignore => {}
            Act::To => {
                due += saved.len();
                queue.splice(..0, saved.drain(..));
            }
            Act::Save if saved.len() + due < limit => saved.push(plan),
            Act::Save => outcome.refused.push(plan.id),
            Act::Done => outcome.value = Some(plan.id),
        }
    }
    let left = saved.iter().chain(&queue);
    outcome.left = left.map(|plan| plan.id).collect();
    outcome
}

struct Planned(Log<usize>, usize);

impl Machine for Planned {
    type State = ();
    type Message = (Plan, Reply<()>);
    type Value = usize;

    async fn on(
        &mut self,
        (): &(),
        (mut plan, reply): Self::Message,
        _cx: &mut Context<Self::Message>,
    ) -> Next<Self> {
        self.0.add(plan.id);
        if plan.id.is_multiple_of(3) {
            yield_now().await;
        }
        match plan.next() {
            Act::Stay => Next::Stay,
            Act::To => Next::To(()),
            Act::Save => Next::Save((plan, reply)),
            Act::Ignore => Next::Ignore((plan, reply)),
            Act::Done => Next::Done(plan.id),
        }
    }

    fn saved_capacity(&self) -> usize {
        self.1
    }
}

/// Lets a machine do all of it. The last address is dropped at the end, so the machine is stopped.
async fn run(plans: &[Plan], limit: usize, mut random: Rng) -> Outcome {
    let (handled, left) = (Log::default(), Log::default());
    let lost = left.clone();
    let builder = Planned(handled.clone(), limit).into_builder(());
    let builder = builder.on_undelivered(move |(plan, _): (Plan, _)| lost.add(plan.id));
    let planned = match random.bool() {
        true => builder.capacity(100).spawn(),
        false => builder.spawn(),
    };
    // All are accepted before one is handled, so that none is sent after the end.
    let mut answers = Vec::new();
    for plan in plans {
        let (reply, answer) = Reply::pair();
        planned.tell((plan.clone(), reply)).unwrap();
        answers.push((plan.id, answer));
    }
    let value = planned.join().await.unwrap().value;
    let mut refused = Vec::new();
    for (id, answer) in answers {
        if let Err(AskError::Refused(_)) = answer.await {
            refused.push(id);
        }
    }
    Outcome {
        handled: handled.take(),
        refused,
        left: left.take(),
        value,
    }
}

#[test]
fn saved_messages_agree_with_a_naive_model() {
    within(WATCH, || {
        let (mut refused, mut left) = (0, 0);
        for seed in 0..SEEDS {
            let _named = crate::support::matrix::Named(format!("seed {seed}"));
            let mut random = Rng::with_seed(seed);
            let plans: Vec<_> = (0..MESSAGES)
                .map(|id| Plan::random(id, &mut random))
                .collect();
            let limit = [0, 1, 3, 1000][random.usize(..4)];
            let runtime = Runtime::builder().policy(Simulated::new(seed));
            let outcome = runtime
                .build()
                .unwrap()
                .block_on(run(&plans, limit, random));
            let mut expected = model(&plans, limit);
            expected.refused.sort_unstable();
            assert_eq!(outcome, expected, "{plans:?}, limit {limit}");
            refused += outcome.refused.len();
            left += outcome.left.len();
        }
        assert!(
            refused > 100 && left > 100,
            "{refused} refused, {left} left"
        );
    });
}
