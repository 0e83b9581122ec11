//! Supervisors: which children begin anew, in which order, and how a tree ends.

mod example;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::supervise::{ChildState, Restarts, StartProblem, Strategy, Supervisor};
use greenroom::{Address, AskCause, AskError, Context, Reply, actor};

/// What the children of a test did, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Notes the end of an incarnation.
struct Life(&'static str, Log);

impl Drop for Life {
    fn drop(&mut self) {
        self.1.note(format!("-{}", self.0));
    }
}

enum Job {
    Fail,
    Number(Reply<u64>),
    Hang(Reply<()>),
}

/// Notes its begin and its end in the log, and fails on demand.
async fn child(mut cx: Context<Job>, name: &'static str, log: Log) {
    log.note(format!("+{name}"));
    let _life = Life(name, log);
    while let Some(job) = cx.recv().await {
        match job {
            Job::Fail => panic!("{name} failed"),
            Job::Number(reply) => reply.send(cx.incarnation_number()),
            Job::Hang(_reply) => std::future::pending().await,
        }
    }
}

async fn number(child: &Address<Job>) -> u64 {
    child.ask(Job::Number).await.unwrap()
}

/// Waits until the supervisor knows that a child runs.
async fn running(tree: &Supervisor, child: usize) {
    while tree.children()[child].state != ChildState::Running {
        greenroom::yield_now().await;
    }
}

/// Starts the children a, b and c.
fn start_three(tree: &Supervisor, log: &Log) -> [Address<Job>; 3] {
    ["a", "b", "c"].map(|name| {
        let log = log.clone();
        tree.start(actor(move |cx| child(cx, name, log)).name(name))
            .unwrap()
    })
}

async fn restarted_by(strategy: Strategy) -> (Vec<String>, [u64; 3]) {
    let log = Log::default();
    let tree = Supervisor::builder().strategy(strategy).spawn().unwrap();
    let [a, b, c] = start_three(&tree, &log);
    number(&c).await;
    log.take();
    b.tell(Job::Fail).unwrap();
    number(&b).await;
    let numbers = [number(&a).await, number(&b).await, number(&c).await];
    let seen = log.take();
    tree.stop();
    tree.join().await.unwrap();
    assert_eq!(log.take(), ["-c", "-b", "-a"]);
    (seen, numbers)
}

#[test]
fn each_strategy_restarts_its_children_in_order() {
    greenroom::run(async {
        let (log, numbers) = restarted_by(Strategy::OneForOne).await;
        assert_eq!((log, numbers), (vec!["-b".into(), "+b".into()], [0, 1, 0]));

        let (mut log, numbers) = restarted_by(Strategy::RestForOne).await;
        log[..2].sort();
        assert_eq!(log, ["-b", "-c", "+b", "+c"]);
        assert_eq!(numbers, [0, 1, 1]);

        let (mut log, numbers) = restarted_by(Strategy::OneForAll).await;
        log[..3].sort();
        assert_eq!(log, ["-a", "-b", "-c", "+a", "+b", "+c"]);
        assert_eq!(numbers, [1, 1, 1]);
    });
}

#[test]
fn a_supervisor_whose_intensity_is_used_up_stops_its_children_and_says_why() {
    greenroom::run(async {
        let log = Log::default();
        let tree = Supervisor::builder()
            .intensity(1, Duration::from_secs(3600))
            .spawn()
            .unwrap();
        let [a, b, c] = start_three(&tree, &log);
        b.tell(Job::Fail).unwrap();
        assert_eq!(number(&b).await, 1);
        b.tell(Job::Fail).unwrap();
        let escalated = tree.join().await.unwrap_err();
        assert_eq!(escalated.child().id(), b.id());
        assert_eq!(escalated.faults().collect::<Vec<_>>(), ["b failed"; 2]);
        assert!(a.is_closed() && c.is_closed());
        assert_eq!(tree.children(), []);
    });
}

#[test]
fn a_supervisor_below_is_restarted_with_all_its_addresses() {
    greenroom::run(async {
        let log = Log::default();
        let top = Supervisor::builder().name("top").spawn().unwrap();
        let below = Supervisor::builder()
            .intensity(0, Duration::from_secs(1))
            .name("below");
        let below = top.supervisor(below).unwrap();
        let [a, b, c] = start_three(&below, &log);
        number(&c).await;
        b.tell(Job::Fail).unwrap();
        assert_eq!(number(&b).await, 1);
        assert_eq!((number(&a).await, number(&c).await), (1, 1));
        running(&top, 0).await;
        assert_eq!(top.children()[0].restarts, 1);
        assert_eq!(top.children()[0].last_fault.as_deref(), Some("b failed"));
        for _ in 0..5 {
            b.tell(Job::Fail).unwrap();
            b.ask(Job::Number).await.ok();
        }
        let escalated = top.join().await.unwrap_err();
        assert_eq!(escalated.child().name(), Some("below"));
        let escalated = below.join().await.unwrap_err();
        assert_eq!(escalated.child().name(), Some("b"));
        assert!(a.is_closed());
    });
}

#[test]
fn a_child_is_restarted_by_hand() {
    greenroom::run(async {
        let log = Log::default();
        let tree = Supervisor::builder().name("tree").spawn().unwrap();
        let [a, b, _c] = start_three(&tree, &log);
        let hanging = a.request(Job::Hang);
        let restart = async {
            number(&b).await;
            running(&tree, 0).await;
            tree.restart(&a).unwrap();
        };
        let (hanging, ()) = greenroom::concurrently((hanging, restart)).await;
        let Err(AskError::NoReply(detail)) = hanging else {
            panic!("{hanging:?}")
        };
        assert_eq!(detail.why(), &AskCause::Restarted);
        assert_eq!((number(&a).await, number(&b).await), (1, 0));

        let other = greenroom::spawn!(child(_, "other", log.clone()), name = "other");
        let error = tree.restart(&other).unwrap_err();
        assert_eq!(
            error.to_string(),
            "other is not a child of tree, or has ended"
        );
        tree.stop_child(&a).unwrap();
        a.ended().await;
        assert_eq!(number(&b).await, 0);
        other.stop();
    });
}

#[test]
fn a_child_that_is_started_after_a_stop_comes_back() {
    greenroom::run(async {
        let log = Log::default();
        let tree = Supervisor::builder().spawn().unwrap();
        tree.stop();
        let late = actor(move |cx| child(cx, "late", log)).restart(Restarts::always());
        let error = tree.start(late).unwrap_err();
        assert_eq!(error.problem(), StartProblem::Stopping);
        tree.join().await.unwrap();
    });
}
