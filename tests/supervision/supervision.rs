//! Supervisors: which children begin anew, in which order, and how a tree ends.

mod at_once;
mod bombs;
mod ends;
mod errors;
mod example;
mod joins;
mod model;
mod nested;
mod orders;
mod places;
mod rounds;
mod states;
mod trees;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::supervise::{ChildState, Restarts, Strategy, Supervisor, SupervisorBuilder};
use greenroom::time::sleep;
use greenroom::{Address, Answer, AskCause, AskError, Context, Reply, Runtime, actor, yield_now};

use crate::support::{Gate, Log, WATCH, within};

/// Longer than any run takes.
const LONG: Duration = Duration::from_secs(1_000_000);

/// The number of simulations of each scenario.
const SEEDS: u64 = 40;

/// Runs a scenario in many simulations, then on two workers.
fn everywhere<Fut>(scenario: impl Fn() -> Fut + Send + 'static)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    within(WATCH, move || {
        simulated(&scenario);
        for _ in 0..3 {
            on_two_workers(scenario());
        }
    });
}

fn on_two_workers<F: Future<Output = ()>>(scenario: F) {
    let runtime = Runtime::builder().workers(2).on_fault(|_| {});
    runtime.build().unwrap().block_on(scenario);
}

/// Runs a scenario in many simulations, whose time is virtual.
fn simulated<Fut: Future<Output = ()>>(scenario: impl Fn() -> Fut) {
    for seed in 0..SEEDS {
        let _named = crate::support::matrix::Named(format!("seed {seed}"));
        let runtime = Runtime::builder().policy(Simulated::new(seed));
        let runtime = runtime.on_fault(|_| {}).build().unwrap();
        runtime.block_on(scenario());
    }
}

/// Notes the end of an incarnation.
struct Life(&'static str, Log<String>);

impl Drop for Life {
    fn drop(&mut self) {
        self.1.add(format!("-{}", self.0));
    }
}

enum Job {
    Fail,
    Return,
    Note(u32),
    Number(Reply<u64>),
    Sleep(Duration),
    /// Opens the first gate, and answers once the second one is open.
    Hold(Gate, Gate, Reply<()>),
    /// Puts the context in this place, and never answers.
    Escape(Place, Reply<()>),
}

/// A place for a context, after the end of the incarnation that had it.
type Place = Arc<Mutex<Option<(Life, Context<Job>)>>>;

/// Notes its begin and its end in the log, and does what it is told.
async fn child(mut cx: Context<Job>, name: &'static str, log: Log<String>) {
    log.add(format!("+{name}"));
    let life = Life(name, log);
    while let Some(job) = cx.recv().await {
        match job {
            Job::Fail => panic!("bomb {name}"),
            Job::Return => return,
            Job::Note(number) => life.1.add(format!("{name}{number}")),
            Job::Number(reply) => reply.send(cx.incarnation_number()),
            Job::Sleep(time) => sleep(time).await,
            Job::Hold(holds, until, reply) => {
                holds.open();
                until.wait().await;
                reply.send(());
            }
            Job::Escape(place, _reply) => {
                *place.lock().unwrap() = Some((life, cx));
                return std::future::pending().await;
            }
        }
    }
}

async fn number(child: &Address<Job>) -> u64 {
    child.ask(Job::Number).await.unwrap()
}

/// Returns why an ask was not answered.
fn cause(answer: Result<(), AskError>) -> AskCause {
    match answer {
        Err(AskError::NoReply(detail)) => detail.why().clone(),
        other => panic!("{other:?}"),
    }
}

/// Waits until the supervisor says this of a child.
async fn wait_for(tree: &Supervisor, child: &Address<Job>, state: ChildState) {
    wait_for_id(tree, child.id(), state).await;
}

async fn wait_for_id(tree: &Supervisor, child: u64, state: ChildState) {
    while state_of(tree, child) != state {
        yield_now().await;
    }
}

/// Returns what the supervisor says of a child.
fn state_of(tree: &Supervisor, child: u64) -> ChildState {
    let children = tree.children();
    children.iter().find(|it| it.id == child).unwrap().state
}

/// Waits until the supervisor knows that each child runs.
async fn all_run(tree: &Supervisor) {
    while (tree.children().iter()).any(|child| child.state != ChildState::Running) {
        yield_now().await;
    }
}

/// Waits until all children have begun. Another one begins after them, and is stopped again.
async fn all_have_begun(tree: &Supervisor) {
    let last = start(tree, &Log::default(), "last");
    number(&last).await;
    tree.stop_child(&last).unwrap();
    last.closed().await;
}

/// Waits until the supervisor knows that a child was restarted so often.
async fn wait_for_restarts(tree: &Supervisor, child: &Address<Job>, restarts: u64) {
    loop {
        let children = tree.children();
        let status = children.iter().find(|it| it.id == child.id()).unwrap();
        if status.restarts >= restarts {
            return;
        }
        yield_now().await;
    }
}

/// Starts a child that is restarted as often as it fails.
fn start(tree: &Supervisor, log: &Log<String>, name: &'static str) -> Address<Job> {
    let log = log.clone();
    let any = Restarts::on_fault().intensity(u32::MAX, LONG);
    let child = actor(move |cx| child(cx, name, log)).name(name);
    tree.start(child.restart(any)).unwrap()
}

/// Starts the children a, b and c.
fn start_three(tree: &Supervisor, log: &Log<String>) -> [Address<Job>; 3] {
    ["a", "b", "c"].map(|name| start(tree, log, name))
}

/// A supervisor whose intensity is never used up.
fn patient(strategy: Strategy) -> SupervisorBuilder {
    let tree = Supervisor::builder().strategy(strategy);
    tree.intensity(u32::MAX, LONG)
}

/// Lets a child hold a message for good. Returns when it does.
async fn hold(child: &Address<Job>) -> Answer<()> {
    let (reply, answer) = Reply::pair();
    let holds = Gate::default();
    let hold = Job::Hold(holds.clone(), Gate::default(), reply);
    child.tell(hold).unwrap();
    holds.wait().await;
    answer
}

/// A context that has left its incarnation, and the answer that it owes.
type Escaped = (Place, Answer<()>);

/// Lets a child put its context into a place. Returns when it has.
async fn escape(child: &Address<Job>) -> Escaped {
    let (reply, answer) = Reply::pair();
    let place = Place::default();
    child.tell(Job::Escape(place.clone(), reply)).unwrap();
    while place.lock().unwrap().is_none() {
        yield_now().await;
    }
    (place, answer)
}
