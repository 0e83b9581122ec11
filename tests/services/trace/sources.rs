//! The lines of messages that do not come from the mailbox: timers, children, answers, streams.

use std::time::Duration;

use greenroom::{Address, Context, Fault, Reply, actor, spawn};

use super::{about, lines_of};

struct Tick;

#[test]
fn a_timer_has_a_line_for_its_start_and_one_for_each_message() {
    let lines = lines_of(async {
        let once = |mut cx: Context<Tick>| async move {
            let _timer = cx.send_after(Duration::from_millis(5), Tick);
            cx.recv().await.map(drop)
        };
        actor(once).name("once").spawn().join().await.unwrap();
        let every = |mut cx: Context<Tick>| async move {
            let _timer = cx.send_every(Duration::from_secs(2), || Tick);
            for _tick in 0..2 {
                cx.recv().await;
            }
        };
        actor(every).name("every").spawn().join().await.unwrap();
    });
    let once = about(&lines, "once");
    assert_eq!(once[1], "> <1>once - Started timer Tick in 5ms");
    assert_eq!(once[2], "< <1>once - Received Tick from timer");
    let every = about(&lines, "every");
    assert_eq!(every[1], "> <2>every - Started timer Tick every 2s");
    assert_eq!(every[2], "< <2>every - Received Tick from timer");
    assert_eq!(every[3], "< <2>every - Received Tick from timer");
}

#[test]
fn a_child_returns_its_value_to_its_parent() {
    struct Done;
    async fn child(mut cx: Context<()>) -> u64 {
        cx.recv().await;
        1
    }
    async fn parent(mut cx: Context<Done>) {
        let child = spawn!(child(_));
        let address = child.address();
        cx.adopt(child, |_: Result<u64, Fault>| Done);
        address.tell(()).unwrap();
        cx.recv().await.unwrap();
    }
    let lines = lines_of(async { spawn!(parent(_)).join().await.unwrap() });
    let child = about(&lines, "child");
    assert_eq!(child[2], "> <2>child - Returned u64 to <1>");
    let parent = about(&lines, "parent");
    assert_eq!(parent[2], "< <1>parent - Received Done from <2>");
}

#[test]
fn answers_and_streams_are_named_as_such() {
    async fn asked(mut cx: Context<Reply<u8>>) {
        cx.recv().await.unwrap().send(1);
    }
    async fn listens(mut cx: Context<u32>, asked: Address<Reply<u8>>) {
        cx.on_answer(asked.request(|reply| reply), |_| 1);
        cx.recv().await.unwrap();
        let _stream = cx.attach(futures::stream::iter([2]));
        cx.recv().await.unwrap();
    }
    let lines = lines_of(async {
        let asked = spawn!(asked(_));
        spawn!(listens(_, asked.address())).join().await.unwrap();
    });
    let listens = about(&lines, "listens");
    assert_eq!(listens[1], "> <2>listens - Sent Reply<u8> to <1>");
    assert_eq!(listens[2], "< <2>listens - Received u32 from answer");
    assert_eq!(listens[3], "< <2>listens - Received u32 from source");
    let sent = "> <1>asked - Sent u8 to <2>".to_owned();
    assert!(about(&lines, "asked").contains(&sent));
}
