//! The lines of faults and restarts.

use std::time::Duration;

use futures::StreamExt;
use greenroom::supervise::Restarts;
use greenroom::trace::Level;
use greenroom::{Context, actor, spawn};

use super::{about, lines_of, traced};

async fn bomb(mut cx: Context<()>) {
    cx.recv().await;
    panic!("bomb");
}

#[test]
fn a_panic_is_a_fault() {
    let lines = lines_of(async {
        let bomb = spawn!(bomb(_));
        bomb.tell(()).unwrap();
        bomb.join().await.unwrap_err();
    });
    let lines = about(&lines, "bomb");
    assert_eq!(lines[2], "! <1>bomb - Fault: panicked: bomb");
    assert_eq!(lines[3], "X <1>bomb - Destroyed");
}

#[test]
fn an_actor_that_a_shutdown_cancels_is_a_warning() {
    let lines = lines_of(async {
        let forever = |cx: Context<()>| async move {
            std::future::pending::<()>().await;
            drop(cx);
        };
        let forever = actor(forever).name("forever").spawn();
        forever.tell(()).unwrap();
        greenroom::time::sleep(Duration::from_millis(1)).await;
        forever.detach();
    });
    assert_eq!(
        about(&lines, "forever")[1..],
        [
            "< <1>forever - Dropped () from <0>",
            "? <1>forever - Fault: was cancelled by the shutdown of its runtime",
            "X <1>forever - Destroyed",
        ]
    );
}

#[test]
fn a_part_of_an_actor_that_panics_is_a_fault_of_that_part() {
    let (builder, memory) = traced(Level::Debug);
    let runtime = builder.on_fault(|_| {}).build().unwrap();
    runtime.block_on(async {
        let with_source = |mut cx: Context<u32>| async move {
            let _bomb = cx.attach(futures::stream::iter([1]).map(|_| panic!("bomb")));
            cx.recv().await.map(drop)
        };
        let part = actor(with_source).name("part");
        part.spawn().join().await.unwrap();
        let idle = |_cx: Context<u32>| async {};
        let last = actor(idle).name("last").on_undelivered(|_| panic!("late"));
        let last = last.spawn();
        let _ = last.tell(1);
        let _ = last.join().await;
    });
    drop(runtime);
    let lines = memory.lines();
    let part = "! <1>part - Fault of a source: panicked: bomb".to_owned();
    assert!(about(&lines, "part").contains(&part), "{lines:?}");
    let last = "! <2>last - Fault of on_undelivered: panicked: late".to_owned();
    let was_told = lines.iter().any(|line| line.contains("Dropped u32"));
    assert_eq!(about(&lines, "last").contains(&last), was_told, "{lines:?}");
}

#[test]
fn a_restart_has_a_line_with_its_cause() {
    let lines = lines_of(async {
        let rules = Restarts::on_fault().intensity(1, Duration::from_secs(1));
        let bomb = spawn!(bomb(_), restart = rules);
        bomb.tell(()).unwrap();
        bomb.tell(()).unwrap();
        bomb.join().await.unwrap_err();
    });
    assert_eq!(
        about(&lines, "bomb")[1..],
        [
            "< <1>bomb - Received () from <0>",
            "? <1>bomb - Restarted (incarnation=1): panicked: bomb",
            "< <1>bomb - Received () from <0>",
            "! <1>bomb - Fault: panicked: bomb",
            "X <1>bomb - Destroyed",
        ]
    );
}

#[test]
fn a_restart_after_a_return_has_no_cause() {
    let lines = lines_of(async {
        let rules = Restarts::always().intensity(1, Duration::from_secs(1));
        let brief = |_cx: Context<()>| async {};
        let brief = actor(brief).name("brief").restart(rules).spawn();
        brief.join().await.unwrap();
    });
    assert_eq!(
        about(&lines, "brief")[1],
        "? <1>brief - Restarted (incarnation=1)"
    );
}
